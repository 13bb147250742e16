"""Changes single values in the text of a TOML file; comments, order and all other text stay.

A library changes values that are there. A new line is put into the text here: the library would put it below the
comment of the next table. Each result is parsed, and refused if it is not the file's values with that one change.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from bradawl.app.config.keys import KeyPath, key_text
from bradawl.app.settings.text_positions import Positions, positions_in
from bradawl.core.errors import SettingsError

_CANT_BE_CHANGED: Final = "{key} can't be changed here without other changes to the file; use `bradawl config edit`."


def with_value(text: str, path: KeyPath, value: object) -> str:
    """The text with another value of a key, which need not be there. Raises `SettingsError`."""
    wanted = _changed(tomllib.loads(text), path, lambda table, key: table.__setitem__(key, value))
    has_key = _has_key(tomllib.loads(text), path)
    new = _assigned(text, path, value) if has_key else _inserted(text, path, value)
    return _checked(new, wanted, path)


def without_key(text: str, path: KeyPath) -> str:
    """The text without a key or table, which is there. Raises `SettingsError`."""
    wanted = _changed(tomllib.loads(text), path, lambda table, key: table.pop(key))
    document = _parsed(text)
    del _table_of(document, path)[path[-1]]
    return _checked(_dumped(document), wanted, path)


def with_items(text: str, path: KeyPath, items: Sequence[str]) -> str:
    """The text with more items at the end of a list, which is there. Raises `SettingsError`."""
    wanted = _changed(tomllib.loads(text), path, lambda table, key: cast("list[object]", table[key]).extend(items))
    document = _parsed(text)
    for item in items:
        cast("list[object]", _table_of(document, path)[path[-1]]).append(item)
    new = _dumped(document)
    if not _is(new, wanted):  # the library leaves out a comma where a comment follows the last item
        new = _appended(text, path, items)
    return _checked(new, wanted, path)


def without_items(text: str, path: KeyPath, items: Sequence[str]) -> str:
    """The text without some items of a list. Raises `SettingsError`."""
    kept = [item for item in cast("list[object]", _value_at(tomllib.loads(text), path)) if item not in items]
    wanted = _changed(tomllib.loads(text), path, lambda table, key: table.__setitem__(key, kept))
    document = _parsed(text)
    values = cast("list[object]", _table_of(document, path)[path[-1]])
    for number in reversed(range(len(values))):
        if values[number] in items:
            values.pop(number)
    return _checked(_dumped(document), wanted, path)


def with_table(text: str, path: KeyPath, values: Mapping[str, object]) -> str:
    """The text with a table that has these values and no others; it need not be there. Raises `SettingsError`."""
    present = _value_at(tomllib.loads(text), path)
    for key in present if isinstance(present, dict) else ():
        if key not in values:
            text = without_key(text, (*path, key))
    for key, value in values.items():
        text = with_value(text, (*path, key), value)
    return text


def edited(text: str, change: Callable[[str], str]) -> str:
    """`change(text)`, which gets a text with `\\n` and no byte order mark; both stay as they are.

    Raises `SettingsError`, also for a text that is not TOML.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    end = "\r\n" if "\r\n" in text else "\n"
    try:
        new = change(text.removeprefix(mark).replace("\r\n", "\n"))
    except (ValueError, RecursionError):
        # A parser's message may quote the line it stopped at, and with it a key.
        raise SettingsError("It is not valid TOML.") from None
    return mark + new.replace("\n", end)


# ------------------------------------------------------------------ by the library


def _parsed(text: str) -> Mapping[str, object]:
    import tomlkit

    return tomlkit.parse(text)


def _dumped(document: Mapping[str, object]) -> str:
    import tomlkit

    return tomlkit.dumps(document)


def _table_of(document: Mapping[str, object], path: KeyPath) -> dict[str, object]:
    table: object = document
    for key in path[:-1]:
        table = cast("Mapping[str, object]", table)[key]
    return cast("dict[str, object]", table)


def _assigned(text: str, path: KeyPath, value: object) -> str:
    document = _parsed(text)
    table: object = document
    for number, key in enumerate(path[:-1]):
        inner = cast("dict[str, object]", table)
        if key not in inner:
            inner[key] = _nested(path[number + 1 :], value)
            return _dumped(document)
        table = inner[key]
    cast("dict[str, object]", table)[path[-1]] = value
    return _dumped(document)


def _nested(path: KeyPath, value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


# ------------------------------------------------------------------ in the text


def _inserted(text: str, path: KeyPath, value: object) -> str:
    """The text with a new line for the key: in its table, or in a new table at the end."""
    table = path[:-1]
    positions = positions_in(text)
    if not table or table in positions.headers:
        return _with_line(text, _end_of_section(text, positions, table), _line(path[-1:], value))
    if _is_in_braces(positions, table) or _is_dotted(positions, table):
        return _assigned(text, path, value)
    before = f"{text.rstrip()}\n\n" if text.strip() else ""
    return f"{before}[{key_text(table)}]\n{_line(path[-1:], value)}"


def _is_in_braces(positions: Positions, table: KeyPath) -> bool:
    return any(table[:number] in positions.spans for number in range(1, len(table) + 1))


def _is_dotted(positions: Positions, table: KeyPath) -> bool:
    """Whether a table is made by keys with dots: `permissions.allow = []`, and not only by tables below it."""
    below = [keys for keys in positions.spans if keys[: len(table)] == table]
    headed = [keys for keys in positions.headers if keys[: len(table)] == table]
    return any(not any(keys[: len(header)] == header for header in headed) for keys in below)


def _end_of_section(text: str, positions: Positions, table: KeyPath) -> int:
    """The index after the last value of a table, or after its header; after the first comment if there is neither."""
    header = positions.headers.get(table)
    start = header.end if header else 0
    later = [span.start for span in positions.headers.values() if span.start > start - 1 and span is not header]
    end = min(later, default=len(text))
    values = [span.end for span in positions.spans.values() if start <= span.start and span.end <= end]
    if values:
        return max(values)
    return start if header else _end_of_head(text)


def _end_of_head(text: str) -> int:
    """The end of the comment at the top, if a blank line follows it; else 0."""
    head = text.partition("\n\n")[0]
    is_comment = bool(head) and all(line.startswith("#") for line in head.split("\n"))
    return len(head) + 1 if is_comment and len(head) + 2 <= len(text) else 0


def _with_line(text: str, index: int, line: str) -> str:
    if index == 0:
        return f"{line}\n{text}" if text else line
    end = text.find("\n", index)
    if end < 0:
        return f"{text}\n{line}"
    if not text[:index].strip() or text[index - 1] == "\n":  # below the comment at the top
        return f"{text[:index]}\n{line}{text[index:]}"
    return f"{text[: end + 1]}{line}{text[end + 1 :]}"


def _line(key: KeyPath, value: object) -> str:
    import tomlkit

    return f"{key_text(key)} = {tomlkit.item(value).as_string()}\n"


def _appended(text: str, path: KeyPath, items: Sequence[str]) -> str:
    import tomlkit

    spans = positions_in(text).spans
    last = max((span.end for keys, span in spans.items() if keys[:-1] == path), default=0)
    added = "".join(f", {tomlkit.item(item).as_string()}" for item in items)
    return text[:last] + added + text[last:] if last else text


# ------------------------------------------------------------------ the check


def _changed(
    values: dict[str, object], path: KeyPath, change: Callable[[dict[str, object], str], object]
) -> dict[str, object]:
    table = values
    for key in path[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            raise SettingsError(f"{key} is a value in this file, not a table; remove it first.")
        table = cast("dict[str, object]", inner)
    change(table, path[-1])
    return values


def _has_key(values: Mapping[str, object], path: KeyPath) -> bool:
    return _value_at(values, path) is not None


def _value_at(values: Mapping[str, object], path: KeyPath) -> object:
    found: object = values
    for key in path:
        if not isinstance(found, dict):
            return None
        found = cast("dict[str, object]", found).get(key)
    return found


def _is(text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return _without_empty(tomllib.loads(text)) == _without_empty(wanted)
    except (ValueError, RecursionError):
        return False


def _without_empty(values: Mapping[str, object]) -> dict[str, object]:
    """The values without empty tables: a table that loses its last key may stay or go."""
    inner = {
        key: _without_empty(cast("dict[str, object]", value)) if isinstance(value, dict) else value
        for key, value in values.items()
    }
    return {key: value for key, value in inner.items() if value != {}}


def _checked(text: str, wanted: Mapping[str, object], path: KeyPath) -> str:
    if not _is(text, wanted):
        raise SettingsError(_CANT_BE_CHANGED.format(key=key_text(path)))
    return text
