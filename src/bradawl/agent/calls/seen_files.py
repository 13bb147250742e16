"""Which files the model has seen, with which content, and which results with that content it can still see."""

from collections.abc import Callable, Mapping
from typing import Self

from bradawl.agent.conversation import Conversation
from bradawl.core.events import Compacted, Event, FileSeen, HeadMoved, PrefixOpened, ReplyWithdrawn, State, StateChanged
from bradawl.core.workspace import FileContent

_REMEMBERED_BYTES = 32_000_000
_LARGEST_REMEMBERED = 8_000_000


class SeenFiles:
    """`FilesSeen` of one session. Hashes are kept in the log; contents in memory, up to 32 MB, the newest ones."""

    def __init__(self, known: Mapping[str, str], change: Callable[[State], object]) -> None:
        """`known` maps paths to sha256 and follows the log; `change` logs a new hash."""
        self._known = known
        self._change = change
        self._contents: dict[str, FileContent] = {}
        self._size = 0
        self._shown: set[tuple[str, str, str]] = set()

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        """The seen files of a conversation; they follow its log."""
        seen = cls(conversation.state.files_seen, lambda change: conversation.record(StateChanged(change)))
        conversation.listen(seen.follow)
        return seen

    def sha256(self, path: str) -> str | None:
        """Hash of the content the model last saw; None for a file it has not seen."""
        return self._known.get(path)

    def data(self, path: str) -> bytes | None:
        """The content the model last saw; None if it is no longer in memory."""
        content = self._contents.get(path)
        return content.data if content is not None and content.sha256 == self._known.get(path) else None

    def saw(self, content: FileContent, part: str = "") -> None:
        """Note that the model sees this content, or the named part of it."""
        if self._known.get(content.path) != content.sha256:
            self._change(FileSeen(content.path, content.sha256))
        if part:
            self._shown.add((content.path, content.sha256, part))
        self._remember(content)

    def shows(self, content: FileContent, part: str) -> bool:
        """True if an earlier result with the same part of the same content is still in the conversation."""
        return (content.path, content.sha256, part) in self._shown

    def follow(self, event: Event) -> None:
        """A listener of recorded events: forget earlier results when the conversation may no longer hold them."""
        if isinstance(event, PrefixOpened | ReplyWithdrawn | Compacted | HeadMoved):
            self._shown.clear()

    def _remember(self, content: FileContent) -> None:
        before = self._contents.pop(content.path, None)
        self._size -= len(before.data) if before is not None else 0
        if len(content.data) > _LARGEST_REMEMBERED:
            return
        self._contents[content.path] = content
        self._size += len(content.data)
        while self._size > _REMEMBERED_BYTES:
            oldest = self._contents.pop(next(iter(self._contents)))
            self._size -= len(oldest.data)
