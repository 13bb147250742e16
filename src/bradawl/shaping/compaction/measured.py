"""Messages with their sizes, as a compaction looks at them."""

from collections.abc import Iterable

from bradawl.core.messages import Message
from bradawl.shaping.context_size import MessageSizes


class Measured:
    """Messages, and the estimated tokens of each."""

    def __init__(self, messages: Iterable[Message], known: MessageSizes) -> None:
        self.messages = list(messages)
        self.sizes = [known.of(message) for message in self.messages]
        self._known = known

    @property
    def total(self) -> int:
        """Tokens of all messages."""
        return sum(self.sizes)

    def since(self, begin: int) -> int:
        """Tokens of the messages from number `begin` on."""
        return sum(self.sizes[begin:])

    def of(self, messages: Iterable[Message]) -> int:
        """Tokens of other messages, many of which may be the same objects."""
        return self._known.total(messages)
