"""Checks the tools a session offers: each is a tool, its name can be sent to models, and no name is used twice."""

import re
from collections.abc import Iterable
from typing import Final, Never

from bradawl.core.errors import SettingsError
from bradawl.core.ports import Tool
from bradawl.core.tools import ToolSpec

_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
_MEMBERS: Final = ("spec", "params", "effects", "run")


def check_tools(tools: Iterable[Tool[Never]]) -> None:
    """Raises `SettingsError` for an object that is not a tool, and for a name that is wrong or used twice."""
    known: dict[str, Tool[Never]] = {}
    for each in tools:
        _check(each)
        name = each.spec.name
        if not _NAME.fullmatch(name):
            raise SettingsError(
                f"The tool {_origin(each)} has the name {name!r}; names are of a-z, 0-9 and _, at most 64."
            )
        if (other := known.get(name)) is not None:
            raise SettingsError(
                f"Two tools are named {name}: {_origin(other)} and {_origin(each)}. Rename one of them."
            )
        known[name] = each


def _check(value: object) -> None:
    if isinstance(value, type):
        raise SettingsError(
            f"{value.__name__} is a class, not a tool; pass an object of the class: {value.__name__}()."
        )
    missing = [member for member in _MEMBERS if not hasattr(value, member)]
    if missing and (name := getattr(value, "__name__", "")):
        raise SettingsError(f"{name} is a function, not a tool; make it one with the decorator @tool.")
    if missing:
        raise SettingsError(
            f"An object of the type {type(value).__name__} is not a tool: it has no {', '.join(missing)}."
        )
    if not isinstance(getattr(value, "spec"), ToolSpec):  # noqa: B009 - the attribute is not known to exist
        raise SettingsError(f"The spec of the tool {type(value).__name__} is not a ToolSpec.")


def _origin(tool: object) -> str:
    """Module and name of the tool's function or class."""
    source: object = getattr(tool, "function", type(tool))
    return f"{getattr(source, '__module__', '')}.{getattr(source, '__qualname__', type(tool).__qualname__)}"
