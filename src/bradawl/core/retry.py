"""Decides when a failed model request is sent again. Pure: time and random numbers are parameters."""

import msgspec

from bradawl.core.errors import Failure

BASE_S = 0.5
CAP_S = 30.0


class RetryBudget(msgspec.Struct, frozen=True):
    """Limits of all attempts of one step together."""

    attempts: int = 6
    """Most requests, the first included."""
    deadline_s: float = 300.0
    """Seconds after the first request in which another may start."""
    longest_wait_s: float = 600.0
    """A server that asks for a longer wait ends the step."""


def next_delay(failure: Failure, attempt: int, budget: RetryBudget, *, elapsed_s: float, draw: float) -> float | None:
    """Seconds to wait before the next request; None to give up.

    `attempt` is the number of requests so far (from 1), `elapsed_s` the time since the first, `draw` uniform in [0, 1).
    If the server names a time, the wait is that plus up to a quarter; else exponential backoff with full jitter.
    """
    if not failure.retryable or attempt >= budget.attempts:
        return None
    wish = failure.retry_after_s
    if wish is None or not 0 <= wish < float("inf"):
        delay = draw * min(CAP_S, BASE_S * 2 ** min(attempt - 1, 30))
    elif wish > budget.longest_wait_s:
        return None
    else:
        delay = wish * (1 + draw / 4)
    return delay if elapsed_s + delay <= budget.deadline_s else None
