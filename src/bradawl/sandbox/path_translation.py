"""Which folders have another place or content inside a sandbox: `/tmp`, `/run`, and what is shown in there."""

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from bradawl.core.effects import is_within
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.discovery.other_users import FOLDERS_OF_HOMES

TEMPORARY: Final = os.path.realpath(Path("/") / "tmp")
RUNTIME_FOLDERS: Final = ("/run", "/var/run")
_RESOLVER: Final = "/etc/resolv.conf"
_OF_PROGRAMS: Final = ("/bin", "/sbin", "/shims")
"""Endings of folders whose programs need what lies beside the folder; version managers start theirs through shims."""


@cache
def emptied_folders() -> tuple[str, ...]:
    """Folders in which sockets of the machine's services lie; looked for once."""
    return tuple(path for path in RUNTIME_FOLDERS if os.path.realpath(path) == path and Path(path).is_dir())


def is_replaced(path: str, further: Iterable[str] = ()) -> bool:
    """Whether it lies where programs see something else: in a temporary folder or in one of `further`."""
    return any(is_within(path, folder) for folder in (TEMPORARY, *RUNTIME_FOLDERS, *further))


def reexposed_paths(layout: SandboxLayout, path: str, further: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Folders that must be seen although they lie in a replaced place: home, programs on `path`, our interpreter.

    `further` are replaced places, too.
    """
    programs = [folder for folder in path.split(":") if folder.startswith("/")]
    prefixes = (_prefix(os.path.realpath(folder), further) for folder in programs)
    wanted = (layout.home, sys.prefix, sys.base_prefix, *prefixes, os.path.realpath(_RESOLVER))
    found = dict.fromkeys(os.path.realpath(each) for each in wanted if each and os.access(each, os.F_OK))
    whole = (TEMPORARY, *RUNTIME_FOLDERS, *further)
    inside = [each for each in found if is_replaced(each, further) and each not in whole]
    return tuple(each for each in inside if not any(each != other and is_within(each, other) for other in inside))


def _prefix(folder: str, further: tuple[str, ...]) -> str:
    """The installation a folder of programs belongs to; itself if that is a whole replaced place or home."""
    parent = str(Path(folder).parent)
    is_whole = parent in (TEMPORARY, *RUNTIME_FOLDERS, *further) or str(Path(parent).parent) in FOLDERS_OF_HOMES
    return parent if folder.endswith(_OF_PROGRAMS) and not is_whole else folder


class PathTranslator:
    """Translates between the names programs see and those of the machine: only `/tmp` differs."""

    def __init__(self, scratch: str, real: Iterable[str]) -> None:
        """`real` are folders below `/tmp` that programs see as they are."""
        self._scratch = scratch
        self._real = tuple(real)

    def host_path(self, path: str) -> str:
        """The real path of what programs call `path`; for one that is not made simple yet, too."""
        plain = os.path.normpath(path)
        if not is_within(plain, TEMPORARY) or any(is_within(plain, folder) for folder in (self._scratch, *self._real)):
            return path
        rest = path[len(TEMPORARY) :] if path.startswith(TEMPORARY) else ".."
        return self._scratch + (plain[len(TEMPORARY) :] if _leaves(rest) else rest)

    def sandbox_path(self, path: str) -> str:
        """What programs call a real path."""
        return TEMPORARY + path[len(self._scratch) :] if is_within(path, self._scratch) else path


def _leaves(rest: str) -> bool:
    """Whether a path goes up further than it has gone down."""
    depth = 0
    for part in rest.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def nearest_existing(path: str) -> str:
    """The path itself, or the nearest folder above it that exists."""
    place = Path(path)
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    return str(place)
