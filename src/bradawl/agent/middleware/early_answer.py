"""Ends a turn with the answer that its last reply brought along for the case that all its calls succeed.

Most tasks end with a check. A model that knows what it will say if the check succeeds says it with the call, and one
request with the whole conversation is saved.
"""

from bradawl.agent.calls.denials import Denials
from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext, StepOutcome
from bradawl.core.arguments import parse_arguments
from bradawl.core.deltas import TextDelta
from bradawl.core.events import CallPrepared, Event, RequestParams, TurnFinished
from bradawl.core.messages import Assistant, ToolCall, ToolResults, calls_of

PARAMETER = "answer_if_ok"
"""The parameter of `TOOL` with the answer."""
TOOL = "bash"
_NOTHING_DONE = (
    "answer_if_ok did not end the task, because nothing was changed or run in it: it is for the command that checks "
    "your work. Go on, or answer as text without calls."
)


class EarlyAnswer(Middleware):
    """Ends the turn if all calls of a reply succeeded and one of them carries an answer.

    The tool itself counts as failed if its success is doubtful, as in a pipeline of which one part failed.
    """

    def __init__(self, context: MiddlewareContext, denials: Denials) -> None:
        self._conversation = context.conversation
        self._denials = denials
        self._has_schema = False
        self._did_something = False
        context.conversation.listen(self._follow)

    def begin_turn(self, params: RequestParams) -> None:
        """Forget the turn before. An answer with a schema is checked when it is given as text."""
        self._has_schema, self._did_something = bool(params.answer_schema), False

    async def after_step(self, outcome: StepOutcome) -> Finish | None:
        """Finish with the answer, unless a call failed or the user said something."""
        if outcome.reply is None or outcome.failure is not None or outcome.ending is not None or self._has_schema:
            return None
        answer = _answer_in(outcome.reply)
        if not answer or not self._all_succeeded() or self._conversation.inbox.holds_user_note:
            return None
        if not self._did_something:
            self._conversation.note(_NOTHING_DONE)
            return None
        self._conversation.show(TextDelta(len(outcome.reply.parts), answer))
        return Finish(TurnFinished("refused" if self._denials.end_the_turn else "completed"), answer)

    def _follow(self, event: Event) -> None:
        if isinstance(event, CallPrepared) and not event.effects.is_read_only:
            self._did_something = True

    def _all_succeeded(self) -> bool:
        messages = self._conversation.transcript.messages
        last = messages[-1] if messages else None
        return isinstance(last, ToolResults) and not any(result.is_error for result in last.results)


def _answer_in(reply: Assistant) -> str:
    """The answer that a call of the reply carries; empty if none does."""
    return next((answer for call in calls_of(reply) if (answer := _answer_of(call))), "")


def _answer_of(call: ToolCall) -> str:
    if call.name != TOOL or PARAMETER not in call.raw_arguments:
        return ""
    arguments, _ = parse_arguments(call.raw_arguments)
    answer = arguments.get(PARAMETER) if arguments else None
    return answer.strip() if isinstance(answer, str) else ""
