"""A failure in the check after a command keeps no planted file: each one is undone, or the result names it.

Each function that the check calls raises once or at each call, in turn; with `make torture` both.
"""

import inspect
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from bwrap import needs_bwrap
from sandboxed_session import IDENTITY, SandboxedSession, sandboxed_session

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.workspace import CommandResult
from bradawl.safety import path_walk
from bradawl.safety.git import (
    config_file,
    named_paths,
    separate_data,
    settings_without_programs,
    small_files,
    template_hooks,
)
from bradawl.sandbox.discovery import folder_index, git_folders
from bradawl.sandbox.filesystem import closed_folders
from bradawl.sandbox.mounts import rule_mounts
from bradawl.sandbox.restore import (
    git_directories,
    git_history,
    git_objects,
    git_references,
    gitlinks,
    harmless_git_files,
    new_repositories,
    object_content,
    protected_files,
    repositories,
    restore_path,
    snapshot,
    workspace_search,
)

MODULES = (
    *(path_walk, config_file, named_paths, separate_data, small_files, folder_index, git_folders, closed_folders),
    *(rule_mounts, git_directories, git_history, git_objects, gitlinks, harmless_git_files, protected_files),
    *(repositories, restore_path, snapshot, workspace_search, new_repositories, settings_without_programs),
    *(template_hooks, git_references, object_content),
)
ERRORS = (RuntimeError("injected"), OSError(5, "Input/output error"), MemoryError(), RecursionError("too deep"))
IS_TORTURE = os.environ.get("HYPOTHESIS_PROFILE") == "torture"
MARK = "/nonexistent/marker"
SETUP = f"""
git init -q -b main; {IDENTITY}; echo 1 > tracked; git add tracked; git commit -qm one
git config core.hooksPath build/hooks
git init -q a/b/c/d/plain; git init -q armed; git -C armed -c user.name=a -c user.email=b commit -q --allow-empty -m x
git -C armed config core.fsmonitor {MARK}
"""
PLANT = f"""
plant() {{ git init -q $1; git -C $1 config core.fsmonitor {MARK}; }}
plant docs/x; plant node_modules/y/z; git init -q --bare lay; git -C lay config core.fsmonitor {MARK}
cp -r docs/x/.git data; echo ../data > .git/commondir; rm -f .git/commondir.lock
git -C a/b/c/d/plain config core.fsmonitor {MARK}
mkdir -p .git/rebase-merge build/hooks; echo exec {MARK} > .git/rebase-merge/git-rebase-todo
printf '#!/bin/sh\\n{MARK}\\n' > build/hooks/pre-commit; chmod +x build/hooks/pre-commit
rm .git/commondir; git add armed 2> /dev/null; echo ../data > .git/commondir
"""
PLACES = (
    *("docs/x/.git/config", "node_modules/y/z/.git/config", "lay/config", ".git/commondir"),
    *("a/b/c/d/plain/.git/config", ".git/rebase-merge/git-rebase-todo", "build/hooks/pre-commit", ".git/index"),
)


def left_over(root: Path) -> list[str]:
    """The planted files that git would obey."""
    found = [name for name in PLACES[:3] + PLACES[4:7] if (root / name).exists() and MARK in (root / name).read_text()]
    if (root / ".git/commondir").exists():
        found.append(".git/commondir")
    index = root / ".git/index"
    return [*found, ".git/index"] if index.exists() and b"armed" in index.read_bytes() else found


def is_reported(path: str, result: CommandResult) -> bool:
    named = [each.partition(" (could not be")[0] for each in result.restored if " (could not be " in each]
    if any(is_within(path, each) for each in named):
        return True
    searched = [note for note in result.notes if "Tell the user not to run git" in note]
    return any(f"{folder} (could not be checked" in note for note in searched for folder in parents(path))


def parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


class Injected:
    """Replaces a function by one that raises once it is armed."""

    def __init__(self, holder: object, name: str, *, error: Exception | None, only_once: bool) -> None:
        self.calls = 0
        self.is_armed = False
        self._given = inspect.getattr_static(holder, name)
        self._holder, self._name = holder, name
        wraps = self._given.__func__ if isinstance(self._given, staticmethod) else self._given

        def injected(*arguments: object, **named: object) -> object:
            if self.is_armed:
                self.calls += 1
                if error is not None and (self.calls == 1 or not only_once):
                    raise error
            return wraps(*arguments, **named)

        setattr(holder, name, staticmethod(injected) if isinstance(self._given, staticmethod) else injected)

    def undo(self) -> None:
        setattr(self._holder, self._name, self._given)


def functions_of(module: ModuleType) -> list[tuple[object, str]]:
    """The functions and methods that a module defines."""
    found: list[tuple[object, str]] = []
    for holder in (module, *(each for _, each in inspect.getmembers(module, inspect.isclass))):
        if holder is module or holder.__module__ == module.__name__:
            for name, value in vars(holder).items():
                is_own = inspect.isfunction(value) and value.__module__ == module.__name__
                if is_own and name not in ("__init__", "notes"):  # `notes` returns an attribute
                    found.append((holder, name))
    return found


def run(session: SandboxedSession, line: str, injected: Injected) -> CommandResult:
    launch = session.backend.launch

    def launch_and_arm(*arguments: object) -> object:
        launched = launch(*arguments)
        injected.is_armed = True
        return launched

    session.backend.launch = launch_and_arm
    try:
        return session.run(line)
    finally:
        injected.is_armed = False
        session.backend.launch = launch


def imports_of(function: Callable[..., object], name: str) -> list[tuple[object, str]]:
    """The modules under test that import a function by its name."""
    return [(module, name) for module in MODULES if vars(module).get(name) is function]


@needs_bwrap
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("only_once", [True, False], ids=["once", "always"])
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.removeprefix("bradawl."))
def test_a_planted_file_is_undone_or_reported_if_a_function_of_the_check_fails(module, only_once, tmp_path):
    for number, (holder, name) in enumerate(functions_of(module)):
        if number % 2 != only_once and not IS_TORTURE:
            continue  # each function fails once or always; `make torture` tries both
        place = tmp_path / str(number)
        with sandboxed_session(place) as session:
            session.bare(SETUP)
            session.run("true")
            holders = [(holder, name)]
            if holder is module:
                holders = imports_of(getattr(module, name), name)
            error = ERRORS[number // 2 % len(ERRORS)]
            made = [Injected(each, name, error=error, only_once=only_once) for each, name in holders]
            try:
                for each in made[1:]:
                    each.is_armed = False
                result = run(session, PLANT, made[0]) if len(made) == 1 else run_all(session, made)
            finally:
                for each in made:
                    each.undo()
            assert result.exit_code == 0, (name, result.stderr)
            left = left_over(session.root)
            unreported = [each for each in left if not is_reported(f"{session.root}/{each}", result)]
            assert not unreported, (name, error, unreported, result.restored, result.notes)
            if left:
                next_result = session.run("true")
                assert not left_over(session.root), (name, error, result.restored, result.notes, next_result)


def run_all(session: SandboxedSession, injected: list[Injected]) -> CommandResult:
    class Together:
        @property
        def is_armed(self) -> bool:
            return injected[0].is_armed

        @is_armed.setter
        def is_armed(self, value: bool) -> None:
            for each in injected:
                each.is_armed = value

    return run(session, PLANT, Together())


@needs_bwrap
def test_without_a_failure_everything_planted_is_undone_at_once(tmp_path):
    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.run("true")
        session.bare(PLANT)
        assert sorted(left_over(session.root)) == sorted(PLACES)
    with sandboxed_session(tmp_path / "held") as session:
        session.bare(SETUP)
        session.run("true")
        result = session.run(PLANT)
        assert result.exit_code == 0
        assert left_over(session.root) == []


@needs_bwrap
def test_an_interruption_in_the_check_is_made_up_for_before_the_next_command(tmp_path, monkeypatch):
    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.run("true")
        with monkeypatch.context() as patched:
            patched.setattr(protected_files, "retake_snapshot", at_the_end(session, interrupt))
            with pytest.raises(KeyboardInterrupt):
                session.run(PLANT)
        assert sorted(left_over(session.root)) == sorted(PLACES)
        result = session.run("true")
        assert left_over(session.root) == []
        assert f"{session.root}/.git/commondir" in result.restored


def at_the_end(session: SandboxedSession, act: Callable[[], None]) -> Callable[..., snapshot.Snapshot]:
    """`retake_snapshot` that does something first, but not in a check while the command still runs."""

    def retake_snapshot(*arguments: Any) -> snapshot.Snapshot:
        if not any(child.is_sandboxed for child in session.processes._running):
            act()
        return snapshot.retake_snapshot(*arguments)

    return retake_snapshot


def interrupt() -> None:
    raise KeyboardInterrupt


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@needs_bwrap
def test_the_next_start_names_what_a_command_left_whose_agent_was_killed_before_the_check(tmp_path, monkeypatch):
    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.run("true")
        session.close()
    if not (killed := os.fork()):
        with sandboxed_session(tmp_path) as session:
            monkeypatch.setattr(protected_files, "retake_snapshot", at_the_end(session, kill_this_process))
            session.run(PLANT)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(killed, 0)[1]) == -signal.SIGKILL
    with sandboxed_session(tmp_path) as session:
        session.bare("git init -q mine")
        assert sorted(left_over(session.root)) == sorted(PLACES)
        result = session.run("true")
        named = [each.partition(" (could not be")[0] for each in result.restored]
        places = ("", "/docs/x", "/node_modules/y/z", "/lay", "/data", "/.git/commondir", "/build/hooks")
        assert set(named) >= {f"{session.root}{each}" for each in places}
        assert not any("mine" in each or "/armed" in each for each in named)
        assert session.run("true").restored == ()


@needs_bwrap
def test_a_failure_is_said_in_the_result_and_the_next_command_does_not_start_while_it_lasts(tmp_path):
    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.run("true")
        injected = Injected(snapshot._SnapshotTaker, "follow", error=RecursionError("too deep"), only_once=False)
        try:
            result = run(session, PLANT, injected)
            assert any(f"{session.root}/docs/x/.git/config (could not be checked: " in each for each in result.restored)
            injected.is_armed = True
            with pytest.raises(
                ToolError, match=r"nothing can run in the sandbox: what an earlier command did in .*/ws/"
            ):
                session.run("true")
        finally:
            injected.undo()
        assert session.run("echo again").stdout == b"again\n"
        assert left_over(session.root) == []


@needs_bwrap
@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["error", "interruption"]
)
def test_history_that_could_not_be_compared_is_restored_before_the_next_command(error, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise error

    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.run("true")
        before = session.bare("git rev-parse HEAD")
        with monkeypatch.context() as patched:
            patched.setattr(git_objects.ObjectFiles, "lost_objects", fail)
            if isinstance(error, KeyboardInterrupt):
                with pytest.raises(KeyboardInterrupt):
                    session.run("rm -rf .git/objects/??")
            else:
                result = session.run("rm -rf .git/objects/??")
                assert f"{session.root}/.git (could not be checked: Input/output error)" in result.restored
                with pytest.raises(ToolError, match=r"what an earlier command did in .*/\.git could not be checked"):
                    session.run("true")
        result = session.run("true")
        assert any("/.git/objects" in each for each in result.restored)
        assert session.bare("git rev-parse HEAD") == before and not session.bare("git fsck 2>&1 >&-")


@needs_bwrap
def test_working_trees_that_can_not_be_listed_are_not_taken_for_none(tmp_path, monkeypatch):
    scandir = os.scandir

    def fail(path: object = ".") -> object:
        if str(path).endswith("/.git/worktrees"):
            raise OSError(24, "Too many open files", path)
        return scandir(path)

    with sandboxed_session(tmp_path) as session:
        session.bare(SETUP)
        session.bare("git worktree add -q ../tree")
        session.run("true")
        with monkeypatch.context() as patched:
            launch = session.backend.launch

            def launch_and_fail(*arguments: Any) -> object:
                launched = launch(*arguments)
                patched.setattr(os, "scandir", fail)
                return launched

            session.backend.launch = launch_and_fail
            result = session.run(f"mkdir .git/worktrees/new; echo {session.root}/a > .git/worktrees/new/commondir")
            session.backend.launch = launch
            assert any("could not be checked: Too many open files" in each for each in result.restored), result
            with pytest.raises(ToolError):
                session.run("true")
        session.run("true")
        assert not (session.root / ".git/worktrees/new/commondir").exists()
