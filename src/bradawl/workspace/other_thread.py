"""Runs blocking work beside the event loop."""

import asyncio
from collections.abc import Callable


async def in_other_thread(work: Callable[[], object], on_cancel: Callable[[], object] = lambda: None) -> None:
    """Run `work` in another thread and wait for it; in this one if the system starts no more threads.

    A limit on processes must neither end a session nor leave out a check. Cancelling calls `on_cancel`, and does not
    end `work`.
    """
    turn = _Turn(work)
    try:
        await asyncio.to_thread(turn.run)
    except asyncio.CancelledError:
        on_cancel()
        raise
    except RuntimeError:
        if not turn.take():  # the error is that of `work`
            raise
        work()


class _Turn:
    """Lets work begin once: an executor that could start no thread has it in its queue all the same."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = [work]

    def take(self) -> Callable[[], object] | None:
        """The work, unless it has been taken."""
        try:
            return self._work.pop()
        except IndexError:
            return None

    def run(self) -> None:
        """Do the work, unless it has been taken."""
        if work := self.take():
            work()
