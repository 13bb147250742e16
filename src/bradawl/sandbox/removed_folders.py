"""Finds the folders that a shell line removes, if it does little else: `rm -rf build && mkdir build`."""

import os
import re
from typing import Final

from bradawl.sandbox.backend import Program

_WORD: Final = r"[\w./@+-]+"
_PART: Final = re.compile(rf"(?:rm|mkdir|ls|echo|true)(?: +{_WORD})*")
_SEPARATOR: Final = re.compile(r"&&|;|\n")


def removed_folders(program: Program, cwd: str) -> tuple[str, ...]:
    """Absolute paths that `rm` removes with all that is in them; empty for other lines, and for those with patterns,
    variables or quotation marks. `cwd` is the folder in which the line begins.

    Nothing else may rely on it: `rm` can be another program than that of the system.
    """
    line = program.argv[2] if program.argv[1:2] == ("-c",) and len(program.argv) > 2 else ""
    # Split before matching: one pattern for the whole line would try each way to divide blank lines, 2^n of them.
    parts = [part for part in map(str.strip, _SEPARATOR.split(line)) if part]
    if not all(map(_PART.fullmatch, parts)):
        return ()
    found: list[str] = []
    for name, *words in map(str.split, parts):
        if name != "rm":
            continue
        options = [word for word in words if word.startswith("-")]
        if any(re.fullmatch(r"-[A-Za-z]*[rR][A-Za-z]*|--recursive", option) for option in options):
            found += (os.path.normpath(f"{cwd}/{word}" if word[0] != "/" else word) for word in words if word[0] != "-")
    return tuple(found)
