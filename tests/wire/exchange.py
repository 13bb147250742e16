"""Complete exchanges: codec, real client and real HTTP adapter, against a server on loopback."""

import time
from collections.abc import Callable

from bradawl.core.deltas import Delta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Text, User
from bradawl.core.ports import Http, ModelInfo, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.providers.client import HttpModel
from bradawl.providers.codec import Endpoint
from bradawl.providers.connection import ModelEndpoint
from bradawl.providers.http_h11 import DirectHttp
from bradawl.providers.http_httpx2 import Httpx2Http
from wire.codecs import Format

ADAPTERS: dict[str, Callable[[], Http]] = {"httpx2": Httpx2Http, "direct": DirectHttp}
ONCE = RetryBudget(attempts=1)
ASK = (User((Text("Hi"),)),)
PREFIX = Prefix("S", ())


class RealClock:
    """The system's clock, which really sleeps."""

    def now_ms(self):
        return int(time.time() * 1000)

    def monotonic(self):
        return time.monotonic()

    async def sleep(self, seconds):
        raise AssertionError(f"nothing should wait here, and something wants to for {seconds} s")


class FixedIds:
    def ulid(self):
        return "0" * 26

    def draw(self):
        return 0.5


def model_at(wire: Format, base_url: str, http: Http, *, clock=None, key="", debug_log=None) -> HttpModel:
    """A model client for the format `wire` and the server at `base_url`."""
    endpoint = Endpoint(wire.origin.provider, base_url, wire.origin.model, key, key_name="DEMO_API_KEY")
    target = ModelEndpoint(wire.new(base_url=base_url), endpoint)
    return HttpModel(target, http, clock or RealClock(), FixedIds(), ModelInfo(wire.origin), debug_log=debug_log)


async def ask(model: HttpModel, messages=ASK, *, budget=ONCE, prefix=PREFIX, params=None) -> list[Delta]:
    """Send one request and return its deltas."""
    session = model.open(prefix)
    for message in messages:
        session.append(message)
    return [delta async for delta in session.stream(params or RequestParams(), budget)]
