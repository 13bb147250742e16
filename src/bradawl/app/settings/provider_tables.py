"""The tables `[providers.NAME]` and `[models."PROVIDER/MODEL"]` of the user's settings file."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bradawl.app.settings.providers import (
    PROVIDERS,
    SCRIPTED,
    Provider,
    check_http_url,
    provider,
    split_model,
)
from bradawl.app.settings.values import (
    EFFORTS,
    parse_amount,
    parse_choice,
    parse_count,
    parse_table,
    parse_text,
    refuse_unknown,
)
from bradawl.core.errors import SettingsError
from bradawl.core.usage import Price
from bradawl.providers.protocols import PROTOCOLS, WireProtocol, protocol_named

PROVIDER_KEYS: Final = frozenset({"api", "base_url", "api_key_env", "api_key_command", "headers", "compat"})
MODEL_KEYS: Final = frozenset({"context_window", "max_output", "price", "effort"})
PRICE_KEYS: Final = ("input", "output", "cache_read", "cache_write")
_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_KEY_HEADERS: Final = frozenset({"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"})
_OUR_HEADERS: Final = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept", "accept-encoding", "te"}
    | {"upgrade", "expect", "trailer"}
)


class ModelFacts(msgspec.Struct, frozen=True):
    """Facts about a model from the user's file; None for a fact that is not given."""

    context_window: int | None = None
    max_output: int | None = None
    price: Price | None = None
    effort: str | None = None


def read_providers(
    table: object, path: Path | str, protocols: Sequence[WireProtocol] = PROTOCOLS
) -> dict[str, Provider]:
    """All providers, those of the user's `[providers.NAME]` tables among them. Raises `SettingsError`.

    `path` precedes the key in messages; empty for the key alone.
    """
    providers = dict(PROVIDERS)
    for name, entry in parse_table(table, _place(path, "providers")).items():
        place = _place(path, f"providers.{name}")
        if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise SettingsError(f"{place}: the name may only have letters, digits, - and _.")
        if name == SCRIPTED:
            raise SettingsError(f"{place}: a scripted model is a file on this machine, there is nothing to set.")
        providers[name] = _provider(name, parse_table(entry, place), place, protocols)
    return providers


def _place(path: Path | str, key: str) -> str:
    return f"{path}: {key}" if str(path) else key


def _provider(name: str, entry: Mapping[str, object], place: str, protocols: Sequence[WireProtocol]) -> Provider:
    if "api_key" in entry:
        raise SettingsError(
            f"{place}.api_key is no setting. Keys don't belong in this file: name their variable with "
            "`api_key_env`, a command that prints it with `api_key_command`, or write it into credentials.toml."
        )
    refuse_unknown(entry, PROVIDER_KEYS, f"{place}.")
    known = PROVIDERS.get(name) or provider(name)
    base_url = parse_text(entry.get("base_url", known.base_url), f"{place}.base_url", may_be_empty=True)
    if base_url:
        check_http_url(base_url, f"{place}.base_url")
    names = known.key_names
    if entry.get("api_key_env", "") != "":
        names = (_variable(entry["api_key_env"], f"{place}.api_key_env"),)
    api = None
    if entry.get("api") is not None:
        api = parse_choice(entry["api"], f"{place}.api", tuple(protocol.name for protocol in protocols))
    protocol = protocol_named(api or known.api_at(base_url), protocols)
    return msgspec.structs.replace(
        known,
        base_url=base_url,
        key_names=names,
        needs_key=known.needs_key and entry.get("api_key_env") != "",
        api=api,
        key_command=parse_text(entry.get("api_key_command", ""), f"{place}.api_key_command", may_be_empty=True),
        headers=_headers(entry.get("headers"), f"{place}.headers"),
        compat=_compat(entry.get("compat"), protocol, f"{place}.compat"),
        is_users=True,
    )


def _variable(value: object, place: str) -> str:
    name = parse_text(value, place)
    has_key_shape = len(name) >= 20 and re.search("[a-z]", name) and re.search("[0-9]", name)
    if not _VARIABLE_NAME.fullmatch(name) or has_key_shape:
        # It may be a key in the wrong place, so the message does not repeat it.
        raise SettingsError(f"{place} must be the name of an environment variable, such as EXAMPLE_API_KEY.")
    return name


def _headers(value: object, place: str) -> tuple[tuple[str, str], ...]:
    """Names in lower case, and values. Values may be secret, so messages do not repeat them."""
    if value is None:
        return ()
    headers: list[tuple[str, str]] = []
    for name, text in parse_table(value, place).items():
        lower = name.lower()
        if not _HEADER_NAME.fullmatch(name):
            raise SettingsError(f"{place}: {name!r} can't be the name of a header.")
        if lower in _KEY_HEADERS:
            raise SettingsError(
                f"{place}.{name}: keys don't belong in this file; use `api_key_env` or `api_key_command`."
            )
        if lower in _OUR_HEADERS:
            raise SettingsError(f"{place}.{name}: bradawl sets this header itself.")
        if not isinstance(text, str) or not text.isascii() or not text.isprintable():
            raise SettingsError(f"{place}.{name} must be a text of printable ASCII characters.")
        if lower in (known for known, _ in headers):
            raise SettingsError(f"{place}.{name} is there twice.")
        headers.append((lower, text.strip()))
    return tuple(headers)


def _compat(value: object, protocol: WireProtocol, place: str) -> Mapping[str, object]:
    """Fields of the profile of servers that speak this protocol."""
    if value is None:
        return {}
    table = parse_table(value, place)
    try:
        protocol.open_codec("", compat=table)
    except ValueError as error:
        raise SettingsError(f"{place}: {error}") from error
    return table


# ------------------------------------------------------------------ models


def read_models(table: object, path: Path | str, providers: Mapping[str, Provider]) -> dict[str, ModelFacts]:
    """The user's `[models."PROVIDER/MODEL"]` tables by that name. Raises `SettingsError`."""
    facts: dict[str, ModelFacts] = {}
    for name, entry in parse_table(table, _place(path, "models")).items():
        place = _place(path, f'models."{name}"')
        chosen, model = split_model(name, providers)
        if not chosen or not model:
            raise SettingsError(f"{place}: models are named PROVIDER/MODEL here, with a known provider.")
        facts[name] = _facts(parse_table(entry, place), place)
    return facts


def _facts(entry: Mapping[str, object], place: str) -> ModelFacts:
    refuse_unknown(entry, MODEL_KEYS, f"{place}.")
    window, longest, effort = entry.get("context_window"), entry.get("max_output"), entry.get("effort")
    return ModelFacts(
        context_window=None if window is None else parse_count(window, f"{place}.context_window"),
        max_output=None if longest is None else parse_count(longest, f"{place}.max_output"),
        price=_price(entry.get("price"), f"{place}.price"),
        effort=None if effort is None else parse_choice(effort, f"{place}.effort", EFFORTS),
    )


def _price(value: object, place: str) -> Price | None:
    if value is None:
        return None
    table = parse_table(value, place)
    refuse_unknown(table, frozenset(PRICE_KEYS), f"{place}.")
    amounts = {name: parse_amount(amount, f"{place}.{name}") for name, amount in table.items()}
    return Price(amounts.get("input"), amounts.get("output"), amounts.get("cache_read"), amounts.get("cache_write"))
