"""Checks a user's tool when it is loaded, so that a defect is not found first by a model that calls the tool."""

import inspect
import re
from typing import Any, Final

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.ports import Tool
from bradawl.core.tools import JsonParams, ToolSpec

_NAME: Final = "[a-z0-9_]{1,64}"


def check_tool(made: Tool[Any]) -> None:
    """Raises `SettingsError`, or what the tool's own code raises, for a tool that no model could use."""
    if not isinstance(made.spec, ToolSpec):
        raise SettingsError(f"the spec of {type(made).__name__} is not a ToolSpec.")
    spec, params = msgspec.convert(msgspec.to_builtins(made.spec), ToolSpec), made.params
    if not re.fullmatch(_NAME, spec.name):
        raise SettingsError(f"the name {spec.name!r} is not made of a-z, 0-9 and _, at most 64.")
    if isinstance(params, JsonParams):
        description = params.description
        _check_schema(spec.name, params)
    elif isinstance(params, type) and issubclass(params, msgspec.Struct):
        description = params.__doc__ or ""
        msgspec.json.schema(params)
    else:
        raise SettingsError(f"the params of {spec.name} are neither a msgspec Struct nor JsonParams.")
    if not description.strip():
        raise SettingsError(f"{spec.name} has no description; it tells the model when to use the tool.")
    _check_is_async(spec.name, made)


def _check_schema(name: str, params: JsonParams) -> None:
    kind = msgspec.json.decode(params.schema, type=dict[str, object]).get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise SettingsError(f'the JSON Schema of {name} has the type {kind!r}; arguments are always an "object".')
    params.what_is_wrong({})  # raises for a wrong schema; what it says about these arguments does not matter


def _check_is_async(name: str, made: Tool[Any]) -> None:
    """`function` is that of a `JsonTool`; a `@tool` function may be a plain one, which then runs in a thread."""
    run = getattr(made, "function", made.run) if isinstance(made.params, JsonParams) else made.run
    if inspect.isroutine(run) and not inspect.iscoroutinefunction(inspect.unwrap(run)):
        raise SettingsError(f"the function that runs {name} is not async; write `async def`.")
