"""Searches files line by line: what stands in for ripgrep, run as a program of its own.

A process, because a regular expression can run for ever: it can be ended from outside, and the agent goes on
meanwhile. Arguments: a pattern, then absolute paths. Prints
`base64 of the path, NUL, number, NUL, text`
for each line that matches, and last how many matched in all.
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
_LONGEST_TEXT = 600
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


def _matches(pattern: re.Pattern[str], path: str) -> Iterator[tuple[int, str]]:
    lines = _text(path).split("\n")
    if not lines[-1]:
        lines.pop()
    for number, ended in enumerate(lines, 1):
        line = ended.removesuffix("\r")
        if pattern.search(line):
            yield number, line


def main(arguments: list[str]) -> int:
    """Search every file named; gives back the exit code."""
    try:
        pattern = re.compile(arguments[0])
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"{error}\n")
        return _BAD_PATTERN
    total = 0
    for path in arguments[1:]:
        name = base64.b64encode(os.fsencode(path))
        for number, line in _matches(pattern, path):
            total += 1
            if total <= _MOST_PRINTED:
                shown = line[:_LONGEST_TEXT].encode("utf-8", "replace")
                sys.stdout.buffer.write(b"%s\0%d\0%s\n" % (name, number, shown))
    sys.stdout.buffer.write(b"%d\n" % total)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
