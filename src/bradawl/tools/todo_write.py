"""The tool `todo_write`: keeps the model's to-do list."""

from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import Todo, TodosSet
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec

_MOST = 100


class TodoWriteParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Write down the plan of a task with several steps. Mark a todo when you begin it and at once when it is done."""

    todos: Annotated[
        list[Todo], msgspec.Meta(description="The whole list; it replaces the last. At most one in_progress.")
    ]


class TodoWrite:
    """The tool `todo_write`."""

    spec: ToolSpec = ToolSpec("todo_write", rule_names=("TodoWrite",), result="state")
    params: type[TodoWriteParams] = TodoWriteParams
    is_listed: bool = True
    """False: calls are answered, but requests do not offer the tool."""

    def effects(self, params: TodoWriteParams, context: CallContext) -> Effects:
        """Changes the to-do list and nothing else."""
        return Effects(session=("todos",))

    async def run(self, params: TodoWriteParams, context: CallContext) -> ToolOutput:
        """Replace the list. Raises `ToolError` for an invalid list; the old one then stays."""
        todos = tuple(Todo(" ".join(todo.content.split()), todo.status) for todo in params.todos)
        _check(todos)
        context.change(TodosSet(todos))
        return ToolOutput((Text(_summary(todos)),))


def _check(todos: tuple[Todo, ...]) -> None:
    if len(todos) > _MOST:
        raise ToolError(f"{len(todos)} todos are too many; keep to {_MOST}, and only to what is worth a mark")
    if empty := [str(number) for number, todo in enumerate(todos, 1) if not todo.content]:
        raise ToolError(f"todo {', '.join(empty)} has no content; say in each what is to be done")
    if len(begun := [repr(todo.content) for todo in todos if todo.status == "in_progress"]) > 1:
        raise ToolError(
            f"{len(begun)} todos are in_progress: {', '.join(begun)}. At most one may be; send the whole list again "
            "with the others pending or completed"
        )


def _summary(todos: tuple[Todo, ...]) -> str:
    if not todos:
        return "The list of todos is empty now."
    done = sum(todo.status == "completed" for todo in todos)
    head = f"{done} of {len(todos)} todos completed"
    if done == len(todos):
        return f"{head}."
    now = next((todo.content for todo in todos if todo.status == "in_progress"), "")
    return f"{head}; in progress: {now}" if now else f"{head}; none is in_progress: mark the one you begin."
