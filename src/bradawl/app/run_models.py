"""The models that a run can change to: finds the one that a name means, builds it, and lists those of the providers."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from bradawl.app.catalog_facts import has_model, near_names, open_catalog, unknown_model_note
from bradawl.app.settings.load import effort_of, read_settings
from bradawl.app.settings.model_choice import ModelSources, address_of, find_key, resolve
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import SCRIPTED, Provider, split_model, unknown_provider
from bradawl.core.errors import SettingsError
from bradawl.core.http import HttpError
from bradawl.core.ports import Model
from bradawl.core.usage import Price

if TYPE_CHECKING:
    from bradawl.app.model_list import Connect
    from bradawl.app.settings.settings import Settings
    from bradawl.providers.catalog import Catalog

_LIST_PATIENCE_S: Final = 4.0


class ChosenModel(NamedTuple):
    """A model that the user chose, with what follows from the choice."""

    settings: ModelSettings
    effort: str | None
    """The effort of its requests as the settings have it."""
    notes: tuple[str, ...] = ()
    """What the user should know, such as that the name is not a known model."""

    @property
    def name(self) -> str:
        """`provider/model`."""
        return f"{self.settings.provider}/{self.settings.name}"


class KnownModel(NamedTuple):
    """A model in the list of those that can be chosen."""

    name: str
    """`provider/model`, as `choose` takes it."""
    context_window: int | None
    price: Price | None
    is_window_assumed: bool = False
    """The model has this window at its vendor; the endpoint does not say it."""


class NotListed(NamedTuple):
    """A name that the endpoint's list of models lacks."""

    near: tuple[str, ...]
    """The names that may be meant, as `choose` takes them."""
    listed: tuple[str, ...]
    """All names of the list, as `choose` takes them; none if the endpoint gives no list."""


class RunModels:
    """The models that a run can change to. Settings are read again at each use."""

    def __init__(
        self,
        settings: "Settings",
        options: Mapping[str, object],
        cwd: str,
        notify: Callable[[str], None] | None = None,
        connect: "Connect | None" = None,
    ) -> None:
        """`options` are those of the command line. `notify` is called when a debug log can't be written.

        `connect` makes the HTTP client that asks for lists of models; None: the usual one.
        """
        self._settings, self._options, self._cwd, self._notify = settings, options, cwd, notify
        self._connect = connect
        self.is_asked_for = options.get("model") is not None
        """A flag of this run names the model, so it also answers in sessions that were continued with another one."""

    def choose(self, text: str, now: ModelSettings) -> ChosenModel:
        """The model that `[PROVIDER/]MODEL` means. `now` is the present one, whose provider is the usual one.

        Raises `SettingsError` for an unknown provider, and for one without a key or URL.
        """
        given = self._sources()
        name, model = split_model(text.strip(), given.providers)
        if not model:
            raise SettingsError(f"{text!r} names no model; it should be [PROVIDER/]MODEL.")
        if not name:
            catalog = open_catalog()
            head, slash, _ = model.partition("/")
            name = self._provider_that_has(model, given, catalog, now.provider)
            if slash and not name and not _has_slashes(now, catalog):
                raise SettingsError(unknown_provider(head, given.providers))
        return self._chosen(given, given.providers[name or now.provider], model)

    def named(self, provider: str, model: str, context_window: int | None = None) -> ChosenModel:
        """Exactly this model, as a log names it, with its window if the log has one.

        Raises `SettingsError`, also for a provider that is gone.
        """
        given = self._sources()
        if provider not in given.providers:
            raise SettingsError(unknown_provider(provider, given.providers))
        chosen = self._chosen(given, given.providers[provider], model)
        if context_window is None:
            return chosen
        return chosen._replace(settings=replace(chosen.settings, context_window=context_window))

    def _chosen(self, given: ModelSources, provider: Provider, model: str) -> ChosenModel:
        first = self._settings.model
        if (provider.name, model) == (first.provider, first.name):
            return ChosenModel(first, self._settings.effort)
        before = len(given.sources.warnings)
        found = resolve(given, provider, model, is_selected=provider.name == first.provider, is_first=False)
        notes = (*given.sources.warnings[before:], unknown_model_note(found))
        return ChosenModel(found, effort_of(given, found), tuple(filter(None, notes)))

    async def not_listed(self, chosen: ModelSettings) -> NotListed | None:
        """What is known of a name that is in the list neither of the catalog nor of the endpoint; else None.

        Asks the endpoint only for a name that the catalog lacks.
        """
        if chosen.provider == SCRIPTED or has_model(chosen):
            return None
        names = await self._listed_names(chosen)
        known = {name for one in names for name in (one, one.removesuffix(":latest"))}
        if chosen.name in known:
            return None
        near = near_names(chosen.name, sorted(known))
        in_full = (tuple(f"{chosen.provider}/{name}" for name in each) for each in (near, names))
        return NotListed(*in_full)

    async def _listed_names(self, chosen: ModelSettings) -> list[str]:
        """The names in the endpoint's list; none if it gives no list in time."""
        from bradawl.app.build.model import build_http
        from bradawl.app.model_list import NoModelList, fetch_list

        try:
            async with asyncio.timeout(_LIST_PATIENCE_S):
                entries = await fetch_list(chosen, self._settings.environment, self._connect or build_http)
        except (HttpError, NoModelList, SettingsError, TimeoutError):
            return []
        return [str(entry["id"]).removeprefix("models/") for entry in entries]

    def build(self, chosen: ModelSettings) -> Model:
        """The model, with the fallback of the settings behind it. The caller closes it."""
        from bradawl.app.build.model import build_other_model

        return build_other_model(self._settings, chosen, self._notify)

    async def known(self) -> tuple[KnownModel, ...]:
        """The models of all providers that are set up: from the catalog, else from the server, and local servers'."""
        given = self._sources()
        catalog = open_catalog()
        with_list: list[KnownModel] = []
        to_ask: list[Provider] = []
        for one in given.providers.values():
            if one.name == SCRIPTED or not _is_set_up(one, given):
                continue
            vendor = self._vendor_of(one, given, catalog)
            names = catalog.names(vendor)
            with_list += (_from_catalog(one, name, given, catalog, vendor) for name in names)
            to_ask += [] if names else [one]
        return (*with_list, *await _asked(given, catalog, to_ask))

    def price_of(self, provider: str, model: str) -> Price | None:
        """The price of a model, of this run or an earlier one; None if it is not known."""
        given = self._sources()
        facts = given.facts.get(f"{provider}/{model}")
        if facts is not None and facts.price is not None:
            return facts.price
        one, catalog = given.providers.get(provider), open_catalog()
        entry = catalog.look_up(self._vendor_of(one, given, catalog), model) if one else None
        return entry.price if entry else None

    def _vendor_of(self, one: Provider, given: ModelSources, catalog: "Catalog") -> str:
        """The vendor whose own endpoint a provider's address is; empty for another address."""
        url = address_of(given, one, is_selected=one.name == self._settings.model.provider)
        return catalog.vendor_at(url) if url else ""

    def _provider_that_has(self, model: str, given: ModelSources, catalog: "Catalog", now: str) -> str:
        """The provider that is set up and has a model of this name: the present one, or the only one; else empty."""
        found = [
            one.name
            for one in given.providers.values()
            if _is_set_up(one, given) and catalog.look_up(self._vendor_of(one, given, catalog), model)
        ]
        if now in found or not found:
            return now if now in found else ""
        if len(found) > 1:
            names = ", ".join(f"{name}/{model}" for name in found)
            raise SettingsError(f"Several providers have {model}; name one of them: {names}.")
        return found[0]

    def _sources(self) -> ModelSources:
        return read_settings(self._options, self._settings.environment, self._cwd).given


def _has_slashes(now: ModelSettings, catalog: "Catalog") -> bool:
    """Whether names of models of the present provider may hold a slash, as `vendor/model` of a router does."""
    names = catalog.names(catalog.vendor_at(now.base_url)) if now.base_url else ()
    has_one = now.provider != SCRIPTED and "/" in now.name
    return now.is_local or has_one or any("/" in name for name in names)


def _is_set_up(one: Provider, given: ModelSources) -> bool:
    return one.is_users or find_key(given, one).kind != "none"


def _from_catalog(one: Provider, name: str, given: ModelSources, catalog: "Catalog", vendor: str) -> KnownModel:
    facts = given.facts.get(f"{one.name}/{name}")
    entry = catalog.look_up(vendor, name)
    window = (facts and facts.context_window) or (entry and entry.context_window)
    return KnownModel(f"{one.name}/{name}", window, (facts and facts.price) or (entry and entry.price))


async def _asked(given: ModelSources, catalog: "Catalog", providers: Sequence[Provider]) -> list[KnownModel]:
    """The models that servers list: those of these providers, and of servers on this machine."""
    from bradawl.app.build.model import build_http
    from bradawl.app.local_models import best_first, find_local
    from bradawl.app.models_command import query_providers

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(query_providers(given, catalog, build_http, one.name)) for one in providers]
        local = group.create_task(find_local(build_http(None, None), given.providers, given.environ))
    statuses = [status for task in asked for status in task.result()]
    found = {
        f"{status.name}/{one.name}": (one.context_window, one.price, one.is_window_assumed)
        for status in statuses
        for one in status.models
    }
    for server in local.result():
        known = given.providers.get(server.kind)
        if known is not None and known.base_url == server.base_url:  # else no name leads to it
            found |= {
                f"{known.name}/{one.name}": (one.context or one.longest, None, False)
                for one in best_first(server.models)
            }
    return [KnownModel(name, *facts) for name, facts in found.items()]
