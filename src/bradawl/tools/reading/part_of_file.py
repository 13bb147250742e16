"""Prints some lines of a file too large to load. Runs as a separate program.

A separate process can be ended if it takes long to reach a line far down. Arguments: the path, the number of the first
line, the greatest number of lines, of bytes in all, and of bytes of one line. Prints a JSON object: `head`, the first
bytes of the file in hexadecimal digits; `encoding`; `lines`, pairs of the text, cut to the limit, and whether it was
cut; `has_more`, whether other lines follow; `skipped`, the number of lines before the first one. It must not import
anything of bradawl: it is started with the bare interpreter.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_HEAD = 8_192
_PIECE = 1 << 20
_BOM = b"\xef\xbb\xbf"


def _skip(file: BinaryIO, count: int) -> int:
    """Skip `count` lines without keeping them; returns the number of lines skipped."""
    skipped = 0
    while skipped < count and (piece := file.read(_PIECE)):
        found = piece.count(b"\n")
        if skipped + found < count:
            skipped += found
            continue
        place = 0
        while skipped < count:
            place = piece.index(b"\n", place) + 1
            skipped += 1
        file.seek(place - len(piece), 1)
    return skipped


def _lines(file: BinaryIO, limit: int, most: int, longest: int) -> Iterator[tuple[bytes, bool]]:
    """The beginning of each line, and whether the line was cut."""
    for _ in range(limit):
        line = piece = file.readline(longest + 2)
        while piece and not piece.endswith(b"\n"):
            piece = file.readline(_PIECE)
        if not line:
            return
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        yield text[:longest], not line.endswith(b"\n") and len(line) > longest
        most -= len(text)
        if most < 0:
            return


def main(arguments: list[str]) -> int:
    """Find the lines and print them; returns the exit code."""
    path, first, limit, most, longest = arguments[0], *map(int, arguments[1:])
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
        file.seek(len(_BOM) if head.startswith(_BOM) else 0)
        is_binary = b"\0" in head
        skipped = 0 if is_binary else _skip(file, first - 1)
        lines = [] if is_binary else list(_lines(file, limit, most, longest))
        has_more = bool(file.read(1))
    encoding = "utf-8"
    try:
        b"\n".join(line for line, is_cut in lines if not is_cut).decode()
    except UnicodeDecodeError:
        encoding = "latin-1"
    shown = [(line.decode(encoding, "ignore"), is_cut) for line, is_cut in lines]
    answer = {"head": head.hex(), "encoding": encoding, "lines": shown, "has_more": has_more, "skipped": skipped}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
