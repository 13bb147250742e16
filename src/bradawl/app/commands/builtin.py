"""The registry of bradawl's own slash commands."""

from types import ModuleType
from typing import Final

from bradawl.app import context_command, init_command, undo_commands
from bradawl.app.commands import (
    bug,
    conversation,
    cost,
    export,
    model,
    permissions,
    project,
    sessions,
    status,
    terminal,
    work,
)
from bradawl.app.slash_commands import CommandRegistry, commands_in

GROUPS: Final[dict[str, tuple[ModuleType, ...]]] = {
    "Conversation": (conversation, terminal),
    "Model": (model,),
    "Sessions": (sessions, export),
    "Undo": (undo_commands,),
    "What is going on": (status, context_command, cost, work),
    "Permissions and the project": (permissions, project, init_command),
    "Defects": (bug,),
}
"""The modules with commands, by the headings of docs/commands.md and in the order of `/help`."""


def builtin_commands() -> CommandRegistry:
    """All commands of `GROUPS`."""
    groups = {
        title: [each for module in modules for each in commands_in(vars(module))] for title, modules in GROUPS.items()
    }
    return CommandRegistry((each for group in groups.values() for each in group), groups)
