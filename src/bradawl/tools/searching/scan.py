"""Searches files by regular expression: what stands in for ripgrep, run as a program of its own.

A process, because a regular expression can run for ever: it can be ended from outside, and the agent goes on
meanwhile. Arguments: a pattern; `lines`, `multiline`, `count` or `multiline-count`; how many lines around a match to
show; how many lines are of use at most; then absolute paths. Prints
`base64 of the path, NUL, number, NUL, matches it counts for or "-" for a line around one, NUL, text`
for each line to show, or `base64 of the path, NUL, matches` for each file, and last how many matched in all.
It must not import anything of bradawl: it is started with the bare interpreter.
"""

import os
import re
import sys
from binascii import b2a_base64
from bisect import bisect_right
from collections.abc import Iterator

_BAD_PATTERN = 3  # stderr says why
LONGEST_TEXT = 500
"""Characters of a line that are shown."""
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_BOM = b"\xef\xbb\xbf"
_LARGEST_PIECE = 1 << 16
# What may match in a line by itself and not where other lines follow; all else is found in the whole text first.
_NEEDS_LINES = re.compile(r"\(\?(?!:|i\))|\\[AZ]|[+*?}]\+")


# What ripgrep reads in another way: word borders, groups with a name, and classes with one, as `[[:alpha:]_]`.
_BORDERS = {r"\<": r"\b(?=\w)", r"\>": r"\b(?<=\w)"}
_OUTSIDE = re.compile(r"\\.|\(\?<(?![=!])|\[\^?\]?", re.DOTALL)
_INSIDE = re.compile(r"\\.|\[:(\^?\w+):\]|\]", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def _as_python_reads_it(pattern: str) -> str:
    """A pattern that means here what it means to ripgrep. Raises `re.error` for a class there is no word for."""
    out: list[str] = []
    place, is_inside = 0, False
    while match := (_INSIDE if is_inside else _OUTSIDE).search(pattern, place):
        piece = match[0]
        out.append(pattern[place : match.start()])
        if is_inside:
            out.append(piece if match[1] is None else _class(match[1]))
            is_inside = piece != "]"
        else:
            out.append("(?P<" if piece == "(?<" else _BORDERS.get(piece, piece))
            is_inside = piece.startswith("[")
        place = match.end()
    return "".join(out) + pattern[place:]


def _class(name: str) -> str:
    if name not in _CLASSES:
        raise re.error(f"[:{name}:] can't be searched for without ripgrep")
    return _CLASSES[name]


def _data(path: str) -> bytes:
    """The bytes of a file; none of one that can't be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = piece = os.read(descriptor, _LARGEST_PIECE)
        if len(piece) < _LARGEST_PIECE:
            return data
        pieces = [data]
        while piece := os.read(descriptor, _LARGEST_PIECE):
            pieces.append(piece)
        return b"".join(pieces)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _text(path: str) -> str:
    """The text of a file; none of one that is binary or can't be read."""
    data = _data(path)
    if codec := _UTF_16.get(data[:2]):
        return data[2:].decode(codec, "replace")
    return "" if b"\0" in data else data.removeprefix(_BOM).decode("utf-8", "replace")


def around(line: str, start: int, end: int) -> str:
    """A line as it is shown: of a long one the part around the match from `start` to `end`, at most `LONGEST_TEXT`."""
    if len(line) <= LONGEST_TEXT:
        return line
    first = start - max(LONGEST_TEXT - (end - start), 0) // 2
    first = max(min(first, len(line) - LONGEST_TEXT), 0)
    last = first + LONGEST_TEXT
    return f"{'...' if first else ''}{line[first:last]}{'...' if last < len(line) else ''}"


class _Search:
    """A pattern and how to look for it."""

    def __init__(self, pattern: str, mode: str, context: int) -> None:
        self.context = context
        self.is_multiline = mode.startswith("multiline")
        self.only_counts = mode.endswith("count")
        pattern = _as_python_reads_it(pattern)
        flags = re.MULTILINE | re.DOTALL if self.is_multiline else 0
        self.pattern = re.compile(pattern, flags)
        self._anywhere = None if _NEEDS_LINES.search(pattern) else re.compile(pattern, re.MULTILINE)

    def file(self, path: str) -> tuple[int, list[tuple[int, int, str]]]:
        """How many matches it has; and number, matches (-1: a line around one) and text of each line to show."""
        text = _text(path).replace("\r\n", "\n").removesuffix("\r")
        if not text or (self._anywhere is not None and not self.is_multiline and not self._anywhere.search(text)):
            return 0, []
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        hits = self._blocks(text, lines) if self.is_multiline else self._lines(lines)
        total = sum(matches for matches, _ in hits.values())
        return total, [] if self.only_counts else list(self._shown(hits, lines))

    def _lines(self, lines: list[str]) -> dict[int, tuple[int, str]]:
        search = self.pattern.search
        found = ((number, line, search(line)) for number, line in enumerate(lines))
        return {number: (1, around(line, *match.span())) for number, line, match in found if match}

    def _blocks(self, text: str, lines: list[str]) -> dict[int, tuple[int, str]]:
        """Every line that a match touches; the first of each match counts."""
        starts = [0]
        for line in lines[:-1]:
            starts.append(starts[-1] + len(line) + 1)
        hits: dict[int, tuple[int, str]] = {}
        before = -1
        for match in self.pattern.finditer(text):
            start, end = match.span()
            if start == end == before or (start == len(text) and text.endswith("\n")):
                continue  # ripgrep knows no empty match right behind another, and no line begins at the very end
            before = end
            first = bisect_right(starts, start) - 1
            last = bisect_right(starts, max(start, end - 1)) - 1
            matches, shown = hits.get(first, (0, around(lines[first], start - starts[first], end - starts[first])))
            hits[first] = matches + 1, shown
            for number in range(first + 1, last + 1):
                hits.setdefault(number, (0, around(lines[number], 0, 0)))
        return hits

    def _shown(self, hits: dict[int, tuple[int, str]], lines: list[str]) -> Iterator[tuple[int, int, str]]:
        numbers = hits.keys() | {
            near
            for number in hits
            for near in range(max(number - self.context, 0), min(number + self.context + 1, len(lines)))
        }
        for number in sorted(numbers):
            matches, text = hits[number] if number in hits else (-1, around(lines[number], 0, 0))
            yield number + 1, matches, text


def main(arguments: list[str]) -> int:
    """Search every file named; gives back the exit code."""
    pattern, mode, context, most = arguments[:4]
    try:
        search = _Search(pattern, mode, int(context))
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        return _BAD_PATTERN
    total = printed = 0
    for path in arguments[4:]:
        count, lines = search.file(path)
        if not count:
            continue
        total += count
        name = b2a_base64(os.fsencode(path), newline=False)
        if search.only_counts:
            sys.stdout.buffer.write(b"%s\0%d\n" % (name, count))
        for number, matches, text in lines[: max(int(most) - printed, 0)]:
            kind = b"-" if matches < 0 else b"%d" % matches
            sys.stdout.buffer.write(b"%s\0%d\0%s\0%s\n" % (name, number, kind, text.encode("utf-8", "replace")))
        printed += len(lines)
    sys.stdout.buffer.write(b"%d\n" % total)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
