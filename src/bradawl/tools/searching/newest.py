"""Finds the newest of the files that another program lists. Runs as a separate program.

A separate process reads the times of 100,000 files while they are being listed, and keeps none of the paths. Arguments:
the number of files to show, a regular expression that paths must match (empty: all match), the number of leading
characters of a path that it does not apply to, then the command, which prints paths that each end in NUL. Prints the
number of listed files, the number of matches, and the newest matches, newest first, each followed by NUL. It must not
import anything of bradawl: it is started with the bare interpreter.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from heapq import nsmallest

_PIECE = 1 << 17
_KEPT = 20_000


def _listed(command: list[str]) -> Iterator[list[bytes]]:
    """The paths that a command prints, while it runs."""
    source, sink = os.pipe()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, sink, 1)])
    os.close(sink)
    rest = b""
    while piece := os.read(source, _PIECE):
        *paths, rest = (rest + piece).split(b"\0")
        yield paths
    os.waitpid(process, 0)


def _chosen(pattern: str, skip: int) -> Callable[[bytes], object]:
    import re  # costs as much as the start of the interpreter, and few patterns need it

    match = re.compile(pattern, re.DOTALL).match
    return lambda path: match(os.fsdecode(path[skip:]))


def main(arguments: list[str]) -> int:
    """List, select and sort the files; returns the exit code."""
    gc.disable()
    most, pattern, skip = int(arguments[0]), arguments[1], int(arguments[2])
    is_chosen = _chosen(pattern, skip) if pattern else None
    listed = found = 0
    newest: list[tuple[int, bytes]] = []
    for paths in _listed(arguments[3:]):
        listed += len(paths)
        for path in filter(is_chosen, paths) if is_chosen else paths:
            try:
                newest.append((-os.lstat(path).st_mtime_ns, path))
            except OSError:  # it may be gone by now
                continue
            found += 1
        if len(newest) > _KEPT:
            newest = nsmallest(most, newest)
    shown = (path for _, path in nsmallest(most, newest))
    sys.stdout.buffer.write(b"\0".join((b"%d" % listed, b"%d" % found, *shown, b"")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
