"""Finds files of a workspace to which links in the home folder lead.

In a repository of dotfiles, the files of the workspace are the user's settings: a shell, git or an editor outside the
sandbox runs what they say.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from bradawl.core.effects import is_within
from bradawl.safety.path_walk import followed, real_path
from bradawl.safety.permissions.home_paths import LOGIN_FILES, PROGRAM_SETTINGS

_AT_LOGIN: Final = (*LOGIN_FILES.split(), ".config/git/config", ".config/git/attributes", ".ssh/config")
_OF_PROGRAMS: Final = tuple(PROGRAM_SETTINGS.split())
_NOT_LISTED: Final = frozenset(
    (".gnupg", ".vscode-server", ".cargo", ".m2", ".gradle", ".sbt", ".local/bin", "bin", "go/bin", ".local/lib")
)
"""Real folders in which single links are not followed: caches, and programs that the workspace may develop."""
_MOST_FOLDERS: Final = 8
_MOST_ENTRIES: Final = 400
"""Limits on the search of one real folder."""

_Stamp = tuple[int, ...] | None


class HomeLinks:
    """The links at the declared names of a home folder; searched again when one of their folders has changed."""

    def __init__(self, home: str) -> None:
        """`home` is absolute; empty if unknown. Nothing is read before the first call."""
        self._home = home.rstrip("/")
        self._stamps: dict[str, _Stamp] = {}
        self._at_login: tuple[str, ...] = ()
        self._of_programs: tuple[str, ...] = ()

    def at_login(self, root: str) -> tuple[str, ...]:
        """Paths below `root`, existing or not, that shells, logins or git use by way of a link in the home folder."""
        self._search_if_changed()
        return _below(root, self._at_login)

    def all(self, root: str) -> tuple[str, ...]:
        """The paths of `at_login` and `of_programs`."""
        self._search_if_changed()
        return _below(root, (*self._at_login, *self._of_programs))

    def of_programs(self, root: str) -> tuple[str, ...]:
        """As `at_login`, for editors and other programs that take settings or code from the home folder."""
        self._search_if_changed()
        return _below(root, self._of_programs)

    def _search_if_changed(self) -> None:
        if not self._home or (self._stamps and all(_stamp(path) == known for path, known in self._stamps.items())):
            return
        home = real_path(self._home)
        self._stamps = {}
        self._at_login = tuple(self._links(home, _AT_LOGIN))
        self._of_programs = tuple(self._links(home, _OF_PROGRAMS))

    def _links(self, home: str, names: Iterable[str]) -> Iterator[str]:
        real: dict[str, bool] = {}
        for name in names:
            path = f"{home}/{name}"
            folder = path.rpartition("/")[0]
            if folder not in real:
                self._note(folder)
                real[folder] = real_path(folder) == folder
            mode = _mode(path)
            if stat.S_ISLNK(mode) or not real[folder]:
                yield path
            elif stat.S_ISDIR(mode) and name not in _NOT_LISTED:
                yield from self._links_in(path)

    def _links_in(self, top: str) -> Iterator[str]:
        """Links in a folder and in the first folders inside it."""
        waiting, left = [top], _MOST_ENTRIES
        for number, folder in enumerate(waiting):
            if number == _MOST_FOLDERS:
                return
            self._note(folder)
            for path, is_link in _entries(folder)[:left]:
                left -= 1
                if is_link:
                    yield path
                else:
                    waiting.append(path)

    def _note(self, folder: str) -> None:
        if folder not in self._stamps:
            self._stamps[folder] = _stamp(folder)


def _below(root: str, links: Iterable[str]) -> tuple[str, ...]:
    """What the links lead to, and further links on the way, below a root. The root itself is left out: then it is the
    folder of settings that the user works on.
    """
    found: dict[str, None] = {}
    for link in links:
        try:
            ways = followed(link)
        except OSError:  # a loop of links
            continue
        found |= dict.fromkeys(path for path in ways if path not in (link, root) and is_within(path, root))
    return tuple(found)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """The links and folders in a folder, each with whether it is a link; none if it can't be listed."""
    try:
        with os.scandir(folder) as entries:
            found = [(entry.path, entry.is_symlink(), entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []
    return sorted((path, is_link) for path, is_link, is_folder in found if is_link or is_folder)


def _mode(path: str) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)  # noqa: PTH116 - a part of each command's time
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
