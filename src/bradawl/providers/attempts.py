"""Sends a model request, classifies its failure, and sends it again when `core.retry` permits."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from bradawl.core.deltas import Delta, ReplyEnded, RetryScheduled, StreamFailed
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.http import HttpRequest
from bradawl.core.messages import Message
from bradawl.core.retry import RetryBudget, next_delay
from bradawl.providers.advice import advise, empty_reply, unsendable
from bradawl.providers.codec import RequestEncoder
from bradawl.providers.connection import Connection
from bradawl.providers.cooldown import pause_s
from bradawl.providers.exchange import Exchange
from bradawl.providers.exchange_log import ExchangeLog
from bradawl.providers.failures import scrub
from bradawl.providers.hosts import host_of
from bradawl.providers.keys import misdirected, origin_of
from bradawl.providers.response_reader import CONTENT

_EMPTY_RETRIES = 2
_EMPTY_ON_PURPOSE = frozenset({"content_filter", "refusal", "max_tokens", "context_overflow", "pause"})
_CORRECTIONS = 8
"""How often a request that the server refused may be sent again in a corrected form; codecs end it much earlier."""


class RequestBody:
    """The encoded body of one conversation's next request. It is kept, so that a retry sends the same bytes."""

    def __init__(self, encoder: RequestEncoder) -> None:
        self._encoder = encoder
        self._pieces: tuple[bytes, ...] = ()
        self._params: RequestParams | None = None

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        self._encoder.append(message)
        self._params = None

    def prefix_hash(self) -> str:
        """sha256 in hex over system, tools and messages as encoded so far."""
        return self._encoder.prefix_hash()

    def pieces(self, params: RequestParams) -> tuple[bytes, ...]:
        """The body's bytes in pieces; encoded once until a message is appended or `params` change."""
        if self._params != params:
            self.encode_again(params)
        return self._pieces

    def encode_again(self, params: RequestParams) -> bool:
        """Encode the body anew; true if it has changed, because the codec leaves out what the server refused."""
        before, self._pieces = self._pieces, self._encoder.body(params)
        self._params = params
        return self._pieces != before


class RequestAttempts:
    """The attempts of one request: retries after failures, and corrections of what the server refused."""

    def __init__(self, connection: Connection, body: RequestBody, log: ExchangeLog) -> None:
        self._connection = connection
        self._body = body
        self._log = log
        self._codec = connection.codec
        self._endpoint = connection.endpoint
        """The endpoint with the key of the last request."""
        self._target: tuple[str, tuple[tuple[str, str], ...]] = ("", ())
        """URL and headers of the last request."""
        self._origin = origin_of(connection.endpoint.base_url)
        self._started_s = connection.clock.monotonic()
        self._counted = 0
        """Requests that count against the budget; corrected ones do not."""
        self._sent = 0
        self._empty = 0
        self._corrections = 0
        self._new_key: str | None = None
        self._refused_key = ""

    async def run(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply; retry while no content of it was yielded."""
        while True:
            if (pause := self._pause(budget)) is not None:
                yield pause
                await self._connection.clock.sleep(pause.delay_s)
                continue
            self._counted += 1
            was_shown = False
            failed: StreamFailed | None = None
            async with aclosing(self._attempt(params)) as deltas:
                async for delta in deltas:
                    was_shown = was_shown or isinstance(delta, CONTENT)
                    failed = self._failure_in(delta, was_shown=was_shown)
                    if failed is None:
                        yield delta
            if failed is None:
                return
            if not was_shown and await self._may_correct(failed.failure, params):
                continue
            failure = advise(failed.failure, self._endpoint, self._refused_key)
            delay_s = self._delay(failure, budget, was_shown=was_shown)
            if delay_s is None:
                yield msgspec.structs.replace(failed, failure=failure)
                return
            yield RetryScheduled(self._counted, delay_s, failure)
            await self._connection.clock.sleep(delay_s)

    # -------------------------------------------------------------- one request

    async def _attempt(self, params: RequestParams) -> AsyncGenerator[Delta, None]:
        request = await self._prepare(params)
        if isinstance(request, Failure):
            yield StreamFailed(request)
            return
        self._sent += 1
        self._log.began(self._sent, request, self._endpoint)
        exchange = Exchange(self._connection.http, self._codec, self._connection.deadlines, self._log)
        async with aclosing(exchange.run(request)) as deltas:
            async for delta in deltas:
                yield self._emptied(delta) if exchange.was_blank and isinstance(delta, StreamFailed) else delta

    async def _prepare(self, params: RequestParams) -> HttpRequest | Failure:
        connection = self._connection
        try:
            key = await connection.keys.key() if self._new_key is None else self._new_key
        except SettingsError as error:
            return Failure("auth", scrub(str(error), self._endpoint.api_key))
        self._endpoint = msgspec.structs.replace(connection.endpoint, api_key=key)
        url, headers = self._target = self._codec.target(self._endpoint)
        problem = unsendable(self._endpoint, url, headers) or misdirected(self._endpoint, url, headers)
        if problem is not None:
            return problem
        return HttpRequest(
            "POST",
            url,
            headers,
            self._body.pieces(params),
            connect_timeout_s=connection.deadlines.connect_s,
            # The adapter's timeout restarts with each byte; `WaitLimits` enforces the shorter limits.
            idle_timeout_s=max(connection.deadlines.first_byte_s, connection.deadlines.idle_s),
        )

    def _failure_in(self, delta: Delta, *, was_shown: bool) -> StreamFailed | None:
        """The failure if this delta ends the request with one; an empty reply is a failure too."""
        if isinstance(delta, ReplyEnded) and not was_shown and delta.stop not in _EMPTY_ON_PURPOSE:
            return self._emptied(StreamFailed(empty_reply(), delta.raw_stop, delta.warnings))
        return delta if isinstance(delta, StreamFailed) else None

    def _emptied(self, failed: StreamFailed) -> StreamFailed:
        """Count an empty reply; it is retryable only a few times, since the next one may be empty too."""
        self._empty += 1
        failure = msgspec.structs.replace(failed.failure, retryable=self._empty <= _EMPTY_RETRIES)
        return msgspec.structs.replace(failed, failure=failure)

    # -------------------------------------------------------------- when to ask

    def _pause(self, budget: RetryBudget) -> RetryScheduled | None:
        """The wait for the host's cool-down; None, to send at once, if there is none or it exceeds the budget."""
        now_s = self._connection.clock.monotonic()
        cool_down = self._connection.cool_downs.now(self._origin, now_s)
        if cool_down is None:
            return None
        elapsed_s, draw = now_s - self._started_s, self._connection.ids.draw()
        delay_s = pause_s(cool_down, budget, elapsed_s=elapsed_s, draw=draw)
        if delay_s is None:
            return None
        hint = f"All requests to {host_of(self._endpoint.base_url)} wait for this."
        failure = msgspec.structs.replace(cool_down.failure, hint=hint)
        self._log.decided("cool_down", failure, delay_s)
        return RetryScheduled(self._counted, delay_s, failure)

    def _delay(self, failure: Failure, budget: RetryBudget, *, was_shown: bool) -> float | None:
        now_s = self._connection.clock.monotonic()
        delay_s = None
        if not was_shown:
            elapsed_s, draw = now_s - self._started_s, self._connection.ids.draw()
            delay_s = next_delay(failure, self._counted, budget, elapsed_s=elapsed_s, draw=draw)
        self._connection.cool_downs.begin(self._origin, failure, now_s, delay_s)
        self._log.decided("give_up" if delay_s is None else "retry", failure, delay_s)
        return delay_s

    async def _may_correct(self, failure: Failure, params: RequestParams) -> bool:
        """True when the request can be corrected and sent again: with a new key, or without the refused field.

        A corrected request does not count as a retry.
        """
        if failure.status is None or self._corrections >= _CORRECTIONS:
            return False
        mended = ""
        if failure.kind == "auth" and await self._renew_key():
            mended = "new_key"
        elif failure.kind == "invalid_request" and self._is_changed(params):
            mended = "new_body"
        if not mended:
            return False
        self._corrections += 1
        self._counted -= 1
        self._log.decided(mended, failure)
        return True

    def _is_changed(self, params: RequestParams) -> bool:
        """True when the next request would differ from the refused one, because the codec has adapted."""
        is_new_body = self._body.encode_again(params)
        return is_new_body or self._codec.target(self._endpoint) != self._target

    async def _renew_key(self) -> bool:
        if self._new_key is not None:
            return False
        self._refused_key = self._endpoint.api_key
        try:
            self._new_key = await self._connection.keys.key(refused=self._refused_key)
        except SettingsError:
            return False  # the server's refusal is the better message
        return self._new_key not in ("", self._refused_key)
