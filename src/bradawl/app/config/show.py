"""`bradawl config show` and `get`: settings with their sources, laid out for the width there is."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import msgspec

from bradawl.app.config.effective import SettingInForce, settings_in_force
from bradawl.app.config.keys import is_table, key_path, key_text, schema_of
from bradawl.app.settings.load import SettingsSources
from bradawl.app.settings.table import LISTS
from bradawl.app.text_layout import Column, cut, table, wrap
from bradawl.core.errors import SettingsError
from bradawl.safety.control_characters import escape, json_for_terminals

_LONGEST_VALUE: Final = 240
_ALL_DEFAULT: Final = "Every setting is at its default; `bradawl config show --all` lists all settings."
_COLUMNS: Final = (Column("setting"), Column("value", is_wrapped=True), Column("from", is_wrapped=True))


def shown_lines(read: SettingsSources, width: int, *, is_all: bool) -> list[str]:
    """The settings as a table; without `is_all` those that are not at their defaults."""
    found = [one for one in settings_in_force(read) if is_all or one.kind != "default"]
    if not found:
        return wrap(_ALL_DEFAULT, width)
    rows = [(one.name, value_text(one.value), one.source) for one in found]
    return [*_profile_lines(read, width), *table(rows, _COLUMNS, width)]


def shown_json(read: SettingsSources, *, is_all: bool) -> str:
    """The settings as one JSON object."""
    found = [one for one in settings_in_force(read) if is_all or one.kind != "default"]
    return _json({"profile": read.profile or None, "settings": found})


def value_of(key: str, read: SettingsSources) -> object:
    """The value of a setting in force; of a list, all entries. Secrets are masked. Raises `SettingsError`."""
    path = key_path(key)
    schema = schema_of(path, read.table)
    name = key_text(path) if path[0] in ("providers", "models") else ".".join(path)
    found = [one for one in settings_in_force(read) if one.name == name]
    if not found:
        return _inner_value(path, read, is_whole=is_table(schema))
    if name in read.table.rows and read.table.rows[name].kind in LISTS:
        return [item for one in found for item in _items(one.value)]
    return found[0].value


def value_lines(value: object) -> list[str]:
    """The value for a script: a line for each item of a list, and nothing for no value."""
    if isinstance(value, dict):
        return [f"{key} = {value_text(each)}" for key, each in cast("Mapping[str, object]", value).items()]
    return [_full_text(item) for item in _items(value)]


def _full_text(value: object) -> str:
    return value if isinstance(value, str) else value_text(value)


def value_json(value: object) -> str:
    """The value as JSON."""
    return _json(value)


def value_text(value: object) -> str:
    """The value on one line, shortened."""
    if value in (None, ""):
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return cut(", ".join(map(value_text, cast("Sequence[object]", value))), _LONGEST_VALUE)
    if isinstance(value, dict):
        pairs = cast("Mapping[str, object]", value).items()
        return cut(", ".join(f"{key} = {value_text(each)}" for key, each in pairs), _LONGEST_VALUE)
    return cut(escape(" ".join(str(value).split())), _LONGEST_VALUE)


def _profile_lines(read: SettingsSources, width: int) -> list[str]:
    return [*wrap(f"The profile {read.profile} is in force.", width), ""] if read.profile else []


def _items(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(cast("Sequence[object]", value))
    return [] if value is None else [value]


def _inner_value(path: tuple[str, ...], read: SettingsSources, *, is_whole: bool) -> object:
    """A key deep in `providers` or `models`; of a table, all that is below it."""
    whole = key_text(path)
    found: dict[str, object] = {}
    for one in settings_in_force(read):
        above = key_path(one.name)
        if above == path[: len(above)]:
            return _at(one, path[len(above) :])
        if above[: len(path)] == path:
            found[one.name] = one.value
    if is_whole and not found:
        raise SettingsError(f"{whole} is a table, and nothing is set in it.")
    return found or None


def _at(one: SettingInForce, rest: tuple[str, ...]) -> object:
    value = one.value
    for key in rest:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, dict) else value
    return value


def _json(value: object) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return json_for_terminals(text) + "\n"
