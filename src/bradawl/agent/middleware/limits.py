"""Bounds on a turn."""

from typing import TYPE_CHECKING

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.events import LimitReached, TurnFinished

if TYPE_CHECKING:
    from bradawl.agent.session import Session

WARNED_AT = 3
"""So many rounds of the same calls with the same results, and the model is told."""
_CIRCLES = (
    "You have made the same {what} {rounds} times and got the same results each time. It won't change: do something "
    "else, or end your turn and say what keeps you from going on."
)
_GAVE_UP = "The model made the same {what} {rounds} times, with the same results each time."


class Limits(msgspec.Struct, frozen=True):
    """What a turn may use up; None is without bound."""

    max_steps: int | None = None
    """Requests per turn."""
    parallel_calls: int = 10
    """Calls of one reply that may run at the same time."""
    calls_per_reply: int = 100
    """Calls of one reply that are run at all; the others are answered that they were not."""
    same_rounds: int | None = 5
    """Rounds of the same calls with the same results, one after the other, that end a turn."""


class TurnLimits:
    """The bounds of one turn, asked before each step."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._steps = -1
        self._warned_at = 0

    def reached(self) -> TurnFinished | None:
        """How the turn ends if there is no room for one more step; None if there is."""
        self._steps += 1
        most = self._session.agent.limits.max_steps
        if most is not None and self._steps >= most:
            limit = LimitReached("steps", self._steps, most)
            self._session.record(limit)
            return TurnFinished(limit.limit)
        return self._going_in_circles()

    def _going_in_circles(self) -> TurnFinished | None:
        most = self._session.agent.limits.same_rounds
        if most is None or self._steps < min(most, WARNED_AT):
            return None
        from bradawl.folds.repetition import circle_at_end

        circle = circle_at_end(self._session.transcript.messages, most)
        what = "calls" if circle.steps == 1 else f"{circle.steps} steps"
        if circle.rounds >= most:
            hint = "Say `go on` with other words, or use another model."
            text = _GAVE_UP.format(what=what, rounds=circle.rounds)
            return TurnFinished("error", Failure("bad_answer", text, hint=hint))
        if circle.rounds == WARNED_AT and self._steps >= self._warned_at:
            self._warned_at = self._steps + circle.steps  # one warning for each round, not for each step of it
            self._session.note(_CIRCLES.format(what=what, rounds=circle.rounds))
        return None
