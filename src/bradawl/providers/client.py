"""The only place that talks to a model: sends a request, reads the reply, asks again when that is safe."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

import msgspec

from bradawl.core.deltas import (
    CallDelta,
    Delta,
    PartClosed,
    ReplyEnded,
    RetryScheduled,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
)
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message
from bradawl.core.ports import Clock, Http, HttpError, HttpRequest, HttpResponse, Ids, ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget, next_delay
from bradawl.providers.advice import advise, failure_of_exchange, unsendable, web_page
from bradawl.providers.codec import Codec, Endpoint, ReplyDecoder, RequestEncoder
from bradawl.providers.compat import is_loopback
from bradawl.providers.sse import SseDecoder, StreamTooLarge

_CONTENT = (TextDelta, ThinkingDelta, CallDelta, PartClosed)
_ERROR_BODY_LIMIT = 1024 * 1024
_WHOLE_BODY_LIMIT = 64 * 1024 * 1024
_DRAIN_LIMIT = 64 * 1024
_DRAIN_TIMEOUT_S = 0.25
_EMPTY_RETRIES = 2
_EMPTY_ON_PURPOSE = frozenset({"content_filter", "refusal", "max_tokens", "context_overflow", "pause"})
_REMOTE_WINDOW = 128_000
_LOCAL_WINDOW = 32_000
_IDLE_TIMEOUT_S = 120.0
_LOCAL_IDLE_TIMEOUT_S = 600.0
"""Local servers load a model at its first request, which can take minutes of silence."""


class HttpModel:
    """A model behind an HTTP endpoint; shareable between sessions. Owns `http` and closes it."""

    def __init__(self, codec: Codec, endpoint: Endpoint, http: Http, clock: Clock, ids: Ids, info: ModelInfo) -> None:
        self._codec = codec
        self._endpoint = endpoint
        self._http = http
        self._clock = clock
        self._ids = ids
        self._info = info
        self._window: Window | None = None
        self._idle_timeout_s = _LOCAL_IDLE_TIMEOUT_S if is_loopback(endpoint.base_url) else _IDLE_TIMEOUT_S

    @property
    def info(self) -> ModelInfo:
        """What is known about it."""
        return self._info

    def open(self, prefix: Prefix, session_id: str = "") -> "HttpModelSession":
        """Begin a conversation."""
        return HttpModelSession(self, self._codec.encoder(prefix, self._info, session_id))

    async def window(self) -> Window:
        """As set, else as a server on this machine says, else a common size; asked once."""
        if self._window is None:
            self._window = await self._find_window()
        return self._window

    async def _find_window(self) -> Window:
        if self._info.context_window is not None:
            return Window(self._info.context_window, "settings")
        if not is_loopback(self._endpoint.base_url):
            return Window(_REMOTE_WINDOW, "assumed")
        from bradawl.providers.local import running_context

        running = await running_context(self._http, self._endpoint.base_url, self._endpoint.model)
        return Window(_LOCAL_WINDOW, "assumed") if running is None else Window(running, "server")

    async def aclose(self) -> None:
        """Close connections; safe to call twice."""
        await self._http.aclose()

    async def answer(
        self, encoder: RequestEncoder, params: RequestParams, budget: RetryBudget
    ) -> AsyncGenerator[Delta, None]:
        """Send what `encoder` holds and yield the reply, retrying while nothing of it was shown."""
        started_s = self._clock.monotonic()
        requests = empty_replies = 0
        while True:
            requests += 1
            was_shown = False
            failed: StreamFailed | None = None
            async with aclosing(self._attempt(encoder, params)) as deltas:
                async for delta in deltas:
                    was_shown = was_shown or isinstance(delta, _CONTENT)
                    if isinstance(delta, ReplyEnded) and not was_shown and delta.stop not in _EMPTY_ON_PURPOSE:
                        empty_replies += 1
                        failed = _empty_reply(delta, may_retry=empty_replies <= _EMPTY_RETRIES)
                    elif isinstance(delta, StreamFailed):
                        failed = delta
                    else:
                        yield delta
            if failed is None:
                return
            failure = advise(failed.failure, self._endpoint)
            delay_s = None
            if not was_shown:
                elapsed_s = self._clock.monotonic() - started_s
                delay_s = next_delay(failure, requests, budget, elapsed_s=elapsed_s, draw=self._ids.draw())
            if delay_s is None:
                yield msgspec.structs.replace(failed, failure=failure)
                return
            yield RetryScheduled(requests, delay_s, failure)
            await self._clock.sleep(delay_s)

    async def _attempt(self, encoder: RequestEncoder, params: RequestParams) -> AsyncGenerator[Delta, None]:
        """One request. The last delta comes when the connection has been given back."""
        url, headers = self._codec.target(self._endpoint)
        problem = unsendable(url, headers)
        if problem is not None:
            yield StreamFailed(problem)
            return
        request = HttpRequest("POST", url, headers, encoder.body(params), idle_timeout_s=self._idle_timeout_s)
        reading = _Reading(self._codec.decoder())
        try:
            async with self._http.stream(request) as response:
                chunks = response.chunks()
                if not await self._is_whole(response, chunks, reading):
                    async for chunk in chunks:
                        for delta in reading.feed(chunk):
                            yield delta
                        if reading.end is not None:
                            break
                    await _drain(chunks)
            for delta in reading.close():
                yield delta
        except HttpError as error:
            for delta in reading.break_off(failure_of_exchange(error, url)):
                yield delta
        if reading.end is not None:
            yield reading.end

    async def _is_whole(self, response: HttpResponse, chunks: AsyncIterator[bytes], reading: "_Reading") -> bool:
        """Reads responses that are no stream: errors, web pages, and replies as one document."""
        if not 200 <= response.status < 300:
            body = await _read(chunks, _ERROR_BODY_LIMIT)
            reading.end = StreamFailed(self._codec.error_of(response.status, response.headers, body))
            return True
        content_type = response.headers.get("content-type", "").lower()
        if "text/html" in content_type:
            reading.end = StreamFailed(web_page(await _read(chunks, _ERROR_BODY_LIMIT)))
            return True
        if "json" in content_type:
            reading.take_document(await _read(chunks, _WHOLE_BODY_LIMIT))
            return True
        return False


class HttpModelSession:
    """One conversation with an `HttpModel`."""

    def __init__(self, model: HttpModel, encoder: RequestEncoder) -> None:
        self._model = model
        self._encoder = encoder

    @property
    def info(self) -> ModelInfo:
        """The model that answers."""
        return self._model.info

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        self._encoder.append(message)

    def prefix_hash(self) -> str:
        """sha256 over system, tools and messages as encoded so far."""
        return self._encoder.prefix_hash()

    def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply; ends with one `ReplyEnded` or `StreamFailed`."""
        return self._model.answer(self._encoder, params, budget)


class _Reading:
    """Bytes of one response to deltas; keeps back the last delta in `end`."""

    def __init__(self, decoder: ReplyDecoder) -> None:
        self._decoder = decoder
        self._sse = SseDecoder()
        self._document: list[Delta] = []
        self.end: ReplyEnded | StreamFailed | None = None

    def feed(self, chunk: bytes) -> list[Delta]:
        try:
            events = self._sse.feed(chunk)
        except StreamTooLarge as error:
            self.end = StreamFailed(Failure("server", str(error)))
            return []
        return self._kept_back(delta for event in events for delta in self._decoder.feed(event))

    def take_document(self, body: bytes) -> None:
        """A body that calls itself JSON; some servers call a stream so."""
        if body.lstrip()[:6].startswith((b"data:", b"event:", b":")):
            self._document = self.feed(body)
        else:
            self._document = self._kept_back(self._decoder.whole(body))

    def close(self) -> list[Delta]:
        """The response is over."""
        if self.end is not None:
            return self._document
        events = self._sse.close()
        deltas = self._kept_back(delta for event in events for delta in self._decoder.feed(event))
        if self.end is None:
            deltas += self._kept_back(self._decoder.finish())
        return [*self._document, *deltas]

    def break_off(self, failure: Failure) -> list[Delta]:
        """The connection broke; a reply that was already whole stays whole."""
        if self.end is not None:
            return self._document
        deltas = self.close()
        if isinstance(self.end, StreamFailed) and self.end.failure.kind == "connection":
            self.end = msgspec.structs.replace(self.end, failure=failure)
        return deltas

    def _kept_back(self, deltas: Iterable[Delta]) -> list[Delta]:
        kept: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, ReplyEnded | StreamFailed):
                self.end = delta
            else:
                kept.append(delta)
        return kept


async def _read(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    """The body, or its first `limit` bytes and a little more."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            break
    return bytes(body)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Reads what is left of a finished response, so that its connection can serve the next request."""
    left = _DRAIN_LIMIT
    try:
        async with asyncio.timeout(_DRAIN_TIMEOUT_S):
            async for chunk in chunks:
                left -= len(chunk)
                if left < 0:
                    return
    except (TimeoutError, HttpError):
        return  # the reply is whole; the connection is closed instead of kept


def _empty_reply(ended: ReplyEnded, *, may_retry: bool) -> StreamFailed:
    failure = Failure(
        "server",
        "The model sent an empty reply.",
        retryable=may_retry,
        hint="A local server may do so when its context is full.",
    )
    return StreamFailed(failure, ended.raw_stop, ended.warnings)
