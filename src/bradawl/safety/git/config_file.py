"""Parses git's configuration files exactly as git does, or rejects them."""

import re
from typing import Final, NamedTuple

_VERIFIES_SIGNATURES: Final = re.compile(r"%[-+ ]?G|signature")


def verifies_signatures(form: str) -> bool:
    """Whether a format or a sort key makes git start gpg."""
    return bool(_VERIFIES_SIGNATURES.search(form))


class Entry(NamedTuple):
    """One setting."""

    name: str
    """`section.key` or `section.subsection.key`; section and key in lower case."""
    value: str | None
    """Without quotes, escapes and comment. None for a key without `=`, which means true."""


_SKIPPED: Final = re.compile(r"(?:[ \t\n]+|[#;][^\n]*)*")
_SECTION: Final = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_VALUE_PART: Final = re.compile(
    r'(?P<text>[^\\"\n;#\t ]+)|(?P<blank>[\t ]+)|\\(?P<escape>[\ntbn\\"])|(?P<other>["\n;#])'
)
_ESCAPED: Final = {"\n": "", "t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}


class PlacedEntry(NamedTuple):
    """One setting, and where it is."""

    entry: Entry
    start: int
    """Index of the first character of the key."""
    end: int
    """Index of the line feed that ends the last line of the value."""


def parse(text: str) -> list[Entry] | None:
    """The settings in the order of the file; None for a file that git rejects.

    Also None for some files that git accepts: with NUL, a carriage return within a line, a key before the first
    section, or two section headers on one line.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if "\0" in text or "\r" in text:
        return None
    placed = _Reader(text).entries()
    return None if placed is None else [each.entry for each in placed]


def parse_with_places(text: str) -> list[PlacedEntry] | None:
    """As `parse`, with the place of each setting in `text`. Also None for a text with a carriage return or with a byte
    order mark, where places would be others, and for one without a line feed at its end.
    """
    if "\0" in text or "\r" in text or text.startswith("\ufeff") or not text.endswith("\n"):
        return None
    return _Reader(text).entries()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text if text.endswith("\n") else text + "\n"
        self._at = 0

    def entries(self) -> list[PlacedEntry] | None:
        section, header_line = "", -2
        found: list[PlacedEntry] = []
        while self._skip_to_word():
            if self._text[self._at] == "[":
                match = _SECTION.match(self._text, self._at)
                line = self._text.rfind("\n", 0, self._at)
                if match is None or line == header_line:
                    return None
                header_line, section = line, _section_name(match)
                self._at = match.end()
                continue
            match = _KEY.match(self._text, self._at)
            if match is None or not section:
                return None
            self._at = match.end()
            is_fine, value = self._value()
            if not is_fine:
                return None
            found.append(PlacedEntry(Entry(f"{section}.{match[1].lower()}", value), match.start(), self._at))
        return found

    def _skip_to_word(self) -> bool:
        """Move to the next character that is neither blank nor comment. False at the end."""
        match = _SKIPPED.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._at < len(self._text)

    def _value(self) -> tuple[bool, str | None]:
        """Whether the text behind a key is well-formed, and the value."""
        if self._text[self._at] == "\n":
            return True, None
        if self._text[self._at] != "=":
            return False, None
        self._at += 1
        return self._after_equals()

    def _after_equals(self) -> tuple[bool, str | None]:
        value, blanks, is_quoted = "", "", False
        while match := _VALUE_PART.match(self._text, self._at):
            self._at = match.end()
            kind, part = match.lastgroup, match[0]
            if kind == "blank" and not is_quoted:
                blanks += part if value else ""
                continue
            if part == "\n" or (part in ("#", ";") and not is_quoted):
                if is_quoted:
                    return False, None
                self._at = self._text.index("\n", match.start())
                return True, value
            value, blanks = value + blanks, ""
            if part == '"':
                is_quoted = not is_quoted
            else:
                value += _ESCAPED[match["escape"]] if kind == "escape" else part
        return False, None


def _section_name(match: re.Match[str]) -> str:
    subsection = "" if match[2] is None else "." + re.sub(r"\\(.)", r"\1", match[2])
    return match[1].lower() + subsection
