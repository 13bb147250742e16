"""The input line: a text of several lines with history, folded pastes and attached images."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completion
from prompt_toolkit.document import Document

from bradawl.app.attached_names import PastedNames
from bradawl.app.submission import Submission
from bradawl.app.tui.live.history import remember
from bradawl.app.tui.live.input import LONGEST_PASTE
from bradawl.safety.control_characters import clean

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

_FOLDED_LINES: Final = 5
_FOLDED_CHARACTERS: Final = 800
"""A paste with more of either is folded."""
_MARK: Final = re.compile(r"\[(?P<kind>Pasted text|Image) #(?P<number>\d{1,9})[^\]\n]*\]")
_UNFOLDED_CHARACTERS: Final = 100_000
"""A longer text would make each key slow."""
_KEPT_CHARACTERS: Final = 5 * LONGEST_PASTE
"""Of all pastes, for texts that are taken back or recalled from the history."""


class Editor:
    """The text that the user edits."""

    def __init__(self, history: "History", completer: "Completer | None", *, when_changed: Callable[[], None]) -> None:
        self._pasted_names = PastedNames()
        self.buffer = _Buffer(
            self._pasted_names.confirm,
            history=history,
            completer=completer,
            complete_while_typing=completer is not None,
            multiline=True,
            tempfile_suffix=".md",
            on_text_changed=lambda _: when_changed(),
            enable_history_search=False,
        )
        self._pasted: dict[int, str] = {}
        self._images: dict[int, str] = {}
        self._latest = 0
        """Pastes and images are numbered through, so that a mark has one meaning."""

    @property
    def text(self) -> str:
        """The text as it is on the screen."""
        return self.buffer.text

    def set_text(self, text: str) -> None:
        """Replace the text; the cursor is at its end. What was pasted and sent is folded again."""
        text = self._folded(text)
        self.buffer.set_document(Document(text, len(text)), bypass_readonly=True)

    def take_edited(self, text: str) -> None:
        """Replace the text by what another program made of it."""
        self.set_text(clean(text.replace("\r\n", "\n")))

    def insert(self, text: str) -> None:
        """Insert at the cursor."""
        self.buffer.insert_text(text)

    def type(self, text: str) -> None:
        """Insert what was typed with keys."""
        if text == "@":
            self._pasted_names.keep_those_in(self.text)
        self.insert(text)

    def paste(self, data: str) -> str:
        """Insert pasted text; a long one as a mark, and the path of an image as an attachment.

        Returns why it was not inserted; empty if it was.
        """
        if len(data) > LONGEST_PASTE:
            return (
                f"The pasted text is not inserted: it has more than {LONGEST_PASTE:,} characters."
                " Save it in a file, and name the file."
            )
        text = clean(data.replace("\r\n", "\n").replace("\r", "\n")).replace("\x1b", "")
        if path := image_path(text):
            self.attach_image(path)
        elif text.count("\n") >= _FOLDED_LINES or len(text) > _FOLDED_CHARACTERS:
            self.insert(self._fold(text))
        else:
            self._pasted_names.add(text)
            self.insert(text)
        return ""

    def _fold(self, text: str) -> str:
        """The mark that stands for a text from now on."""
        number = self._next_number()
        self._pasted[number] = text
        self._forget_old(number)
        return _mark_of(number, text)

    def _forget_old(self, latest: int) -> None:
        used = {int(found["number"]) for found in _MARK.finditer(self.text)} | {latest}
        surplus = sum(map(len, self._pasted.values())) - _KEPT_CHARACTERS
        for number in [each for each in self._pasted if each not in used]:
            if surplus <= 0:
                return
            surplus -= len(self._pasted.pop(number))

    def attach_image(self, path: str) -> None:
        """Attach an image file to what is sent next."""
        number = self._next_number()
        self._images[number] = path
        name = clean(Path(path).name).replace("]", ")").replace("\n", " ")
        self._pasted_names.add(name)
        self.insert(f"[Image #{number} {name}] ")

    def _next_number(self) -> int:
        self._latest += 1
        return self._latest

    def unfold(self) -> bool:
        """Replace the mark of the paste at the cursor by its text; false if there is none, or if it is very long."""
        for found in _MARK.finditer(self.text):
            number = int(found["number"])
            pasted = self._pasted.get(number, "") if found["kind"] == "Pasted text" else ""
            if found.start() <= self.buffer.cursor_position <= found.end() and 0 < len(pasted) <= _UNFOLDED_CHARACTERS:
                text, place = self.text, found.start() + len(pasted)
                self._pasted_names.add(pasted)
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

    def set_aside(self) -> Document:
        """The text, for `restore`; another text can be edited meanwhile."""
        aside = self.buffer.document
        self.clear()
        return aside

    def restore(self, aside: Document) -> None:
        """Bring back what was set aside."""
        self.buffer.set_document(aside, bypass_readonly=True)

    def take(self, *, is_remembered: bool = True) -> Submission:
        """The text with what was pasted and attached; the editor is empty afterwards.

        The history has it, unless not `is_remembered`.
        """
        shown = self.text
        numbers = [int(found["number"]) for found in _MARK.finditer(shown) if found["kind"] == "Image"]
        images = tuple(self._images[number] for number in numbers if number in self._images)
        text = self._expanded(shown)
        if is_remembered and shown.strip():
            remember(self.buffer.history, shown, text)
        self.clear()
        return Submission(text, shown, images, self._pasted_names.names)

    def clear(self) -> None:
        """Remove the text. Pastes and images are kept, in case it is taken back or recalled."""
        self.buffer.reset()

    def _expanded(self, shown: str) -> str:
        def text_of(found: re.Match[str]) -> str:
            number = int(found["number"])
            if found["kind"] != "Pasted text" or not 0 < number <= self._latest:
                return found[0]
            return self._pasted.get(number, f"{found[0]} (its text is not kept any more)")

        return _MARK.sub(text_of, shown).encode("utf-8", "replace").decode()

    def _folded(self, text: str) -> str:
        """A text whose pastes are marks again; what is still too long for the input line is a paste of its own."""
        if len(text) <= _FOLDED_CHARACTERS and text.count("\n") < _FOLDED_LINES:
            return text
        for number, pasted in self._pasted.items():
            if pasted in text:
                text = text.replace(pasted, _mark_of(number, pasted))
        return self._fold(text) if len(text) > _UNFOLDED_CHARACTERS else text


class _Buffer(Buffer):
    """A buffer that tells which completions the user took."""

    def __init__(self, taken: Callable[[str], None], **options: object) -> None:
        super().__init__(**options)  # pyright: ignore[reportArgumentType] - passed on as they are
        self._taken = taken

    def go_to_completion(self, index: int | None) -> None:
        super().go_to_completion(index)
        if self.complete_state is not None and (chosen := self.complete_state.current_completion) is not None:
            self._taken(chosen.text)

    def apply_completion(self, completion: Completion) -> None:
        super().apply_completion(completion)
        self._taken(completion.text)


def _mark_of(number: int, text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    size = f"{lines} lines" if lines > 1 else f"{len(text):,} characters"
    return f"[Pasted text #{number} · {size}]"


def image_path(text: str) -> str:
    """The image file that a pasted text names, as a terminal pastes a file that is dragged on it; else empty."""
    path = text.strip()
    if "\n" in path or not path.lower().rstrip("'\"").endswith((".png", ".jpg", ".jpeg", ".gif", ".webp")):
        return ""
    path = path.strip("'\"").removeprefix("file://").replace("\\ ", " ")
    path = os.path.expanduser(path)  # noqa: PTH111 - a text, not yet a path
    return path if os.path.isabs(path) and Path(path).is_file() else ""  # noqa: PTH117 - a text
