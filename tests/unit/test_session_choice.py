"""Which session a run continues: ids of other agents, the id of a new session, and copies."""

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.last_answer import replace_file
from bradawl.app.session_choice import own_id, parse_new_id, shown_id
from bradawl.core.errors import SettingsError

UUID = "0b0e7b0a-3f6c-4c57-9d2f-0123456789ab"
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@given(st.uuids())
def test_a_uuid_is_a_session_id_of_the_same_number(number):
    spelled = own_id(str(number))
    assert sum(ALPHABET.index(each) << 5 * place for place, each in enumerate(reversed(spelled))) == number.int
    assert own_id(str(number).upper()) == spelled and parse_new_id(spelled.lower()) == spelled


@pytest.mark.parametrize("text", ["x", "", "8" + "0" * 25, "0" * 25, UUID[:-1], "I" * 26])
def test_other_texts_name_no_new_session(text):
    assert own_id(text) == text
    with pytest.raises(SettingsError, match="--session-id"):
        parse_new_id(text)


def test_a_session_is_shown_as_it_was_named():
    assert shown_id(UUID, own_id(UUID)) == UUID
    assert shown_id(UUID, own_id(str(uuid.uuid4()))) != UUID
    assert shown_id(None, "01X") == "01X"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the whole program on a scripted model; returns the exit code, the result and stderr."""
    import io

    from bradawl.app.cli import run as run_program
    from bradawl.app.console import Console

    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    environ = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", "BRADAWL_SANDBOX": "off"}

    def run(script, *argv):
        (tmp_path / "script.json").write_text(json.dumps(script))
        out, err = io.StringIO(), io.StringIO()
        console = Console(io.StringIO(), out, err, environ)
        more = ("-m", f"scripted/{tmp_path}/script.json", "--output-format", "json", "--no-undo")
        code = run_program([*argv, *more], environ, console)
        return code, json.loads(out.getvalue().splitlines()[-1]), err.getvalue()

    run.log = lambda name: next((tmp_path / "home").rglob(f"sessions/{name}.jsonl")).read_bytes()
    run.sessions = lambda: {path.stem for path in (tmp_path / "home").rglob("sessions/*.jsonl")}
    return run


def test_a_new_session_has_the_id_that_was_asked_for_and_is_continued_by_it(run):
    code, result, _ = run([{"text": "One."}], "-p", "first", "--session-id", UUID)
    assert (code, result["session_id"]) == (0, UUID)
    assert run.sessions() == {own_id(UUID)}
    code, result, _ = run([{"text": "Two."}], "-p", "second", "-r", UUID)
    assert (code, result["result"]) == (0, "Two.") and run.sessions() == {own_id(UUID)}
    code, result, _ = run([], "-p", "third", "--session-id", UUID)
    assert code == 1 and "already" in result["errors"][0]


def test_a_copy_has_the_conversation_and_the_original_stays_as_it_is(run):
    _, first, _ = run([{"text": "One."}], "-p", "first")
    before = run.log(first["session_id"])
    code, copy, said = run([{"text": "Two.", "expect": "second"}], "-p", "second", "-c", "--fork-session")
    assert (code, copy["result"]) == (0, "Two."), said
    assert run.sessions() == {first["session_id"], copy["session_id"]} and run.log(first["session_id"]) == before
    assert copy["usage"]["input_tokens"] > first["usage"]["input_tokens"]
    code, _, said = run([{"text": "Three.", "expect": "third"}], "-p", "third", "-r", first["session_id"])
    assert code == 0, said
    code, named, _ = run(
        [{"text": "Four."}], "-p", "x", "-r", first["session_id"], "--fork-session", "--session-id", UUID
    )
    assert (code, named["session_id"]) == (0, UUID)


def test_a_copy_of_no_session_is_an_error(run):
    code, result, _ = run([], "-p", "x", "-r", "01NOSUCHSESSION", "--fork-session")
    assert code == 1 and "There is no session" in result["errors"][0] and run.sessions() == set()


# ------------------------------------------------------------------ the file of the answer


def test_a_link_stays_a_link_and_a_new_file_has_the_usual_mode(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    replace_file(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    (tmp_path / "beside").write_text("")
    replace_file(tmp_path / "fresh", "half \ud800")
    assert (tmp_path / "fresh").read_text() == "half ?"
    assert (tmp_path / "fresh").stat().st_mode == (tmp_path / "beside").stat().st_mode


@pytest.mark.parametrize("name", ["missing/file", "folder", "nul\0"])
def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises((OSError, ValueError)):
        replace_file(tmp_path / name, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
