"""`bradawl models`: configured providers, whether they answer, and the context windows and prices of their models."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

import msgspec

from bradawl.app.console import Console
from bradawl.app.rendering import one_line
from bradawl.app.settings.load import read_settings
from bradawl.app.settings.model_choice import ModelSources, choose_model, find_key, resolve
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import PROVIDERS, SCRIPTED, SET_UP, Provider, unknown_provider
from bradawl.core.errors import SettingsError
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import Http
from bradawl.core.usage import Price
from bradawl.providers.catalog import Catalog
from bradawl.safety.control_characters import json_for_terminals

if TYPE_CHECKING:
    from bradawl.providers.local_servers import LocalServer

TIMEOUT_S: Final = 8.0
_CONNECT_S: Final = 3.0
_BODY_LIMIT: Final = 16 * 1024 * 1024
_SHOWN: Final = 12
_WIDTH: Final = 100


class ListedModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model of a provider. Its facts come from the settings, else from the server, else from the catalog."""

    name: str
    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    """US dollars per million tokens."""
    is_hourly: bool = False
    """The price depends on the time of day."""


class Status(msgspec.Struct, frozen=True):
    """A provider's configuration, and its answer."""

    name: str
    base_url: str
    api: str
    key: str
    """Source of the key, never the key itself; empty if there is none."""
    reachable: bool
    problem: str = ""
    models: tuple[ListedModel, ...] = ()
    source: Literal["settings", "found"] = "settings"
    """`found`: a server that runs on this machine and is not configured."""


class _NoModelList(Exception):
    """The endpoint answers, but has no list of models."""


_NO_LIST: Final = (404, 405, 501)


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    providers: tuple[Status, ...]
    catalog_date: str
    catalog_sources: Mapping[str, str]


Connect = Callable[[str | None, str | None], Http]
"""Creates an `Http` from a proxy and a CA file, as `bradawl.app.build.model.build_http` does."""


def run_models(
    options: Mapping[str, object], environ: Mapping[str, str], console: Console, cwd: str, notify: Callable[[str], None]
) -> int:
    """Print the overview and return the exit code: 0 if any provider answers. Raises `SettingsError`.

    `notify` is called with each warning.
    """
    given = read_settings(options, environ, cwd).given
    wanted = cast("str | None", options.get("provider"))
    if wanted is not None and wanted not in given.providers:
        raise SettingsError(unknown_provider(wanted, given.providers))
    given = _with_stored_keys(given, notify)
    catalog = Catalog()
    from bradawl.app.build.model import build_http

    statuses = asyncio.run(query_providers(given, catalog, build_http, wanted))
    for warning in dict.fromkeys(given.sources.warnings):
        notify(warning)
    if options.get("json"):
        report = Report(statuses, catalog.source.date, catalog.source.versions)
        console.answer(json_for_terminals(msgspec.json.format(msgspec.json.encode(report)).decode()) + "\n")
    elif statuses:
        console.answer("\n".join(overview_lines(statuses, everything=wanted is not None)) + "\n")
    else:
        console.answer(f"No provider is set up. {SET_UP}\n")
    return 0 if any(status.reachable for status in statuses) else 1


def _with_stored_keys(given: ModelSources, notify: Callable[[str], None]) -> ModelSources:
    """Read the file of keys; if it can't be used, give one warning instead of one for each provider."""
    from bradawl.app.settings.credentials import read_credentials

    try:
        return given._replace(stored=read_credentials(given.credentials))
    except SettingsError as error:
        notify(str(error))
        return given._replace(stored={})


# ------------------------------------------------------------------ queries


async def query_providers(
    given: ModelSources, catalog: Catalog, connect: Connect, wanted: str | None = None
) -> tuple[Status, ...]:
    """Query all configured providers, or the wanted one, and the local servers, concurrently."""
    selected = _selected(given)
    chosen = [one for one in given.providers.values() if _is_wanted(given, one, selected, wanted)]
    async with asyncio.TaskGroup() as group:
        asked = [
            group.create_task(_query(given, catalog, connect, one, is_selected=one.name == selected)) for one in chosen
        ]
        found = group.create_task(_local_servers(given, connect)) if wanted is None else None
    statuses = [task.result() for task in asked]
    known = {status.base_url.replace("//localhost", "//127.0.0.1") for status in statuses}
    return (*statuses, *(each for each in (found.result() if found else ()) if each.base_url not in known))


def _selected(given: ModelSources) -> str:
    """The provider to which a `base_url` without a provider's name applies."""
    try:
        return choose_model(given).provider
    except SettingsError:
        return "openai" if given.sources.find("base_url") else ""


def _is_wanted(given: ModelSources, one: Provider, selected: str, wanted: str | None) -> bool:
    if one.name == SCRIPTED or wanted is not None:
        return one.name == wanted
    is_moved = any(given.environ.get(name, "").strip() for name in (one.base_url_name, *one.url_names))
    return one.is_users or is_moved or one.name == selected or find_key(given, one).kind != "none"


async def _query(
    given: ModelSources, catalog: Catalog, connect: Connect, one: Provider, *, is_selected: bool
) -> Status:
    key = find_key(given, one).name
    try:
        settings = resolve(given, one, "", is_selected=is_selected)
    except SettingsError as error:
        return Status(one.name, one.base_url, one.api_at(one.base_url), key, reachable=False, problem=str(error))
    status = Status(one.name, settings.base_url, settings.api, key, reachable=True)
    try:
        async with asyncio.timeout(TIMEOUT_S):
            entries = await _fetch_list(settings, given.environ, connect)
    except _NoModelList as error:
        return msgspec.structs.replace(status, problem=str(error))
    except TimeoutError:
        return _unreachable(status, f"no answer within {TIMEOUT_S:g} s")
    except (HttpError, SettingsError) as error:
        return _unreachable(status, str(error))
    vendor = catalog.vendor_at(settings.base_url)
    models = tuple(_listed_model(entry, one.name, vendor, given, catalog) for entry in entries)
    return msgspec.structs.replace(status, models=models)


def _unreachable(status: Status, problem: str) -> Status:
    return msgspec.structs.replace(status, reachable=False, problem=one_line(problem))


async def _fetch_list(settings: ModelSettings, environ: Mapping[str, str], connect: Connect) -> list[dict[str, object]]:
    """The entries of the endpoint's model list. Raises `HttpError`, `SettingsError` or `_NoModelList`."""
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
                raise _NoModelList(f"{text}; if requests fail too, check the base URL.")
            if response.status != 200:
                raise SettingsError(
                    str(advise(target.codec.error_of(response.status, response.headers, bytes(body)), endpoint))
                )
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


async def _local_servers(given: ModelSources, connect: Connect) -> tuple[Status, ...]:
    """Servers on this machine, configured or not."""
    from bradawl.app.local_models import find_local

    return tuple(_status_of(server) for server in await find_local(connect(None, None), given.providers, given.environ))


def _status_of(server: "LocalServer") -> Status:
    models = tuple(ListedModel(model.name, model.context or model.longest) for model in server.models)
    is_ok = not server.problem
    problem = one_line(server.problem)
    return Status(server.kind, server.base_url, "openai_chat", "", is_ok, problem, models, "found")


# ------------------------------------------------------------------ facts about a model

_WINDOWS: Final = ("context_length", "max_model_len", "context_window", "max_context_length", "max_input_tokens")
_LONGEST: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def _listed_model(
    entry: Mapping[str, object], provider: str, vendor: str, given: ModelSources, catalog: Catalog
) -> ListedModel:
    name = cast(str, entry["id"]).removeprefix("models/")
    facts = given.facts.get(f"{provider}/{name}")
    known = catalog.look_up(vendor, name) if vendor else None
    return ListedModel(
        name=name,
        context_window=(facts and facts.context_window) or _tokens(entry, _WINDOWS) or (known and known.context_window),
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


# ------------------------------------------------------------------ output


def overview_lines(statuses: Sequence[Status], *, everything: bool) -> list[str]:
    """The overview as a table for each provider; `everything` lists all models instead of the first ones."""
    lines: list[str] = []
    for status in statuses:
        lines += [] if not lines else [""]
        lines += _provider_lines(status)
        known = sorted(status.models, key=lambda model: model.price is None)
        shown = status.models if everything else known[:_SHOWN]
        if shown:
            lines.append(f"  {'MODEL':<51}{'WINDOW':>9}{'REPLY':>9}{'$ IN':>9}{'$ OUT':>9}{'$ CACHED':>10}")
        lines += [_model_line(model) for model in shown]
        if len(shown) < len(status.models):
            left = len(status.models) - len(shown)
            lines.append(f"  and {left} more: `bradawl models {status.name}` lists them all")
    lines += ["", "$ is US dollars per million tokens; - is not known."] if any(s.models for s in statuses) else []
    return lines


def _provider_lines(status: Status) -> list[str]:
    key = f"key from {status.key}" if status.key else "no key"
    if status.source == "found":
        key = f"found on this machine: `{_command(status)}`"
    count = "not usable"
    if status.reachable:
        count = "no list of models" if status.problem else f"ok, {models_text(len(status.models))}"
    place = f"{status.base_url or 'no URL'} ({status.api.replace('_', ' ')})"
    problem = one_line(status.problem)
    cut = problem if len(problem) <= _WIDTH - 2 else f"{problem[: _WIDTH - 5]}..."
    return [f"{status.name}: {count}, {key}", f"  {place}", *([f"  {cut}"] if problem else [])]


def models_text(count: int) -> str:
    """`1 model`, `5 models`."""
    return "1 model" if count == 1 else f"{count} models"


def _command(status: Status) -> str:
    known = PROVIDERS.get(status.name)
    if known and known.base_url == status.base_url:
        return f"bradawl -m {status.name}/MODEL"
    return f"bradawl --base-url {status.base_url} -m MODEL"


def _model_line(model: ListedModel) -> str:
    name = one_line(model.name)
    name = name if len(name) <= 50 else f"{name[:24]}..{name[-24:]}"
    price = model.price or Price()
    rates = "  by the hour" if model.is_hourly and model.price is None else _rates_text(price)
    return f"  {name:<51}{_tokens_text(model.context_window):>9}{_tokens_text(model.max_output):>9}{rates}".rstrip()


def _rates_text(price: Price) -> str:
    return f"{_rate_text(price.input):>9}{_rate_text(price.output):>9}{_rate_text(price.cache_read):>10}"


def _rate_text(rate: float | None) -> str:
    if rate is None:
        return "-"
    text = f"{rate:.4f}".rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{whole}.{cents:0<2}"


def _tokens_text(tokens: int | None) -> str:
    if tokens is None:
        return "-"
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.3g}M"
    return f"{tokens / 1000:.0f}k" if tokens >= 10_000 else str(tokens)
