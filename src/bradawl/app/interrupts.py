"""Handles SIGINT, SIGTERM, SIGHUP and SIGQUIT: the first signal cancels the run, the second exits at once."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Final

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupts:
    """A context manager in which SIGINT, SIGTERM, SIGHUP and SIGQUIT call `target` instead of ending the program.

    Without a target they cancel the task that entered it. A second signal exits at once.
    `on_interrupt` is called for SIGINT instead, where Ctrl+C does not end the program.
    """

    def __init__(self, on_interrupt: Callable[[], None] | None = None) -> None:
        self._on_interrupt = on_interrupt
        self.target: Callable[[], None] | None = None
        """Called by the first signal; must not block."""
        self.exit_code = 130
        """128 plus the number of the last signal."""
        self.has_arrived = False
        self._task: asyncio.Task[object] | None = None
        self._installed: list[signal.Signals] = []

    def __enter__(self) -> "Interrupts":
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        for number in _SIGNALS:
            # `nohup` sets SIGHUP to be ignored; the others must always work.
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            try:
                loop.add_signal_handler(number, self._arrived, number)
            except (RuntimeError, ValueError):
                return self  # not in the main thread, which handles signals
            self._installed.append(number)
        return self

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._installed:
            loop.remove_signal_handler(number)
        self._installed.clear()
        self._task = None

    def _arrived(self, number: signal.Signals) -> None:
        if number == signal.SIGINT and self._on_interrupt is not None:
            self._on_interrupt()
            return
        self.exit_code = 128 + number
        if self.has_arrived:
            os._exit(self.exit_code)
        self.has_arrived = True
        if self.target is not None:
            self.target()
        elif self._task is not None:
            self._task.cancel()
