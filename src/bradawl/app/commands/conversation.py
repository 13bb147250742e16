"""Slash commands about the conversation itself: `/help`, `/mode`, `/plan`, `/compact`, `/exit`."""

from collections.abc import Sequence
from typing import Annotated, Final

from bradawl.app.frontend import FrontendSession
from bradawl.app.modes import mode_text
from bradawl.app.rendering import compaction_text
from bradawl.app.slash_commands import CommandResult, Rest, SlashCommand, command
from bradawl.core.permissions import Mode

_MORE_HELP: Final = """
/help NAME explains a command, /help all lists what each does.
? on an empty line lists the keys. @ attaches a file, ! runs a command of yours."""


@command("help", "?")
async def show_help(session: FrontendSession, name: str = "") -> str:
    """Name the commands by groups, or explain the one named NAME.

    /help all explains each in a line, and the keys.
    """
    frontend = session.frontend
    commands, keys = frontend.commands, frontend.keys_help
    if name and name.lower() != "all":
        return commands.find(name).help
    if frontend.user is None or (dialogs := frontend.user.dialogs) is None:
        lines = commands.help_lines(user_is_there=frontend.user_is_there)
        return "\n".join((*lines, *(("", keys) if keys else ())))
    groups = list(commands.groups(user_is_there=True))
    names = [f"{title}: {' '.join(f'/{each.name}' for each in group)}" for title, group in groups]
    column = max(len(each.name) for _, group in groups for each in group)
    whole = [_explained(title, group, column) for title, group in groups]
    summary = "" if name else "\n".join((*names, _MORE_HELP))
    await dialogs.show(summary, "help", [*whole, keys], opens=bool(name))
    return ""


def _explained(title: str, commands: Sequence[SlashCommand], column: int) -> str:
    lines = (f"  /{each.name:<{column}}  {each.summary}" for each in commands)
    return "\n".join((title, *lines, ""))


@command("mode")
def show_or_choose_mode(
    session: FrontendSession, mode: Annotated[Mode, ("bypassPermissions", "bypass")] | None = None
) -> str:
    """Show what is asked about, or choose it: default, accept-edits, plan or auto.

    The mode holds from the next step on, and when the session is continued.
    """
    if mode is not None:
        session.choose_mode(mode)
    return f"mode {mode_text(session.mode)}"


@command("plan")
def toggle_plan_mode(session: FrontendSession) -> str:
    """Enter plan mode: nothing changes until you approve a plan; once more leaves it.

    Type what is to be planned as the next prompt.
    """
    session.toggle_plan_mode()
    return f"mode {mode_text(session.mode)}"


@command("compact", is_slow=True)
async def compact_conversation(session: FrontendSession, focus: Rest = "") -> str:
    """Summarise the conversation to make room in the context window.

    What you asked for, the plan, open todos and changed files are kept word for word. FOCUS says what the summary is
    to keep above all: /compact the failing tests. A full window is compacted without being asked for.
    """
    event = await session.session.compact(focus.strip())
    if event is None:
        return "Nothing to gain: all of it is short, or new since the last compaction."
    return "" if session.frontend.user_is_there else compaction_text(event)  # the terminal shows the event


@command("exit", "quit", needs_user=True)
def leave(session: FrontendSession) -> CommandResult:
    """Leave the conversation."""
    return CommandResult(then="leave")
