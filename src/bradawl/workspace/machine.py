"""The ports of this machine: clock and ids; and the user's home folder."""

import asyncio
import os
import time
from collections.abc import Mapping
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32: ids sort by time."""


class SystemClock:
    """The system's clock, as a `Clock`."""

    def now_ms(self) -> int:
        """Unix time in milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of a monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SystemIds:
    """`Ids` from the clock and the system's random numbers; the ids of one instance increase."""

    def __init__(self) -> None:
        self._last = 0

    def ulid(self) -> str:
        """26 characters, sortable by time, also within one millisecond."""
        fresh = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
        self._last = max(fresh, self._last + 1)
        return "".join(_ALPHABET[(self._last >> shift) & 31] for shift in range(125, -1, -5))

    def draw(self) -> float:
        """Uniform in [0, 1)."""
        return (int.from_bytes(os.urandom(7)) >> 3) / (1 << 53)


def home_in(environment: Mapping[str, str]) -> str:
    """The home folder: HOME if it is absolute, else that of the user database; empty if there is none."""
    home = environment.get("HOME", "")
    if home.startswith("/"):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
