"""What a model is told again at a step: the mode, the todos it has not looked after, and that its steps run out."""

from typing import TYPE_CHECKING

from bradawl.core.events import ModeChosen, NoteQueued, StateChanged, Todo
from bradawl.core.messages import Note
from bradawl.core.permissions import Mode
from bradawl.shaping.reminder_notes import LAST_STEP, TODO_TOOL, mode_text, takes_it_for_plan, todos_text

if TYPE_CHECKING:
    from bradawl.agent.session import Session

PATIENCE = 6
"""Replies without a word on open todos before they are recalled."""


class Reminders:
    """Of one session; asked before each step."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._todos: tuple[Todo, ...] | None = None
        self._since = 0
        """How many replies there were when the todos were last written or recalled."""
        self._base: str | None = None
        self._chosen: Mode | None = None
        """A mode that waits for the first line of the log."""
        self._knows: bool | None = None
        """Whether the model takes it for plan mode; None as long as nobody has looked."""

    @property
    def mode(self) -> Mode:
        """The permission mode of the next call."""
        return self._chosen or self._session.policy().mode

    def choose_mode(self, mode: Mode) -> None:
        """Between turns: what holds from the next step on. The model is told if it makes a difference to it."""
        if self._session.last_event is None:  # nothing may stand before the first line of a log
            self._chosen = mode
        else:
            self._session.record(StateChanged(ModeChosen(mode)))

    def look(self) -> None:
        """Queue the notes that are due."""
        session = self._session
        self._look_at_mode()
        if self._is_due():
            session.note(todos_text(session.state.todos))
            self._since = session.state.replies
        most = session.agent.limits.max_steps
        # Who has an own limit has somebody who waits for a conclusion; a user can just let the turn go on.
        if session.is_sub_agent and session.state.replies + 1 == most:
            session.note(LAST_STEP)

    def _look_at_mode(self) -> None:
        session = self._session
        if self._chosen is not None:
            session.record(StateChanged(ModeChosen(self._chosen)))
            self._chosen = None
        # What the settings say can take a look at the sandbox, which no first request waits for.
        if session.state.mode is None and not session.state.replies and not session.is_sub_agent:
            return
        if self._knows is None or self._base != session.transcript.base_ref:
            self._knows = takes_it_for_plan(session.transcript.messages)
        is_plan = session.policy().mode == "plan"
        if is_plan != self._knows:
            self._knows = is_plan
            note = Note(session.agent.ids.ulid(), mode_text(is_plan=is_plan, tools=session.tools), "mode")
            session.inbox.put(note)
            session.record(NoteQueued(note))

    def _is_due(self) -> bool:
        state, base = self._session.state, self._session.transcript.base_ref
        was_shortened = self._todos is not None and base != self._base
        if state.todos is not self._todos:
            self._todos, self._since = state.todos, state.replies
        self._base = base
        if TODO_TOOL not in self._session.tools or all(todo.status == "completed" for todo in state.todos):
            return False
        return was_shortened or state.replies - self._since >= PATIENCE
