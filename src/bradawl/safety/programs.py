"""Where the programs are that bradawl starts on its own account: git, rg, bash, bwrap and their like.

A program is taken only from a folder that neither the workspace nor a command can write to. The search path is
filtered once, at the start; what a command exports later has no influence.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.core.effects import is_within
from bradawl.safety.path_walk import followed

_STANDARD: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run/user")  # noqa: S108 - compared with, never written to
_WHOLE_SYSTEMS: Final = ("/", "/usr")
"""Workspaces that hold every program there is: their programs are the system's all the same."""
_OTHERS_CAN_WRITE: Final = stat.S_IWOTH


class Rejected(NamedTuple):
    """A program that exists under the wanted name, and is not used."""

    path: str
    reason: str


class TrustedPrograms:
    """Finds programs by name, each once. Shareable between threads.

    Paths are absolute, by their real folder; the name stays, as some programs act by the name they are started with.
    """

    def __init__(self, search_path: str, untrusted: Iterable[str] = (), installation: str = "") -> None:
        """`search_path` is a PATH, of which only trusted folders count; the system's standard folders come last.

        `untrusted` are folders that projects or commands can write to: roots of the workspace, caches, temporary
        folders. `installation` is the prefix of the running environment, whose own `bin` counts in any case: the
        sandbox and the file tools never write to it.
        """
        self._untrusted = tuple(
            dict.fromkeys(folder for folder in _named_and_real((*untrusted, *_SHARED)) if folder not in _WHOLE_SYSTEMS)
        )
        self._installation = os.path.realpath(installation) if installation else ""
        self._folders = tuple(
            dict.fromkeys(folder for folder in (*search_path.split(os.pathsep), *_STANDARD) if folder.startswith("/"))
        )
        self._found: dict[str, str | None] = {}
        self._rejected: dict[str, tuple[Rejected, ...]] = {}

    def find(self, name: str) -> str | None:
        """Path of a program; None where there is none to trust. The answer never changes."""
        if name not in self._found:
            self._found[name], self._rejected[name] = self._search(name)
        return self._found[name]

    def rejected(self, name: str) -> tuple[Rejected, ...]:
        """The programs of that name that came before the one found, and why they are not used."""
        self.find(name)
        return self._rejected[name]

    @property
    def search_path(self) -> str:
        """A PATH of the trusted folders alone, for programs that start others."""
        return os.pathsep.join(folder for folder in self._folders if not self.why_untrusted(folder))

    def beside(self, name: str) -> str | None:
        """A program that is part of the running environment; None if it brings none of that name."""
        if not self._installation:
            return None
        path = str(Path(self._installation, "bin", name))
        return path if _is_program(path) else None

    def _search(self, name: str) -> tuple[str | None, tuple[Rejected, ...]]:
        rejected: list[Rejected] = []
        for folder in self._folders:
            path = str(Path(folder, name))
            if not _is_program(path):
                continue
            if reason := self.why_untrusted(path):
                rejected.append(Rejected(path, reason))
                continue
            return str(Path(os.path.realpath(folder), name)), tuple(rejected)
        return None, tuple(rejected)

    def why_untrusted(self, path: str) -> str:
        """Why a file or folder may not be relied on; empty if it may."""
        try:
            places = followed(path)
        except OSError as error:
            return error.strerror or "it can't be resolved"
        for place in places:
            if folder := self._untrusted_folder(place):
                return f"{place} lies in {folder}, where commands can write"
        return _why_writable(places[-1])

    def _untrusted_folder(self, place: str) -> str:
        if self._installation and is_within(place, self._installation):
            return ""
        return next((folder for folder in self._untrusted if is_within(place, folder)), "")


def _named_and_real(folders: Iterable[str]) -> Iterable[str]:
    for folder in folders:
        if folder.startswith("/"):
            yield folder.rstrip("/") or "/"
            yield os.path.realpath(folder)


def _is_program(path: str) -> bool:
    try:
        return stat.S_ISREG(Path(path).stat().st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _why_writable(real: str) -> str:
    """Whether any user may replace the program or a folder above it."""
    for each in (Path(real), *Path(real).parents):
        try:
            mode = each.stat().st_mode
        except OSError as error:
            return error.strerror or "it can't be examined"
        if mode & _OTHERS_CAN_WRITE and not mode & stat.S_ISVTX:
            return f"{each} can be written by every user"
    return ""


def trusted_programs(environment: Mapping[str, str], untrusted: Iterable[str], installation: str) -> TrustedPrograms:
    """The programs of a run: its PATH without the folders of the workspace and of temporary files."""
    temporary = environment.get("TMPDIR", "")
    return TrustedPrograms(
        environment.get("PATH", os.defpath), (*untrusted, *((temporary,) if temporary else ())), installation
    )
