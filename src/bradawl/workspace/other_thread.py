"""Runs blocking work beside the event loop."""

import asyncio
import concurrent.futures
import contextlib
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def begin_in_other_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Begin `work` in another thread; in this one, which it blocks, if the system starts no more threads.

    The work is done once, and the future has its result or error; an error of work done in this thread is raised at
    once. An executor that can't start a thread raises an error although the work is in its queue, where another thread
    may find it, even hours later: a write that was reported as failed would overwrite later changes. A cancelled future
    cancels work that has not begun.
    """
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
    turn = [work]

    def run() -> None:
        with contextlib.suppress(IndexError):  # another thread does it, or has done it
            _run(turn.pop(), outcome)

    try:
        begun = asyncio.get_running_loop().run_in_executor(None, run)
        begun.add_done_callback(lambda done: done.cancelled() or done.exception())  # `outcome` has it: no warning
    except RuntimeError:
        run()
    return asyncio.wrap_future(outcome)


def _run(work: Callable[[], T], outcome: concurrent.futures.Future[T]) -> None:
    if outcome.set_running_or_notify_cancel():
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)
            raise


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
