"""The commands that a refused undo advises do what was refused: each is followed to the letter."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from terminal import run_program


class Sessions:
    """A folder and the program in it, with a scripted model."""

    def __init__(self, folder: Path) -> None:
        self.root, self.script = folder / "project", folder / "script.json"
        for each in (self.root, folder / "home"):
            each.mkdir()
        self.environ = {
            "HOME": str(folder / "home"),
            "PATH": os.environ["PATH"],
            "TERM": "dumb",
            "BRADAWL_MODEL": f"scripted/{self.script}",
        }
        for name in "fg":
            (self.root / name).write_text(f"{name}\n")

    def program(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return run_program(argv, self.root, self.environ)

    def session(self, prompt: str, *commands: str) -> str:
        """A session in which the model makes these calls of bash, one a step; returns its id."""
        calls = [
            {"tool_calls": [{"id": f"{prompt}{place}", "name": "bash", "arguments": {"command": command}}]}
            for place, command in enumerate(commands)
        ]
        self.script.write_text(json.dumps([*calls, {"text": "done"}]))
        done = self.program("-y", "-p", prompt)
        assert done.returncode == 0, done.stderr
        return re.findall(r"bradawl -r (\w+)", done.stderr)[0]

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.root.iterdir()}

    def follow(self, *argv: str, advice: int = 0, replaced: str = "") -> str:
        """Run what is refused, then the command that the refusal advises; returns that command."""
        refused = self.program(*argv)
        assert refused.returncode == 1, refused.stdout + refused.stderr
        command = re.findall(r"`(bradawl undo[^`]*)`", refused.stderr)[advice]
        words = [replaced if word == "PATH" else word for word in shlex.split(command)]
        done = self.program(*words[1:])
        assert done.returncode == 0, done.stdout + done.stderr
        return command


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path)


def test_of_a_redo(sessions: Sessions) -> None:
    sessions.session("a", "echo 1 > one", "echo F >> f; echo G >> g")
    assert sessions.program("undo").returncode == 0
    (sessions.root / "f").write_text("mine")
    sessions.follow("undo", "--redo")
    assert sessions.files() == {"f": "mine", "g": "g\nG\n", "one": "1\n"}


def test_of_an_undo_to_a_step(sessions: Sessions) -> None:
    sessions.session("a", "echo 1 > one; echo F >> f", "echo 2 > two", "echo 3 > three")
    (sessions.root / "f").write_text("mine")
    sessions.follow("undo", "--to", "1")
    assert sessions.files() == {"f": "mine", "g": "g\n"}


def test_of_an_undo_of_another_session(sessions: Sessions) -> None:
    first = sessions.session("a", "echo F >> f; echo 1 > one")
    sessions.session("b", "echo G >> g; echo 2 > two")
    (sessions.root / "f").write_text("mine")
    sessions.follow("undo", first)
    assert sessions.files() == {"f": "mine", "g": "g\nG\n", "two": "2\n"}


def test_of_an_undo_of_files_alone_with_one_of_them_by_force(sessions: Sessions) -> None:
    first = sessions.session("a", "echo 1 > one", "echo 2 > two; echo G >> g")
    (sessions.root / "g").write_text("mine")
    sessions.follow("undo", "--code-only", advice=1, replaced="g")
    assert sessions.files() == {"f": "f\n", "g": "g\n", "one": "1\n"}
    assert "(taken back)" not in sessions.program("undo", first, "--list").stdout


def test_of_an_undo_that_has_some_of_the_conflicts_by_force(sessions: Sessions) -> None:
    sessions.session("a", "echo F >> f; echo G >> g; echo 1 > one")
    for name in "fg":
        (sessions.root / name).write_text("mine")
    sessions.follow("undo", "--force", "f")
    assert sessions.files() == {"f": "f\n", "g": "mine"}


@pytest.mark.parametrize(
    ("slash", "files"),
    [
        ("/undo 1 code", {"f": "f\n", "g": "mine"}),
        ("/undo", {"f": "f\n", "g": "mine", "one": "1\n"}),
        ("/undo code", {"f": "f\n", "g": "mine", "one": "1\n"}),
    ],
)
def test_of_a_slash_command_without_a_terminal(sessions: Sessions, slash: str, files: dict[str, str]) -> None:
    first = sessions.session("a", "echo 1 > one", "echo 2 > two; echo G >> g")
    (sessions.root / "g").write_text("mine")
    command = sessions.follow("-c", "-p", slash)
    assert sessions.files() == files and f"undo {first}" in command
    listed = sessions.program("undo", first, "--list").stdout
    assert ("--code-only" in command) == ("code" in slash), listed


def test_of_a_redo_by_a_slash_command(sessions: Sessions) -> None:
    first = sessions.session("a", "echo 1 > one; echo G >> g")
    sessions.session("b", "echo 2 > two")
    assert sessions.program("undo", first).returncode == 0
    (sessions.root / "g").write_text("mine")
    sessions.follow("-r", first, "-p", "/redo")
    assert sessions.files() == {"f": "f\n", "g": "mine", "one": "1\n", "two": "2\n"}


def test_of_an_unknown_step_and_of_nothing_to_undo_in_another_session(sessions: Sessions) -> None:
    first = sessions.session("a", "echo 1 > one")
    sessions.session("b", "echo 2 > two")
    assert sessions.follow("undo", first, "--to", "9") == f"bradawl undo {first} --list"
    undone = sessions.program("undo", first)
    assert f"bradawl undo {first} --redo" in undone.stdout
    refused = sessions.program("undo", first)
    assert refused.returncode == 1 and f"bradawl undo {first} --redo" in refused.stderr
    assert sessions.program("undo", first, "--redo").returncode == 0
    assert sessions.files() == {"f": "f\n", "g": "g\n", "one": "1\n", "two": "2\n"}


def test_for_another_folder_names_it(sessions: Sessions, tmp_path: Path) -> None:
    first = sessions.session("a", "echo 1 > one")
    sessions.session("b", "true")
    place = ("-C", str(sessions.root))

    def elsewhere(*argv: str) -> "subprocess.CompletedProcess[str]":
        return run_program(argv, tmp_path, sessions.environ)

    def commands(text: str) -> list[str]:
        return [command for command in re.findall(r"`(bradawl undo[^`]*)`", text) if "DIR" not in command]

    start = shlex.join(("bradawl", "undo", *place))
    assert commands(elsewhere("undo", *place, "--sessions").stdout) == [f"{start} SESSION", f"{start} SESSION --list"]
    nothing = elsewhere("undo", *place)
    assert nothing.returncode == 1
    assert commands(nothing.stderr) == [f"{start} {first}", f"{start} --sessions"]
    listed = elsewhere("undo", *place, "--list")
    assert commands(listed.stderr) == [f"{start} {first}", f"{start} --sessions"]
    slash = elsewhere(*place, "-c", "-p", "/undo")
    assert commands(slash.stderr)[:1] == [f"{start} {first}"], slash.stderr
    (sessions.root / "one").write_text("mine")
    refused = elsewhere(*place, "-r", first, "-p", "/undo")
    advised = commands(refused.stdout + refused.stderr)[-1]
    assert advised.startswith(f"{start} {first} "), refused.stderr
    done = elsewhere(*[str(sessions.root / "one") if each == "PATH" else each for each in shlex.split(advised)[1:]])
    assert done.returncode == 0, done.stderr
