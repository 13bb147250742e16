"""What a model is told about a tool, derived from the tool's own parameters."""

import typing
from collections.abc import Iterable, Mapping

import msgspec

from bradawl.core.ports import Tool, ToolSchema

_Json = dict[str, object]


def _own_doc(params: type[msgspec.Struct]) -> str:
    """The docstring without indentation; msgspec has no say in it."""
    lines = (params.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines)


def schema_of(tool: Tool[msgspec.Struct]) -> ToolSchema:
    """Name, description and JSON Schema of one tool.

    The schema stands alone: not every server resolves references, so each is replaced by what it names.
    """
    (_,), components = msgspec.json.schema_components((tool.params,), ref_template="{name}")
    schema = _object(components[tool.params.__name__], components)
    return ToolSchema(tool.name, _own_doc(tool.params), msgspec.Raw(msgspec.json.encode(schema)))


def _object(struct: _Json, components: Mapping[str, _Json]) -> _Json:
    properties = typing.cast("dict[str, _Json]", struct["properties"])
    return {
        "type": "object",
        "properties": {name: _plain(field, components) for name, field in properties.items()},
        "required": struct["required"],
        "additionalProperties": False,
    }


def _plain(field: _Json, components: Mapping[str, _Json]) -> _Json:
    """A property without references, and without a default that only says `nothing given`."""
    if (name := field.get("$ref")) is not None:
        named = components[typing.cast("str", name)]
        return _object(named, components) if "properties" in named else _untitled(named)
    plain = {key: value for key, value in field.items() if key != "default" or value}
    if isinstance(items := plain.get("items"), dict):
        plain["items"] = _plain(typing.cast("_Json", items), components)
    return plain


def _untitled(named: _Json) -> _Json:
    return {key: value for key, value in named.items() if key != "title"}


def schemas_of(tools: Iterable[Tool[msgspec.Struct]]) -> tuple[ToolSchema, ...]:
    """Schemas in the order of the tools, which is part of the prefix."""
    return tuple(schema_of(tool) for tool in tools)
