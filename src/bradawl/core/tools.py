"""What a tool declares about itself: its name, its kind, how rules cover it and how a screen shows it."""

from collections.abc import Callable
from typing import Literal

import msgspec

from bradawl.core.rules import ReadRules

ToolKind = Literal["read", "write", "run"]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool's declaration. The defaults are those of a tool that only reads."""

    name: str
    """As the model sees it; `[a-z0-9_]`, at most 64 characters."""
    kind: ToolKind = "read"
    """`write`: changes files, so sub-agents that only read don't get it; `run`: starts programs or does anything."""
    rule_names: tuple[str, ...] = ()
    """Names besides its own under which permission rules cover it, for example `Edit` for tools that change files."""
    read_rules: ReadRules = "whole"
    shows: tuple[str, ...] = ()
    """Arguments that stand for a call in one line; the first that is given counts. `edits.path`: of each item."""
    result: Literal["", "diff", "output", "state"] = ""
    """What a screen shows of a result: nothing, a diff, the output of a command, or the session's state instead."""
    main_agent_only: bool = False
    """Sub-agents don't get it."""


class JsonParams(msgspec.Struct, frozen=True):
    """Parameters given as JSON Schema; the arguments of a call stay a dict."""

    description: str
    """Of the tool, for the model."""
    schema: msgspec.Raw
    """JSON Schema of an object."""
    what_is_wrong: Callable[[object], str]
    """Checks arguments against the schema; returns what does not fit, or an empty string."""
