"""Translates bubblewrap's error output into messages that need no knowledge of mounts."""

import re
from typing import Final

_SAYS: Final = b"bwrap: "
_INSIDE: Final = re.compile(r"/(?:oldroot|newroot)(?=/|\s|:|$)")
_PATH: Final = re.compile(r"(/[^:]*?)(?: on (/[^:]*))?(?=:|$)")
_AGAIN: Final = "Call again; if that does not help, ask to run without the sandbox"
_FULL: Final = ("Resource temporarily unavailable", "No space left on device", "Cannot allocate memory", "Too many")
_LONGEST: Final = 400


def explain_setup_error(stderr: bytes) -> str:
    """The message to show instead of bubblewrap's stderr; empty if the output is not bubblewrap's.

    Only valid for a program that has not begun: later, the same text may be the program's own output.
    """
    if not stderr.startswith(_SAYS):
        return ""
    line = stderr[len(_SAYS) :].split(b"\n", 1)[0].decode("utf-8", "backslashreplace").strip()[:_LONGEST]
    line = _INSIDE.sub("", line)
    return f"the sandbox could not be set up, so the command was not run: {_cause(line)}"


def _cause(line: str) -> str:
    what, _, why = line.rpartition(": ")
    found = _PATH.search(what or line)
    path = (found[2] or found[1]).strip() if found else ""
    if line.startswith("execvp"):
        return f"{line.removeprefix('execvp ')}. The program is not visible in the sandbox; use another"
    if what.startswith("Can't chdir"):
        return f"the working directory {path} can't be entered in it ({why}). cd elsewhere"
    if any(each in line for each in _FULL) and not path:
        return (
            f"the system allows no more namespaces or mounts now ({why or line}). End other programs, then call again"
        )
    if not path:
        return f"{line}. `bradawl doctor` says what works here. {_AGAIN}"
    return (
        f"{path} could not be shown, hidden or protected in it ({why}). It may have been removed or replaced just now, "
        f"or lie on a file system on which nothing can be mounted. {_AGAIN}"
    )
