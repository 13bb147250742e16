"""The only place that talks to a model: sends a request, reads the reply, asks again when that is safe."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.deltas import Delta, ReplyEnded, RetryScheduled, StreamFailed
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message
from bradawl.core.ports import Clock, Http, HttpError, HttpRequest, HttpResponse, Ids, ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget, next_delay
from bradawl.providers.advice import advise, empty_reply, failure_of_exchange, unsendable, web_page
from bradawl.providers.codec import Codec, Endpoint, RequestEncoder
from bradawl.providers.compat import host_of, is_loopback
from bradawl.providers.cooldown import CoolDowns, pause_s
from bradawl.providers.deadlines import Deadlines, deadlines_for
from bradawl.providers.exchange_log import ExchangeLog, Lines
from bradawl.providers.failures import scrub
from bradawl.providers.keys import FixedKey, KeySource, misdirected, origin_of
from bradawl.providers.reading import CONTENT, Body, Patience, Reading

if TYPE_CHECKING:
    from bradawl.providers.debug_log import DebugLog

_ERROR_BODY_LIMIT = 1024 * 1024
_WHOLE_BODY_LIMIT = 64 * 1024 * 1024
_EMPTY_RETRIES = 2
_EMPTY_ON_PURPOSE = frozenset({"content_filter", "refusal", "max_tokens", "context_overflow", "pause"})
_CORRECTIONS = 8
"""How often one step may be asked again with a body the server's refusal has changed; codecs end it much earlier."""
_REMOTE_WINDOW = 128_000
_LOCAL_WINDOW = 32_000


class Line(msgspec.Struct, frozen=True):
    """How one model is reached. `repr` hides the key."""

    codec: Codec
    endpoint: Endpoint
    keys: KeySource | None = None
    """Asked before each request; None: the endpoint's own key."""
    deadlines: Deadlines | None = None
    """None: what suits the place of the endpoint."""


class HttpModel:
    """A model behind an HTTP endpoint; shareable between sessions. Owns `http` and closes it.

    Models that may use the same host share their `cool_downs`.
    """

    def __init__(
        self,
        line: Line,
        http: Http,
        clock: Clock,
        ids: Ids,
        info: ModelInfo,
        cool_downs: CoolDowns | None = None,
        debug_log: "DebugLog | None" = None,
    ) -> None:
        self.line = line
        self.http = http
        self.clock = clock
        self.ids = ids
        self.keys: KeySource = line.keys or FixedKey(line.endpoint.api_key)
        self.deadlines = line.deadlines or deadlines_for(line.endpoint.base_url)
        self.cool_downs = CoolDowns() if cool_downs is None else cool_downs
        self._info = info
        self._debug_log = debug_log
        self._window: Window | None = None

    @property
    def info(self) -> ModelInfo:
        """What is known about it."""
        return self._info

    def open(self, prefix: Prefix, session_id: str = "") -> "HttpModelSession":
        """Begin a conversation."""
        encoder = self.line.codec.encoder(prefix, self._info, session_id)
        log = None if self._debug_log is None else self._debug_log.session(session_id)
        return HttpModelSession(self, encoder, log)

    async def window(self) -> Window:
        """As set, else as a server on this machine says, else a common size; asked until it is known.

        A local server may not know before it has loaded the model, which its first request makes it do.
        """
        if self._window is None or (self._window.source == "assumed" and is_loopback(self.line.endpoint.base_url)):
            self._window = await self._find_window()
        return self._window

    async def _find_window(self) -> Window:
        endpoint = self.line.endpoint
        if self._info.context_window is not None:
            return Window(self._info.context_window, "settings")
        if not is_loopback(endpoint.base_url):
            return Window(_REMOTE_WINDOW, "assumed")
        from bradawl.providers.local import running_context

        running = await running_context(self.http, endpoint.base_url, endpoint.model)
        return Window(_LOCAL_WINDOW, "assumed") if running is None else Window(running, "server")

    async def aclose(self) -> None:
        """Close connections; safe to call twice."""
        await self.http.aclose()


class HttpModelSession:
    """One conversation with an `HttpModel`."""

    def __init__(self, model: HttpModel, encoder: RequestEncoder, log: Lines | None = None) -> None:
        self._model = model
        self._encoder = encoder
        self._log = log
        self._body: tuple[bytes, ...] = ()
        self._params: RequestParams | None = None

    @property
    def info(self) -> ModelInfo:
        """The model that answers."""
        return self._model.info

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        self._encoder.append(message)
        self._params = None

    def prefix_hash(self) -> str:
        """sha256 over system, tools and messages as encoded so far."""
        return self._encoder.prefix_hash()

    def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply; ends with one `ReplyEnded` or `StreamFailed`."""
        return _Step(self._model, self, ExchangeLog(self._log, self._model.clock)).run(params, budget)

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        """The request's body, put together once: a request that is made again is the same, byte for byte."""
        if self._params != params:
            self.renew_body(params)
        return self._body

    def renew_body(self, params: RequestParams) -> bool:
        """Put it together anew; true if it has changed because the server refused something."""
        before, self._body = self._body, self._encoder.body(params)
        self._params = params
        return self._body != before


class _Step:
    """The requests of one step, until one is answered or there is no use in asking again."""

    def __init__(self, model: HttpModel, session: HttpModelSession, log: ExchangeLog) -> None:
        self._model = model
        self._session = session
        self._log = log
        self._codec = model.line.codec
        self._endpoint = model.line.endpoint
        """With the key of the last request."""
        self._origin = origin_of(model.line.endpoint.base_url)
        self._started_s = model.clock.monotonic()
        self._counted = 0
        """Requests the budget has to pay for."""
        self._sent = 0
        self._empty = 0
        self._corrections = 0
        self._new_key: str | None = None
        self._refused_key = ""
        self._was_blank = False

    async def run(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply, retrying while nothing of it was shown."""
        while True:
            if (pause := self._pause(budget)) is not None:
                yield pause
                await self._model.clock.sleep(pause.delay_s)
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
            await self._model.clock.sleep(delay_s)

    # -------------------------------------------------------------- when to ask

    def _pause(self, budget: RetryBudget) -> RetryScheduled | None:
        """A wait for the whole host's sake. One that the budget has no room for is not made: the server shall say."""
        now_s = self._model.clock.monotonic()
        cool_down = self._model.cool_downs.now(self._origin, now_s)
        if cool_down is None:
            return None
        elapsed_s, draw = now_s - self._started_s, self._model.ids.draw()
        delay_s = pause_s(cool_down, budget, elapsed_s=elapsed_s, draw=draw)
        if delay_s is None:
            return None
        hint = f"All requests to {host_of(self._endpoint.base_url)} wait for this."
        failure = msgspec.structs.replace(cool_down.failure, hint=hint)
        self._log.decided("cool_down", failure, delay_s)
        return RetryScheduled(self._counted, delay_s, failure)

    def _delay(self, failure: Failure, budget: RetryBudget, *, was_shown: bool) -> float | None:
        now_s = self._model.clock.monotonic()
        delay_s = None
        if not was_shown:
            elapsed_s, draw = now_s - self._started_s, self._model.ids.draw()
            delay_s = next_delay(failure, self._counted, budget, elapsed_s=elapsed_s, draw=draw)
        self._model.cool_downs.begin(self._origin, failure, now_s, delay_s)
        self._log.decided("give_up" if delay_s is None else "retry", failure, delay_s)
        return delay_s

    async def _may_correct(self, failure: Failure, params: RequestParams) -> bool:
        """True when what was refused can be mended here, once: a key that has changed, a field to leave out.

        Such a request is not counted, because nothing was wrong with the server.
        """
        if failure.status is None or self._corrections >= _CORRECTIONS:
            return False
        mended = ""
        if failure.kind == "auth" and await self._renew_key():
            mended = "new_key"
        elif failure.kind == "invalid_request" and self._session.renew_body(params):
            mended = "new_body"
        if not mended:
            return False
        self._corrections += 1
        self._counted -= 1
        self._log.decided(mended, failure)
        return True

    async def _renew_key(self) -> bool:
        if self._new_key is not None:
            return False
        self._refused_key = self._endpoint.api_key
        try:
            self._new_key = await self._model.keys.key(refused=self._refused_key)
        except SettingsError:
            return False  # the server's own refusal says more
        return self._new_key not in ("", self._refused_key)

    # -------------------------------------------------------------- one request

    async def _attempt(self, params: RequestParams) -> AsyncGenerator[Delta, None]:
        """One request. The last delta comes when the connection has been given back."""
        self._was_blank = False
        request = await self._prepare(params)
        if isinstance(request, Failure):
            yield StreamFailed(request)
            return
        self._sent += 1
        self._log.began(self._sent, request, self._endpoint)
        reading = Reading(self._codec.decoder)
        try:
            async with aclosing(self._exchange(request, reading)) as deltas:
                async for delta in deltas:
                    self._log.saw(delta)
                    yield delta
        finally:
            self._log.ended(reading.end)
        if reading.end is not None:
            yield reading.end

    async def _prepare(self, params: RequestParams) -> HttpRequest | Failure:
        model = self._model
        try:
            key = await model.keys.key() if self._new_key is None else self._new_key
        except SettingsError as error:
            return Failure("auth", scrub(str(error), self._endpoint.api_key))
        self._endpoint = msgspec.structs.replace(model.line.endpoint, api_key=key)
        url, headers = self._codec.target(self._endpoint)
        problem = unsendable(self._endpoint, url, headers) or misdirected(self._endpoint, url, headers)
        if problem is not None:
            return problem
        return HttpRequest(
            "POST",
            url,
            headers,
            self._session.body(params),
            connect_timeout_s=model.deadlines.connect_s,
            # The adapter's clock starts anew with each byte: the shorter waits are measured in `Patience`.
            idle_timeout_s=max(model.deadlines.first_byte_s, model.deadlines.idle_s),
        )

    async def _exchange(self, request: HttpRequest, reading: Reading) -> AsyncGenerator[Delta, None]:
        patience = Patience(host_of(request.url), self._model.deadlines)
        try:
            async with self._open(request, patience) as (response, body):
                if not await self._is_whole(response, body, reading):
                    while reading.end is None and (chunk := await body.next()) is not None:
                        self._log.took(patience.received)
                        for delta in reading.feed(chunk):
                            if isinstance(delta, CONTENT):
                                patience.took_content()
                            yield delta
                    if reading.end is not None:
                        await body.drain()
                self._was_blank = not patience.received and 200 <= response.status < 300
                if self._was_blank:
                    reading.end = StreamFailed(empty_reply(response.status))
            for delta in reading.close():
                yield delta
        except HttpError as error:
            for delta in reading.break_off(failure_of_exchange(error, request.url)):
                yield delta

    @asynccontextmanager
    async def _open(self, request: HttpRequest, patience: Patience) -> AsyncGenerator[tuple[HttpResponse, Body]]:
        async with AsyncExitStack() as stack:
            response = await patience.wait(stack.enter_async_context(self._model.http.stream(request)))
            self._log.answered(response.status, response.headers)
            body = Body(response, patience)
            stack.push_async_callback(body.aclose)
            yield response, body

    async def _is_whole(self, response: HttpResponse, body: Body, reading: Reading) -> bool:
        """Reads responses that are no stream: errors, web pages, and replies as one document."""
        if not 200 <= response.status < 300:
            document = await body.read(_ERROR_BODY_LIMIT)
            self._log.error_body(document)
            reading.end = StreamFailed(self._codec.error_of(response.status, response.headers, document))
            return True
        content_type = response.headers.get("content-type", "").lower()
        if "text/html" in content_type:
            reading.end = StreamFailed(web_page(await body.read(_ERROR_BODY_LIMIT)))
            return True
        if "json" in content_type:
            document = await body.read(_WHOLE_BODY_LIMIT)
            self._log.error_body(document)
            reading.take_document(document)
            return True
        return False

    def _failure_in(self, delta: Delta, *, was_shown: bool) -> StreamFailed | None:
        """How the request failed, if this delta says so: a reply with nothing in it is a failure too."""
        if isinstance(delta, ReplyEnded):
            if was_shown or delta.stop in _EMPTY_ON_PURPOSE:
                return None
            return self._empty_reply(StreamFailed(empty_reply(), delta.raw_stop, delta.warnings))
        if not isinstance(delta, StreamFailed):
            return None
        return self._empty_reply(delta) if self._was_blank else delta

    def _empty_reply(self, failed: StreamFailed) -> StreamFailed:
        self._empty += 1
        failure = msgspec.structs.replace(failed.failure, retryable=self._empty <= _EMPTY_RETRIES)
        return msgspec.structs.replace(failed, failure=failure)
