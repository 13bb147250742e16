"""Which contents of files the model has seen, and which of its results with them it can still read."""

from collections.abc import Callable, Mapping
from typing import Self

from bradawl.agent.conversation import Conversation
from bradawl.core.events import FileSeen, State, StateChanged
from bradawl.core.workspace import FileContent
from bradawl.folds.session_state import FileShown

_REMEMBERED_BYTES = 32_000_000
_LARGEST_REMEMBERED = 8_000_000


class SeenFiles:
    """`FilesSeen` of one session, as a view of its log. Contents are kept in memory, up to 32 MB, the newest ones."""

    def __init__(
        self,
        known: Mapping[str, str],
        change: Callable[[State], object],
        shown: Mapping[str, FileShown] | None = None,
    ) -> None:
        """`known` maps paths to the sha256 seen last, `shown` to all that was seen. `change` adds to the log."""
        self._known = known
        self._shown: Mapping[str, FileShown] = {} if shown is None else shown
        self._change = change
        self._contents: dict[str, bytes] = {}
        self._size = 0

    @classmethod
    def of(cls, conversation: Conversation) -> Self:
        """The seen files of a conversation; they follow its log."""
        state = conversation.state
        return cls(state.files_seen, lambda change: conversation.record(StateChanged(change)), state.files_shown)

    def sha256(self, path: str) -> str | None:
        """Hash of the content the model last saw; None for a file it has not seen."""
        return self._known.get(path)

    def data(self, path: str) -> bytes | None:
        """The content the model last saw; None if it is no longer in memory."""
        return self._contents.get(self._known.get(path, ""))

    def saw(self, content: FileContent, part: str = "") -> None:
        """Record that the model sees this content, or the named part of it."""
        is_last = self._known.get(content.path) == content.sha256
        if not is_last or part not in self.parts(content, held=bool(part)):
            self._change(FileSeen(content.path, content.sha256, part))
        self._remember(content)

    def parts(self, content: FileContent, *, held: bool = False) -> frozenset[str]:
        """Names of the parts of this content that the model has seen at any time, "" for all of it.

        With `held` only those of the content it saw last that an earlier result of the conversation still shows.
        """
        is_last = self._known.get(content.path) == content.sha256
        shown = self._shown.get(content.path, FileShown())
        if held:
            return shown.parts if is_last else frozenset()
        found = frozenset(part for sha256, part in shown.contents if sha256 == content.sha256)
        return found or frozenset([""] if is_last else [])

    def _remember(self, content: FileContent) -> None:
        before = self._contents.pop(content.sha256, b"")
        self._size -= len(before)
        if len(content.data) > _LARGEST_REMEMBERED:
            return
        self._contents[content.sha256] = content.data
        self._size += len(content.data)
        while self._size > _REMEMBERED_BYTES:
            self._size -= len(self._contents.pop(next(iter(self._contents))))
