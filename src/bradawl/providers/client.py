"""Models behind HTTP: how one is reached, what is known about it, and its conversations."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.deltas import Delta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message
from bradawl.core.ports import Clock, Http, Ids, ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget
from bradawl.providers.codec import Codec, Endpoint, RequestEncoder
from bradawl.providers.cooldown import CoolDowns
from bradawl.providers.deadlines import Deadlines, deadlines_for
from bradawl.providers.exchange_log import ExchangeLog, Lines
from bradawl.providers.hosts import is_loopback
from bradawl.providers.keys import FixedKey, KeySource
from bradawl.providers.step import Step

if TYPE_CHECKING:
    from bradawl.providers.debug_log import DebugLog

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
        return Step(self._model, self, ExchangeLog(self._log, self._model.clock)).run(params, budget)

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
