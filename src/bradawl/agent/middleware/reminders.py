"""Notes the model gets before a step: a change of plan mode, open todos it has not updated, and its last step."""

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.core.events import Event, HeadMoved, Todo
from bradawl.shaping.reminder_notes import LAST_STEP, TODO_TOOL, mode_text, takes_it_for_plan, todos_text

REMIND_AFTER = 6
"""Replies without an update of open todos before the model is reminded of them."""


class Reminders(Middleware):
    """Queues the notes that are due before a step."""

    def __init__(self, context: MiddlewareContext, last_step: int | None = None) -> None:
        """`last_step`: number of the reply of a turn before which the model is asked for its conclusion."""
        self._conversation, self._prefix, self._policy = context.conversation, context.prefix, context.policy
        self._last_step = last_step
        self._todos: tuple[Todo, ...] | None = None
        self._since = 0
        """Number of replies when the todos were last written or recalled."""
        self._compactions = 0
        """Number of compactions when the todos were last checked."""
        self._has_begun = False
        self._knows: bool | None = None
        """Whether the model believes that plan mode is on; None before the transcript has been read."""
        context.conversation.listen(self._follow)

    async def before_step(self) -> Finish | None:
        """Queue the notes that are due."""
        conversation, state = self._conversation, self._conversation.state
        self._check_mode()
        if self._is_due():
            conversation.note(todos_text(state.todos))
            self._since = state.replies
        if conversation.turn_state.replies + 1 == self._last_step:
            conversation.note(LAST_STEP)
        return None

    def _follow(self, event: Event) -> None:
        if isinstance(event, HeadMoved):
            self._knows = None

    def _check_mode(self) -> None:
        conversation = self._conversation
        state, transcript = conversation.state, conversation.transcript
        # A policy that comes from the settings may wait for the sandbox, which the first request must not wait for.
        if state.mode is None and not state.replies and not conversation.is_sub_agent:
            return
        if self._knows is None or self._compactions != transcript.compactions:
            self._knows = takes_it_for_plan(transcript.messages)
        is_plan = self._policy().mode == "plan"
        if not self._has_begun:  # a session that is continued in plan mode is told so again
            self._has_begun, self._knows = True, self._knows and not is_plan
        if is_plan != self._knows:
            self._knows = is_plan
            conversation.note(mode_text(is_plan=is_plan, tools=self._prefix.tools), "mode")

    def _is_due(self) -> bool:
        state = self._conversation.state
        if state.todos is not self._todos:
            self._todos, self._since = state.todos, state.replies
        if TODO_TOOL not in self._prefix.tools or all(todo.status == "completed" for todo in state.todos):
            return False
        return state.replies - self._since >= REMIND_AFTER
