"""Ends a turn with the answer that its last reply brought along for the case that all its calls succeed.

Most tasks end with a check. A model that knows what it will say if the check succeeds says it with the call, and one
request with the whole conversation is saved.
"""

from collections.abc import Callable

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext, StepOutcome
from bradawl.core.deltas import TextDelta
from bradawl.core.events import CallPrepared, Event, RequestParams, ToolFinished, TurnFinished
from bradawl.core.messages import ToolResult, ToolResults, calls_of
from bradawl.folds.answers import early_text

_WHOLE = ("tool_use", "end_turn", "stop_sequence")
"""Reasons why a reply ended that say that nothing of it is missing."""
_NOT_GIVEN = "The answer in answer_if_ok was not given, because {why}."
_IN_PART = "a part of the command failed, or it still runs: see the last lines of its result"
_NOT_LAST = _NOT_GIVEN.format(why="it belongs to the last call of a reply: what comes after a check is not checked")
_NOTHING_DONE = (
    "answer_if_ok did not end the task, because nothing was changed or run in it: it is for the command that checks "
    "your work. Go on, or answer as text without calls."
)


class EarlyAnswer(Middleware):
    """Ends the turn if all calls of a reply succeeded and one of them carries an answer.

    A call whose success hides a failure, as in a pipeline of which one part failed, does not count as succeeded.
    """

    def __init__(self, context: MiddlewareContext, gave_up: Callable[[], bool]) -> None:
        """`gave_up` returns whether the model gave up on a call that no user was there to allow."""
        self._conversation = context.conversation
        self._gave_up = gave_up
        self._has_schema = False
        self._hides_failure = False
        """A call of this step succeeded although a part of it failed."""
        self._did_something = False
        self._acts: dict[str, bool] = {}
        """By the id of a call without a result whether it does more than read."""
        context.conversation.listen(self._follow)

    def begin_turn(self, params: RequestParams) -> None:
        """Forget the turn before. An answer with a schema is checked when it is given as text."""
        self._has_schema, self._did_something = bool(params.answer_schema), False
        self._acts.clear()

    async def before_step(self) -> None:
        """Forget the calls of the step before."""
        self._hides_failure = False

    async def after_step(self, outcome: StepOutcome) -> Finish | None:
        """Finish with the answer, unless a call failed or the user said something."""
        if outcome.reply is None or not outcome.reply.complete or outcome.stop not in _WHOLE:
            return None
        if outcome.failure is not None or outcome.ending is not None or self._has_schema:
            return None
        early = early_text(outcome.reply, {result.call_id: result.parts for result in self._results()})
        if early is None or self._conversation.inbox.waiting:  # the user said something, or a job has ended
            return None
        if why := self._why_not() or ("" if early.call_id == calls_of(outcome.reply)[-1].id else _NOT_LAST):
            self._conversation.note(why)
            return None
        self._conversation.show(TextDelta(len(outcome.reply.parts), early.text))
        return Finish(TurnFinished("refused" if self._gave_up() else "completed"), early.text)

    def _follow(self, event: Event) -> None:
        match event:
            case CallPrepared(call_id, effects=effects):
                self._acts[call_id] = not effects.is_read_only
            case ToolFinished(call_id, outcome, has_failed_part=has_failed_part):
                acts = self._acts.pop(call_id, False)
                self._did_something = self._did_something or (acts and outcome != "refused")
                self._hides_failure = self._hides_failure or has_failed_part
            case _:
                pass

    def _results(self) -> tuple[ToolResult, ...]:
        messages = self._conversation.transcript.messages
        return messages[-1].results if messages and isinstance(messages[-1], ToolResults) else ()

    def _why_not(self) -> str:
        """Why the answer does not count; empty if it does."""
        failed = list(dict.fromkeys(result.name for result in self._results() if result.is_error))
        if failed or self._hides_failure:
            return _NOT_GIVEN.format(why=f"{', '.join(failed)} failed" if failed else _IN_PART)
        return "" if self._did_something else _NOTHING_DONE
