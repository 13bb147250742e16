"""Encodes tools for the Messages protocol. Pure."""

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec

from bradawl.core.ports import ToolSchema
from bradawl.providers.encoding import Json, encode_json, tool_name

_LONG = frozenset(
    {"content", "contents", "text", "body", "patch", "diff", "code", "script", "command", "data", "edits"}
)
"""Names of arguments that usually contain long texts."""


def encode_tools(tools: Sequence[ToolSchema]) -> tuple[bytes, bytes]:
    """The list of tools, without and with `eager_input_streaming` where useful; empty if there are none.

    Without it the server holds long strings back until they are complete. With it the server does not check
    the arguments, so tools with only short arguments go without.
    """
    if not tools:
        return b"", b""
    plain = [_tool(schema) for schema in tools]
    eager = [
        {**tool, "eager_input_streaming": True} if takes_long_strings(schema) else tool
        for tool, schema in zip(plain, tools, strict=True)
    ]
    return encode_json(plain), encode_json(eager)


def _tool(schema: ToolSchema) -> Json:
    described: Json = {"description": schema.description} if schema.description.strip() else {}
    return {"name": tool_name(schema.name), **described, "input_schema": schema.parameters}


def takes_long_strings(schema: ToolSchema) -> bool:
    """True for a tool with an argument named like a long text, or with at least two required free strings."""
    try:
        parameters = msgspec.json.decode(schema.parameters, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError):
        return False
    properties = _object(parameters.get("properties"))
    required = parameters.get("required")
    needed = cast("list[object]", required) if isinstance(required, list) else []
    free = list(_free_strings(properties))
    return any(name in _LONG for name in properties) or sum(name in needed for name in free) >= 2


def _free_strings(properties: Json) -> Iterator[str]:
    for name, value in properties.items():
        field = _object(value)
        if field.get("type") == "string" and not field.keys() & {"enum", "const", "format", "maxLength", "pattern"}:
            yield name


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
