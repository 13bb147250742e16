"""Ends a turn that has made the greatest number of steps."""

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.core.events import LimitReached, RequestParams, TurnFinished


class StepLimit(Middleware):
    """Ends a turn before the first step above the limit."""

    def __init__(self, context: MiddlewareContext, max_steps: int | None) -> None:
        """`max_steps`: steps per turn, repeated requests not counted; None means unlimited."""
        self._conversation = context.conversation
        self._max_steps = max_steps
        self._steps = 0

    def begin_turn(self, params: RequestParams) -> None:
        """Count from zero."""
        self._steps = 0

    async def before_step(self) -> Finish | None:
        """Log and report the limit if the next step would exceed it."""
        if self._max_steps is not None and self._steps >= self._max_steps:
            self._conversation.record(LimitReached("steps", self._steps, self._max_steps))
            return Finish(TurnFinished("steps"))
        self._steps += 1
        return None
