"""Searches files line by line: what stands in for ripgrep, run as a program of its own.

A process, because a regular expression can run for ever: it can be ended from outside, and the agent goes on
meanwhile. Arguments: a pattern, how many lines around a match to show, then absolute paths. Prints
`base64 of the path, NUL, number, NUL, "match" or "context", NUL, text`
for each line to show, and last how many matched in all.
It must not import anything of bradawl: it is started with the bare interpreter.
"""

import base64
import codecs
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_BAD_PATTERN = 3  # stderr says why
LONGEST_TEXT = 500
"""Characters of a line that are shown."""
_MOST_PRINTED = 1_000
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def _text(path: str) -> str:
    """The text of a file; none of one that is binary or can't be read."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return ""
    if codec := _UTF_16.get(data[:2]):
        return data[2:].decode(codec, "replace")
    return "" if b"\0" in data else data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def around(line: str, start: int, end: int) -> str:
    """A line as it is shown: of a long one the part around the match from `start` to `end`, at most `LONGEST_TEXT`."""
    if len(line) <= LONGEST_TEXT:
        return line
    first = start - max(LONGEST_TEXT - (end - start), 0) // 2
    first = max(min(first, len(line) - LONGEST_TEXT), 0)
    last = first + LONGEST_TEXT
    return f"{'...' if first else ''}{line[first:last]}{'...' if last < len(line) else ''}"


def _lines(pattern: re.Pattern[str], path: str, context: int) -> Iterator[tuple[int, bool, str]]:
    """Number, whether it matches, and text of each line to show."""
    lines = [line.removesuffix("\r") for line in _text(path).split("\n")]
    if not lines[-1]:
        lines.pop()
    last_shown = last_wanted = 0
    for number, line in enumerate(lines, 1):
        if match := pattern.search(line):
            for earlier in range(max(number - context, last_shown + 1), number):
                yield earlier, False, around(lines[earlier - 1], 0, 0)
            yield number, True, around(line, *match.span())
            last_shown, last_wanted = number, number + context
        elif number <= last_wanted:
            yield number, False, around(line, 0, 0)
            last_shown = number


def main(arguments: list[str]) -> int:
    """Search every file named; gives back the exit code."""
    try:
        pattern = re.compile(arguments[0])
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        return _BAD_PATTERN
    total = 0
    context = int(arguments[1])
    for path in arguments[2:]:
        name = base64.b64encode(os.fsencode(path))
        for number, is_match, text in _lines(pattern, path, context):
            total += is_match
            if total <= _MOST_PRINTED:
                kind = b"match" if is_match else b"context"
                shown = text.encode("utf-8", "replace")
                sys.stdout.buffer.write(b"%s\0%d\0%s\0%s\n" % (name, number, kind, shown))
    sys.stdout.buffer.write(b"%d\n" % total)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
