"""Cool-downs: after a rate limit no model sends requests to the same host until the limit is over."""

from typing import NamedTuple

from bradawl.core.errors import Failure
from bradawl.core.retry import BASE_S, RetryBudget

_KINDS = frozenset({"rate_limit", "overloaded"})
_SLACK_S = 0.01
"""A cool-down with less time left counts as over, because clocks are inexact."""


class CoolDown(NamedTuple):
    """A period in which a host gets no requests."""

    left_s: float
    failure: Failure
    """The host's rate limit or overload."""


class CoolDowns:
    """The cool-downs by origin; shared by models that may use the same hosts. Times are of the models' clock."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, Failure]] = {}

    def begin(self, origin: str, failure: Failure, now_s: float, delay_s: float | None) -> None:
        """Record a failed request to `origin`. `delay_s` is used if the server gave no duration."""
        if failure.kind not in _KINDS or not failure.retryable:
            return
        wish = failure.retry_after_s
        length = wish if wish is not None and 0 <= wish < float("inf") else delay_s
        known = self._until.get(origin)
        if length and (known is None or known[0] < now_s + length):
            self._until[origin] = (now_s + length, failure)

    def now(self, origin: str, now_s: float) -> CoolDown | None:
        """The current cool-down of `origin`, if any."""
        known = self._until.get(origin)
        if known is None:
            return None
        left = known[0] - now_s
        if left <= _SLACK_S:
            del self._until[origin]
            return None
        return CoolDown(left, known[1])


def pause_s(cool_down: CoolDown, budget: RetryBudget, *, elapsed_s: float, draw: float) -> float | None:
    """Seconds to wait for the end of a cool-down; None if the budget has no room for it.

    A random part of up to a quarter (at least half a second) is added, so that waiting requests are spread out.
    `draw` is uniform in [0, 1).
    """
    if cool_down.left_s > budget.longest_wait_s:
        return None
    pause = cool_down.left_s + draw * max(BASE_S, cool_down.left_s / 4)
    return pause if elapsed_s + pause <= budget.deadline_s else None
