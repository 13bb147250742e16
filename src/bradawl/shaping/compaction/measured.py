"""Messages with their sizes, so that each is estimated once for a compaction."""

from collections.abc import Iterable, Sequence

from bradawl.core.messages import Message
from bradawl.shaping.context_size import message_tokens


class Measured:
    """Messages, and the estimated tokens of each."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self.messages = list(messages)
        self.sizes = [message_tokens(message) for message in self.messages]
        self._known = {id(message): size for message, size in zip(self.messages, self.sizes, strict=True)}

    @property
    def total(self) -> int:
        """Tokens of all messages."""
        return sum(self.sizes)

    def since(self, begin: int) -> int:
        """Tokens of the messages from number `begin` on."""
        return sum(self.sizes[begin:])

    def of(self, messages: Sequence[Message]) -> int:
        """Tokens of other messages, many of which may be the same objects."""
        known = self._known
        return sum(known[id(message)] if id(message) in known else message_tokens(message) for message in messages)
