"""Runs blocking work beside the event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def begin_in_other_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Begin `work` in another thread; do it in this one, which it blocks, if the system starts no more threads.

    An executor that can't start a thread raises an error although the work is in its queue, where another thread finds
    it, even hours later: a write that was reported as failed would overwrite later changes. So work in the queue waits
    until it is known whether it is wanted. A cancelled future cancels work that has not begun.

    Raises the error of work that is done in this thread.
    """
    loop = asyncio.get_running_loop()
    turn = _Turn(work)
    try:
        future = loop.run_in_executor(None, turn.run)
    except RuntimeError:
        turn.end()
    else:
        turn.allow()
        return future
    done: asyncio.Future[T] = loop.create_future()
    done.set_result(work())
    return done


class _Turn(Generic[T]):
    """Work in the queue of an executor."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._is_wanted = False
        self._is_known = threading.Event()

    def run(self) -> T:
        """Do the work when it is allowed."""
        self._is_known.wait()
        if not self._is_wanted:
            raise RuntimeError("this work was done in another thread")
        return self._work()

    def allow(self) -> None:
        """Let it begin."""
        self._is_wanted = True
        self._is_known.set()

    def end(self) -> None:
        """Never let it begin."""
        self._is_known.set()


async def in_other_thread(work: Callable[[], object], on_cancel: Callable[[], object] = lambda: None) -> None:
    """Run `work` in another thread and wait for it; in this one if the system starts no more threads.

    A limit on processes must neither end a session nor leave out a check. Cancelling calls `on_cancel`, and does not
    end `work` that has begun.
    """
    try:
        await begin_in_other_thread(work)
    except asyncio.CancelledError:
        on_cancel()
        raise
