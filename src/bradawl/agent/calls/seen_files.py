"""What the model has seen of files, and what of it the conversation still holds."""

from collections.abc import Callable, Mapping

from bradawl.core.events import FileSeen, State
from bradawl.core.workspace import FileContent

_REMEMBERED_BYTES = 32_000_000
_LARGEST_REMEMBERED = 8_000_000


class SeenFiles:
    """`FilesSeen` over the log: hashes are kept there, contents only in memory, the oldest forgotten first."""

    def __init__(self, known: Mapping[str, str], change: Callable[[State], object]) -> None:
        """`known` is the living fold of path to sha256; `change` logs what is new."""
        self._known = known
        self._change = change
        self._contents: dict[str, FileContent] = {}
        self._size = 0
        self._shown: set[tuple[str, str, str]] = set()

    def sha256(self, path: str) -> str | None:
        """Of the content last seen; None for a file that has not been."""
        return self._known.get(path)

    def data(self, path: str) -> bytes | None:
        """That content, as long as it is remembered."""
        content = self._contents.get(path)
        return content.data if content is not None and content.sha256 == self._known.get(path) else None

    def saw(self, content: FileContent, part: str = "") -> None:
        """Log what is new, and remember the content."""
        if self._known.get(content.path) != content.sha256:
            self._change(FileSeen(content.path, content.sha256))
        if part:
            self._shown.add((content.path, content.sha256, part))
        self._remember(content)

    def shows(self, content: FileContent, part: str) -> bool:
        """True when the same part of the same content stands in the conversation."""
        return (content.path, content.sha256, part) in self._shown

    def forget_answers(self) -> None:
        """The conversation may hold earlier answers no longer."""
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
