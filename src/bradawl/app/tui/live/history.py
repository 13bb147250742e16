"""The history of the input line, in a file that only its owner can read."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

_ENTRY_CHARACTERS: Final = 4_000
"""Of one entry in the file."""
_LOADED_CHARACTERS: Final = 100_000
"""Of one entry that an earlier version stored whole; a longer text would make each key slow."""
_NUMBER: Final = re.compile(r"\[(Pasted text|Image) #\d{1,9}([^\]\n]*)\]")
"""A mark, whose number means nothing to a later program."""


class PrivateHistory(FileHistory):
    """A history whose entries in the file are short; those of this program are whole. A full disk is no error."""

    def __init__(self, filename: str) -> None:
        super().__init__(filename)
        self._whole: dict[str, str] = {}
        """What stands in the file for an entry that is added."""

    def load_history_strings(self) -> Iterable[str]:
        """See `History`."""
        try:
            entries = list(super().load_history_strings())
        except OSError:
            return []
        return [_stored(each) if len(each) > _LOADED_CHARACTERS else each for each in entries]

    def store_string(self, string: str) -> None:
        """See `History`."""
        try:
            super().store_string(self._whole.get(string, _stored(string)).encode("utf-8", "replace").decode())
        except OSError:
            return  # it must not lose the prompt

    def remember(self, shown: str, whole: str) -> None:
        """Add an entry, which is whole in the file if it is short."""
        if len(whole) <= _ENTRY_CHARACTERS:
            self._whole = {shown: whole}
        self.append_string(shown)
        self._whole = {}


def remember(history: History, shown: str, whole: str) -> None:
    """Add a text to a history, unless it is the latest entry already: as it was shown, and with its pastes."""
    if shown in history.get_strings()[-1:]:
        return
    if isinstance(history, PrivateHistory):
        history.remember(shown, whole)
    else:
        history.append_string(shown)


def _stored(text: str) -> str:
    text = _NUMBER.sub(r"[\1\2, not kept in the history]", text)
    if len(text) <= _ENTRY_CHARACTERS:
        return text
    return f"{text[:_ENTRY_CHARACTERS]}\n[... {len(text) - _ENTRY_CHARACTERS:,} characters not kept in the history]"


def open_history(path: Path) -> History:
    """The history in a file; in memory if that is not possible."""
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
