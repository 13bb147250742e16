"""`bradawl config set` and `unset`: change one setting in a file, if the file still loads afterwards."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from bradawl.app.config.keys import KeyPath, is_table, key_path, key_text, schema_of
from bradawl.app.config.settings_writer import PRIVATE, SHARED, locked_folder, replace_text
from bradawl.app.config.target import Target, decoded, problems_in
from bradawl.app.config.typed_values import is_list, items_of, typed_value
from bradawl.app.settings.files import SettingsFile
from bradawl.app.settings.homes import Homes
from bradawl.app.settings.table import SettingsTable
from bradawl.core.errors import SettingsError

_NAMES_A_FILE: Final = ("ca_file", "system_prompt_file", "append_system_prompt_file")


def set_value(
    options: Mapping[str, object], target: Target, table: SettingsTable, home: Homes, cwd: str
) -> tuple[KeyPath, SettingsFile]:
    """Set or extend a setting; returns its key and the file as it is now. Raises `SettingsError`."""
    path = _path_in(options, target, table)
    schema = schema_of(path, table)
    texts = cast("Sequence[str]", options.get("values") or ())
    if options.get("add") or options.get("remove"):
        if not is_list(schema):
            raise SettingsError(f"{key_text(path)} is no list; leave --add and --remove out.")
        items = items_of(texts)
        change = _adding(path, items) if options.get("add") else _removing(path, items)
        return path, _changed_file(target, table, change)
    value = typed_value(key_text(path), schema, texts, cast("str | None", options.get("value_json")))
    _check_places(path, value, home, cwd)
    from bradawl.app.config.toml_edit import with_value

    return path, _changed_file(target, table, lambda text: with_value(text, path, value))


def unset_value(options: Mapping[str, object], target: Target, table: SettingsTable) -> tuple[KeyPath, SettingsFile]:
    """Remove a setting or a table; returns its key and the file as it is now. Raises `SettingsError`."""
    path = _path_in(options, target, table, is_removed=True)

    from bradawl.app.config.toml_edit import without_key

    def change(text: str) -> str:
        _value_in(text, target, path)
        return without_key(text, path)

    return path, _changed_file(target, table, change)


def _path_in(
    options: Mapping[str, object], target: Target, table: SettingsTable, *, is_removed: bool = False
) -> KeyPath:
    """The key in the file. One that is to be removed may be unknown: it may be the mistake in the file."""
    path = key_path(str(options["key"]))
    if profile := options.get("in_profile"):
        path = ("profiles", str(profile), *path)
    if is_removed:
        return path
    if is_table(schema_of(path, table)) and options.get("value_json") is None:
        raise SettingsError(f"{key_text(path)} is a table; name a key in it, such as {key_text(path)}.KEY.")
    if target.kind == "project":
        _check_project_key(path, table)
    return path


def _check_project_key(path: KeyPath, table: SettingsTable) -> None:
    allowed = table.project_settings
    name = ".".join(path)
    if name not in allowed.untrusted and name not in allowed.trusted:
        known = ", ".join(sorted({*allowed.untrusted, *allowed.trusted} - {"allowed_tools", "permissions.add_dirs"}))
        raise SettingsError(f"A project's file may not set {name}; it may set {known}.")


# ------------------------------------------------------------------ changes of lists


def _adding(path: KeyPath, items: Sequence[str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        from bradawl.app.config.toml_edit import with_items, with_value

        old = _list_in(text, path)
        new = [item for item in dict.fromkeys(items) if item not in (old or ())]
        if old is None or isinstance(_value(text, path), str):
            return with_value(text, path, [*(old or ()), *new])
        return with_items(text, path, new) if new else text

    return change


def _removing(path: KeyPath, items: Sequence[str]) -> Callable[[str], str]:
    def change(text: str) -> str:
        from bradawl.app.config.toml_edit import with_value, without_items

        old = _list_in(text, path) or []
        if missing := [item for item in items if item not in old]:
            there_is = f"it has: {', '.join(map(str, old))}." if old else "nothing is in it."
            raise SettingsError(f"{key_text(path)} does not have {', '.join(missing)}; {there_is}")
        if isinstance(_value(text, path), str):
            return with_value(text, path, [item for item in old if item not in items])
        return without_items(text, path, items)

    return change


def _list_in(text: str, path: KeyPath) -> list[object] | None:
    """The entries of a list; None if the file does not have it. One text counts as a list of its parts."""
    value = _value(text, path)
    if isinstance(value, str):
        from bradawl.app.settings.values import parse_texts, split_rules

        split = split_rules if path[-2:-1] == ("permissions",) else parse_texts
        return list(split(value, key_text(path)))
    return cast("list[object]", value) if isinstance(value, list) else None


def _value(text: str, path: KeyPath) -> object:
    import tomllib

    found: object = tomllib.loads(text)
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return None
        found = cast("dict[str, object]", found)[key]
    return found


def _value_in(text: str, target: Target, path: KeyPath) -> object:
    value = _value(text, path)
    if value is None:
        raise SettingsError(f"{target.name} does not set {key_text(path)}.")
    return value


# ------------------------------------------------------------------ the file


def _changed_file(target: Target, table: SettingsTable, change: Callable[[str], str]) -> SettingsFile:
    """Read, change, check and replace the file. Raises `SettingsError` and leaves it, if it would not load."""
    is_private = target.kind == "user"
    from bradawl.app.config.toml_edit import edited

    with locked_folder(target.path.parent, is_private=is_private):
        old = target.text()
        new = edited(old, change)
        file = decoded(target, new)
        known = {(one.keys, one.message) for one in problems_in(target, decoded(target, old), table)}
        problems = [one.message for one in problems_in(target, file, table) if (one.keys, one.message) not in known]
        if problems:
            raise SettingsError(" ".join(problems))
        if new != old or not target.path.exists():
            replace_text(target.path, new, PRIVATE if is_private else SHARED)
    return file


def _check_places(path: KeyPath, value: object, home: Homes, cwd: str) -> None:
    """Raises `SettingsError` if the value names a file or folder that is not there."""
    key = path[-1]
    texts = value if isinstance(value, list) else [value]
    for text in (str(each) for each in cast("list[object]", texts)):
        expanded = home.user + text[1:] if text == "~" or text.startswith("~/") else text
        place = Path(cwd if key == "ca_file" else home.config, expanded)
        if key in _NAMES_A_FILE and not place.is_file():
            raise SettingsError(f"{key_text(path)}: there is no file {place}.")
        if key == "add_dirs" and not os.path.isdir(place):  # noqa: PTH112 - takes any text
            raise SettingsError(f"{key_text(path)}: there is no folder {place}.")
