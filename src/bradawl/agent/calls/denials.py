"""The calls of a turn that were denied a permission."""

from bradawl.agent.conversation import Conversation
from bradawl.core.messages import ToolCall
from bradawl.folds.attempts import Attempts


class Denials:
    """Calls that no user was there to allow, and commands that were refused a connection; each once, in order."""

    def __init__(self, conversation: Conversation) -> None:
        """The events of the conversation decide whether the model gave up."""
        self.calls: list[ToolCall] = []
        self.attempts = Attempts()
        conversation.listen(self.attempts.take)

    @property
    def end_the_turn(self) -> bool:
        """Whether a turn that ends now ends as refused: the model gave up on calls that no user was there to allow."""
        return self.attempts.gave_up

    def add(self, call: ToolCall) -> None:
        """Add a call; one that is denied several connections counts once."""
        if call not in self.calls:
            self.calls.append(call)

    def add_sub_agent(self, call_id: str, other: "Denials") -> None:
        """Add the calls of the sub-agent that a call started."""
        self.calls.extend(other.calls)
        self.attempts.add_sub_agent(call_id, other.attempts)

    def clear(self) -> None:
        """Begin a new turn."""
        self.calls.clear()
