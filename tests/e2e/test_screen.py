"""Untrusted text is cleaned on every path to stdout, stderr and the terminal."""

import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest
from plain_terminal import PlainTerminal
from terminal import START

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x1b[1A\x9b31m\x9d0;pwned\x9c\u202e\u2066\u200b\U000e0041\ufe01\r\x08\x00.. Harmless"
"""Window title, cleared screen, 8-bit controls, reversed reading order, tags, zero-width characters, then a word."""
NAME = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e\U000e0041x"
"""The characters of `HOSTILE` that a file name may contain."""


def harm_in(text: str, *, at_terminal: bool = False) -> list[str]:
    """Characters in the text that must not reach a terminal. A terminal that echoes adds carriage returns."""
    fine = "\n\t\r" if at_terminal else "\n\t"
    found = [
        f"U+{ord(character):04X}"
        for character in sorted(set(text) - set(fine))
        if unicodedata.category(character) in ("Cc", "Cf", "Cs") or 0xE0000 <= ord(character) <= 0xE0FFF
    ]
    return found + (["the title"] if "\x1b]0;pwned" in text else [])


@pytest.fixture
def run(tmp_path):
    """Runs bradawl with a scripted model and a home folder of its own. Returns exit code, stdout and stderr."""

    def run(script, *argv, cwd="", **environ):
        (tmp_path / "script.json").write_text(json.dumps(script))
        given = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "BRADAWL_MODEL": f"scripted/{tmp_path}/script.json"}
        done = subprocess.run(
            [*START, *argv],
            cwd=cwd or tmp_path,
            env={**given, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def hostile_turn():
    """A script with hostile text in a reply, in names, arguments and results of calls, in todos and in the answer."""
    return [
        {
            "text": HOSTILE,
            "thinking": HOSTILE,
            "tool_calls": [
                {"id": "a", "name": "bash", "arguments": {"command": f"printf '%s' '{HOSTILE[:-16]}'; exit 3"}},
                {"id": "b", "name": f"tool{NAME}", "arguments": {"path": HOSTILE}},
                {"id": "c", "name": "read_file", "arguments": {"file_path": NAME}},
                {"id": "d", "name": "read_file", "arguments": f"not JSON {HOSTILE}"},
                {
                    "id": "e",
                    "name": "todo_write",
                    "arguments": {"todos": [{"content": HOSTILE, "status": "in_progress"}]},
                },
                {"id": "f", "name": "write_file", "arguments": {"file_path": NAME + "2", "content": HOSTILE}},
                {
                    "id": "g",
                    "name": "agent",
                    "arguments": {"prompt": HOSTILE, "kind": "explore", "description": HOSTILE},
                },
            ],
        },
        {"text": f"answer of a sub-agent {HOSTILE}"},
        {"text": f"The answer. {HOSTILE}"},
    ]


def test_the_answer_and_the_progress_are_clean(run, tmp_path):
    (tmp_path / NAME).write_text(HOSTILE)
    code, out, err = run(hostile_turn(), "-p", HOSTILE.replace("\x00", ""), "-y")
    assert code == 0, err
    assert "Harmless" in out and "The answer." in out
    assert "todos: 0 of 1 completed, now: .. Harmless" in err and "Run    " in err and "Read   " in err
    assert harm_in(out) == harm_in(err) == []


def test_a_call_refused_for_lack_of_a_user_is_reported_clean(run):
    script = [{"tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": f"rm {HOSTILE}"}}]}, {"text": "No."}]
    _, out, err = run(script, "-p", "x", "--permission-mode", "default") if _has_modes(run) else run(script, "-p", "x")
    assert "Harmless" in err
    assert harm_in(out) == harm_in(err) == []


def _has_modes(run) -> bool:
    return "--permission-mode" in run([], "--help")[1]


def test_json_output_contains_all_text_and_is_clean(run):
    said = HOSTILE.replace("\r", "")
    code, out, err = run([{"text": said}], "-p", "x", "-y", "--output-format", "json")
    assert code == 0
    assert json.loads(out)["result"] == said
    assert harm_in(out) == harm_in(err) == []


@pytest.mark.parametrize(
    ("argv", "environ"),
    [
        (("-p", "x", f"--{NAME}"), {}),
        (("-p", "x", "--effort", NAME), {}),
        (("-p", "x", "-r", NAME), {}),
        (("-p", "x", "--json-schema", NAME), {}),
        (("-p", "x", "-C", NAME), {}),
        (("-p", "x"), {"BRADAWL_MODEL": f"scripted/{NAME}.json"}),
        (("-p", "x"), {"BRADAWL_MODEL": f"{NAME}/m"}),
        (("-p", "x", "--base-url", f"http://{NAME}/"), {"BRADAWL_MODEL": "openai/m", "OPENAI_API_KEY": "k"}),
        (("-p", "x", "--max-steps", NAME), {}),
        (("doctor",), {"BRADAWL_MODEL": f"scripted/{NAME}.json"}),
        (("doctor", "--json"), {"BRADAWL_MODEL": f"openai/{NAME}"}),
        (("doctor", "-C", NAME), {}),
        (("models", "--json"), {"BRADAWL_MODEL": f"openai/{NAME}"}),
        (("models", NAME), {}),
        (("models", "-m", f"{NAME}/m"), {}),
    ],
)
@pytest.mark.parametrize("is_json", [False, True])
def test_error_messages_about_arguments_and_files_are_clean(run, argv, environ, is_json):
    if is_json and "-p" not in argv:
        pytest.skip("only a run with a prompt has --output-format")
    _, out, err = run([{"text": "Hello."}], *argv, *(["--output-format", "json"] if is_json else []), **environ)
    assert out + err
    assert harm_in(out) == harm_in(err) == []
    assert "Traceback" not in err


def test_hostile_names_of_folders_and_settings_files_are_shown_clean(run, tmp_path):
    folder = tmp_path / NAME
    (folder / ".bradawl").mkdir(parents=True)
    key = json.dumps(NAME)
    (folder / ".bradawl" / "config.toml").write_text(f"{key} = 1\nmodel = {key}\n", encoding="utf-8")
    (folder / "AGENTS.md").write_text(HOSTILE)
    for argv in (("-p", "x", "-y"), ("doctor",), ("doctor", "--json"), ("models",)):
        _, out, err = run([{"text": "Hello."}], *argv, cwd=folder)
        assert harm_in(out) == harm_in(err) == [], argv


def test_the_demo_prints_nothing_but_text(run):
    code, out, err = run([], "demo")
    assert code == 0
    assert harm_in(out) == harm_in(err) == []


# ------------------------------------------------------------------ at a terminal


@pytest.fixture
def talk(tmp_path):
    """Opens terminals in a folder with a hostile name, and closes them."""
    opened = []
    folder = Path(tmp_path, NAME)
    folder.mkdir()

    def open_terminal(script, *argv, **environ):
        opened.append(PlainTerminal(folder, script, *argv, **environ))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def write(path, content):
    arguments = {"file_path": path, "content": content}
    return {"tool_calls": [{"id": "a", "name": "write_file", "arguments": arguments}]}


def test_a_conversation_its_questions_and_its_resumed_history_are_clean(talk):
    script = [
        {"text": f"I look. {HOSTILE}", "thinking": HOSTILE, **write("../outside", HOSTILE)},
        {
            "tool_calls": [
                {"id": "b", "name": "ask_user", "arguments": {"question": HOSTILE, "options": [HOSTILE, "x"]}}
            ]
        },
        {"text": f"Done. {HOSTILE}"},
    ]
    one = talk(script, TERM="dumb")  # bradawl itself prints no escape sequences there
    one.wait_for_prompt()
    one.type("begin\n")
    one.wait_for("Allow?")
    assert "\\x1b]0;pwned\\x07" in one.text and "\\u202e" in one.text
    one.type("n\n")
    one.wait_for("Your answer:")
    one.type("\n")
    one.wait_for("Done.")
    one.type("/status\n")
    one.wait_for("folder ")
    one.type("/exit\n")
    assert one.end() == 0
    assert harm_in(one.raw.decode(), at_terminal=True) == []
    again = talk(script, "-c", TERM="dumb")
    again.wait_for("Done.")
    again.type("/exit\n")
    assert again.end() == 0
    assert harm_in(again.raw.decode(), at_terminal=True) == []


def test_on_a_terminal_with_colours_only_bradawls_escape_sequences_are_sent(talk):
    one = talk([{"text": f"Look. {HOSTILE}", "thinking": HOSTILE}, {"text": f"Done. {HOSTILE}"}])
    one.wait_for_prompt()
    one.type("begin\r")
    one.wait_for("Harmless")
    one.wait_for_prompt()
    one.type("\x04")
    assert one.end() == 0
    shown = one.raw.decode()
    assert "pwned" not in shown
    assert not set(shown) & set("\x9b\x9d\u202e\u2066\u200b\U000e0041\x00")
    assert one.screen.title == ""
