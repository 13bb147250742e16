"""What the model was told about instruction files, as its system prompt and notes say. Pure functions."""

import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from bradawl.core.messages import Assistant, Message

REMOVED: Final = "removed"
"""The version of a file that is not there any more."""
_DIGITS: Final = 16
_OPENED: Final = (
    r'<(?P<kind>instructions|material) file="(?P<file>[^"\n]*)" version="(?P<version>[0-9a-z]+)"(?P<more>[^>\n]*)>'
)
_BODY: Final = r"\n(.*?)\n</(?:instructions|material)>"


def version_of(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


class Known(NamedTuple):
    """The last that the model was told about a file."""

    version: str
    is_trusted: bool

    @property
    def is_removed(self) -> bool:
        """The model knows that the file is not there any more."""
        return self.version == REMOVED


class Told(NamedTuple):
    """What the model knows."""

    files: dict[str, Known]
    """By path, in the order in which they were first told."""
    texts: dict[str, str]
    """Whole texts by version, to compare with."""


def told_in(texts: Iterable[str]) -> Told:
    """What these texts, the oldest first, tell about files."""
    told = Told({}, {})
    for text in texts:
        for found in re.finditer(_OPENED, text):
            told.files[found["file"]] = Known(found["version"], found["kind"] == "instructions")
            body = None if found["more"].strip() else re.compile(_BODY, re.DOTALL).match(text, found.end())
            if body is not None and version_of(body[1]) == found["version"]:  # a compaction may have shortened it
                told.texts[found["version"]] = body[1]
    return told


def told_to(system: str, messages: Iterable[Message]) -> Told:
    """What the system prompt and the notes of a conversation tell."""
    notes = (
        note.text
        for message in messages
        if not isinstance(message, Assistant)
        for note in message.notes
        if note.source == "instructions"
    )
    return told_in((system, *notes))
