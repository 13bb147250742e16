"""Continues a reply that the output limit cut or the provider paused: asks again, a bounded number of times.

A limit that can be raised is raised and the reply requested again. Otherwise the cut text is kept and the model
continues where it stopped.
"""

import msgspec

from bradawl.agent.middleware import Continue, Finish, Middleware, MiddlewareContext, Retry, StepOutcome
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams, TurnFinished
from bradawl.core.messages import Assistant, Origin, calls_of, text_of

GO_ON = (
    "Your last reply was cut by the output limit. Continue exactly where you stopped: begin with the next character, "
    "do not repeat anything, and do not comment on the cut."
)
MOST_CONTINUATIONS = 3
"""Per turn."""
_MOST_PAUSES = 10
"""Per turn; each pause costs a request."""
_AT_THE_LIMIT = 0.9
"""A reply that used this share of the model's own limit was not cut by a lower limit."""


class OutputLimit(Middleware):
    """Raises the output limit, or has the model continue, so that the answer is whole."""

    def __init__(self, context: MiddlewareContext) -> None:
        self._prefix = context.prefix
        self._raised: tuple[Origin, int] | None = None
        self._is_limited_by_user = False
        self._continued = 0
        self._paused = 0
        self._piece = ""
        self._piece_step = -1
        """Step of the last kept piece; -1 if there is none."""

    def begin_turn(self, params: RequestParams) -> None:
        """Forget the pieces of the turn before; a raised limit stays."""
        self._is_limited_by_user = params.max_output_tokens is not None
        self._continued = self._paused = 0
        self._piece_step = -1

    def adjust(self, params: RequestParams) -> RequestParams:
        """The parameters with the raised limit, as long as the same model answers."""
        if self._raised is None or self._raised[0] != self._prefix.info.origin:
            return params
        return msgspec.structs.replace(params, max_output_tokens=self._raised[1])

    async def after_step(self, outcome: StepOutcome) -> Retry | Continue | Finish | None:
        """Retry with a higher limit, continue a cut or paused reply, or let the turn end."""
        if outcome.stop == "max_tokens" and (limit := self._higher_limit(outcome)) is not None:
            self._raised = self._prefix.info.origin, limit
            if outcome.can_retry:
                text = f"The reply was cut by the output limit; it is asked for again with a limit of {limit:,} tokens."
                return Retry(Failure("output_limit", text, retryable=True, retry_after_s=0.0))
        if outcome.ending is None:
            return None
        if outcome.stop == "pause" and outcome.ending.failure is None:
            return self._after_pause(outcome, outcome.ending)
        if outcome.failure is None or outcome.failure.kind != "output_limit":
            return self._after_failure(outcome)
        return self._continue(outcome)

    def _higher_limit(self, outcome: StepOutcome) -> int | None:
        """The model's own limit if no request asked for it yet; a limit set by the user stays."""
        most = self._prefix.info.max_output
        if most is None or self._is_limited_by_user:
            return None
        used = 0 if outcome.usage is None else outcome.usage.output
        return most if used < most * _AT_THE_LIMIT else None

    def _continue(self, outcome: StepOutcome) -> Continue | None:
        """Let the model continue, unless the reply adds no text or there were too many continuations."""
        piece = _text_of(outcome.reply)
        is_repeated = self._piece_step == outcome.step - 1 and piece == self._piece
        if not piece.strip() or is_repeated or self._continued >= MOST_CONTINUATIONS:
            return None
        self._continued += 1
        self._keep(outcome, piece)
        return Continue(GO_ON, keeps_text=True)

    def _after_pause(self, outcome: StepOutcome, ending: TurnFinished) -> Continue | Finish:
        """Send a paused reply back unchanged; the provider continues it."""
        if self._paused >= _MOST_PAUSES:
            text = f"The provider paused the reply {self._paused + 1} times in a row without ending it."
            return Finish(msgspec.structs.replace(ending, reason="error", failure=Failure("server", text)))
        self._paused += 1
        self._keep(outcome, _text_of(outcome.reply))
        return Continue(keeps_text=True)

    def _after_failure(self, outcome: StepOutcome) -> Finish | None:
        """Report the cut as the reason when the request to continue the text failed: the answer so far is not whole."""
        failure, is_continuing = outcome.failure, self._continued and self._piece_step == outcome.step - 1
        if failure is None or outcome.reply is not None or not is_continuing:
            return None
        text = f"The reply was cut by the output limit, and the request to continue it failed: {failure.message}"
        return Finish(TurnFinished("error", msgspec.structs.replace(failure, kind="output_limit", message=text)))

    def _keep(self, outcome: StepOutcome, piece: str) -> None:
        self._piece, self._piece_step = piece, outcome.step


def _text_of(reply: Assistant | None) -> str:
    return "" if reply is None or calls_of(reply) else text_of(reply.parts)
