"""When to try a failed request again. Pure: the clock and the dice are handed in."""

import msgspec

from bradawl.core.errors import Failure

BASE_S = 0.5
CAP_S = 30.0


class RetryBudget(msgspec.Struct, frozen=True):
    """Bounds of all retries of one step together."""

    attempts: int = 6
    """Requests in all, the first included."""
    deadline_s: float = 300.0
    """Seconds from the first request within which the last may start."""
    longest_wait_s: float = 600.0
    """A server that asks for more than this ends the step at once."""


def next_delay(failure: Failure, attempt: int, budget: RetryBudget, *, elapsed_s: float, draw: float) -> float | None:
    """Seconds to wait before the next request, or None to give up.

    `attempt` counts the requests made so far (from 1), `elapsed_s` the time since the first,
    `draw` is uniform in [0, 1). A server's wish wins over the backoff and gets up to a
    quarter on top; without one it is exponential with full jitter.
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
