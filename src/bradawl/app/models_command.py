"""`bradawl models`: configured providers, whether they answer, and the context windows and prices of their models."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

import msgspec

from bradawl.app.console import Console
from bradawl.app.model_list import (
    TIMEOUT_S,
    Connect,
    ListedModel,
    NoModelList,
    fetch_list,
    listed_model,
    rate_text,
    tokens_text,
)
from bradawl.app.rendering import one_line
from bradawl.app.settings.load import read_settings
from bradawl.app.settings.model_choice import ModelSources, choose_model, find_key, resolve
from bradawl.app.settings.providers import PROVIDERS, SCRIPTED, SET_UP, Provider, unknown_provider
from bradawl.core.errors import SettingsError
from bradawl.core.http import HttpError
from bradawl.core.usage import Price
from bradawl.providers.catalog import Catalog
from bradawl.safety.control_characters import json_for_terminals

if TYPE_CHECKING:
    from bradawl.providers.local_servers import LocalServer

_SHOWN: Final = 12
_WIDTH: Final = 100


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


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    providers: tuple[Status, ...]
    catalog_date: str
    catalog_sources: Mapping[str, str]


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
            entries = await fetch_list(settings, given.environ, connect)
    except NoModelList as error:
        return msgspec.structs.replace(status, problem=str(error))
    except TimeoutError:
        return _unreachable(status, f"no answer within {TIMEOUT_S:g} s")
    except (HttpError, SettingsError) as error:
        return _unreachable(status, str(error))
    vendor = catalog.vendor_at(settings.base_url)
    models = tuple(listed_model(entry, one.name, vendor, given.facts, catalog) for entry in entries)
    return msgspec.structs.replace(status, models=models)


def _unreachable(status: Status, problem: str) -> Status:
    return msgspec.structs.replace(status, reachable=False, problem=one_line(problem))


async def _local_servers(given: ModelSources, connect: Connect) -> tuple[Status, ...]:
    """Servers on this machine, configured or not."""
    from bradawl.app.local_models import find_local

    return tuple(_status_of(server) for server in await find_local(connect(None, None), given.providers, given.environ))


def _status_of(server: "LocalServer") -> Status:
    models = tuple(ListedModel(model.name, model.context or model.longest) for model in server.models)
    is_ok = not server.problem
    problem = one_line(server.problem)
    return Status(server.kind, server.base_url, "openai_chat", "", is_ok, problem, models, "found")


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
    return f"  {name:<51}{tokens_text(model.context_window):>9}{tokens_text(model.max_output):>9}{rates}".rstrip()


def _rates_text(price: Price) -> str:
    return f"{rate_text(price.input):>9}{rate_text(price.output):>9}{rate_text(price.cache_read):>10}"
