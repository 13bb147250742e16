"""Values from the texts of a command line, of the type that the schema of their setting asks for."""

import json
from collections.abc import Sequence
from typing import cast

from bradawl.app.settings.schema import Schema
from bradawl.app.settings.values import parse_bool, parse_count
from bradawl.core.errors import SettingsError


def is_list(schema: Schema) -> bool:
    """Whether the value is a list of texts."""
    return isinstance(schema.get("type"), list)


def items_of(texts: Sequence[str]) -> list[str]:
    """The items of a list: each text is one, or one text is a list in JSON. Raises `SettingsError`."""
    if len(texts) == 1 and texts[0].lstrip().startswith("["):
        found = _json(texts[0])
        if isinstance(found, list) and all(isinstance(item, str) for item in cast("list[object]", found)):
            return cast("list[str]", found)
        raise SettingsError(f"{texts[0]} is no list of texts; write one VALUE for each item.")
    if not texts or not all(text.strip() for text in texts):
        raise SettingsError("An item of a list is empty; give one VALUE for each item.")
    return [text.strip() for text in texts]


def typed_value(name: str, schema: Schema, texts: Sequence[str], as_json: str | None) -> object:
    """The value of a setting: from JSON text, or from texts by its type. Raises `SettingsError`."""
    if as_json is not None:
        return _json_value(name, as_json)
    if is_list(schema):
        return items_of(texts)
    if len(texts) != 1:
        raise SettingsError(f"{name} has one value, not {len(texts)}; put a text with blanks between quotation marks.")
    return _single(name, schema, texts[0])


def _json_value(name: str, text: str) -> object:
    value = _json(text)
    if value is None:
        raise SettingsError(
            f"{text!r} is not valid JSON, or null, which no setting can be; use unset to remove {name}."
        )
    return value


def _single(name: str, schema: Schema, text: str) -> object:
    kind = schema.get("type")
    if kind == "integer":
        return parse_count(text, name) if schema.get("minimum") == 1 else _whole(name, text)
    if kind == "boolean":
        return parse_bool(text, name)
    if kind == "number":
        return _number(name, text)
    return text


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise SettingsError(f"{name} is a whole number of at least 0, not {text!r}.")
    return int(text)


def _number(name: str, text: str) -> float | int:
    try:
        return int(text) if text.isascii() and text.isdigit() else float(text)
    except ValueError:
        raise SettingsError(f"{name} is a number, not {text!r}.") from None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
