"""Corrects small mistakes in arguments whose parameters are a JSON Schema, and lists those parameters in words."""

import typing
from collections.abc import Iterator

import msgspec

from bradawl.core.arguments import Arguments, decode, is_object
from bradawl.core.tools import JsonParams

REMARKS = frozenset({"description", "explanation", "reason", "reasoning", "thought"})
"""Arguments that models add to calls as remarks; dropped if the tool has no such parameter."""
_SCALARS: dict[str, type[int] | type[float] | type[bool]] = {"integer": int, "number": float, "boolean": bool}
_KINDS = {"array": "list", "null": "null"}


def schema_of(params: JsonParams) -> Arguments:
    """The decoded schema."""
    schema = msgspec.json.decode(params.schema)
    return schema if is_object(schema) else {}


def fit(arguments: Arguments, schema: Arguments) -> Arguments:
    """The arguments without remarks and nulls that the schema does not allow, and with each value fitted."""
    properties, required = _properties(schema), _required(schema)
    fitted: Arguments = {}
    for name, value in arguments.items():
        if name not in properties:
            if not (name in REMARKS and _is_closed(schema)):
                fitted[name] = value
        elif value is not None or name in required or "null" in _types(properties[name]):
            fitted[name] = _fitted(value, properties[name])
    return fitted


def _fitted(value: object, schema: Arguments) -> object:
    types = _types(schema)
    if len(types) != 1 or value is None:
        return value
    match types[0]:
        case "array":
            items = schema.get("items")
            return [_fitted(item, items) if is_object(items) else item for item in as_list(value)]
        case "object":
            value = read_json(value, "{")
            return fit(value, schema) if is_object(value) and _properties(schema) else value
        case "string":
            return str(value) if type(value) is int else value
        case kind:
            return _scalar(value, kind)


def _scalar(value: object, kind: str) -> object:
    """A number or boolean written as a string, decoded."""
    if not isinstance(value, str) or kind not in _SCALARS:
        return value
    try:
        return msgspec.convert(value, _SCALARS[kind], strict=False)
    except msgspec.ValidationError:
        return value


def as_list(value: object) -> list[object]:
    """The value as a list: a list itself, a list written as JSON text decoded, any other value as a list of one."""
    value = read_json(value, "[")
    return typing.cast("list[object]", value) if isinstance(value, list) else [value]


def read_json(value: object, opening: str) -> object:
    """The decoded value of a string with a JSON list (`opening` is `[`) or object (`{`); any other value unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith(opening):
        return value
    try:
        return decode(value)
    except (ValueError, RecursionError):
        return value


def closed_names(schema: Arguments) -> list[str] | None:
    """The names of the parameters; None if the schema allows others."""
    return list(_properties(schema)) if _is_closed(schema) else None


def listed(schema: Arguments) -> Iterator[tuple[str, str, bool]]:
    """For each parameter its name, its type in words, and whether it is required."""
    required = _required(schema)
    for name, each in _properties(schema).items():
        yield name, _in_words(each), name in required


def _in_words(schema: Arguments) -> str:
    if isinstance(values := schema.get("enum"), list):
        return f"one of {', '.join(map(str, typing.cast('list[object]', values)))}"
    return " or ".join(_KINDS.get(each, each) for each in _types(schema)) or "any"


def _types(schema: Arguments) -> list[str]:
    found = schema.get("type")
    listed = typing.cast("list[object]", found) if isinstance(found, list) else [found]
    return [each for each in listed if isinstance(each, str)]


def _properties(schema: Arguments) -> dict[str, Arguments]:
    found = schema.get("properties")
    return {name: each if is_object(each) else {} for name, each in found.items()} if is_object(found) else {}


def _required(schema: Arguments) -> list[object]:
    found = schema.get("required")
    return typing.cast("list[object]", found) if isinstance(found, list) else []


def _is_closed(schema: Arguments) -> bool:
    return schema.get("additionalProperties") is False
