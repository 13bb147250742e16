"""What a model is told about a tool, derived from the tool's own parameters."""

from collections.abc import Iterable

import msgspec

from bradawl.core.ports import Tool, ToolSchema


def _own_doc(params: type[msgspec.Struct]) -> str:
    """The docstring without indentation; msgspec has no say in it."""
    lines = (params.__doc__ or "").strip().splitlines()
    return "\n".join(line.strip() for line in lines)


def schema_of(tool: Tool[msgspec.Struct]) -> ToolSchema:
    """Name, description and JSON Schema of one tool; the schema stands alone, without references at its top."""
    (_,), components = msgspec.json.schema_components((tool.params,), ref_template="#/$defs/{name}")
    own = components.pop(tool.params.__name__)
    schema: dict[str, object] = {
        "type": "object",
        "properties": {name: _plain(field) for name, field in own["properties"].items()},
        "required": own["required"],
        "additionalProperties": False,
    }
    if components:
        schema["$defs"] = components
    return ToolSchema(tool.name, _own_doc(tool.params), msgspec.Raw(msgspec.json.encode(schema)))


def _plain(field: dict[str, object]) -> dict[str, object]:
    """A property without a default that only says `nothing given`, which costs tokens and tells nothing."""
    return {key: value for key, value in field.items() if key != "default" or value not in ("", [])}


def schemas_of(tools: Iterable[Tool[msgspec.Struct]]) -> tuple[ToolSchema, ...]:
    """Schemas in the order of the tools, which is part of the prefix."""
    return tuple(schema_of(tool) for tool in tools)
