"""The list of models that an endpoint offers, joined with the user's settings and the catalog."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import msgspec

from bradawl.app.catalog_facts import assumed_window
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.http import HttpRequest
from bradawl.core.ports import Http
from bradawl.core.usage import Price
from bradawl.providers.catalog import Catalog

if TYPE_CHECKING:
    from bradawl.app.settings.provider_tables import ModelFacts

TIMEOUT_S: Final = 8.0
_CONNECT_S: Final = 3.0
_BODY_LIMIT: Final = 16 * 1024 * 1024
_NO_LIST: Final = (404, 405, 501)

Connect = Callable[[str | None, str | None], Http]
"""Creates an `Http` from a proxy and a CA file, as `bradawl.app.build.model.build_http` does."""


class ListedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model of a provider. Its facts come from the settings, else from the server, else from the catalog."""

    name: str
    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    """US dollars per million tokens."""
    is_hourly: bool = False
    """The price depends on the time of day."""
    is_window_assumed: bool = False
    """The window is that of the model at its vendor; this endpoint does not say it."""

    @property
    def window_text(self) -> str:
        """The window, with `?` if it is assumed; `-` if unknown."""
        return f"{tokens_text(self.context_window)}{'?' if self.is_window_assumed else ''}"


class NoModelList(Exception):
    """The endpoint answers, but has no list of models."""


class ListRefused(SettingsError):
    """The endpoint answered with an error."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


async def fetch_list(settings: ModelSettings, environ: Mapping[str, str], connect: Connect) -> list[dict[str, object]]:
    """The entries of the endpoint's model list. Raises `HttpError`, `SettingsError` or `NoModelList`."""
    from bradawl.app.model_endpoint import model_endpoint
    from bradawl.providers.advice import advise
    from bradawl.providers.keys import misdirected

    target = model_endpoint(settings, environ)
    key = await target.keys.key() if target.keys else ""
    endpoint = msgspec.structs.replace(target.endpoint, api_key=key)
    url, headers = target.codec.target(endpoint)
    url = _list_url(url)
    if (refusal := misdirected(endpoint, url, headers)) is not None:
        raise SettingsError(str(refusal))
    kept = tuple((name, value) for name, value in headers if name.lower() not in ("content-type", "accept"))
    request = HttpRequest("GET", url, (*kept, ("accept", "application/json")), (), _CONNECT_S, TIMEOUT_S)
    http = connect(settings.proxy, settings.ca_file)
    try:
        async with http.stream(request) as response:
            body = bytearray()
            async for chunk in response.chunks():
                body += chunk
                if len(body) > _BODY_LIMIT:
                    break
            if response.status in _NO_LIST:
                text = f"it answers, but has no list of models there (HTTP {response.status})"
                raise NoModelList(f"{text}; if requests fail too, check the base URL.")
            if response.status != 200:
                failure = target.codec.error_of(response.status, response.headers, bytes(body))
                raise ListRefused(advise(failure, endpoint))
    finally:
        await http.aclose()
    return _entries(bytes(body))


def _list_url(url: str) -> str:
    before, has_query, query = url.partition("?")
    for ending in ("/chat/completions", "/responses", "/messages"):
        before = before.removesuffix(ending)
    return f"{before}/models{has_query}{query}"


def _entries(body: bytes) -> list[dict[str, object]]:
    """The models in `{"data": [...]}`, or in a bare list, which some servers send."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SettingsError("the answer is not JSON; check the base URL, it usually ends in /v1") from error
    listed = cast("dict[str, object]", answer).get("data") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        raise SettingsError("the answer is not a list of models")
    entries = [cast("dict[str, object]", entry) for entry in cast("list[object]", listed) if isinstance(entry, dict)]
    return [entry for entry in entries if isinstance(entry.get("id"), str) and entry["id"]]


# ------------------------------------------------------------------ facts about a model

_WINDOWS: Final = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
_LONGEST: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def listed_model(
    entry: Mapping[str, object], provider: str, vendor: str, own: Mapping[str, "ModelFacts"], catalog: Catalog
) -> ListedModel:
    """An entry of the list. `vendor` is the one whose own endpoint was asked, empty for others."""
    name = cast(str, entry["id"]).removeprefix("models/")
    facts = own.get(f"{provider}/{name}")
    known = catalog.look_up(vendor, name) if vendor else None
    window = (facts and facts.context_window) or _tokens(entry, _WINDOWS) or (known and known.context_window)
    assumed = None if window or vendor else assumed_window(provider, name, catalog)
    return ListedModel(
        name=name,
        context_window=window or assumed,
        is_window_assumed=assumed is not None,
        max_output=(facts and facts.max_output) or _tokens(entry, _LONGEST) or (known and known.max_output),
        price=(facts and facts.price) or _price(entry.get("pricing")) or (known and known.price),
        is_hourly=bool(known and known.is_hourly),
    )


def _tokens(entry: Mapping[str, object], names: Sequence[str]) -> int | None:
    values = (entry.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


def _price(pricing: object) -> Price | None:
    """OpenRouter's price: US dollars per token, as text; a negative number means that it varies."""
    if not isinstance(pricing, dict):
        return None
    rates = cast("dict[str, object]", pricing)
    prompt, completion = _rate(rates.get("prompt")), _rate(rates.get("completion"))
    if prompt is None or completion is None:
        return None
    return Price(prompt, completion, _rate(rates.get("input_cache_read")), _rate(rates.get("input_cache_write")))


def _rate(value: object) -> float | None:
    try:
        rate = float(value) if isinstance(value, str | int | float) else -1.0
    except ValueError:
        return None
    return round(rate * 1_000_000, 9) if 0 <= rate < 1 else None


def rate_text(rate: float | None) -> str:
    """US dollars per million tokens; `-` if unknown."""
    if rate is None:
        return "-"
    text = f"{rate:.4f}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{whole}.{cents:0<2}"


def tokens_text(tokens: int | None) -> str:
    """A size of a window: `128k`, `1.05M`; `-` if unknown."""
    if tokens is None:
        return "-"
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.3g}M"
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else str(tokens)
