"""How many files and lines changes concern, and what of them can be drawn."""

import os
from pathlib import Path

import pytest

from bradawl.app.symbols import ASCII
from bradawl.app.terminal_user import FileDiff
from bradawl.app.undo_files import ChangesSince, Comparison, changes_at, counts_text, summary_text
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore
from bradawl.tools.editing.diffs import describe_change

ROOT = "/project"


@pytest.fixture
def store(tmp_path: Path):
    with ContentStore(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def state(store):
    """The state of a file with a content, which the store has."""

    def save(content: bytes | str | None, *, mode: int = 0o644) -> FileState | None:
        if content is None:
            return None
        data = content.encode() if isinstance(content, str) else content
        return FileState("file", mode, store.add_bytes(data), len(data))

    return save


@pytest.fixture
def change(state):
    def make(name: str, before: bytes | str | None, after: bytes | str | None) -> Change:
        return Change(os.fsencode(f"{ROOT}/{name}"), state(before), state(after))

    return make


def test_counts_are_of_files_and_lines(store, change):
    comparison = Comparison(store, ROOT, describe_change)
    changes = [change("a", "1\n2\n3\n", "1\nx\n3\n4\n"), change("b", None, "x\n" * 40), change("c", "y\n", None)]
    assert counts_text(changes, comparison, ASCII) == "3 files +42 -2"
    assert counts_text(changes[2:], comparison, ASCII) == "1 file +0 -1"
    assert counts_text([change("d", None, b"\0")], comparison, ASCII) == "1 file"
    assert counts_text([], comparison, ASCII) == "no files"


def test_folders_and_data_of_git_are_no_files(store, change):
    comparison = Comparison(store, ROOT, describe_change)
    folder = Change(b"/project/new", None, FileState("folder", 0o755))
    index = change(".git/index", b"\0", b"\1")
    assert counts_text([folder], comparison, ASCII) == "no files"
    assert counts_text([folder, index], comparison, ASCII) == "git's data"
    assert summary_text([folder, index], comparison, ASCII) == "Data of git: 1 file"


def test_changes_of_earlier_calls_make_one_change_of_each_file(change):
    since = ChangesSince()
    since.add_earlier(ChangeRecord("c", 0, (change("a", "2", "3"), change("b", "1", "2"))))
    since.add_earlier(ChangeRecord("c", 0, (change("a", "1", "2"), change("b", "2", "1"))))
    assert since.changes == [change("a", "1", "3")], "b is as it was before"


def test_a_summary_names_the_first_files_with_what_happened_to_each(store, change, state):
    changes = [change("app.py", "1\n", "2\n"), change("new\x1b[31m", None, "x\n"), change("img", b"\0", b"\0\0")]
    changes.append(Change(b"/project/run", state("x\n"), state("x\n", mode=0o755)))
    assert summary_text(changes, Comparison(store, ROOT, describe_change), ASCII).splitlines() == [
        "4 files +2 -1",
        "  app.py       +1 -1",
        "  new\\x1b[31m  +1 -0  new",
        "  img          changed",
        "  run          +0 -0  mode 0644 -> 0755",
    ]
    many = [change(f"f{number:02d}", None, "x\n") for number in range(30)]
    lines = summary_text(many, Comparison(store, ROOT, describe_change), ASCII).splitlines()
    assert (len(lines), lines[-1]) == (14, "  ... and 18 more")


def test_texts_are_drawn_and_everything_else_is_named(store, change):
    changes = [change("a.py", "1\n", "2\n"), change("img", b"\0", b"\0\0"), change("b", "x" * 90, "y" * 90)]
    text, binary, long = Comparison(store, ROOT, describe_change, most_bytes=100).drawn(changes)
    assert text == FileDiff("a.py: changed (+1 -1)", "a.py", "1\n", "2\n")
    assert binary == "img: changed (binary, 1 -> 2 bytes)"
    assert long == "b: changed (so much has changed that this is not compared)"
    assert counts_text(changes, Comparison(store, ROOT, describe_change, most_bytes=100), ASCII) == "3 files +1 -1"


def test_a_path_chooses_a_file_or_what_is_in_a_folder(change):
    changes = [change("src/a.py", None, "x"), change("src/b\n", None, "x"), change("src2", None, "x")]
    assert changes_at(changes, "src", ROOT) == changes_at(changes, "/project/src/", ROOT) == tuple(changes[:2])
    assert changes_at(changes, "./src/../src/a.py", ROOT) == tuple(changes[:1])
    assert changes_at(changes, "src/b\\n", ROOT) == tuple(changes[1:2]), "as lists show it"
    assert changes_at(changes, ".", ROOT) == tuple(changes) and changes_at(changes, "sr", ROOT) == ()
