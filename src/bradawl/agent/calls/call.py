"""One tool call before it runs: its place, and whether it was prepared or refused."""

from collections.abc import Mapping

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.events import Outcome
from bradawl.core.messages import ToolCall
from bradawl.core.ports import AnyTool, Params

ASKS_USER = "user"
"""The part of a session that a call declares to change if it asks the user a question of its own."""
LEAVES_PLAN = "mode"
"""The part of a session that a call declares to change if it ends plan mode."""
NOT_RUN = "Not run: the turn ended before this call started."
"""The result of a call that changed nothing because its turn ended."""


class Place(msgspec.Struct, frozen=True):
    """Where a call runs: a copy, which later calls do not change."""

    cwd: str
    env: Mapping[str, str | None]


class Prepared(msgspec.Struct, frozen=True):
    """A call of a known tool with valid arguments; not yet allowed."""

    call: ToolCall
    tool: AnyTool
    params: Params
    effects: Effects
    place: Place
    """The place against which its paths were resolved, and where it runs."""


class Refused(msgspec.Struct, frozen=True):
    """A call that will not run, with the text the model reads instead of a result."""

    call: ToolCall
    text: str
    outcome: Outcome = "error"
    is_for_all_hosts: bool = False
    """The user was asked about a connection and refuses all further ones of the command."""


def tool_failed(tool: AnyTool, error: Exception) -> str:
    """The result of a call whose tool raised something other than `ToolError`."""
    return f"{tool.spec.name} broke: {type(error).__name__}: {error}. The tool is at fault, not your call."
