"""Which of git's files are looked at after programs have run, where a sandbox covers what was there before."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from bradawl.safety.guarded import protected_names, watched_names
from bradawl.safety.sandbox.covers import data_folders
from bradawl.safety.sandbox.gitdirs import data_folder
from bradawl.safety.sandbox.protected import Place
from bradawl.safety.sandbox.survey import Finds

_OF_GIT: Final = tuple(name for name in protected_names() if name.startswith(".git/"))

_NOT_HELD: Final = (".git/config", ".git/modules/*/config", ".git/modules/*/hooks")


class Repositories:
    """The repositories of a workspace: those that programs found, and those they made.

    What was there is covered. Of what programs make nothing is, also for programs that ran before it was made: it is
    looked at as a whole when they have ended, and so is a new submodule of one that was there. A cover falls off a file
    that somebody outside replaces, as git does with its configuration: that is looked at, too.
    """

    def __init__(self, roots: tuple[str, ...], home: str, finds: Callable[[], Iterable[Finds]]) -> None:
        """`finds` looks through each of the roots."""
        self._roots = roots
        self._home = home
        self._finds = finds
        self._covered: frozenset[str] = frozenset()

    def places(self) -> Iterator[Place]:
        """What is looked at from when the first of some programs begins."""
        self._covered = frozenset(self._now())
        for folder in dict.fromkeys((*self._roots, *sorted(self._covered))):
            names = _NOT_HELD if folder in self._covered else _OF_GIT
            yield from ((folder, name) for name in (*names, *watched_names()))
        for data in data_folders(self._roots, self._covered, self._home):
            yield from ((data, name.removeprefix(".git/")) for name in _NOT_HELD)

    def appeared(self) -> Iterator[Place]:
        """What has come up since; working trees and submodules have their settings with a repository's."""
        now = self._now()
        for folder in now:
            if folder not in self._covered and not _is_part(data_folder(f"{folder}/.git"), now):
                yield from ((folder, name) for name in (*_OF_GIT, *watched_names()))

    def _now(self) -> tuple[str, ...]:
        inner = (folder for found in self._finds() for folder in found.repositories)
        return tuple(dict.fromkeys((*(each for each in self._roots if os.path.lexists(f"{each}/.git")), *inner)))


def _is_part(data: str, folders: tuple[str, ...]) -> bool:
    return any(data == f"{folder}/.git" or data.startswith(f"{folder}/.git/modules/") for folder in folders)
