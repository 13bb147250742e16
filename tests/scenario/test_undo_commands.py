"""The slash commands of undo and `bradawl undo`, through the command line, with real files and a saved session."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from scripted_agent import build as build_scripted
from undo_world import ChangeTool, WalkingChanges

from bradawl.app.build.workspace import folders_of
from bradawl.app.cli import run
from bradawl.app.console import Console
from bradawl.checkpoints.store import ContentStore
from bradawl.session.store import LocalStore
from bradawl.testing.fakes import FakeIds
from bradawl.workspace.machine import SystemClock


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


class Program:
    """bradawl as a function, in a project with real files; its calls run functions of the test."""

    def __init__(self, folder: Path) -> None:
        self.home, self.root = folder / "home", folder / "project"
        self.home.mkdir()
        self.root.mkdir()
        self.environ = {"HOME": str(self.home), "BRADAWL_MODEL": "scripted/none.json", "TERM": "dumb"}
        self.tool = ChangeTool({})
        self.script: list[dict[str, Any]] = []
        self.stores: list[ContentStore] = []
        self.out = self.err = ""
        self.ids = FakeIds()

    def writing(self, name: str, text: str) -> dict[str, Any]:
        """A reply whose call writes a file."""
        key = f"{name}={text}"
        self.tool.functions[key] = lambda: (self.root / name).write_text(text)
        return {"tool_calls": [{"id": f"id_{key}", "name": "change", "arguments": {"do": key}}]}

    def _build(self, settings: Any, approver: Any) -> Any:
        folders = folders_of(settings)
        store = ContentStore(
            Path(folders.checkpoints) if hasattr(folders, "checkpoints") else self._checkpoints(folders)
        )
        self.stores.append(store)
        agent, *_ = build_scripted(
            self.script,
            tools=(self.tool,),
            changes=WalkingChanges(self.root, store),
            project=str(self.root),
            store=LocalStore(settings.home, str(self.root), SystemClock(), self.ids),
            approver=approver,
        )
        return agent

    def __call__(self, *argv: str, typed: str = "", at_terminal: bool = False) -> int:
        """Run with these arguments; `out` and `err` are what it printed."""
        stdin, stdout = (Terminal(typed), Terminal()) if at_terminal else (io.StringIO(typed), io.StringIO())
        stderr = io.StringIO()
        console = Console(stdin, stdout, stderr, self.environ, patience_s=0.05)
        code = run([*argv, "-C", str(self.root)], self.environ, console, self._build)
        self.out, self.err = stdout.getvalue(), stderr.getvalue()
        return code

    def close(self) -> None:
        for store in self.stores:
            store.close()

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.root.iterdir()}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program after two headless runs in one session: a is written, then a again and b."""
    program = Program(tmp_path)
    program.script = [program.writing("a", "1\n"), {"text": "done"}]
    assert program("-p", "write a") == 0, program.err
    program.script = [program.writing("a", "2\n"), program.writing("b", "x\n"), {"text": "done"}]
    assert program("-c", "-p", "write b") == 0, program.err
    program.script = [{"text": "more"}] * 3
    yield program
    program.close()


def test_undo_and_redo_in_headless_runs(program: Program) -> None:
    assert program("-c", "-p", "/undo") == 0
    assert program.files == {"a": "2\n"} and "- b" in program.out and "/redo" in program.out
    assert program("-c", "-p", "/undo") == 0
    assert program.files == {"a": "1\n"}
    assert program("-c", "-p", "/redo") == 0
    assert program("-c", "-p", "/redo") == 0
    assert program.files == {"a": "2\n", "b": "x\n"}
    assert program("-c", "-p", "/redo") == 1
    assert "nothing to redo" in program.err


def test_undo_of_a_step_and_of_parts(program: Program) -> None:
    assert program("-c", "-p", "/undo 1 code") == 0
    assert program.files == {}
    assert program("-c", "-p", "/redo") == 0
    assert program("-c", "-p", "/undo talk") == 0
    assert program.files == {"a": "2\n", "b": "x\n"} and "write b" in program.out
    assert program("-c", "-p", "/undo nonsense") == 2


def test_a_conflict_is_refused_in_a_headless_run_and_named(program: Program) -> None:
    (program.root / "b").write_text("mine\n")
    assert program("-c", "-p", "/undo") == 1
    assert program.files["b"] == "mine\n" and "b" in program.err and "--keep-conflicts" in program.err
    assert program("undo") == 1
    assert program.files["b"] == "mine\n"
    assert program("undo", "--to", "1", "--keep-conflicts") == 0
    assert program.files == {"b": "mine\n"} and "Left alone" in program.out


def test_a_named_file_is_restored_by_force(program: Program) -> None:
    (program.root / "b").write_text("mine\n")
    assert program("undo", "--force", "c") == 1
    assert "--force c" in program.err
    assert program("undo", "--force", "b") == 0
    assert program.files == {"a": "2\n"}
    assert program("undo", "--redo") == 0
    assert program.files["b"] == "mine\n"


def test_the_command_needs_no_model_and_a_dry_run_changes_nothing(program: Program) -> None:
    del program.environ["BRADAWL_MODEL"]
    assert program("undo", "--dry-run") == 0
    assert program.files == {"a": "2\n", "b": "x\n"}
    assert program.out.startswith("Would go back to before step 2.2") and len(program.out.splitlines()) < 24
    assert program("undo", "--list") == 0
    assert "write a" in program.out and "2.2" in program.out
    assert program("undo") == 0
    assert program.files == {"a": "2\n"}
    assert program("undo", "--to", "1") == 0
    assert program.files == {}
    assert program("undo", "--redo") == program("undo", "--redo") == 0
    assert program.files == {"a": "2\n", "b": "x\n"}


def test_parts_of_the_command(program: Program) -> None:
    assert program("undo", "--to", "1", "--talk-only") == 0
    assert program.files == {"a": "2\n", "b": "x\n"}
    assert program("undo", "--to", "1", "--code-only") == 0
    assert program.files == {}
    assert program("undo", "--code-only", "--talk-only") == 2


def test_a_named_session_and_a_folder_without_one(program: Program, tmp_path: Path) -> None:
    session_id = next((program.home / ".local").rglob("*.jsonl")).stem
    assert program("undo", session_id) == 0
    assert program.files == {"a": "2\n"}
    program.root = tmp_path / "elsewhere"
    program.root.mkdir()
    assert program("undo") == 1
    assert "no session" in program.err


def test_a_session_that_is_open_elsewhere_is_refused(program: Program) -> None:
    session_id = next((program.home / ".local").rglob("*.jsonl")).stem
    from bradawl.app.settings.homes import homes

    store = LocalStore(homes(program.environ, str(program.root)).data, str(program.root), SystemClock(), FakeIds())
    held = store.open(session_id)
    try:
        assert program("undo") == 75
        assert program.files == {"a": "2\n", "b": "x\n"} and "is open in" in program.err
    finally:
        held.log.close()


def test_plain_words_are_a_prompt(program: Program) -> None:
    program.script = [{"text": "I would"}]
    assert program("-p", "undo", "the", "last", "edit") == 0
    assert program.out == "I would\n"


def test_the_list_and_the_difference_at_a_terminal(program: Program) -> None:
    assert program("-c", typed="/rewind\n/diff\n/diff 2\n/exit\n", at_terminal=True) == 0
    assert "write a" in program.out and "a: new (+1 -0)" in program.out
    assert "a: changed (+1 -1)" in program.out and "-1" in program.out and "+2" in program.out


def test_rewind_shows_the_difference_and_asks(program: Program) -> None:
    assert program("-c", typed="/rewind 2\nn\n/exit\n", at_terminal=True) == 0
    assert program.files == {"a": "2\n", "b": "x\n"}
    assert "a: changed (+1 -1)" in program.out and "Nothing was changed." in program.out
    assert program("-c", typed="/rewind 2\ncode\n/exit\n", at_terminal=True) == 0
    assert program.files == {"a": "1\n"}
    assert program("-c", "-p", "/rewind 1") == 0
    assert "Nothing was changed. To do it: /undo 1" in program.out and program.files == {"a": "1\n"}


@pytest.mark.parametrize(("answer", "expected"), [("n", "mine\n"), ("", "mine\n"), ("o", "mine\n"), ("a", None)])
def test_a_conflict_is_asked_about_at_a_terminal(program: Program, answer: str, expected: str | None) -> None:
    (program.root / "b").write_text("mine\n")
    assert program("-c", typed=f"/undo 1\n{answer}\n/exit\n", at_terminal=True) == 0
    assert program.files.get("b") == expected
    assert ("a" in program.files) == (answer in ("n", ""))


@pytest.mark.parametrize("answer", ["o", "yes", "all of it"])
def test_other_files_are_not_offered_without_any_and_an_unknown_answer_is_named(program: Program, answer: str) -> None:
    (program.root / "b").write_text("mine\n")
    assert program("-c", typed=f"/undo\n{answer}\n/exit\n", at_terminal=True) == 0
    assert "Restore [a]ll files" in program.out and "[o]ther" not in program.out
    assert f"Nothing was changed: '{answer}' is no answer." in program.out
    assert program.files == {"a": "2\n", "b": "mine\n"}
    assert program("undo", "--list") == 0 and "taken back" not in program.out


def test_an_undo_that_keeps_all_conflicts_says_that_it_restored_no_file(program: Program) -> None:
    (program.root / "b").write_text("mine\n")
    assert program("undo", "--keep-conflicts") == 0
    assert program.out.startswith("Undone: the conversation, to before step 2.2. No file was restored.")


@pytest.mark.parametrize("named", [b"n\xff", rb"n\xff", b"sub", b"sub/", b"sub/./n\xff", rb"sub/n\xff"])
def test_force_takes_names_that_are_not_utf8_as_shown_and_folders(program: Program, named: bytes) -> None:
    folder = program.root / "sub" if named.startswith(b"sub") else program.root
    folder.mkdir(exist_ok=True)
    odd, other = folder / os.fsdecode(b"n\xff"), folder / "m"

    def write(text: str) -> None:
        odd.write_text(text)
        other.write_text(text)

    program.tool.functions["odd"] = lambda: write("model")
    program.script = [{"tool_calls": [{"id": "odd", "name": "change", "arguments": {"do": "odd"}}]}, {"text": "-"}]
    assert program("-c", "-p", "odd names") == 0
    odd.write_text("mine")
    if named.endswith((b"sub", b"/")):
        other.write_text("mine")
    name = os.fsdecode(named)
    assert program("undo", "--dry-run", "--force", name) == 0, program.err
    assert "restored only if you say so" not in program.out and "n\\xff" in program.out
    assert odd.exists()
    assert program("undo", "--force", name) == 0, program.err
    assert not odd.exists() and not other.exists()
    assert program("undo", "--force", os.fsdecode(b"x\xff")) == 1
    assert "--force x\\xff: this file was not changed since" in program.err


def test_undo_in_one_conversation_with_the_scanner_running(program: Program) -> None:
    program.script = [program.writing("c", "1\n"), {"text": "ok"}, program.writing("d", "1\n"), {"text": "ok"}]
    typed = "make c\n/undo\nmake d\n/undo\n/undo\n/exit\n"
    assert program("-c", typed=typed, at_terminal=True) == 0
    assert program.files == {"a": "2\n"}


def test_a_headless_command_gives_one_json_object(program: Program) -> None:
    assert program("-c", "-p", "/undo", "--output-format", "json") == 0
    result = json.loads(program.out)
    assert (result["exit_code"], result["is_error"]) == (0, False) and "- b" in result["result"]


def test_names_from_files_can_not_forge_lines(program: Program) -> None:
    name = b"x\n+ fake\x1b[31m\xff"

    def make() -> None:
        Path(program.root, name.decode("utf-8", "surrogateescape")).write_text("x")

    program.tool.functions["make"] = make
    program.script = [
        {"tool_calls": [{"id": "id_make", "name": "change", "arguments": {"do": "make"}}]},
        {"text": "done"},
    ]
    assert program("-c", "-p", "make it") == 0
    assert program("undo", "--dry-run") == 0
    assert "+ fake" not in program.out.splitlines() and "\x1b" not in program.out
    assert program("undo") == 0
    assert program.files == {"a": "2\n", "b": "x\n"}
    assert msgspec.json.encode(program.out)


@pytest.mark.parametrize("wrong", [("--to", ""), ("--to", "abc"), ("--redo", "--to", "1"), ("--list", "--redo")])
def test_options_that_name_no_step_or_contradict_each_other_are_wrong_usage(
    program: Program, wrong: tuple[str, ...]
) -> None:
    before = program.files
    assert program("undo", *wrong) == 2
    assert program.files == before


def _doing(program: Program, function: Any) -> None:
    program.tool.functions["do"] = function
    program.script = [{"tool_calls": [{"id": "id_do", "name": "change", "arguments": {"do": "do"}}]}, {"text": "-"}]
    assert program("-c", "-p", "do it") == 0, program.err


def test_a_dry_run_that_keeps_a_file_in_a_new_folder_says_that_the_folder_stays(program: Program) -> None:
    folder = program.root / "d"

    def make() -> None:
        folder.mkdir()
        for name in "ab":
            (folder / name).write_text("model")

    _doing(program, make)
    (folder / "a").write_text("mine")
    assert program("undo", "--dry-run", "--keep-conflicts") == 1
    assert "- d\n" not in program.out and "! d: it holds other files, so it stays" in program.out
    assert program("undo", "--keep-conflicts") == 1
    assert [path.name for path in folder.iterdir()] == ["a"] and "so it stays" in program.out


def test_a_dry_run_with_a_forced_file_of_git_says_that_a_lock_would_stop_it(program: Program) -> None:
    head = program.root / ".git" / "HEAD"
    head.parent.mkdir()
    head.write_text("ref: refs/heads/main\n")
    _doing(program, lambda: head.write_text("ref: refs/heads/other\n"))
    head.write_text("ref: refs/heads/mine\n")
    assert program("undo", "--dry-run", "--force", ".git/HEAD") == 0, program.out
    (head.parent / "HEAD.lock").touch()
    assert program("undo", "--dry-run", "--force", ".git/HEAD") == 1
    assert "Nothing would be restored now: " in program.out
    assert program("undo", "--force", ".git/HEAD") == 1
    assert head.read_text() == "ref: refs/heads/mine\n"
