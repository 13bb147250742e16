"""Reports at once that a program creates a file by which git is led to other data (Linux inotify)."""

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from bradawl.sandbox.filesystem.inotify import Inotify, QueueOverflow

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES: Final = frozenset((b"commondir", b"alternates"))


class GitDataEvents:
    """The events in some data folders of git. Its owner calls `close`."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None

    def watch(self, data_folders: Iterable[str]) -> int:
        """Watch these folders, too, as far as they exist. Returns a descriptor that can be read when something happens
        in one of them; -1 if the system reports no events.
        """
        try:
            self._inotify = self._inotify or Inotify()
        except OSError:
            return -1
        for data in data_folders:
            for folder in (data, f"{data}/objects/info"):
                with suppress(OSError, ValueError):
                    self._watch(self._inotify, folder)
        return self._inotify.fileno()

    @staticmethod
    def _watch(inotify: Inotify, folder: str) -> None:
        held = os.open(folder, _FOLDER)
        try:
            inotify.watch(held)
        finally:
            os.close(held)

    def take(self) -> bool:
        """Take all events; True if one is about such a file, or if some were lost."""
        if self._inotify is None:
            return False
        try:
            return any(name in _NAMES for _, _, name in self._inotify.events())
        except (QueueOverflow, OSError):
            return True

    def close(self) -> None:
        """End the events; safe to call twice."""
        inotify, self._inotify = self._inotify, None
        if inotify is not None:
            inotify.close()
