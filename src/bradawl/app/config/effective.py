"""The settings in force, each with its source; secrets are masked."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, cast

import msgspec

from bradawl.app.settings.layers import Layer, UncheckedValue
from bradawl.app.settings.load import SettingsSources
from bradawl.app.settings.model_choice import model_source
from bradawl.app.settings.table import LISTS, Setting
from bradawl.app.settings.values import flatten
from bradawl.core.errors import SettingsError

SourceKind = Literal["flag", "variable", "profile", "project", "user", "managed", "default"]
_SECRETS: Final = ("headers", "api_key_command")
_HIDDEN: Final = "***"
_NOT_SHOWN: Final = ("headless", "settings")


class SettingInForce(msgspec.Struct, frozen=True):
    """A setting, or one source of a list."""

    name: str
    value: object
    """None if nothing is set. Secrets are replaced by `***`."""
    kind: SourceKind
    source: str
    """For the user: `variable BRADAWL_MODEL`, `~/.config/bradawl/config.toml:3`."""


def settings_in_force(read: SettingsSources) -> Iterator[SettingInForce]:
    """Every setting with its source, in the order of the table; then providers and models.

    A list has an entry for each source that adds to it.
    """
    for row in read.table.rows.values():
        if row.name not in _NOT_SHOWN:
            yield from _entries(row, read)
    for name in ("providers", "models"):
        yield from _named_entries(name, read)


def masked(keys: Sequence[str], value: object) -> object:
    """The value at a path of keys, without what may be secret."""
    if any(key in _SECRETS for key in keys):
        return _HIDDEN
    if isinstance(value, dict):
        return {key: masked((*keys, key), each) for key, each in cast("dict[str, object]", value).items()}
    if keys[-1] == "proxy" and isinstance(value, str) and "@" in value:
        scheme, mark, rest = value.rpartition("@")[0].rpartition("//")
        return f"{scheme}{mark}{_HIDDEN}@{value.rpartition('@')[2]}" if rest else value
    return value


def source_text(layer: Layer, name: str) -> tuple[SourceKind, str]:
    """The kind of a layer, and the text for the user."""
    source = layer.source_of(name)
    if layer.profile:
        return "profile", f"profile {layer.profile}, {source}"
    if layer.kind == "flag" and not layer.is_file:
        return "flag", f"flag {source}"
    return layer.kind, f"variable {source}" if layer.kind == "variable" else source


def _entries(row: Setting, read: SettingsSources) -> Iterator[SettingInForce]:
    managed = _managed_value(row.name, read)
    is_list = row.kind in LISTS
    if managed is not None:
        yield managed
        if not is_list:
            return
    sources = read.given.sources
    found = list(sources.all(row.name)) if is_list else [_strongest(row, read)]
    for one in found:
        if one is not None:
            kind, source = source_text(one.layer, row.name)
            yield SettingInForce(row.name, masked((row.name,), _value(row, one)), kind, source)
    is_users = bool(row.flags) or row.has_variable or row.is_in_file
    if is_users and managed is None and not any(found):
        yield SettingInForce(row.name, row.default, "default", "default")


def _strongest(row: Setting, read: SettingsSources) -> UncheckedValue | None:
    return model_source(read.given) if row.name == "model" else read.given.sources.find(row.name)


def _value(row: Setting, found: UncheckedValue) -> object:
    """The parsed value; the given one if it can't be parsed, which a run reports."""
    try:
        parsed = row.kind.parse(found.value, found.place)
    except SettingsError:
        return found.value
    return list(cast("tuple[object, ...]", parsed)) if isinstance(parsed, tuple) else parsed


def _managed_value(name: str, read: SettingsSources) -> SettingInForce | None:
    if read.managed is None:
        return None
    file = read.managed.file
    values = flatten(file.values, read.table.managed_keys())
    if name not in values:
        return None
    return SettingInForce(name, values[name], "managed", f"{file.source_of(*name.split('.'))}, by the administrator")


def _named_entries(name: str, read: SettingsSources) -> Iterator[SettingInForce]:
    """Providers or models: an entry for each key, from the strongest file that has it."""
    seen: set[tuple[str, str]] = set()
    for kind, values, source_of in read.own.named_layers(read.profile):
        table = values.get(name)
        for entry, inner in (cast("dict[str, object]", table) if isinstance(table, dict) else {}).items():
            for key, value in cast("Mapping[str, object]", inner).items():
                if (entry, key) not in seen:
                    seen.add((entry, key))
                    from bradawl.app.config.keys import key_text

                    whole = key_text((name, entry, key))
                    yield SettingInForce(whole, masked((name, entry, key), value), kind, source_of(name, entry, key))
