"""A model with others behind it, which take over when it can't keep up."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from bradawl.core.deltas import Delta, ReplyEnded, RetryScheduled, StreamFailed
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message
from bradawl.core.ports import Model, ModelInfo, ModelSession, Prefix, Window
from bradawl.core.retry import RetryBudget, next_delay
from bradawl.providers.reading import CONTENT

_PATIENCE = 3
"""Failures in a row after which a session turns to the next model."""
_OF_THE_SERVER = frozenset({"overloaded", "rate_limit", "server", "timeout", "connection"})
"""Kinds that say nothing against the request; what is wrong with it, the key or the account no other model mends."""


class FallbackModel:
    """The first of `models` answers, until it has failed too often for a session: then the next one does.

    What counts are failures of the server that may pass (overloaded, rate limited, unreachable, silent, broken),
    three of them in a row, or one after which the server wants to be left alone for longer than the budget allows.
    A session that has switched does not switch back; a new one begins with the first model again. Owns the models.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ValueError("a fallback needs at least one model")
        self._models = tuple(models)

    @property
    def info(self) -> ModelInfo:
        """Of the model every session begins with."""
        return self._models[0].info

    def open(self, prefix: Prefix, session_id: str = "") -> "FallbackSession":
        """Begin a conversation with the first model; the others are opened when they are needed."""
        return FallbackSession(self._models, prefix, session_id)

    async def window(self) -> Window:
        """Of the model every session begins with."""
        return await self._models[0].window()

    async def aclose(self) -> None:
        """Close the connections of all models; safe to call twice."""
        for model in self._models:
            await model.aclose()


class FallbackSession:
    """One conversation that may change its model. Its messages are kept, for the model that takes over."""

    def __init__(self, models: Sequence[Model], prefix: Prefix, session_id: str) -> None:
        first, *self._others = models
        self._prefix = prefix
        self._session_id = session_id
        self._messages: list[Message] = []
        self._session: ModelSession = first.open(prefix, session_id)
        self._failures = 0
        """In a row, of the model that answers now."""

    @property
    def info(self) -> ModelInfo:
        """The model that answers the next request."""
        return self._session.info

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        if self._others:
            self._messages.append(message)
        self._session.append(message)

    def prefix_hash(self) -> str:
        """sha256 over system, tools and messages as encoded so far for the model that answers next."""
        return self._session.prefix_hash()

    async def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply; ends with one `ReplyEnded` or `StreamFailed`.

        When the next model takes over, the stream ends with a failure that may be retried at once and says so:
        what came so far is not of the model that will answer.
        """
        watch = _Watch(self._failures, budget)
        async with aclosing(self._session.stream(params, self._share(budget))) as deltas:
            async for delta in deltas:
                watch.saw(delta)
                self._failures = watch.failures
                if isinstance(delta, StreamFailed) and self._others and watch.is_in_vain(delta.failure):
                    yield self._switch(delta)
                else:
                    yield delta

    def _share(self, budget: RetryBudget) -> RetryBudget:
        """A model with another behind it gets what is left of its patience, and leaves one request to the other."""
        if not self._others:
            return budget
        attempts = min(_PATIENCE - self._failures, budget.attempts - 1)
        return msgspec.structs.replace(budget, attempts=max(1, attempts))

    def _switch(self, failed: StreamFailed) -> StreamFailed:
        """Let the next model take over, with all that was said so far."""
        self._session = self._others.pop(0).open(self._prefix, self._session_id)
        for message in self._messages:
            self._session.append(message)
        if not self._others:
            self._messages.clear()
        self._failures = 0
        origin = self._session.info.origin
        hint = f"{origin.provider}/{origin.model} takes over for the rest of this session."
        failure = msgspec.structs.replace(failed.failure, retryable=True, retry_after_s=0.0, hint=hint)
        return msgspec.structs.replace(failed, failure=failure)


class _Watch:
    """Counts how often one model has failed in a row, and knows when it is of no more use."""

    def __init__(self, failures: int, budget: RetryBudget) -> None:
        self._before = failures
        self._budget = msgspec.structs.replace(budget, attempts=_PATIENCE)
        self._time = asyncio.get_running_loop().time
        self._started_s = self._time()
        self._was_shown = False
        self._has_retried = False
        self.failures = failures

    def saw(self, delta: Delta) -> None:
        """Take one delta of the model into account."""
        if isinstance(delta, RetryScheduled):
            self._has_retried = True
            self.failures = self._before + delta.attempt
        elif isinstance(delta, StreamFailed):
            self.failures += 1
        elif isinstance(delta, ReplyEnded):
            self.failures = 0
        elif isinstance(delta, CONTENT):
            self._was_shown = True

    def is_in_vain(self, failure: Failure) -> bool:
        """True when the model has failed often enough, or no wait for it has room in the budget."""
        if failure.kind not in _OF_THE_SERVER or not failure.retryable:
            return False
        if self._has_retried and not self._was_shown:
            return True  # it has used up its share by itself
        elapsed_s = self._time() - self._started_s
        return next_delay(failure, self.failures, self._budget, elapsed_s=elapsed_s, draw=0.0) is None
