"""Finds running processes by their arguments. Not every system has `pgrep`."""

import os
from pathlib import Path


def pids_of(*argv: str, session: int | None = None) -> list[int]:
    """PIDs of processes with exactly these arguments, of one session if it is given."""
    wanted = b"".join(os.fsencode(each) + b"\0" for each in argv)
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_it = (place / "cmdline").read_bytes() == wanted and session in (None, os.getsid(int(place.name)))
        except OSError:
            continue  # the process has ended, or /proc hides processes of other users
        if is_it:
            found.append(int(place.name))
    return found
