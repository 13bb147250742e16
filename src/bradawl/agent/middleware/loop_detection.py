"""Detects a model that makes the same calls with the same results again and again: warns it, then ends the turn."""

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams, TurnFinished

WARNED_AT = 3
"""Number of rounds of the same calls with the same results after which the model is warned."""
_SAME_CALLS = (
    "You have made the same {what} {rounds} times and got the same results each time. It won't change: do something "
    "else, or end your turn and say what keeps you from going on."
)
_GAVE_UP = "The model made the same {what} {rounds} times, with the same results each time."


class LoopDetection(Middleware):
    """Ends a turn that repeats itself. A call whose result changes, such as output of a job, is not a repetition."""

    def __init__(self, context: MiddlewareContext, same_rounds: int | None) -> None:
        """`same_rounds`: consecutive rounds of the same calls and results that end a turn; None means unlimited."""
        self._conversation = context.conversation
        self._same_rounds = same_rounds
        self._steps = 0
        self._warned_at = 0

    def begin_turn(self, params: RequestParams) -> None:
        """Forget the turn before."""
        self._steps = self._warned_at = 0

    async def before_step(self) -> Finish | None:
        """Warn a model that repeats itself, or end its turn."""
        done, self._steps = self._steps, self._steps + 1
        most = self._same_rounds
        if most is None or done < min(most, WARNED_AT):
            return None
        from bradawl.folds.repetition import cycle_at_end

        cycle = cycle_at_end(self._conversation.transcript.messages, most)
        what = "calls" if cycle.steps == 1 else f"{cycle.steps} steps"
        if cycle.rounds >= most:
            hint = "Say `go on` with other words, or use another model."
            text = _GAVE_UP.format(what=what, rounds=cycle.rounds)
            return Finish(TurnFinished("error", Failure("bad_answer", text, hint=hint)))
        if cycle.rounds == WARNED_AT and done >= self._warned_at:
            self._warned_at = done + cycle.steps  # one warning for each round, not for each step of it
            self._conversation.note(_SAME_CALLS.format(what=what, rounds=cycle.rounds))
        return None
