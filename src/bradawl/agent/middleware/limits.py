"""Bounds of a turn: the number of steps, and rounds of the same calls with the same results."""

import msgspec

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.core.errors import Failure
from bradawl.core.events import LimitReached, RequestParams, TurnFinished

WARNED_AT = 3
"""Number of rounds of the same calls with the same results after which the model is warned."""
_SAME_CALLS = (
    "You have made the same {what} {rounds} times and got the same results each time. It won't change: do something "
    "else, or end your turn and say what keeps you from going on."
)
_GAVE_UP = "The model made the same {what} {rounds} times, with the same results each time."


class Limits(msgspec.Struct, frozen=True):
    """Bounds of a turn; None means unlimited."""

    max_steps: int | None = None
    """Requests per turn."""
    parallel_calls: int = 10
    """Calls of one reply that may run at the same time."""
    calls_per_reply: int = 100
    """Calls of one reply that are run; the others are answered without being run."""
    same_rounds: int | None = 5
    """Consecutive rounds of the same calls with the same results that end a turn."""


class TurnLimits(Middleware):
    """Ends a turn that has used up its steps, or that repeats itself."""

    def __init__(self, context: MiddlewareContext, limits: Limits) -> None:
        self._conversation = context.conversation
        self._limits = limits
        self._steps = -1
        self._warned_at = 0

    def begin_turn(self, params: RequestParams) -> None:
        """Count from zero."""
        self._steps, self._warned_at = -1, 0

    async def before_step(self) -> Finish | None:
        """Log and report the bound that the next step would exceed; warn the model when it repeats itself."""
        self._steps += 1
        most = self._limits.max_steps
        if most is not None and self._steps >= most:
            limit = LimitReached("steps", self._steps, most)
            self._conversation.record(limit)
            return Finish(TurnFinished(limit.limit))
        return self._check_repetition()

    def _check_repetition(self) -> Finish | None:
        most = self._limits.same_rounds
        if most is None or self._steps < min(most, WARNED_AT):
            return None
        from bradawl.folds.repetition import circle_at_end

        circle = circle_at_end(self._conversation.transcript.messages, most)
        what = "calls" if circle.steps == 1 else f"{circle.steps} steps"
        if circle.rounds >= most:
            hint = "Say `go on` with other words, or use another model."
            text = _GAVE_UP.format(what=what, rounds=circle.rounds)
            return Finish(TurnFinished("error", Failure("bad_answer", text, hint=hint)))
        if circle.rounds == WARNED_AT and self._steps >= self._warned_at:
            self._warned_at = self._steps + circle.steps  # one warning for each round, not for each step of it
            self._conversation.note(_SAME_CALLS.format(what=what, rounds=circle.rounds))
        return None
