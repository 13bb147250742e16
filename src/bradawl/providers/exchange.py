"""Sends one HTTP request and decodes its response to deltas; the connection is released in every case."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

from bradawl.core.deltas import Delta, StreamFailed
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import Http, HttpResponse
from bradawl.providers.advice import empty_reply, failure_of_exchange, web_page
from bradawl.providers.codec import Codec
from bradawl.providers.deadlines import Deadlines
from bradawl.providers.exchange_log import ExchangeLog
from bradawl.providers.hosts import host_of
from bradawl.providers.response_reader import CONTENT, ResponseBody, ResponseReader, WaitLimits

_ERROR_BODY_LIMIT = 1024 * 1024
_WHOLE_BODY_LIMIT = 64 * 1024 * 1024


class Exchange:
    """One request and its response; use it once."""

    def __init__(self, http: Http, codec: Codec, deadlines: Deadlines, log: ExchangeLog) -> None:
        self._http = http
        self._codec = codec
        self._deadlines = deadlines
        self._log = log
        self._reading = ResponseReader(codec.decoder)
        self.was_blank = False
        """True after a 2xx response with an empty body."""

    async def run(self, request: HttpRequest) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the deltas of its response.

        The last delta tells how it ended, and is yielded after the connection has been released.
        """
        try:
            async with aclosing(self._received(request)) as deltas:
                async for delta in deltas:
                    self._log.saw(delta)
                    yield delta
        finally:
            self._log.ended(self._reading.end)
        if self._reading.end is not None:
            yield self._reading.end

    async def _received(self, request: HttpRequest) -> AsyncGenerator[Delta, None]:
        reading = self._reading
        limits = WaitLimits(host_of(request.url), self._deadlines)
        try:
            async with self._open(request, limits) as (response, body):
                if not await self._is_document(response, body):
                    while reading.end is None and (chunk := await body.next()) is not None:
                        self._log.took(limits.received)
                        for delta in reading.feed(chunk):
                            if isinstance(delta, CONTENT):
                                limits.saw_content()
                            yield delta
                    if reading.end is not None:
                        await body.drain()
                self.was_blank = not limits.received and 200 <= response.status < 300
                if self.was_blank:
                    reading.end = StreamFailed(empty_reply(response.status))
            for delta in reading.close():
                yield delta
        except HttpError as error:
            for delta in reading.break_off(failure_of_exchange(error, request.url)):
                yield delta

    @asynccontextmanager
    async def _open(
        self, request: HttpRequest, limits: WaitLimits
    ) -> AsyncGenerator[tuple[HttpResponse, ResponseBody]]:
        async with AsyncExitStack() as stack:
            response = await limits.wait(stack.enter_async_context(self._http.stream(request)))
            self._log.answered(response.status, response.headers)
            body = ResponseBody(response, limits)
            stack.push_async_callback(body.aclose)
            yield response, body

    async def _is_document(self, response: HttpResponse, body: ResponseBody) -> bool:
        """Read a response that is not a stream: an error, a web page, or a reply as one document."""
        if not 200 <= response.status < 300:
            document = await body.read(_ERROR_BODY_LIMIT)
            self._log.error_body(document)
            self._reading.end = StreamFailed(self._codec.error_of(response.status, response.headers, document))
            return True
        content_type = response.headers.get("content-type", "").lower()
        if "text/html" in content_type:
            self._reading.end = StreamFailed(web_page(await body.read(_ERROR_BODY_LIMIT)))
            return True
        if "json" in content_type:
            document = await body.read(_WHOLE_BODY_LIMIT)
            self._log.error_body(document)
            self._reading.take_document(document)
            return True
        return False
