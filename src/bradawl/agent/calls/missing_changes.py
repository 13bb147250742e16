"""Finds the changes that earlier calls of a reply failed to make, so that a command after them ran without them."""

from typing import Protocol, runtime_checkable

import msgspec

from bradawl.agent.calls.context import CallServices, JudgedFiles, context_of, current_place
from bradawl.core.arguments import parse_arguments
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import ToolFinished
from bradawl.core.messages import Text, ToolCall
from bradawl.core.ports import CallContext, Params
from bradawl.shaping import fitting, missing_changes


@runtime_checkable
class KnowsItsChange(Protocol):
    """A tool that can tell whether the change of a call is in the files, whoever made it."""

    async def is_in_place(self, params: Params, context: CallContext | None) -> bool:
        """Whether nothing is left to change. Without a context no file may be read.

        Raises `ToolError` for a file that can't be read.
        """
        ...


def lacks_change(services: CallServices, call: ToolCall, effects: Effects, finished: ToolFinished) -> bool:
    """Whether a call was to change files and failed. A program that failed may have changed them all the same."""
    tool = services.tools.get(call.name)
    if tool is None or finished.outcome == "ok":
        return False
    if tool.spec.kind == "run":
        return finished.outcome == "refused" and bool(effects.writes)
    return tool.spec.kind == "write" or bool(effects.writes)


async def is_missing(services: CallServices, call: ToolCall, effects: Effects, *, was_allowed: bool) -> bool:
    """Whether the files differ now from what a failed call was to make of them.

    Those of a call that was not allowed are not read: the note would tell what is in them.
    """
    tool = services.tools.get(call.name)
    arguments, _ = parse_arguments(call.raw_arguments)
    if arguments is None or not isinstance(tool, KnowsItsChange):
        return True
    try:
        params: Params = fitting.decoded(arguments, tool.params)
        return not await tool.is_in_place(params, _context(services, call, effects) if was_allowed else None)
    except (ToolError, msgspec.ValidationError, RecursionError):
        return True


def _context(services: CallServices, call: ToolCall, effects: Effects) -> CallContext:
    """The context of the call, with the files that it was allowed to change."""
    context = context_of(services, call, current_place(services.conversation))
    return msgspec.structs.replace(context, files=JudgedFiles(context.files, effects))


def with_note(services: CallServices, failed: list[ToolCall], finished: ToolFinished) -> ToolFinished:
    """The result of a command, with a note about the calls whose changes it ran without."""
    shows, cwd = {name: tool.spec.shows for name, tool in services.tools.items()}, services.conversation.state.cwd
    said = missing_changes.note([missing_changes.named(call, shows, cwd) for call in failed])
    return msgspec.structs.replace(finished, shown=(*finished.shown, Text(f"\n{said}")))
