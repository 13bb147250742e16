"""The calls of a turn that were denied a permission."""

from bradawl.core.messages import ToolCall


class Denials:
    """Calls that no user was there to allow, and commands that were refused a connection; each once, in order."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.lack_user = False
        """Whether one of them was denied because no user was there, so that the turn ends as refused."""

    def add(self, call: ToolCall, *, lacks_user: bool) -> None:
        """Add a call; one that is denied several connections counts once."""
        if call not in self.calls:
            self.calls.append(call)
        self.lack_user = self.lack_user or lacks_user

    def extend(self, other: "Denials") -> None:
        """Add the calls of a sub-agent."""
        self.calls.extend(other.calls)
        self.lack_user = self.lack_user or other.lack_user

    def clear(self) -> None:
        """Begin a new turn."""
        self.calls.clear()
        self.lack_user = False
