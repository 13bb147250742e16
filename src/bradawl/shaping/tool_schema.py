"""Builds the schema of a tool that the model sees, from the tool's parameters."""

import typing
from collections.abc import Iterable, Mapping

import msgspec

from bradawl.core.ports import Tool, ToolSchema
from bradawl.core.tools import JsonParams

_Json = dict[str, object]


def _own_doc(params: type[msgspec.Struct]) -> str:
    """The docstring without indentation, taken from the class itself instead of msgspec."""
    lines = (params.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines)


def schema_of(tool: Tool[typing.Never]) -> ToolSchema:
    """Name, description and JSON Schema of one tool.

    A struct's schema has no references, because not every server resolves them: each is replaced by its target. It does
    not close its objects: calls are checked here, not by the server, and each byte is sent with every request.
    """
    params = tool.params
    if isinstance(params, JsonParams):
        return ToolSchema(tool.spec.name, params.description, params.schema)
    (schema,), components = msgspec.json.schema_components((params,), ref_template="{name}")
    parameters = msgspec.json.encode(_plain(schema, components))
    return ToolSchema(tool.spec.name, _own_doc(params), msgspec.Raw(parameters))


def _object(struct: _Json, components: Mapping[str, _Json]) -> _Json:
    properties = typing.cast("dict[str, _Json]", struct["properties"])
    required = {"required": struct["required"]} if struct["required"] else {}
    return {
        "type": "object",
        "properties": {name: _plain(field, components) for name, field in properties.items()},
        **required,
    }


def _plain(field: _Json, components: Mapping[str, _Json]) -> _Json:
    """A schema without references, and without defaults that only mean an absent value."""
    plain = {key: value for key, value in field.items() if key != "default" or value}
    if (name := plain.pop("$ref", None)) is not None:
        return _named(typing.cast("str", name), components) | plain
    for key in ("items", "additionalProperties"):
        if isinstance(inner := plain.get(key), dict):
            plain[key] = _plain(typing.cast("_Json", inner), components)
    if "prefixItems" in plain:
        plain["prefixItems"] = [_plain(each, components) for each in typing.cast("list[_Json]", plain["prefixItems"])]
    return plain


def _named(name: str, components: Mapping[str, _Json]) -> _Json:
    """The schema of a component; `object` for a reference to itself, because the result must be finite."""
    named = components.get(name)
    if named is None:
        return {"type": "object"}
    if "properties" not in named:
        return _untitled(named)
    return _object(named, {other: schema for other, schema in components.items() if other != name})


def _untitled(named: _Json) -> _Json:
    return {key: value for key, value in named.items() if key != "title"}


def schemas_of(tools: Iterable[Tool[typing.Never]]) -> tuple[ToolSchema, ...]:
    """The schemas in the order of the tools, which is part of the prefix.

    A tool with the attribute `is_listed` false has none: it answers calls of models that know it without being told.
    """
    return tuple(schema_of(tool) for tool in tools if getattr(tool, "is_listed", True))
