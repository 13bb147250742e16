"""Single checks of `bradawl doctor`, and the layout of its report at every width."""

import io
import json
import os

import pytest
from cli_world import Terminal
from hypothesis import given
from hypothesis import strategies as st

from bradawl.app.console import Console
from bradawl.app.doctor.check import Check, Diagnosis
from bradawl.app.doctor.files import Disk, disk_check, disk_of, file_checks
from bradawl.app.doctor.layout import report_lines
from bradawl.app.doctor.model import model_checks, tool_calls_check
from bradawl.app.doctor.terminal import terminal_checks
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.app.text_layout import cells
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer
from bradawl.testing.fakes import Cut, Reply, ScriptedHttp

SECRET = "sk-" + "doctor-0123456789abcdef"
WORDS = st.sampled_from(
    ["word", "漢字漢字", "e\u0301", "\U0001f469\u200d\U0001f467", "/a/path/to/some/file", "\x1b[31m", "-"]
)
TEXTS = st.lists(WORDS, max_size=30).map(" ".join)
NAMES = st.one_of(st.just("disk"), TEXTS)
HINTS = st.lists(TEXTS, max_size=4).map("\n  ".join)
CHECKS = st.builds(Check, NAMES, st.sampled_from(["ok", "warning", "problem"]), TEXTS, HINTS)


@given(st.lists(CHECKS, max_size=5), st.integers(40, 200))
def test_no_line_of_the_report_is_wider_than_the_terminal(checks, width):
    lines = report_lines(Diagnosis(True, tuple(checks), ()), width)
    assert all(cells(line) <= width for line in lines)
    assert "\x1b" not in "".join(lines)
    known = {word for line in report_lines(Diagnosis(True, tuple(checks), ()), 10_000) for word in line.split()}
    assert all(word in known for line in lines for word in line.split())


def test_a_wide_report_has_texts_beside_names_and_a_narrow_one_below():
    diagnosis = Diagnosis(False, (Check("disk", "problem", "no space", "Free some:\n  rm -r x"),), ())
    assert report_lines(diagnosis, 80) == [
        "PROBLEM  disk              no space",
        "                           Free some:",
        "                             rm -r x",
        "",
        "1 problem to solve first.",
    ]
    assert report_lines(diagnosis, 40)[:4] == ["PROBLEM  disk", "  no space", "  Free some:", "    rm -r x"]


# ------------------------------------------------------------------ files


def files_of(home, **environ):
    checks = file_checks({"HOME": str(home), "TMPDIR": str(home), **environ}, str(home))
    return {check.name: check for check in checks if check.name != "disk"}, [
        one for one in checks if one.name == "disk"
    ]


def test_stored_keys_are_named_by_their_provider_only(user_home):
    path = user_home / ".config" / "bradawl" / "credentials.toml"
    path.write_text(f"[openai]\napi_key = '{SECRET}'\n[groq]\nkeyring = true\n")
    path.chmod(0o600)
    check = files_of(user_home)[0]["credentials.toml"]
    assert (check.state, check.text.endswith("readable by you only; keys of groq, openai")) == ("ok", True)
    path.chmod(0o644)
    check = files_of(user_home)[0]["credentials.toml"]
    assert (check.state, f"chmod 600 {path}" in check.text) == ("problem", True)
    assert SECRET not in repr(check)


def test_files_of_the_project_that_count_are_named(user_home):
    (user_home / ".git").mkdir()
    (user_home / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert "project files" not in files_of(user_home)[0]
    (user_home / "pyproject.toml").write_text("[tool.bradawl]\nmax_steps = 3\n")
    assert "pyproject.toml" in files_of(user_home)[0]["project files"].text


def test_each_folder_that_is_written_to_has_its_disk(user_home):
    found = [check.text for check in files_of(user_home)[1]]
    assert [text.partition(":")[0] for text in found] == ["settings", "sessions", "temporary files"]
    assert all(str(user_home) in text and "free for" in text for text in found)


def test_the_file_system_of_a_folder_that_does_not_exist_yet_is_that_above_it(tmp_path):
    assert disk_of(str(tmp_path / "a" / "b")) == disk_of(str(tmp_path))
    assert disk_of("/proc").kind == "proc"


@pytest.mark.parametrize(
    ("disk", "is_writable", "state", "words"),
    [
        (Disk("ext4", 68_000), True, "ok", "68 GB free"),
        (Disk("ext4", 150), True, "warning", "150 MB free"),
        (Disk("ext4", 3), True, "problem", "3 MB free"),
        (Disk("nfs4", 68_000), True, "warning", "network file system (nfs4)"),
        (Disk("fuse.sshfs", 68_000), True, "warning", "network file system"),
        (Disk("ext4", 68_000), False, "problem", "can't be written"),
        (None, True, "warning", "nothing is known"),
    ],
)
def test_a_disk_that_is_full_remote_or_read_only_is_reported(disk, is_writable, state, words):
    check = disk_check("sessions", "/x", disk, is_writable=is_writable)
    assert (check.state, words in check.text) == (state, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_folder_that_can_not_be_written_is_a_problem(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    _, disks = files_of(tmp_path, BRADAWL_HOME=str(tmp_path / "closed"))
    assert disks[0].state == "problem"


# ------------------------------------------------------------------ the terminal


def terminal_of(stdin, stdout, **environ):
    return {check.name: check for check in terminal_checks(Console(stdin, stdout, Terminal(), environ), environ)}


@pytest.mark.parametrize(
    ("environ", "state", "words"),
    [
        ({"TERM": "xterm-256color"}, "ok", "256 colours"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, "ok", "all colours"),
        ({"TERM": "xterm", "NO_COLOR": "1"}, "ok", "no colours"),
        ({"TERM": "xterm"}, "ok", "16 colours"),
        ({"TERM": "dumb"}, "warning", "TERM is dumb"),
        ({}, "warning", "TERM is not set"),
    ],
)
def test_the_terminal_is_described_by_its_variables(environ, state, words):
    check = terminal_of(Terminal(), Terminal(), **environ)["terminal"]
    assert (check.state, words in check.text) == (state, True)


def test_without_a_terminal_there_is_none_and_no_problem():
    check = terminal_of(io.StringIO(), io.StringIO(), TERM="dumb")["terminal"]
    assert (check.state, check.text) == ("ok", "none here; TERM is dumb")


@pytest.mark.parametrize(
    ("encoding", "state"), [("utf-8", "ok"), ("UTF8", "ok"), ("ascii", "warning"), ("latin-1", "warning")]
)
def test_an_encoding_other_than_utf_8_is_a_warning(encoding, state):
    with io.TextIOWrapper(io.BytesIO(), encoding=encoding) as stdout:
        assert terminal_of(Terminal(), stdout, TERM="xterm")["characters"].state == state


# ------------------------------------------------------------------ the model

CHOSEN = ModelSettings(
    "acme", "m", "https://acme.example/v1", api_key=SECRET, key_name="ACME_API_KEY", key_origin="https://acme.example"
)


@pytest.mark.parametrize(
    ("reply", "state", "words"),
    [
        (Reply(200, (json.dumps({"data": [{"id": "m"}]}).encode(),)), "ok", "with 1 model"),
        (Reply(200, (json.dumps({"data": [{"id": "n"}]}).encode(),)), "warning", "does not list m; it has n"),
        (Reply(401, (b"{}",)), "problem", "does not accept the key"),
        (Reply(402, (b'{"error": {"message": "Insufficient Balance"}}',)), "problem", "Insufficient Balance"),
        (Reply(429, (b"{}",)), "warning", ""),
        (Reply(404, (b"{}",)), "warning", "no list of models"),
        (Reply(500, (b"{}",)), "problem", ""),
        (Cut(), "problem", ""),
    ],
)
async def test_the_endpoint_is_reachable_and_authorised_or_says_why_not(user_home, reply, state, words):
    settings = Settings(model=CHOSEN, cwd=str(user_home), home=str(user_home))
    checks = {check.name: check for check in await model_checks(settings, {}, lambda *_: ScriptedHttp([reply]))}
    assert checks["key"].text == "from ACME_API_KEY"
    assert (checks["endpoint"].state, words in checks["endpoint"].text) == (state, True)
    assert SECRET not in repr(checks)


@pytest.mark.parametrize(
    ("provider", "model", "url", "state", "words"),
    [
        ("openai", "gpt-5.5", "https://api.openai.com/v1", "ok", "as the catalog says"),
        ("acme", "m", "https://acme.example/v1", "ok", "not known"),
        ("ollama", "chatty", "http://127.0.0.1:11434/v1", "warning", "not supported, as its server says"),
        ("ollama", "warm", "http://127.0.0.1:11434/v1", "ok", "supported, as its server says"),
    ],
)
def test_tool_calls_are_known_from_the_server_or_the_catalog(provider, model, url, state, words):
    models = (LocalModel("chatty", has_tools=False), LocalModel("warm", has_tools=True))
    servers = [LocalServer("ollama", "http://127.0.0.1:11434/v1", models)]
    (check,) = tool_calls_check(ModelSettings(provider, model, url), servers)
    assert (check.state, words in check.text) == (state, True)
    assert tool_calls_check(ModelSettings("scripted", "x"), servers) == []
