"""The middleware port: what a feature that acts around each step implements. Each feature is one file here.

A turn calls the middleware in a fixed order: `step_limit`, `loop_detection`, `tool_changes`, `output_limit` (cut
replies), `reminders`, the middleware an embedder added, `early_answer` (an answer that came with the last calls), and
`answer_schema` (the check of the final answer).
Middleware do not import each other; they share nothing but the conversation and the prefix.

A new feature is one file here and one line in `_middleware_of` of `agent.agent`. A program that embeds bradawl passes
its own as `build_agent(settings, middleware=[MyMiddleware])`.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from bradawl.agent.conversation import Conversation
from bradawl.agent.prefix import PrefixLedger
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams, TurnFinished
from bradawl.core.messages import Assistant, StopReason
from bradawl.core.permissions import Policy
from bradawl.core.usage import Usage

MOST_RETRIES: Final = 5
"""Retries of one step that middleware may ask for."""
MOST_FAILED_STEPS: Final = 5
"""Failed steps in a row after which middleware may continue a turn."""


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a step ended."""

    step: int
    reply: Assistant | None
    """The reply, or the received part of it; None if nothing was received."""
    stop: StopReason | None
    """None if the stream broke off."""
    usage: Usage | None = None
    """As the provider reported it."""
    answer: str = ""
    """Text of the answer so far: the pieces kept by `Continue`, and this reply's text unless it has calls."""
    failure: Failure | None = None
    """Why the step failed: a provider error that is not retried, a reply cut by the output limit, a full context."""
    ending: TurnFinished | None = None
    """How the turn ends unless a middleware decides otherwise; None if another step follows."""
    can_retry: bool = False
    """True for a failed step whose reply is not in the log yet and whose calls changed nothing."""


class Retry(msgspec.Struct, frozen=True):
    """Withdraw the reply and make the same step again; ignored unless `can_retry`, and after `MOST_RETRIES`."""

    failure: Failure
    """Why the reply does not count; it is logged and shown."""


class Continue(msgspec.Struct, frozen=True):
    """Keep the reply and go on with another step, also if the turn would have ended.

    After `MOST_FAILED_STEPS` failed steps in a row the turn ends all the same, with the last failure.
    """

    note: str = ""
    """Text for the model, delivered before the next request."""
    keeps_text: bool = False
    """True if the next reply continues the text of this one, so that both together are the answer."""


class Finish(msgspec.Struct, frozen=True):
    """Keep the reply and end the turn.

    A middleware with a limit of its own records `LimitReached` with a name for it and finishes with the reason `limit`.
    """

    finished: TurnFinished
    text: str | None = None
    """The result's text; None for the text of the answer so far."""
    value: object = None
    """The result's `answer`: a JSON value."""


class Middleware(Protocol):
    """Acts around each step of a session. One instance belongs to one session; inherit to implement only some methods.

    `before_step` and `after_step` may wait, for example for a model that writes a summary. They are cancelled with the
    turn. An exception, or an answer of another type, ends the turn with a failure that names the middleware and the
    method; the conversation goes on.
    """

    def __init__(self, context: "MiddlewareContext") -> None:
        """Keep what is needed of the context. Called once, when the session is opened."""

    def begin_turn(self, params: RequestParams) -> None:
        """Forget the turn before; `params` is what its requests ask for. Nothing is logged yet.

        Raises `SettingsError` if the turn can't run with these parameters.
        """

    async def before_step(self) -> Finish | None:
        """Called before each step, in order, until one answers `Finish`. Notes queued here are part of the request.

        Not called before a request of the same step that is made again; `adjust` is.
        """

    def adjust(self, params: RequestParams) -> RequestParams | Finish:
        """Called before each request, also one that is made again: the parameters, changed or not; `Finish` sends none.

        A model may repeat a request that failed before its first content; that counts as the same request.
        """
        return params

    async def after_step(self, outcome: StepOutcome) -> Retry | Continue | Finish | None:
        """Called after each step and its calls, in order, until one answers; None leaves the decision to the next."""


class MiddlewareContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a middleware works with: the session's conversation, its prefix and its permissions."""

    conversation: Conversation
    prefix: PrefixLedger
    policy: Callable[[], Policy]
    """The policy for the next call."""


MiddlewareFactory = Callable[[MiddlewareContext], Middleware]
"""Makes the middleware of one session."""
