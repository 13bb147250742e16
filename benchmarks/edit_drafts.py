"""Correct edits of generated files, from which `edit_cases` makes those with mistakes."""

import random
import re

import msgspec
from edit_sources import LANGUAGES, Words


class Draft(msgspec.Struct):
    """A correct edit: lines `first` to `last` of `lines` become `new`."""

    words: Words
    language: str
    lines: list[str]
    first: int
    last: int
    new: list[str]

    @property
    def old(self) -> list[str]:
        """The lines to replace."""
        return self.lines[self.first : self.last]

    def text(self, lines: list[str] | None = None) -> str:
        """The file before the edit, or after it with the changed lines."""
        middle = self.old if lines is None else lines
        return "\n".join([*self.lines[: self.first], *middle, *self.lines[self.last :], ""])


def draft_of(draw: random.Random) -> Draft:
    """A file, and an edit of one to eight lines that occur once in it."""
    words = Words(draw)
    language = draw.choice(list(LANGUAGES))
    lines = LANGUAGES[language](words)
    for _ in range(200):
        first = draw.randrange(len(lines))
        last = min(first + draw.choice((1, 2, 2, 3, 3, 4, 5, 8)), len(lines))
        draft = Draft(words, language, lines, first, last, [])
        if is_good(draft):
            draft.new = edited(draft)
            if draft.new != draft.old:
                return draft
    return draft_of(draw)


def is_good(draft: Draft) -> bool:
    """Whether the old lines occur once, and are more than punctuation."""
    old = draft.old
    if not old[0].strip() or not old[-1].strip() or sum(map(str.isalnum, "".join(old))) < 8:
        return False
    bare = [line.strip() for line in draft.lines]
    wanted = [line.strip() for line in old]
    return sum(bare[place : place + len(old)] == wanted for place in range(len(bare))) == 1


def edited(draft: Draft) -> list[str]:
    """The old lines with one or two changes."""
    new = list(draft.old)
    for _ in range(draft.words.draw.choice((1, 1, 2))):
        draft.words.draw.choice((other_word, other_word, added_line, left_out, _wrapped))(draft, new)
    return new


def other_word(draft: Draft, new: list[str]) -> None:
    """Replace one word or number in one of the lines."""
    place = draft.words.draw.randrange(len(new))
    found = list(re.finditer(r"[A-Za-z]{4,}|\d{2,}", new[place]))
    if found:
        match = draft.words.draw.choice(found)
        other = str(draft.words.number()) if match[0].isdigit() else draft.words.name()
        new[place] = new[place][: match.start()] + other + new[place][match.end() :]


def added_line(draft: Draft, new: list[str]) -> None:
    """Add a line beside one of the lines."""
    place = draft.words.draw.randrange(len(new))
    if not new[place].strip():
        return
    indent = new[place][: len(new[place]) - len(new[place].lstrip())]
    line = {
        "python": f"{draft.words.name()}({draft.words.number()})",
        "javascript": f"{draft.words.name()}({draft.words.number()});",
        "go": f"{draft.words.name()}({draft.words.number()})",
        "markdown": f"{draft.words.name()} {draft.words.number()}",
        "yaml": f"{draft.words.name()}: {draft.words.number()}",
        "makefile": f"{draft.words.name()} {draft.words.number()}",
    }[draft.language]
    new.insert(place + draft.words.draw.randrange(2), indent + line)


def left_out(draft: Draft, new: list[str]) -> None:
    """Remove one of the lines but the first."""
    if len(new) > 1:
        place = draft.words.draw.randrange(1, len(new))
        if new[place].strip():
            del new[place]


def _wrapped(draft: Draft, new: list[str]) -> None:
    """The lines indented one level deeper below a new line."""
    if draft.language not in {"python", "javascript", "go"}:
        return
    unit = {"python": "    ", "javascript": "  ", "go": "\t"}[draft.language]
    margin = min((line[: len(line) - len(line.lstrip())] for line in new if line.strip()), key=len)
    head = {"python": "if enabled:", "javascript": "if (enabled) {", "go": "if enabled {"}[draft.language]
    body = [unit + line if line.strip() else line for line in new]
    tail = [] if draft.language == "python" else [margin + "}"]
    new[:] = [margin + head, *body, *tail]
