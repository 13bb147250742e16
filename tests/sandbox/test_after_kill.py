"""What a command did that ran when bradawl was killed is compared at the next start; what the user did since stays."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from bwrap import BWRAP
from landlock_programs import need_landlock
from sandboxed_session import IDENTITY, SandboxedSession, sandboxed_session

from bradawl.core.workspace import CommandResult
from bradawl.sandbox.landlock import LandlockBackend

MARK = "/nonexistent/marker"
DEEP = "a/b/c/d/plain"
SETUP = f"""
git init -q -b main; {IDENTITY}; echo 1 > tracked; git add tracked; git commit -qm one; git branch side
git init -q {DEEP}; cd {DEEP}; {IDENTITY}; echo 1 > inner; git add inner; git commit -qm one; git branch side
"""
Session = Callable[[], AbstractContextManager[SandboxedSession]]


@pytest.fixture(params=["bubblewrap", "landlock"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    """Sessions in one workspace."""
    if request.param == "bubblewrap":
        if not BWRAP:
            pytest.skip("bubblewrap is missing here")
        return partial(sandboxed_session, tmp_path)
    need_landlock()
    return partial(landlock_session, tmp_path)


@contextmanager
def landlock_session(place: Path) -> Iterator[SandboxedSession]:
    with sandboxed_session(place) as made:
        made.backend.close()
        Path(made.layout.scratch).mkdir(exist_ok=True)
        made.backend = LandlockBackend(made.layout)
        yield made


def killed_after(session: Session, line: str) -> None:
    """An agent that is killed when its command has ended, before anything is compared."""
    child = os.fork()
    if not child:
        with session() as made:
            made.run("true")
            launch = made.backend.launch

            def launch_unchecked(*arguments: object) -> object:
                return msgspec.structs.replace(launch(*arguments), on_end=kill, search_after=None)

            made.backend.launch = launch_unchecked
            made.run(line)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def kill() -> tuple[str, ...]:
    os.kill(os.getpid(), signal.SIGKILL)
    return ()


def prepared(session: Session) -> None:
    with session() as made:
        made.bare(SETUP)
        made.run("true")


def next_start(session: Session) -> tuple[CommandResult, Path]:
    with session() as made:
        result = made.run("true")
        assert made.run("true").restored == ()
        return result, made.root


def test_a_deep_repository_that_was_armed_is_disarmed_and_named(session: Session):
    prepared(session)
    killed_after(
        session, f"git -C {DEEP} config core.fsmonitor {MARK}; echo '#!/bin/sh' > {DEEP}/.git/hooks/pre-commit"
    )
    result, root = next_start(session)
    assert MARK not in (root / DEEP / ".git/config").read_text()
    assert not (root / DEEP / ".git/hooks/pre-commit").exists()
    assert f"{root}/{DEEP}/.git/config" in result.restored


@pytest.mark.parametrize("folder", [".", DEEP])
def test_what_honest_git_did_in_the_command_and_since_stays(session: Session, folder: str):
    prepared(session)
    killed_after(session, f"cd {folder}; echo 2 > two; git add two; git commit -qm two; echo 3 > three; git add three")
    with session() as made:
        made.bare(f"(cd {folder}; echo 4 > four; git add four; git commit -qm four; git gc -q; git branch -D side)")
        made.bare(f"(cd {folder}; echo 5 > five; git add five)")
        shown = f"(cd {folder}; git status --porcelain; git log --oneline; git for-each-ref; git fsck 2>&1)"
        before = made.bare(shown)
    result, _ = next_start(session)
    with session() as made:
        assert made.bare(shown) == before
    assert all("could not be checked" in each for each in result.restored)


def test_a_repository_that_the_user_removed_since_stays_removed(session: Session):
    prepared(session)
    killed_after(session, f"git -C {DEEP} config core.fsmonitor {MARK}")
    with session() as made:
        made.bare("rm -rf a")
    _, root = next_start(session)
    assert not (root / "a").exists()


def test_harmless_settings_stay(session: Session):
    prepared(session)
    killed_after(session, f"git -C {DEEP} config branch.main.remote origin")
    result, root = next_start(session)
    if "landlock" not in result.sandbox:  # there no line of the configuration may change
        assert "remote = origin" in (root / DEEP / ".git/config").read_text()


def test_settings_that_the_user_made_where_commands_can_not_stay(session: Session):
    prepared(session)
    killed_after(session, "true")
    with session() as made:
        made.bare("git config core.editor vim")
    result, root = next_start(session)
    if "landlock" not in result.sandbox:  # there the command may have made it
        assert "editor = vim" in (root / ".git/config").read_text()


def test_history_that_a_command_destroyed_is_whole_again(session: Session):
    prepared(session)
    with session() as made:
        before = made.bare("git rev-parse HEAD")
    killed_after(session, "rm -rf .git/objects/??")
    result, root = next_start(session)
    assert any(each.startswith(f"{root}/.git/objects") for each in result.restored)
    with session() as made:
        assert made.bare("git rev-parse HEAD; git fsck 2>&1 >&-") == before
