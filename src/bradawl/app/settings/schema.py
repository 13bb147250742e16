"""JSON Schemas of the settings files, made from the table of settings, for editors and for `bradawl config set`."""

from collections.abc import Mapping
from typing import Final, Literal, cast

import msgspec

from bradawl.app.settings.provider_tables import MODEL_KEYS, PRICE_KEYS, PROVIDER_KEYS
from bradawl.app.settings.table import LISTS, Setting, SettingsTable
from bradawl.app.settings.values import EFFORTS
from bradawl.providers.compat import WAITS, CompatProfile
from bradawl.providers.messages.profile import MessagesProfile
from bradawl.providers.protocols import PROTOCOLS

FileKind = Literal["user", "project", "managed"]
KINDS: Final[tuple[FileKind, ...]] = ("user", "project", "managed")
Schema = dict[str, object]

_DRAFT: Final = "http://json-schema.org/draft-07/schema#"  # the draft that editors of TOML understand
_TITLES: Final[Mapping[FileKind, str]] = {
    "user": "bradawl: config.toml",
    "project": "bradawl: a project's .bradawl/config.toml",
    "managed": "bradawl: the administrator's managed.toml",
}
_TEXT: Final[Mapping[str, object]] = {"type": "string"}
_TOKENS: Final[Mapping[str, object]] = {"type": "integer", "minimum": 1}
_PROVIDER: Final[Mapping[str, Mapping[str, object]]] = {
    "api": {"enum": [protocol.name for protocol in PROTOCOLS], "description": "the wire protocol that it speaks"},
    "base_url": {"description": "its address, such as https://api.example.com/v1"},
    "api_key_env": {"description": "the environment variable that holds its key; empty if it needs none"},
    "api_key_command": {"description": "a shell command that prints its key"},
    "headers": {
        "type": "object",
        "additionalProperties": _TEXT,
        "description": "further headers of every request",
    },
}
_MODEL: Final[Mapping[str, Mapping[str, object]]] = {
    "context_window": {**_TOKENS, "description": "tokens that fit into the model"},
    "max_output": {**_TOKENS, "description": "tokens of its longest reply"},
    "effort": {"enum": list(EFFORTS), "description": "how hard it thinks"},
    "price": {
        "type": "object",
        "properties": {name: {"type": "number", "minimum": 0} for name in PRICE_KEYS},
        "additionalProperties": False,
        "description": "US dollars per million tokens",
    },
}


def settings_schema(table: SettingsTable, kind: FileKind) -> Schema:
    """The schema of one kind of settings file."""
    names = _names(table, kind)
    rows = [row for row in table.rows.values() if row.name in names]
    properties = _properties(rows)
    if kind == "user":
        own = {"providers": _providers(), "models": _models()}
        profile = {name: each for name, each in properties.items() if name != "profile"}
        properties |= {**own, "profiles": _profiles({**profile, **own})}
    return {"$schema": _DRAFT, "title": _TITLES[kind], **_object(properties)}


def schema_text(table: SettingsTable, kind: FileKind) -> str:
    """The schema as the text of a file."""
    return msgspec.json.format(msgspec.json.encode(settings_schema(table, kind)), indent=2).decode() + "\n"


def schema_at(schema: Schema, keys: tuple[str, ...]) -> Schema | None:
    """The schema of the value at a path of keys; None if there can be no such key."""
    found: object = schema
    for key in keys:
        inner = cast("Schema", found)
        properties = cast("Schema", inner.get("properties", {}))
        found = properties.get(key, inner.get("additionalProperties", False))
        if not isinstance(found, dict):
            return None
    return cast("Schema", found)


def _names(table: SettingsTable, kind: FileKind) -> frozenset[str]:
    if kind == "project":
        allowed = table.project_settings
        return frozenset({*allowed.untrusted, *allowed.trusted}) - {"allowed_tools"}
    return table.file_keys() if kind == "user" else table.managed_keys()


def _properties(rows: list[Setting]) -> Schema:
    """Settings by key; those with a dot in their names are in an inner object."""
    properties: Schema = {}
    inner: dict[str, Schema] = {}
    for row in rows:
        outer, dot, name = row.name.partition(".")
        if dot:
            inner.setdefault(outer, {})[name] = _setting(row)
        else:
            properties[outer] = _setting(row)
    return {**properties, **{name: _object(each) for name, each in inner.items()}}


def _setting(row: Setting) -> Schema:
    schema = {**row.kind.schema}
    if row.kind in LISTS:
        schema["type"] = ["array", "string"]  # one text counts as a list of its parts
    if row.help:
        schema["description"] = row.help
    if row.is_plain and row.default not in (None, "", ()):
        schema["default"] = row.default
    return schema


def _object(properties: Mapping[str, object]) -> Schema:
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def _named(entry: Mapping[str, object], description: str) -> Schema:
    return {"type": "object", "additionalProperties": entry, "description": description}


def _providers() -> Schema:
    keys = {name: {"type": "string", **_PROVIDER[name]} for name in PROVIDER_KEYS if name != "compat"}
    entry = _object({**{name: keys[name] for name in sorted(keys)}, "compat": _compat()})
    return _named(entry, "providers by name: an endpoint, and where its key is found")


def _models() -> Schema:
    entry = _object({name: {"type": "string", **_MODEL[name]} for name in sorted(MODEL_KEYS)})
    return _named(entry, "facts about models, by PROVIDER/MODEL")


def _profiles(properties: Mapping[str, object]) -> Schema:
    return _named(_object(properties), "profiles by name: settings that --profile NAME adds")


def _compat() -> Schema:
    """The fields of all wire protocols; which of them are valid depends on the provider's protocol."""
    properties: Schema = {}
    for profile in (MessagesProfile, CompatProfile):
        fields = msgspec.structs.fields(profile)
        # Without the defaults, which differ between servers.
        schemas, _ = msgspec.json.schema_components([field.type for field in fields])
        properties |= {field.name: schema for field, schema in zip(fields, schemas, strict=True)}
    properties |= {name: {"type": "number", "minimum": 0} for name in WAITS}
    return {**_object(dict(sorted(properties.items()))), "description": "how the server differs from its protocol"}
