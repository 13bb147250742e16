"""The HTTP model client: a model behind an endpoint, its context window, and its conversations."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from bradawl.core.deltas import Delta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message
from bradawl.core.ports import Clock, Http, Ids, ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget
from bradawl.providers.attempts import RequestAttempts, RequestBody
from bradawl.providers.connection import Connection, ModelEndpoint
from bradawl.providers.cooldown import CoolDowns
from bradawl.providers.exchange_log import ExchangeLog, LogLines
from bradawl.providers.hosts import is_loopback

if TYPE_CHECKING:
    from bradawl.providers.debug_log import DebugLog

_REMOTE_WINDOW = 128_000
_LOCAL_WINDOW = 32_000


class HttpModel:
    """A model behind an HTTP endpoint; shareable between sessions. Owns `http` and closes it.

    Models that may use the same host share their `cool_downs`.
    """

    def __init__(
        self,
        target: ModelEndpoint,
        http: Http,
        clock: Clock,
        ids: Ids,
        info: ModelInfo,
        cool_downs: CoolDowns | None = None,
        debug_log: "DebugLog | None" = None,
    ) -> None:
        self._connection = Connection(target, http, clock, ids, cool_downs)
        self._info = info
        self._assumed_window = target.assumed_window
        self._debug_log = debug_log
        self._window: Window | None = None

    @property
    def info(self) -> ModelInfo:
        """Origin, context window, prices and output limit."""
        return self._info

    def open(self, prefix: Prefix, session_id: str = "") -> "HttpModelSession":
        """Begin a conversation; `session_id` names its debug log and its provider-side cache."""
        encoder = self._connection.codec.encoder(prefix, self._info, session_id)
        log = None if self._debug_log is None else self._debug_log.session(session_id)
        return HttpModelSession(self._connection, self._info, RequestBody(encoder), log)

    async def window(self) -> Window:
        """The context window from the settings, else from a local server, else an assumed size.

        A local server is asked again until it knows: it loads the model at the first request.
        """
        if self._window is None or (
            self._window.source == "assumed" and is_loopback(self._connection.endpoint.base_url)
        ):
            self._window = await self._find_window()
        return self._window

    async def _find_window(self) -> Window:
        endpoint = self._connection.endpoint
        if self._info.context_window is not None:
            return Window(self._info.context_window, "settings")
        if not is_loopback(endpoint.base_url):
            return self._assumed(_REMOTE_WINDOW)
        from bradawl.providers.local_servers import running_context

        running = await running_context(self._connection.http, endpoint.base_url, endpoint.model)
        return self._assumed(_LOCAL_WINDOW) if running is None else Window(running, "server")

    def _assumed(self, usual: int) -> Window:
        known = self._assumed_window() if self._assumed_window is not None else None
        return Window(known or usual, "assumed")

    async def aclose(self) -> None:
        """Close connections; safe to call twice."""
        await self._connection.http.aclose()


class HttpModelSession:
    """One conversation with an `HttpModel`."""

    def __init__(self, connection: Connection, info: ModelInfo, body: RequestBody, log: LogLines | None = None) -> None:
        self._connection = connection
        self._info = info
        self._body = body
        self._log = log

    @property
    def info(self) -> ModelInfo:
        """The model that answers."""
        return self._info

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        self._body.append(message)

    def prefix_hash(self) -> str:
        """sha256 in hex over system, tools and messages as encoded so far."""
        return self._body.prefix_hash()

    def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply; ends with one `ReplyEnded` or `StreamFailed`."""
        log = ExchangeLog(self._log, self._connection.clock)
        return RequestAttempts(self._connection, self._body, log).run(params, budget)
