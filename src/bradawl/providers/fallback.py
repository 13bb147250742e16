"""The fallback model: after repeated failures of one model the next one continues the session."""

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
from bradawl.providers.response_reader import CONTENT

_FAILURES_BEFORE_SWITCH = 3
"""Failures in a row after which a session turns to the next model."""
_SERVER_FAILURES = frozenset({"overloaded", "rate_limit", "server", "timeout", "connection"})
"""Failures of the server. Another model does not help against a bad request, a bad key or an empty account."""


class FallbackModel:
    """The first of `models` answers a session's requests until it fails too often; then the next one does.

    A session switches after three retryable failures of the server in a row (overloaded, rate limited, unreachable,
    silent, broken), or after one with a longer wait than the budget allows. It does not switch back. A new session
    starts with the first model. Owns the models and closes them.
    """

    def __init__(self, models: Sequence[Model]) -> None:
        if not models:
            raise ValueError("a fallback needs at least one model")
        self._models = tuple(models)

    @property
    def info(self) -> ModelInfo:
        """The first model's."""
        return self._models[0].info

    def open(self, prefix: Prefix, session_id: str = "") -> "FallbackSession":
        """Begin a conversation with the first model; the others are opened on a switch."""
        return FallbackSession(self._models, prefix, session_id)

    async def window(self) -> Window:
        """The first model's."""
        return await self._models[0].window()

    async def aclose(self) -> None:
        """Close the connections of all models; safe to call twice."""
        for model in self._models:
            await model.aclose()


class FallbackSession:
    """One conversation that may switch models. It keeps the messages for the next model."""

    def __init__(self, models: Sequence[Model], prefix: Prefix, session_id: str) -> None:
        first, *self._others = models
        self._prefix = prefix
        self._session_id = session_id
        self._messages: list[Message] = []
        self._session: ModelSession = first.open(prefix, session_id)
        self._failures = 0
        """Failures in a row of the current model."""

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

        On a switch the stream ends with a failure that is retryable at once and whose hint names the next model:
        the deltas so far belong to the old model.
        """
        counter = _FailureCounter(self._failures, budget)
        async with aclosing(self._session.stream(params, self._share(budget))) as deltas:
            async for delta in deltas:
                counter.saw(delta)
                self._failures = counter.failures
                if isinstance(delta, StreamFailed) and self._others and counter.should_switch(delta.failure):
                    yield self._switch(delta)
                else:
                    yield delta

    def _share(self, budget: RetryBudget) -> RetryBudget:
        """The current model's budget: its failures left before a switch, at most one attempt less than the whole."""
        if not self._others:
            return budget
        attempts = min(_FAILURES_BEFORE_SWITCH - self._failures, budget.attempts - 1)
        return msgspec.structs.replace(budget, attempts=max(1, attempts))

    def _switch(self, failed: StreamFailed) -> StreamFailed:
        """Open the next model and append all messages so far."""
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


class _FailureCounter:
    """Counts one model's failures in a row and decides when to switch."""

    def __init__(self, failures: int, budget: RetryBudget) -> None:
        self._before = failures
        self._budget = msgspec.structs.replace(budget, attempts=_FAILURES_BEFORE_SWITCH)
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

    def should_switch(self, failure: Failure) -> bool:
        """True after enough failures, or if the wait before the next attempt exceeds the budget."""
        if failure.kind not in _SERVER_FAILURES or not failure.retryable:
            return False
        if self._has_retried and not self._was_shown:
            return True  # its own retries have used up its share
        elapsed_s = self._time() - self._started_s
        return next_delay(failure, self.failures, self._budget, elapsed_s=elapsed_s, draw=0.0) is None
