"""Compacts a conversation that fills the model's window, and one that the model refused as too long."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from bradawl.agent.middleware import Continue, Finish, Middleware, MiddlewareContext, Retry, StepOutcome
from bradawl.core.events import Compacted, Event, HeadMoved, PrefixOpened, RequestParams, ToolFinished
from bradawl.core.messages import calls_of, text_of
from bradawl.core.ports import Files, Model
from bradawl.shaping.compaction.limits import CompactionLimits, Room, Tier, expected_requests

if TYPE_CHECKING:
    from bradawl.agent.compaction.compactor import Compactor
    from bradawl.agent.compaction.room_in_window import RoomInWindow

GO_ON: Final = (
    "Your last reply was cut because the context window was full; the conversation has been compacted since. Continue "
    "exactly where you stopped: begin with the next character, do not repeat anything, and do not comment on the cut."
)
MOST_OVERFLOWS: Final = 3
"""Requests in a row that were too long, after which the turn ends with the provider's error."""
_SMALLEST: Final = 1_500
"""Tokens; a shorter conversation is not looked at."""
_MORE: Final = 1.05
"""By so much a conversation grows before a tier that freed too little is tried again."""
_BATCH: Final = 10
"""Results beyond those to keep that are waited for at least, because each time a new prefix opens."""


class Forecast(msgspec.Struct, frozen=True):
    """A compaction that is to come."""

    tier: Tier
    at_tokens: int
    freed: dict[str, int]
    """Tokens that it would free now, by what they belong to."""


class Compaction(Middleware):
    """Makes room in the window before a step, after a request that was too long, and when the user asks for it."""

    def __init__(
        self,
        context: MiddlewareContext,
        files: Files,
        model: Model,
        small_model: Model | None,
        limits: CompactionLimits,
    ) -> None:
        self._conversation, self._prefix, self._policy = context.conversation, context.prefix, context.policy
        self._files, self._model, self._small_model, self._limits = files, model, small_model, limits
        self._made: tuple[Compactor, RoomInWindow] | None = None
        """Made when they are needed first."""
        self._asked_output: int | None = None
        self._overflows = 0
        self._again_from: dict[Tier, float] = {}
        """Tokens from which a tier that freed too little is tried again."""
        self._replies_before = 0
        self._results: int | None = None
        """Results that are not shortened; None before they have been counted."""
        context.conversation.listen(self._follow)
        context.prefix.economise = self._economise

    def begin_turn(self, params: RequestParams) -> None:
        """Remember what the requests of the turn reserve for their replies."""
        self._asked_output, self._overflows = params.max_output_tokens, 0
        self._replies_before = self._conversation.state.replies

    async def before_step(self) -> Finish | None:
        """Compact the conversation if it takes a share of the window from which that is due."""
        tokens = self._prefix.context_tokens()
        if tokens < _SMALLEST:
            return None
        await self._keep_last_results(tokens)
        room = await self._parts[1].known(tokens, self._asked_output)
        if room is None or not self._limits.is_on:
            return None
        tier = self._limits.tier(tokens / (room.usable * self._prefix.factor))
        if tier is None or tokens < self._again_from.get(tier, 0):
            return None
        event = await self._parts[0].compact(tier, room, requests=self._expected)
        if event is None:
            self._again_from[tier] = tokens * _MORE
        return None

    async def after_step(self, outcome: StepOutcome) -> Retry | Continue | None:
        """Compact the conversation if the request was too long, or its reply was cut because the window is full."""
        failure = outcome.failure
        if failure is None or failure.kind != "context_overflow":
            self._overflows = 0
            return None
        if self._overflows >= MOST_OVERFLOWS or not self._limits.is_on:
            return None
        self._overflows += 1
        compactor, rooms = self._parts
        room = rooms.after_overflow(self._prefix.context_tokens(), self._overflows)
        if await compactor.compact("collapse", room) is None:
            return None
        if outcome.reply is not None and not calls_of(outcome.reply) and text_of(outcome.reply.parts).strip():
            return Continue(GO_ON, keeps_text=True)
        without_advice = msgspec.structs.replace(failure, hint="")  # which is to do what was done just now
        return Retry(without_advice) if outcome.can_retry else Continue()

    async def on_request(self, focus: str, begin: Callable[[], Awaitable[None]]) -> Compacted | None:
        """Summarise the conversation because the user asks for it, however short it is; None if nothing is to gain.

        `begin` opens the prefix of a resumed session.
        """
        await begin()
        compactor, rooms = self._parts
        tokens = self._prefix.context_tokens()
        room = await rooms.known(tokens, self._asked_output) or rooms.after_overflow(tokens, 0)
        return await compactor.compact("summarise", room, focus=focus, is_asked=True)

    async def forecast(self) -> Forecast | None:
        """The next tier and what it would free now; None if nothing is compacted, or the window is not known."""
        compactor, rooms = self._parts
        tokens = self._prefix.context_tokens()
        room = await rooms.known(max(tokens, _SMALLEST), self._asked_output)
        if room is None or not self._limits.is_on:
            return None
        usable = room.usable * self._prefix.factor
        tier, share = self._limits.next_tier(tokens / usable)
        return Forecast(tier, round(share * usable), await compactor.forecast(tier, room))

    @property
    def _parts(self) -> "tuple[Compactor, RoomInWindow]":
        if self._made is None:
            from bradawl.agent.compaction.compactor import Compactor  # a short conversation does not need them
            from bradawl.agent.compaction.room_in_window import RoomInWindow

            compactor = Compactor(
                self._conversation, self._prefix, self._files, self._policy, self._model, self._small_model
            )
            self._made = compactor, RoomInWindow(self._prefix, self._model)
        return self._made

    @property
    def _expected(self) -> int:
        return expected_requests(self._conversation.state.replies - self._replies_before)

    def _economise(self) -> None:
        if self._limits.is_on and self._prefix.context_tokens() >= _SMALLEST:
            self._parts[0].economise()

    async def _keep_last_results(self, tokens: int) -> None:
        """Shorten all results but the last ones, if the settings say so."""
        keep = self._limits.keep_results
        if keep is None:
            return
        if self._results is None:
            from bradawl.shaping.compaction.snip import whole_results

            self._results = whole_results(self._conversation.transcript.messages)
        if self._results < keep + max(keep, _BATCH):
            return
        await self._parts[0].compact("snip", Room.of_any_size(tokens), keep_results=keep)

    def _follow(self, event: Event) -> None:
        if isinstance(event, ToolFinished) and self._results is not None:
            self._results += 1
        elif isinstance(event, Compacted | HeadMoved):
            self._again_from.clear()
            self._results = None
        elif isinstance(event, PrefixOpened) and event.reason == "model":  # with another window
            self._again_from.clear()
            self._made = None
