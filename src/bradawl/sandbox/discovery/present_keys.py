"""Finds the keys in a home folder that exist, with the files to which links in folders of keys lead.

Dotfiles are often kept in a folder of their own: `~/.aws/credentials` is a link to `~/dotfiles/aws/credentials`. A
mount that hides `~/.aws` does not cover that file.
"""

import os
from collections.abc import Iterable, Iterator

from bradawl.core.effects import is_within
from bradawl.safety.permissions.protected_paths import system_folders
from bradawl.sandbox.discovery.present_paths import PresentPaths

_MOST_ENTRIES = 500
_UNSEEN = ("/run", "/tmp")  # noqa: S108 - programs see other folders there

Stamp = tuple[int, int, int]


class PresentKeys:
    """Which of the known files and folders with keys exist. Folders are listed again when they have changed."""

    def __init__(
        self, paths: Iterable[str], home: str, roots: tuple[str, ...], unseen: tuple[str, ...] = _UNSEEN
    ) -> None:
        """`paths` are files and folders with keys in `home`. Targets in one of `roots`, the workspace, or of `unseen`,
        which programs don't see, don't count.
        """
        self._present = PresentPaths(paths)
        self._left_out = (*roots, *unseen, *system_folders())
        self._places = (*roots, *((home,) if home else ()))
        self._links: dict[str, tuple[Stamp, tuple[str, ...]]] = {}

    def now(self) -> tuple[str, ...]:
        """The paths that exist now, and the real paths to which links directly in their folders lead."""
        found = self._present.now()
        linked = (target for folder in found for target in self._targets(folder))
        return (*found, *dict.fromkeys(target for target in linked if self._may_hide(target)))

    def targets_in(self, place: str) -> tuple[str, ...]:
        """The real paths in a folder to which such links lead, although programs usually don't see the folder."""
        linked = (target for folder in self._present.now() for target in self._targets(folder))
        return tuple(dict.fromkeys(target for target in linked if is_within(target, place)))

    def _targets(self, folder: str) -> Iterator[str]:
        try:
            status = os.stat(folder)  # noqa: PTH116 - for each command
        except OSError:
            return
        stamp, known = (status.st_dev, status.st_ino, status.st_ctime_ns), self._links.get(folder)
        if known is None or known[0] != stamp:
            known = self._links[folder] = stamp, tuple(_links_in(folder))
        for link in known[1]:
            target = os.path.realpath(link)
            if not is_within(target, os.path.realpath(folder)) and os.path.lexists(target):
                yield target

    def _may_hide(self, path: str) -> bool:
        """Whether a target can be hidden: parts of the system, and what holds the home or the workspace, can't."""
        if any(is_within(path, each) for each in self._left_out):
            return False
        return not any(is_within(place, path) for place in self._places)


def _links_in(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number == _MOST_ENTRIES:
                    return
                if entry.is_symlink():
                    yield entry.path
    except OSError:
        return
