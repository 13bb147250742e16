"""Limits how many connections the commands of a session have open together."""

import asyncio
from typing import Final

_FOR_EACH: Final = 4
"""Connections that a command may have whatever the others have: one that takes all leaves some to the others."""


class ConnectionLimit:
    """The open connections of all commands. Used in one event loop."""

    def __init__(self, most: int) -> None:
        """`most` is for all commands together, apart from the few that each may have."""
        self.most = most
        self.open = 0
        self.changed = asyncio.Event()

    def command(self) -> "CommandConnections":
        """The connections of one more command."""
        return CommandConnections(self)


class CommandConnections:
    """The open connections of one command."""

    def __init__(self, limit: ConnectionLimit) -> None:
        self._limit = limit
        self._open = 0

    async def wait_until_free(self) -> None:
        """Wait until one more may be accepted. Commands that wait at the same time may exceed the limit by one each."""
        limit = self._limit
        while self._open >= limit.most or (self._open >= _FOR_EACH and limit.open >= limit.most):
            limit.changed.clear()
            await limit.changed.wait()

    def begin(self) -> None:
        """Count one more."""
        self._open += 1
        self._limit.open += 1

    def end(self) -> None:
        """Count one less."""
        self._open -= 1
        self._limit.open -= 1
        self._limit.changed.set()
