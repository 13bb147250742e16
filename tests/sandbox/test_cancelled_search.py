"""A command that is cancelled while its workspace is searched ends at once, and what was not searched is said."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from bwrap import BWRAP, needs_bwrap
from sandboxed_session import SandboxedSession, sandboxed_session

from bradawl.core.workspace import Command
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.discovery.folder_index import FolderIndex
from bradawl.sandbox.restore.workspace_search import AheadSearch, ChangeSearch
from patience import no_wait

MARK = "/nonexistent/marker"
PLANT = f"git init -q deep/planted; git -C deep/planted config core.fsmonitor {MARK}"
_LIMIT_S = 60.0
"""Of a search, which would use all of it."""


@pytest.fixture
def large(tmp_path: Path):
    """A session whose searches are done in a thread, and would take longer than their limit."""
    with sandboxed_session(tmp_path) as made:
        made.backend.close()
        made.backend = BubblewrapBackend(made.layout, BubblewrapFeatures(BWRAP), search_within_s=_LIMIT_S)
        for number in range(4_500):
            (made.root / f"deep/{number}").mkdir(parents=True)
        made.run("true")
        yield made


def slow_lstat(monkeypatch: pytest.MonkeyPatch, has_begun: threading.Event) -> None:
    lstat, main = os.lstat, threading.main_thread()

    def slowly(path: object, **options: object) -> os.stat_result:
        if has_begun.is_set() and threading.current_thread() is not main:
            threading.Event().wait(0.02)
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", slowly)


async def cancelled(made: SandboxedSession, line: str, has_begun: threading.Event) -> None:
    """Cancel a line when its search has begun, and wait until the next command can search."""
    task = asyncio.create_task(made.arun(line))
    await asyncio.to_thread(has_begun.wait, 20)
    with no_wait(_LIMIT_S):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for index in made.backend._directories.searches._indexes:
            with index._lock:
                pass


def noting(method: Callable[..., None], event: threading.Event) -> Callable[..., None]:
    def note(*arguments: object) -> None:
        event.set()
        method(*arguments)

    return note


@needs_bwrap
def test_a_cancelled_search_after_a_command_ends_at_once_and_is_made_up_for(large, monkeypatch):
    has_begun = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(ChangeSearch, "finish", noting(ChangeSearch.finish, has_begun))
        slow_lstat(patched, has_begun)
        asyncio.run(cancelled(large, PLANT, has_begun))
    (warning,) = large.processes.take_warnings()
    assert "about a command that was cancelled" in warning and "Do not run git in these" in warning
    assert str(large.root) in warning
    result = large.run("true")
    assert MARK not in (large.root / "deep/planted/.git/config").read_text()
    assert any("deep/planted" in each for each in result.restored)


@needs_bwrap
def test_a_cancelled_search_before_a_command_ends_at_once_and_is_repeated(large, monkeypatch):
    has_begun = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(AheadSearch, "__call__", noting(AheadSearch.__call__, has_begun))
        slow_lstat(patched, has_begun)
        asyncio.run(cancelled(large, "touch made", has_begun))
    assert not (large.root / "made").exists()
    assert large.run("touch made").restored == ()
    assert (large.root / "made").exists()


def test_a_search_that_is_stopped_keeps_what_it_knows_and_is_not_complete(tmp_path, monkeypatch):
    for number in range(1_000):
        (tmp_path / str(number) / ".git").mkdir(parents=True)
    index = FolderIndex(str(tmp_path), (".git",))
    lstat, calls = os.lstat, []

    def stopping(path: object, **options: object) -> os.stat_result:
        calls.append(path)
        if len(calls) == 200:
            index.stop()
        return lstat(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", stopping)
        index.search()
    assert not index.is_complete and index.rest
    assert 100 < index.size < 400
    index.search()
    assert index.is_complete and len(index.marked) == 1_000


@needs_bwrap
def test_what_a_cancelled_command_had_changed_is_said_to_the_user(tmp_path):
    async def act(made: SandboxedSession) -> None:
        is_ready = asyncio.Event()
        line = f"{PLANT}; echo ready; exec cat /dev/zero > /dev/null"
        command = Command((line,), made.cwd, is_shell=True)
        task = asyncio.create_task(made.processes.run(command, made.grant, lambda _: is_ready.set()))
        await is_ready.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with sandboxed_session(tmp_path) as made:
        made.run("true")
        asyncio.run(act(made))
        warnings = made.processes.take_warnings()
        assert any("put back or moved away" in each and "deep/planted" in each for each in warnings), warnings
        assert made.processes.take_warnings() == ()
