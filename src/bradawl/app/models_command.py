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
from bradawl.app.terminal_size import ONE_LINE, terminal_width
from bradawl.app.text_layout import cells, pad, wrap
from bradawl.core.errors import SettingsError
from bradawl.core.http import HttpError
from bradawl.core.usage import Price
from bradawl.providers.catalog import Catalog
from bradawl.safety.control_characters import json_for_terminals

if TYPE_CHECKING:
    from bradawl.providers.local_servers import LocalServer

_SHOWN: Final = 12
_INDENT: Final = "  "
_GAP: Final = "  "
_TITLES: Final = ("WINDOW", "REPLY", "$ IN", "$ OUT", "$ CACHED")
_LEAST_NAME: Final = 20
"""Cells for the names of models; where a table leaves fewer, the facts of a model stand below its name."""


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
        width = terminal_width(console.stdout, environ, ONE_LINE)
        console.answer("\n".join(overview_lines(statuses, width, everything=wanted is not None)) + "\n")
    else:
        console.report(f"No provider is set up. {SET_UP}")
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


def overview_lines(statuses: Sequence[Status], width: int, *, everything: bool) -> list[str]:
    """The overview as a table for each provider; `everything` lists all models instead of the first ones.

    No line is wider than `width`, and no name is cut.
    """
    lines: list[str] = []
    for status in statuses:
        lines += [] if not lines else [""]
        lines += _provider_lines(status, width)
        known = sorted(status.models, key=lambda model: model.price is None)
        shown = status.models if everything else known[:_SHOWN]
        lines += _model_lines(shown, width)
        if len(shown) < len(status.models):
            left = len(status.models) - len(shown)
            lines += wrap(f"and {left} more: `bradawl models {status.name}` lists them all", width, _INDENT)
    if any(status.models for status in statuses):
        lines += ["", *wrap("$ is US dollars per million tokens; - is not known.", width)]
    if any(model.is_window_assumed for status in statuses for model in status.models):
        lines += wrap("? is assumed: the model has this window at its vendor.", width)
    return lines


def _provider_lines(status: Status, width: int) -> list[str]:
    key = f"key from {status.key}" if status.key else "no key"
    if status.source == "found":
        key = f"found on this machine: `{_command(status)}`"
    count = "not usable"
    if status.reachable:
        count = "no list of models" if status.problem else f"ok, {models_text(len(status.models))}"
    place = f"{status.base_url or 'no URL'} ({status.api.replace('_', ' ')})"
    below = (place, one_line(status.problem)) if status.problem else (place,)
    head = wrap(f"{status.name}: {count}, {key}", width, "", _INDENT)
    return [*head, *(line for text in below for line in wrap(text, width, _INDENT))]


def models_text(count: int) -> str:
    """`1 model`, `5 models`."""
    return "1 model" if count == 1 else f"{count} models"


def _command(status: Status) -> str:
    known = PROVIDERS.get(status.name)
    if known and known.base_url == status.base_url:
        return f"bradawl -m {status.name}/MODEL"
    return f"bradawl --base-url {status.base_url} -m MODEL"


# ------------------------------------------------------------------ models


def _model_lines(models: Sequence[ListedModel], width: int) -> list[str]:
    """A table; in a narrow terminal each model with its facts below."""
    if not models:
        return []
    names = [one_line(model.name) for model in models]
    facts = [_facts(model) for model in models]
    sizes = [max(cells(text) for text in column) for column in zip(_TITLES, *facts, strict=True)]
    room = width - len(_INDENT) - len(_GAP) - sum(sizes) - len(_GAP) * (len(sizes) - 1)
    name_cells = min(max(map(cells, names)), room)
    if name_cells < min(_LEAST_NAME, max(map(cells, names))):
        return [line for model, name in zip(models, names, strict=True) for line in _stacked_lines(model, name, width)]
    lines = [_table_line("MODEL", name_cells, _TITLES, sizes)]
    for name, row in zip(names, facts, strict=True):
        if cells(name) > name_cells:
            lines += wrap(name, width, _INDENT)
            name = ""
        lines.append(_table_line(name, name_cells, row, sizes))
    return lines


def _table_line(name: str, name_cells: int, facts: Sequence[str], sizes: Sequence[int]) -> str:
    padded = (pad(text, size, "right") for text, size in zip(facts, sizes, strict=True))
    return f"{_INDENT}{pad(name, name_cells)}{_GAP}{_GAP.join(padded)}".rstrip()


def _facts(model: ListedModel) -> tuple[str, ...]:
    """Window, longest reply and prices, as in the table."""
    sizes = (model.window_text, tokens_text(model.max_output))
    if model.is_hourly and model.price is None:
        return (*sizes, "hourly", "hourly", "hourly")
    price = model.price or Price()
    return (*sizes, *(rate_text(rate) for rate in (price.input, price.output, price.cache_read)))


def _stacked_lines(model: ListedModel, name: str, width: int) -> list[str]:
    facts = ", ".join(f"{title.lower()} {fact}" for title, fact in zip(_TITLES, _facts(model), strict=True))
    return [*wrap(name, width, _INDENT), *wrap(facts, width, _INDENT * 2)]
