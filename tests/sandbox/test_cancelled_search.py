"""A command that is cancelled while its workspace is searched ends at once, and what was not searched is said."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SandboxedSession, sandboxed_session

from bradawl.core.workspace import Command
from bradawl.sandbox.discovery.folder_index import FolderIndex
from bradawl.sandbox.restore.workspace_search import AheadSearch, ChangeSearch
from patience import is_within

MARK = "/nonexistent/marker"
PLANT = f"git init -q deep/planted; git -C deep/planted config core.fsmonitor {MARK}"
_LIMIT_S = 0.4
"""Of a cancelled search: about 0.1 s on a free machine, 2 to 4 s if it goes on."""


@pytest.fixture
def large(tmp_path: Path):
    """A session whose searches are done in a thread, and would take far longer than their limit of two seconds."""
    with sandboxed_session(tmp_path) as made:
        for number in range(4_500):
            (made.root / f"deep/{number}").mkdir(parents=True)
        made.run("true")
        yield made


def slow_lstat(monkeypatch: pytest.MonkeyPatch, has_begun: threading.Event) -> None:
    lstat, main = os.lstat, threading.main_thread()

    def slowly(path: object, **options: object) -> os.stat_result:
        if has_begun.is_set() and threading.current_thread() is not main:
            threading.Event().wait(0.002)
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", slowly)


async def cancelled(made: SandboxedSession, line: str, has_begun: threading.Event) -> float:
    """Cancel a line when its search has begun; returns the seconds until it has ended."""
    task = asyncio.create_task(made.arun(line))
    await asyncio.to_thread(has_begun.wait, 20)
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return time.monotonic() - began


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
        assert is_within(asyncio.run(timed(large, PLANT, has_begun)), _LIMIT_S)
    (warning,) = large.processes.take_warnings()
    assert "about a command that was cancelled" in warning and "Do not run git in these" in warning
    assert str(large.root) in warning
    result = large.run("true")
    assert MARK not in (large.root / "deep/planted/.git/config").read_text()
    assert any("deep/planted" in each for each in result.restored)


async def timed(made: SandboxedSession, line: str, has_begun: threading.Event) -> float:
    """As `cancelled`, with the time until the next command could search."""
    spent = await cancelled(made, line, has_begun)
    began = time.monotonic()
    for index in made.backend._directories.searches._indexes:
        with index._lock:
            spent += time.monotonic() - began
    return spent


@needs_bwrap
def test_a_cancelled_search_before_a_command_ends_at_once_and_is_repeated(large, monkeypatch):
    has_begun = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(AheadSearch, "__call__", noting(AheadSearch.__call__, has_begun))
        slow_lstat(patched, has_begun)
        assert is_within(asyncio.run(timed(large, "touch made", has_begun)), _LIMIT_S)
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
