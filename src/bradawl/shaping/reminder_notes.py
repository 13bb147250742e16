"""Texts of the reminders for the model: to-do list and mode."""

from collections.abc import Collection, Sequence

from bradawl.core.events import Todo
from bradawl.core.messages import Assistant, Message

TODO_TOOL = "todo_write"
PLAN_TOOL = "exit_plan"
LAST_STEP = (
    "This is your last step: calls of this reply are not answered any more. Give your conclusion now, with all you "
    "have found, and say what is missing."
)
PLAN = "Plan mode is on: look around, but nothing may change; calls that would change something are refused."
PLAN_ENDED = "Plan mode is over: changes may be made again."
_SHOW_PLAN = f"When you know what is to be done, call {PLAN_TOOL} with the plan, and the user decides."
_TELL_PLAN = "End with what is to be done, where, and how to check it."
_MOST_SHOWN = 30


def mode_text(*, is_plan: bool, tools: Collection[str]) -> str:
    """Note that plan mode begins or has ended; `tools` are the names of the offered tools."""
    if not is_plan:
        return PLAN_ENDED
    return f"{PLAN} {_SHOW_PLAN if PLAN_TOOL in tools else _TELL_PLAN}"


def takes_it_for_plan(messages: Sequence[Message]) -> bool:
    """Whether the last note about the mode in these messages says that plan mode is on."""
    mode_notes = (
        note.text
        for message in reversed(messages)
        if not isinstance(message, Assistant)
        for note in reversed(message.notes)
        if note.source == "mode"
    )
    return next(mode_notes, "").startswith(PLAN)


def todos_text(todos: tuple[Todo, ...]) -> str:
    """Note with the todos: the whole list, or the beginning of a very long one."""
    lines = [f"[{todo.status}] {todo.content}" for todo in todos[:_MOST_SHOWN]]
    more = [f"... and {len(todos) - _MOST_SHOWN} more"] if len(todos) > _MOST_SHOWN else []
    head = f"Your todos still read as below. If that is no longer so, say it with {TODO_TOOL}; otherwise just go on."
    return "\n".join([head, *lines, *more])
