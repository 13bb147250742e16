"""The input line: a text of several lines with history, folded pastes and attached images."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from bradawl.app.tui.terminal import Submission
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

_FOLDED_LINES: Final = 5
_FOLDED_CHARACTERS: Final = 800
"""A paste with more of either is folded."""
_MARK: Final = re.compile(r"\[(?P<kind>Pasted text|Image) #(?P<number>\d+)[^\]\n]*\]")
_UNFOLDED_CHARACTERS: Final = 100_000
"""A longer text would make each key slow."""
_HISTORY_CHARACTERS: Final = 20_000


class Editor:
    """The text that the user edits."""

    def __init__(self, history: "History", completer: "Completer | None", *, when_changed: Callable[[], None]) -> None:
        self.buffer = Buffer(
            history=history,
            completer=completer,
            complete_while_typing=True,
            multiline=True,
            tempfile_suffix=".md",
            on_text_changed=lambda _: when_changed(),
            enable_history_search=False,
        )
        self._pasted: dict[int, str] = {}
        self._images: dict[int, str] = {}

    @property
    def text(self) -> str:
        """The text as it is on the screen."""
        return self.buffer.text

    def set_text(self, text: str) -> None:
        """Replace the text; the cursor is at its end."""
        self.buffer.set_document(Document(text, len(text)), bypass_readonly=True)

    def insert(self, text: str) -> None:
        """Insert at the cursor."""
        self.buffer.insert_text(text)

    def paste(self, data: str) -> None:
        """Insert pasted text; a long one as a mark, and the path of an image as an attachment."""
        text = clean(data.replace("\r\n", "\n").replace("\r", "\n")).replace("\x1b", "")
        if path := image_path(text):
            self.attach_image(path)
        elif text.count("\n") >= _FOLDED_LINES or len(text) > _FOLDED_CHARACTERS:
            number = self._next_number()
            self._pasted[number] = text
            lines = text.count("\n") + (not text.endswith("\n"))
            size = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
            self.insert(f"[Pasted text #{number} · {size}]")
        else:
            self.insert(text)

    def attach_image(self, path: str) -> None:
        """Attach an image file to what is sent next."""
        number = self._next_number()
        self._images[number] = path
        self.insert(f"[Image #{number} {Path(path).name}] ")

    def _next_number(self) -> int:
        return max((*self._pasted, *self._images), default=0) + 1

    def unfold(self) -> bool:
        """Replace the mark of the paste at the cursor by its text; false if there is none, or if it is very long."""
        for found in _MARK.finditer(self.text):
            number = int(found["number"])
            pasted = self._pasted.get(number, "") if found["kind"] == "Pasted text" else ""
            if found.start() <= self.buffer.cursor_position <= found.end() and 0 < len(pasted) <= _UNFOLDED_CHARACTERS:
                text, place = self.text, found.start() + len(pasted)
                self.buffer.save_to_undo_stack()
                unfolded = text[: found.start()] + pasted + text[found.end() :]
                self.buffer.set_document(Document(unfolded, place), bypass_readonly=True)
                return True
        return False

    def delete_mark_before_cursor(self) -> bool:
        """Remove a whole mark whose end is at the cursor; false if there is none."""
        before = self.buffer.document.text_before_cursor
        found = next((each for each in _MARK.finditer(before) if each.end() == len(before)), None)
        if found is None:
            return False
        self.buffer.delete_before_cursor(len(found[0]))
        return True

    def set_aside(self) -> tuple[Document, dict[int, str], dict[int, str]]:
        """The text with its pastes and images, for `restore`; another text can be edited meanwhile."""
        aside = (self.buffer.document, dict(self._pasted), dict(self._images))
        self.clear()
        return aside

    def restore(self, aside: tuple[Document, dict[int, str], dict[int, str]]) -> None:
        """Bring back what was set aside."""
        document, self._pasted, self._images = aside
        self.buffer.set_document(document, bypass_readonly=True)

    def take(self, *, is_remembered: bool = True) -> Submission:
        """The text with what was pasted and attached; the editor is empty afterwards.

        The history has it, unless not `is_remembered`.
        """
        shown = self.text
        numbers = [int(found["number"]) for found in _MARK.finditer(shown) if found["kind"] == "Image"]
        images = tuple(self._images[number] for number in numbers if number in self._images)
        text = self._expanded(shown)
        if is_remembered:
            self.remember(text if len(text) <= _HISTORY_CHARACTERS else shown)
        self.clear()
        return Submission(text, shown, images)

    def remember(self, text: str) -> None:
        """Add a text to the history."""
        if text.strip():
            self.buffer.history.append_string(text)

    def clear(self) -> None:
        """Remove the text, the pastes and the images."""
        self.buffer.reset()
        self._pasted.clear()
        self._images.clear()

    def _expanded(self, shown: str) -> str:
        def text_of(found: re.Match[str]) -> str:
            pasted = self._pasted.get(int(found["number"])) if found["kind"] == "Pasted text" else None
            return found[0] if pasted is None else pasted

        return _MARK.sub(text_of, shown).encode("utf-8", "replace").decode()


def image_path(text: str) -> str:
    """The image file that a pasted text names, as a terminal pastes a file that is dragged on it; else empty."""
    path = text.strip()
    if "\n" in path or not path.lower().rstrip("'\"").endswith((".png", ".jpg", ".jpeg", ".gif", ".webp")):
        return ""
    path = path.strip("'\"").removeprefix("file://").replace("\\ ", " ")
    path = os.path.expanduser(path)  # noqa: PTH111 - a text, not yet a path
    return path if os.path.isabs(path) and Path(path).is_file() else ""  # noqa: PTH117 - a text


def open_history(path: Path) -> "History":
    """The history in a file that only its owner can read; in memory if that is not possible."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class PrivateHistory(FileHistory):
        def load_history_strings(self) -> Iterable[str]:
            try:
                return list(super().load_history_strings())
            except OSError:
                return []

        def store_string(self, string: str) -> None:
            try:
                super().store_string(string.encode("utf-8", "replace").decode())
            except OSError:
                return  # a full disk must not lose the prompt

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return PrivateHistory(str(path))
