"""Choice of a model: from settings to its provider, endpoint, key, window and price."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from bradawl.app.settings.layers import Sources, UncheckedValue
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import (
    SCRIPTED,
    NoProvider,
    Provider,
    check_base_url,
    default_provider,
    is_loopback,
    origin_of,
    split_model,
    unknown_provider,
    url_of_variable,
)
from bradawl.app.settings.values import parse_count, parse_text
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.app.settings.credentials import StoredKey
    from bradawl.app.settings.provider_tables import ModelFacts


KEYRING: Final = "the system keyring"
"""The source of a key that the system keyring holds, for messages."""


class ModelSources(NamedTuple):
    """The sources that models are chosen from."""

    sources: Sources
    providers: Mapping[str, Provider]
    facts: Mapping[str, "ModelFacts"]
    environ: Mapping[str, str]
    cwd: str
    credentials: Path
    """The file of keys; it need not exist."""
    stored: "Mapping[str, StoredKey] | None" = None
    """The contents of that file by provider; None if it has not been read."""


class _Place(NamedTuple):
    url: str
    is_users_own: bool
    """The URL has the origin of the provider's URL in the user's file or, without one, of the built-in URL."""


class Key(NamedTuple):
    """A key, or the source it comes from."""

    value: str = ""
    name: str = ""
    """Its source: a variable, the credentials file, the system keyring, or the setting that names a command."""
    kind: Literal["none", "variable", "file", "keyring", "command"] = "none"


def choose_model(given: ModelSources) -> ModelSettings:
    """The model that does the work. Raises `SettingsError`.

    If a project's file names a model that can't be used, it is ignored with a warning.
    """
    found = given.sources.find("model")
    if found is None or found.kind != "project":
        return _first(given, found)
    before = len(given.sources.warnings)
    try:
        _check_projects_choice(found, given)
        return _first(given, found)
    except SettingsError as error:
        note = f"{found.place} is ignored: {str(error).rstrip('.')}. Choose it yourself with `-m`."
    given.sources.warnings[before:] = [note]
    try:
        return _first(given, given.sources.without_project().find("model"))
    except NoProvider as error:
        raise NoProvider(note) from error


def model_source(given: ModelSources) -> UncheckedValue | None:
    """The source of the model's name: that of a project only if its choice can be used."""
    found = given.sources.find("model")
    if found is None or found.kind != "project":
        return found
    quiet = given._replace(sources=Sources(given.sources.layers, []))
    try:
        _check_projects_choice(found, quiet)
        _first(quiet, found)
    except SettingsError:
        return given.sources.without_project().find("model")
    return found


def _first(given: ModelSources, found: UncheckedValue | None) -> ModelSettings:
    chosen, model = _model(given, found)
    return resolve(given, chosen, model, is_selected=True)


def choose_second(given: ModelSources, first: ModelSettings, setting: str) -> ModelSettings | None:
    """The model in another setting, None if there is none. Its default provider is that of `first`.

    Raises `SettingsError`.
    """
    found = given.sources.find(setting)
    if found is None:
        return None
    text = parse_text(found.value, found.place)
    name, model = split_model(text, given.providers)
    if not model:
        raise SettingsError(f"{found.place} names no model: {text!r}; it should be [PROVIDER/]MODEL.")
    chosen = given.providers[name or first.provider]
    # The general base URL is that of the selected provider; another provider has its own.
    second = resolve(given, chosen, model, is_selected=chosen.name == first.provider, is_first=False)
    if (second.provider, second.name) == (first.provider, first.name):
        given.sources.warnings.append(f"{found.place} is ignored: it names the model itself.")
        return None
    return second


def resolve(
    given: ModelSources, chosen: Provider, model: str, *, is_selected: bool, is_first: bool = True
) -> ModelSettings:
    """The settings of one model of a provider. Raises `SettingsError`.

    The setting `base_url` applies to the selected provider only, the setting `context_window` to the first model only.
    """
    if chosen.name == SCRIPTED:
        path = str(Path(given.cwd, model))
        return ModelSettings(SCRIPTED, path, context_window=_window(given, f"{SCRIPTED}/{model}", is_first=is_first))
    place = _place(given, chosen, is_selected=is_selected)
    key = _key_for(given, chosen, place)
    settings = ModelSettings(
        provider=chosen.name,
        name=model,
        base_url=place.url,
        api=chosen.api_at(place.url),
        api_key=key.value,
        key_name=key.name or (chosen.key_names[0] if chosen.key_names else ""),
        key_command=chosen.key_command if key.kind == "command" else "",
        key_in_keyring=key.kind == "keyring",
        key_origin=origin_of(place.url) if key.kind != "none" else "",
        headers=_headers(given, chosen, place),
        compat=chosen.compat,
        context_window=_window(given, f"{chosen.name}/{model}", is_first=is_first),
        proxy=_proxy(given, place.url),
        ca_file=_ca_file(given, place.url),
    )
    return _with_facts(settings, given.facts.get(f"{chosen.name}/{model}"))


# ------------------------------------------------------------------ provider and model


def _model(given: ModelSources, found: UncheckedValue | None) -> tuple[Provider, str]:
    providers = given.providers
    if found is None:
        chosen = providers[_own_provider(given)]
        if not chosen.default_model:
            raise SettingsError(_no_model(chosen))
        return chosen, chosen.default_model
    text = parse_text(found.value, found.place)
    name, model = split_model(text, providers)
    if not model:
        raise SettingsError(f"{found.place} names no model: {text!r}; it should be [PROVIDER/]MODEL.")
    return providers[name or _unnamed_provider(text, given)], model


def _default_provider(given: ModelSources) -> str:
    is_moved = given.sources.find("base_url") is not None or bool(
        given.environ.get(given.providers["openai"].base_url_name, "").strip()
    )
    in_file: Mapping[str, StoredKey] | None = None

    def has_key(one: Provider) -> bool:
        nonlocal in_file
        if one.key_variable(given.environ) or one.key_command:
            return True
        if in_file is None:
            in_file = _credentials(given)
        return one.name in in_file

    return default_provider(given.providers, has_key, is_openai_moved=is_moved)


def _own_provider(given: ModelSources) -> str:
    """The default provider, else the only one in the user's file. Raises `SettingsError`."""
    try:
        return _default_provider(given)
    except NoProvider:
        own = [one.name for one in given.providers.values() if one.is_users]
        if not own:
            raise
        if len(own) > 1:
            choices = ", ".join(f"{name}/MODEL" for name in own)
            raise SettingsError(f"Several providers are set up: say with `-m` which one is meant, {choices}.") from None
        return own[0]


def _unnamed_provider(model: str, given: ModelSources) -> str:
    """The provider of a model whose name names no known provider. Raises `SettingsError`."""
    head, slash, _ = model.partition("/")
    if not slash or not head:
        return _own_provider(given)
    try:
        return _default_provider(given)
    except NoProvider as error:
        raise SettingsError(unknown_provider(head, given.providers)) from error


def _check_projects_choice(found: UncheckedValue, given: ModelSources) -> None:
    """Raises `SettingsError` for a model that a project may not choose, or whose provider is not set up."""
    name, _ = split_model(parse_text(found.value, found.place), given.providers)
    if name == SCRIPTED:
        raise SettingsError("a project may not put a script in the model's place")
    if name and not _is_set_up(given.providers[name], given):
        raise SettingsError(_why_not_yours(given.providers[name]))
    base_url = given.sources.find("base_url")
    if name and base_url:
        raise SettingsError(f"it would send the key of {name} to the URL of {base_url.place}")


def _why_not_yours(one: Provider) -> str:
    if one.needs_key:
        return f"you have not set up {one.name}, there is no key for it"
    return f"{one.name} is not set up by you, so an unknown server would get the conversation"


def _is_set_up(one: Provider, given: ModelSources) -> bool:
    """Whether the user has set a key, an address, a table or a model of the provider."""
    if one.is_users or find_key(given, one).kind != "none":
        return True
    if any(given.environ.get(name, "").strip() for name in (one.base_url_name, *one.url_names)):
        return True
    own = (given.sources.without_project().find(name) for name in ("model", "fallback_model", "small_model"))
    return any(each is not None and str(each.value).startswith(f"{one.name}/") for each in own)


def _no_model(chosen: Provider) -> str:
    return (
        f"No model is chosen, and {chosen.name} has no default: use `-m {chosen.name}/MODEL`, BRADAWL_MODEL, "
        "or `model` in config.toml."
    )


# ------------------------------------------------------------------ where it is


def _place(given: ModelSources, chosen: Provider, *, is_selected: bool) -> _Place:
    text, place = _moved_to(given, chosen, is_selected=is_selected)
    if not text:
        if not chosen.base_url:
            names = " or ".join((chosen.base_url_name, *chosen.url_names))
            raise SettingsError(f"{chosen.name} has no base URL of its own: set {names} or use `--base-url`.")
        text, place = chosen.base_url, f"the base URL of {chosen.name}"
    url, note = check_base_url(text, place)
    if note:
        given.sources.warnings.append(note)
    return _Place(url, bool(chosen.base_url) and origin_of(url) == origin_of(chosen.base_url))


def address_of(given: ModelSources, chosen: Provider, *, is_selected: bool) -> str:
    """The URL that a provider's models are asked at; empty if there is none that can be used."""
    quiet = given._replace(sources=Sources(given.sources.layers, []))
    try:
        return _place(quiet, chosen, is_selected=is_selected).url
    except SettingsError:
        return ""


def _moved_to(given: ModelSources, chosen: Provider, *, is_selected: bool) -> tuple[str, str]:
    """The URL from flags, variables or the setting `base_url`, and its source; empty for the provider's own URL."""
    found = given.sources.find("base_url") if is_selected else None
    if found and found.kind != "user":
        return parse_text(found.value, found.place), found.place
    for name in (chosen.base_url_name, *chosen.url_names):
        if moved := given.environ.get(name, "").strip():
            return url_of_variable(name, moved), name
    return (parse_text(found.value, found.place), found.place) if found else ("", "")


# ------------------------------------------------------------------ its key


def _credentials(given: ModelSources) -> "Mapping[str, StoredKey]":
    if given.stored is not None:
        return given.stored
    from bradawl.app.settings.credentials import read_credentials

    return read_credentials(given.credentials)


def find_key(given: ModelSources, chosen: Provider) -> Key:
    """The key of a provider: from the environment, the credentials file, the keyring or a command.

    The value of one in the keyring or from a command is empty: it is obtained when it is sent. Raises `SettingsError`.
    Whether the key may be sent to an address is not checked here.
    """
    if name := chosen.key_variable(given.environ):
        return Key(given.environ[name].strip(), name, "variable")
    if stored := _credentials(given).get(chosen.name):
        if stored.is_in_keyring:
            return Key("", KEYRING, "keyring")
        return Key(stored.api_key, str(given.credentials), "file")
    if chosen.key_command:
        return Key("", "api_key_command", "command")
    return Key()


def _key_for(given: ModelSources, chosen: Provider, place: _Place) -> Key:
    """The key that may be sent to this address. Raises `SettingsError`.

    A key from a file, the keyring or a command belongs to the URL in the user's file, or to the built-in URL. A key
    from a variable is sent to any URL that the user sets.
    """
    is_here = is_loopback(place.url)
    key = find_key(given, chosen)
    if key.kind == "variable":
        _check_characters(key)
    elif key.kind != "none" and not place.is_users_own:
        if not is_here:
            raise SettingsError(_not_sent(chosen, key, place))
        key = Key()
    if key.kind == "none":
        if chosen.needs_key and not is_here:
            raise SettingsError(_no_key(given, chosen))
        return key
    if not is_here and place.url.startswith("http://"):
        given.sources.warnings.append(
            f"The key of {chosen.name} goes to {place.url} unencrypted; use https if the server can."
        )
    return key


def _check_characters(key: Key) -> None:
    if not key.value.isascii() or not key.value.isprintable():
        from bradawl.app.settings.credentials import checked_key

        checked_key(key.value, key.name)


def _no_key(given: ModelSources, chosen: Provider) -> str:
    name = chosen.key_names[0] if chosen.key_names else "its api_key_env"
    message = (
        f"No key for {chosen.name}: run `bradawl login {chosen.name}`, set {name}, or choose another provider with "
        "`-m PROVIDER/MODEL`."
    )
    if misnamed := [f"[{other}]" for other in _credentials(given) if other not in given.providers]:
        message += f" {given.credentials} has a key for {', '.join(misnamed)}, which is not a provider."
    if chosen.is_users:
        message += f' If the server wants no key, say so with `api_key_env = ""` in [providers.{chosen.name}].'
    return message


def _not_sent(chosen: Provider, key: Key, place: _Place) -> str:
    own = f"the key is for {origin_of(chosen.base_url)}" if chosen.base_url else "it does not say for which server"
    variable = chosen.key_names[0] if chosen.key_names else "the variable named by api_key_env"
    return (
        f"The key of {chosen.name} from {key.name} is not sent to {origin_of(place.url)}: {own}. Set {variable}, "
        f"or `base_url` in [providers.{chosen.name}] of your config.toml."
    )


def _headers(given: ModelSources, chosen: Provider, place: _Place) -> tuple[tuple[str, str], ...]:
    """The provider's headers. They may be secret, so they are sent to the provider's own URL only."""
    if chosen.headers and not place.is_users_own:
        given.sources.warnings.append(
            f"The headers of [providers.{chosen.name}] are not sent to {origin_of(place.url)}: "
            f"they are for {origin_of(chosen.base_url) if chosen.base_url else 'its base_url'}."
        )
        return ()
    return chosen.headers


# ------------------------------------------------------------------ what is known


def _window(given: ModelSources, name: str, *, is_first: bool) -> int | None:
    """Window from a flag or variable, else from `[models.NAME]` of the user's file, else from the setting in a file."""
    found = given.sources.find("context_window") if is_first else None
    facts = given.facts.get(name)
    said = facts.context_window if facts else None
    if found and (said is None or found.kind in ("flag", "variable")):
        return parse_count(found.value, found.place)
    return said


def _with_facts(settings: ModelSettings, facts: "ModelFacts | None") -> ModelSettings:
    """Adds limits and price: from the user's file, else from the catalog if the endpoint is the vendor's own."""
    if facts is not None:
        settings = msgspec.structs.replace(settings, max_output=facts.max_output, price=facts.price)
    if settings.is_local or not settings.base_url:
        return settings
    from bradawl.providers.catalog import Catalog

    catalog = Catalog()
    vendor = catalog.vendor_at(settings.base_url)
    entry = catalog.look_up(vendor, settings.name) if vendor else None
    if entry is None:
        return settings
    return msgspec.structs.replace(
        settings,
        context_window=settings.context_window or entry.context_window,
        max_output=settings.max_output or entry.max_output,
        price=settings.price or entry.price,
    )


# ------------------------------------------------------------------ network


def _proxy(given: ModelSources, base_url: str) -> str | None:
    found = given.sources.find("proxy")
    names = ("https_proxy", "http_proxy", "all_proxy")
    if not found and not any(given.environ.get(n) or given.environ.get(n.upper()) for n in names):
        return None
    from bradawl.app.settings.proxy import proxy_for

    chosen = parse_text(found.value, found.place) if found else ""
    return proxy_for(base_url, given.environ, chosen, found.place if found else "")


def _ca_file(given: ModelSources, base_url: str) -> str | None:
    if not base_url.startswith("https:"):
        return None
    found = given.sources.find("ca_file")
    place = found.place if found else "SSL_CERT_FILE"
    name = parse_text(found.value, found.place) if found else given.environ.get("SSL_CERT_FILE", "").strip()
    if not name:
        return None
    path = Path(given.cwd, name)
    if not path.is_file():
        raise SettingsError(f"{place} names a file that is not there: {name}.")
    return str(path)
