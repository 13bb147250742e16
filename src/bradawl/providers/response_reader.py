"""Reads one HTTP response: bytes to deltas, with a timeout on every wait."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from functools import cached_property
from typing import TypeVar

import msgspec

from bradawl.core.deltas import CallDelta, Delta, PartClosed, ReplyEnded, StreamFailed, TextDelta, ThinkingDelta
from bradawl.core.errors import Failure
from bradawl.core.http import HttpError
from bradawl.core.ports import HttpResponse
from bradawl.providers.advice import web_page
from bradawl.providers.codec import ReplyDecoder
from bradawl.providers.deadlines import Deadlines
from bradawl.providers.sse import SseDecoder, StreamTooLarge

CONTENT = (TextDelta, ThinkingDelta, CallDelta, PartClosed)
"""Deltas with content of the reply. After the first of them a request is not retried."""

T = TypeVar("T")

_DRAIN_LIMIT = 64 * 1024
_DRAIN_TIMEOUT_S = 0.25
_HEAD_BYTES = 512


class WaitLimits:
    """Enforces the deadlines of one request that starts now. Times are the event loop's."""

    def __init__(self, place: str, deadlines: Deadlines) -> None:
        self._place = place
        self._deadlines = deadlines
        self._time = asyncio.get_running_loop().time
        self._first_byte_at = self._time() + deadlines.connect_s + deadlines.first_byte_s
        self._content_at = self._time() + max(deadlines.content_s, deadlines.connect_s + deadlines.first_byte_s)
        self.received = 0
        """Bytes received so far."""

    async def wait(self, coming: Awaitable[T]) -> T:
        """Await the next bytes within the limits. Raises `HttpError` on a timeout."""
        try:
            async with asyncio.timeout_at(self._limit()):
                return await coming
        except TimeoutError as error:
            raise self._error() from error

    def saw_bytes(self, size: int) -> None:
        """Record received bytes."""
        self.received += size

    def saw_content(self) -> None:
        """Record that the reply had content; the wait for content starts again."""
        self._content_at = self._time() + self._deadlines.content_s

    def _limit(self) -> float:
        if not self.received:
            return self._first_byte_at
        return min(self._time() + self._deadlines.idle_s, self._content_at)

    def _error(self) -> HttpError:
        deadlines = self._deadlines
        if not self.received:
            return HttpError("timeout", f"{self._place} sent nothing for {deadlines.first_byte_s:g} s.")
        if self._time() >= self._content_at:
            return HttpError("timeout", f"{self._place} sent nothing of the reply for {deadlines.content_s:g} s.")
        return HttpError("timeout", f"{self._place} was silent for {deadlines.idle_s:g} s.")


class ResponseBody:
    """The body of a response, read within the limits."""

    def __init__(self, response: HttpResponse, limits: WaitLimits) -> None:
        self._chunks = response.chunks()
        self._limits = limits

    async def next(self) -> bytes | None:
        """The next bytes, never empty; None at the end. Raises `HttpError`."""
        while True:
            chunk = await self._limits.wait(anext(self._chunks, None))
            if chunk is None:
                return None
            if chunk:
                self._limits.saw_bytes(len(chunk))
                return chunk

    async def read(self, limit: int) -> bytes:
        """The whole body, cut at the first chunk boundary beyond `limit` bytes. Raises `HttpError`."""
        body = bytearray()
        while len(body) <= limit and (chunk := await self.next()) is not None:
            body += chunk
        return bytes(body)

    async def drain(self) -> None:
        """Read the rest of a finished reply, so that the connection can be reused."""
        left = _DRAIN_LIMIT
        try:
            async with asyncio.timeout(_DRAIN_TIMEOUT_S):
                while left > 0 and (chunk := await self.next()) is not None:
                    left -= len(chunk)
        except (TimeoutError, HttpError):
            return  # the reply is complete; the connection is closed instead of reused

    async def aclose(self) -> None:
        """Close the body; no more is read."""
        if isinstance(self._chunks, AsyncGenerator):
            await self._chunks.aclose()


class ResponseReader:
    """Decodes the bytes of one response to deltas. The final delta is kept in `end` instead."""

    def __init__(self, new_decoder: Callable[[], ReplyDecoder]) -> None:
        """`new_decoder` is called at the first bytes, so that its imports do not delay the request."""
        self._new_decoder = new_decoder
        self._sse = SseDecoder()
        self._head = b""
        self._has_content = False
        self._document: list[Delta] = []
        self.end: ReplyEnded | StreamFailed | None = None

    @cached_property
    def _decoder(self) -> ReplyDecoder:
        return self._new_decoder()

    def feed(self, chunk: bytes) -> list[Delta]:
        """Decode the next bytes."""
        if len(self._head) < _HEAD_BYTES:
            self._head += chunk[:_HEAD_BYTES]
        try:
            events = self._sse.feed(chunk)
        except StreamTooLarge as error:
            self.end = StreamFailed(Failure("server", str(error)))
            return []
        return self._kept_back(delta for event in events for delta in self._decoder.feed(event))

    def take_document(self, body: bytes) -> None:
        """Decode a body whose content type is JSON; some servers label a stream so."""
        if body.lstrip()[:6].startswith((b"data:", b"event:", b":")):
            self._document = self.feed(body)
        else:
            self._document = self._kept_back(self._decoder.whole(body))

    def close(self) -> list[Delta]:
        """End of the response."""
        if self.end is not None:
            return self._document
        if self._is_web_page():
            self.end = StreamFailed(web_page(self._head))
            return self._document
        events = self._sse.close()
        deltas = self._kept_back(delta for event in events for delta in self._decoder.feed(event))
        if self.end is None:
            deltas += self._kept_back(self._decoder.finish())
        return [*self._document, *deltas]

    def break_off(self, failure: Failure) -> list[Delta]:
        """The connection broke; a reply that was already complete stays complete."""
        if self.end is not None:
            return self._document
        deltas = self.close()
        if isinstance(self.end, StreamFailed) and self.end.failure.kind == "connection":
            if failure.kind == "connection" and self._head:  # the kind of a cut stream, with the reason as hint
                failure = msgspec.structs.replace(self.end.failure, hint=failure.message)
            self.end = msgspec.structs.replace(self.end, failure=failure)
        return deltas

    def _is_web_page(self) -> bool:
        """Some servers send web pages without a content type."""
        return not self._has_content and self._head.lstrip()[:9].lower().startswith((b"<!doctype", b"<html"))

    def _kept_back(self, deltas: Iterable[Delta]) -> list[Delta]:
        kept: list[Delta] = []
        for delta in deltas:
            if isinstance(delta, ReplyEnded | StreamFailed):
                self.end = delta
            else:
                kept.append(delta)
                self._has_content = True
        return kept
