"""What a model is told again at a step: the todos it has not looked after, and that its steps run out."""

from typing import TYPE_CHECKING

from bradawl.core.events import Todo

if TYPE_CHECKING:
    from bradawl.agent.session import Session

PATIENCE = 6
"""Replies without a word on open todos before they are recalled."""
TODO_TOOL = "todo_write"
LAST_STEP = (
    "This is your last step: calls of this reply are not answered any more. Give your conclusion now, with all you "
    "have found, and say what is missing."
)
_MOST_SHOWN = 30


class Reminders:
    """Of one session; asked before each step."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._todos: tuple[Todo, ...] | None = None
        self._since = 0
        """How many replies there were when the todos were last written or recalled."""
        self._base: str | None = None

    def look(self) -> None:
        """Queue the notes that are due."""
        session = self._session
        if self._is_due():
            session.note(todos_text(session.state.todos))
            self._since = session.state.replies
        most = session.agent.limits.max_steps
        # Who has an own limit has somebody who waits for a conclusion; a user can just let the turn go on.
        if session.is_sub_agent and session.state.replies + 1 == most:
            session.note(LAST_STEP)

    def _is_due(self) -> bool:
        state, base = self._session.state, self._session.transcript.base_ref
        was_shortened = self._todos is not None and base != self._base
        if state.todos is not self._todos:
            self._todos, self._since = state.todos, state.replies
        self._base = base
        if TODO_TOOL not in self._session.tools or all(todo.status == "completed" for todo in state.todos):
            return False
        return was_shortened or state.replies - self._since >= PATIENCE


def todos_text(todos: tuple[Todo, ...]) -> str:
    """The whole list, the beginning of a very long one."""
    lines = [f"[{todo.status}] {todo.content}" for todo in todos[:_MOST_SHOWN]]
    more = [f"... and {len(todos) - _MOST_SHOWN} more"] if len(todos) > _MOST_SHOWN else []
    head = f"Your todos still read as below. If that is no longer so, say it with {TODO_TOOL}; otherwise just go on."
    return "\n".join([head, *lines, *more])
