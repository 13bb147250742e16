"""Keys as they are typed: `max_steps`, `permissions.allow`, `models."openai/gpt-5.5".price.input`."""

import re
from typing import Final

from bradawl.app.settings.file_check import TABLES, FileKeys, unknown_key
from bradawl.app.settings.provider_tables import MODEL_KEYS, PRICE_KEYS
from bradawl.app.settings.schema import FileKind, Schema, schema_at, settings_schema
from bradawl.app.settings.table import SettingsTable
from bradawl.app.settings.text_positions import positions_in
from bradawl.core.errors import SettingsError

KeyPath = tuple[str, ...]
# The name of a model may have dots, and is known by what follows it.
_MODEL: Final = re.compile(
    rf"(?P<before>(?:profiles\.[\w-]+\.)?)models\.(?P<name>[^\"'].*?)"
    rf"(?:\.(?P<key>{'|'.join(sorted(MODEL_KEYS))})(?:\.(?P<price>{'|'.join(PRICE_KEYS)}))?)?"
)


def key_path(text: str) -> KeyPath:
    """The parts of a key as in TOML; a model's name needs no quotes. Raises `SettingsError`."""
    typed = text.strip()
    if found := _MODEL.fullmatch(typed):
        parts = (*found["before"].split(".")[:-1], "models", found["name"], found["key"], found["price"])
        return tuple(part for part in parts if part)
    paths = [keys for keys in positions_in(f"{typed} = 0").values if keys]
    if len(paths) != 1 or "\n" in typed or "=" in typed:
        raise SettingsError(f"{text!r} is no key; write it as in config.toml: max_steps, permissions.allow.")
    parts = [str(part) for part in paths[0]]
    return (parts[0].replace("-", "_"), *parts[1:])


def key_text(path: KeyPath) -> str:
    """The key as TOML writes it."""
    import json

    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part) for part in path)


def schema_of(path: KeyPath, table: SettingsTable, kind: FileKind = "user") -> Schema:
    """The schema of the value at a key. Raises `SettingsError` for an unknown key, with the one that was meant."""
    schema = settings_schema(table, kind)
    found = schema_at(schema, path)
    if found is not None:
        return found
    inner = path[2:] if path[:1] == ("profiles",) and len(path) > 2 else path
    if any(part in TABLES for part in inner[:1]):
        raise SettingsError(_unknown_part(path, schema))
    raise SettingsError(unknown_key(".".join(inner), FileKeys(table, table.file_keys(), TABLES, "a settings file")))


def _unknown_part(path: KeyPath, schema: Schema) -> str:
    """The message for the first part of a key that is unknown, in a table of names."""
    from difflib import get_close_matches

    depth = next(depth for depth in range(1, len(path) + 1) if schema_at(schema, path[:depth]) is None)
    above = schema_at(schema, path[: depth - 1]) or {}
    known = list(above.get("properties") or {})  # type: ignore[call-overload] # an object of the schema
    near = get_close_matches(path[depth - 1], known, 1)
    hint = f"did you mean {key_text((*path[: depth - 1], near[0]))}?" if near else f"known are {', '.join(known)}."
    return f"{key_text(path[:depth])} is no setting; {hint}"


def is_table(schema: Schema) -> bool:
    """Whether the value at a key is a table."""
    return schema.get("type") == "object"
