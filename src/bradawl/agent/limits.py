"""Bounds on a turn."""

import msgspec

from bradawl.core.events import LimitReached


class Limits(msgspec.Struct, frozen=True):
    """What a turn may use up; None is without bound."""

    max_steps: int | None = None
    """Requests per turn."""
    parallel_calls: int = 10
    """Calls of one reply that may run at the same time."""


def reached(limits: Limits, steps: int) -> LimitReached | None:
    """The limit that forbids one more step, if there is one."""
    if limits.max_steps is not None and steps >= limits.max_steps:
        return LimitReached("steps", steps, limits.max_steps)
    return None
