"""Paths that differ inside a sandbox: `/tmp` and `/run` are replaced, some of their folders are shown again."""

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Final

from bradawl.core.effects import is_within
from bradawl.safety.permissions.home_paths import HOME_PARENTS
from bradawl.sandbox.backend import SandboxLayout

TEMPORARY: Final = os.path.realpath(Path("/") / "tmp")
RUNTIME_FOLDERS: Final = ("/run", "/var/run")
_INTERFACES: Final = "/sys/class/net"
_RESOLVER: Final = "/etc/resolv.conf"
_OF_PROGRAMS: Final = ("/bin", "/sbin", "/shims")
"""Endings of folders whose programs need the files beside the folder; version managers start programs through shims."""


@cache
def emptied_folders() -> tuple[str, ...]:
    """Folders that hold sockets of the machine's services and are shown empty. Determined once."""
    return tuple(path for path in RUNTIME_FOLDERS if os.path.realpath(path) == path and Path(path).is_dir())


@cache
def interface_folders() -> tuple[str, ...]:
    """Folders of `/sys` that name the machine's network interfaces, which no program in the sandbox has. Determined
    once.
    """
    try:
        interfaces = [os.path.realpath(each) for each in Path(_INTERFACES).iterdir()]
    except OSError:
        return ()
    devices = (each.rpartition("/")[0] for each in interfaces if each.startswith("/sys/devices/"))
    return (_INTERFACES, *dict.fromkeys(devices))


def is_replaced(path: str, further: Iterable[str] = ()) -> bool:
    """Whether a path lies in `/tmp`, `/run` or one of the `further` folders, where programs see other content."""
    return any(is_within(path, folder) for folder in (TEMPORARY, *RUNTIME_FOLDERS, *further))


def reexposed_paths(layout: SandboxLayout, path: str, further: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Folders that must stay visible although they lie in replaced ones: home, programs on `path`, our interpreter.

    `further` names more replaced folders.
    """
    programs = [folder for folder in path.split(":") if folder.startswith("/")]
    prefixes = (_prefix(os.path.realpath(folder), further) for folder in programs)
    wanted = (layout.home, sys.prefix, sys.base_prefix, *prefixes, os.path.realpath(_RESOLVER))
    found = dict.fromkeys(os.path.realpath(each) for each in wanted if each and os.access(each, os.F_OK))
    whole = (TEMPORARY, *RUNTIME_FOLDERS, *further)
    inside = [each for each in found if is_replaced(each, further) and each not in whole]
    return tuple(each for each in inside if not any(each != other and is_within(each, other) for other in inside))


def _prefix(folder: str, further: tuple[str, ...]) -> str:
    """The installation that a folder of programs belongs to; the folder itself if that is all of a replaced folder or
    home.
    """
    parent = str(Path(folder).parent)
    is_whole = parent in (TEMPORARY, *RUNTIME_FOLDERS, *further) or str(Path(parent).parent) in HOME_PARENTS
    return parent if folder.endswith(_OF_PROGRAMS) and not is_whole else folder


class PathTranslator:
    """Translates between paths on the host and paths in the sandbox; only `/tmp` differs."""

    def __init__(self, scratch: str, real: Iterable[str], shown: Callable[[], tuple[str, ...]] = tuple) -> None:
        """`real` are folders below `/tmp` that programs see unchanged, `shown` returns further ones."""
        self._scratch = scratch
        self._real = tuple(real)
        self._shown = shown

    def host_path(self, path: str) -> str:
        """Path on the host of what programs call `path`, which need not be normalized."""
        plain = os.path.normpath(path)
        real = (self._scratch, *self._real, *self._shown())
        if not is_within(plain, TEMPORARY) or any(is_within(plain, folder) for folder in real):
            return path
        rest = path[len(TEMPORARY) :] if path.startswith(TEMPORARY) else ".."
        return self._scratch + (plain[len(TEMPORARY) :] if _leaves(rest) else rest)

    def sandbox_path(self, path: str) -> str:
        """Path in the sandbox of a path on the host."""
        return TEMPORARY + path[len(self._scratch) :] if is_within(path, self._scratch) else path


def _leaves(rest: str) -> bool:
    """Whether a relative path goes further up than it went down before."""
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
