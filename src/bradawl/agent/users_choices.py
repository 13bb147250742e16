"""The user's choices for a session: recorded at once, or with the first entry of a log that has none."""

from bradawl.agent.conversation import Conversation
from bradawl.core.events import DirsAdded, RulesAdded, State, StateChanged
from bradawl.folds.choices import Choices, choose


class UsersChoices:
    """Model, effort, name and added folders of one session."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._waiting: list[State] = []
        """Those made before the log has its first event."""

    @property
    def now(self) -> Choices:
        """All choices up to now."""
        choices = self._conversation.state.choices
        for state in self._waiting:
            choices = choose(choices, StateChanged(state))
        return choices

    def record(self, state: State) -> None:
        """Log a choice; in a session that has not begun it is logged when it does."""
        if self._conversation.last_event is None:  # `SessionOpened` must be the first event of a log
            added_up = isinstance(state, RulesAdded | DirsAdded)
            self._waiting = [each for each in self._waiting if added_up or type(each) is not type(state)] + [state]
        else:
            self._conversation.record(StateChanged(state))

    def record_waiting(self) -> None:
        """Log the choices that were made before the log began."""
        waiting, self._waiting = self._waiting, []
        for state in waiting:
            self._conversation.record(StateChanged(state))
