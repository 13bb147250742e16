"""Reports when one of many paths was created, deleted or replaced."""

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator

from bradawl.core.effects import is_within
from bradawl.sandbox.filesystem.inotify import IN_IGNORED, NAMES, Inotify, QueueOverflow

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


class PathWatch:
    """Watches the folders that contain the paths, with inotify; without it, paths are compared by device and inode.

    Its owner calls `close()`. Not thread-safe.
    """

    def __init__(self, make_inotify: Callable[[], Inotify] = Inotify) -> None:
        """Nothing is opened before the first `want`."""
        self._make_inotify = make_inotify
        self._paths: set[str] = set()
        self._folders_of_paths: set[str] = set()
        self._folders: dict[int, set[str]] = {}
        """Paths of each watched folder; one folder may have several."""
        self._watches: dict[str, int] = {}
        self._inotify: Inotify | None = None
        self._is_opened = self._is_polled = False
        self._known: dict[str, tuple[int, ...]] = {}
        """Identity of each path at the last comparison; filled without inotify only."""
        self._due: set[str] = set()
        """Changed paths that were reported before inotify failed."""

    def fileno(self) -> int:
        """A descriptor that is readable when `changed` has something to report; -1 if it has to be called in intervals.
        `want` and `changed` may turn it to -1.
        """
        return -1 if self._inotify is None or self._is_polled else self._inotify.fileno()

    def want(self, paths: Collection[str], tops: Collection[str], *, forgets: bool) -> None:
        """Report these paths from now on, and the folders above them up to the innermost of `tops`.

        With `forgets` earlier paths are not reported any more.
        """
        wanted = set(paths)
        for path in paths:
            wanted.update(_folders_up_to(path, tops))
        if not self._is_opened:
            self._is_opened = True
            with contextlib.suppress(OSError):
                self._inotify = self._make_inotify()
        folders = {path.rpartition("/")[0] or "/" for path in wanted}
        if forgets:
            self._forget(folders)
            self._paths, self._folders_of_paths = set(), set()
        new = wanted - self._paths
        self._paths |= wanted
        self._folders_of_paths |= folders
        self._watch(new if self._is_polling() else wanted)  # a comparison that is due must not be lost

    def changed(self) -> set[str]:
        """Watched paths that may have been created, deleted or replaced since the last call. Does not block."""
        if self._inotify is None or self._is_polled:
            due, self._due = self._due, set()
            return due | self._compared()
        return self._waiting(self._inotify)

    def watch_again(self, changed: Collection[str]) -> None:
        """Watch folders anew that are among changed paths, and those in them. Call before the paths in them are
        examined.
        """
        folders = [path for path in changed if path in self._folders_of_paths]
        if folders and not self._is_polling():
            self._watch(
                [path for path in self._paths if any(path != each and is_within(path, each) for each in folders)]
            )

    def close(self) -> None:
        """End all watches. Safe to call twice."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify, self._is_opened, self._is_polled = None, False, False
        self._paths, self._folders_of_paths, self._known, self._due = set(), set(), {}, set()
        self._folders, self._watches = {}, {}

    # ------------------------------------------------------------------ with inotify

    def _waiting(self, inotify: Inotify) -> set[str]:
        try:
            return set(self._reported(inotify))
        except (QueueOverflow, OSError):
            return set(self._paths)

    def _reported(self, inotify: Inotify) -> Iterator[str]:
        for watch, mask, name in inotify.events():
            if mask & IN_IGNORED:
                for folder in self._folders.pop(watch, ()):
                    self._watches.pop(folder, None)
                continue
            for folder in self._folders.get(watch, ()):
                if (path := f"{folder}/{os.fsdecode(name)}") in self._paths:
                    yield path

    def _watch(self, paths: Iterable[str]) -> None:
        """Watch the existing folders of these paths, and again those that may have been replaced."""
        if self._inotify is None or self._is_polling():
            self._known |= {path: known for path in paths if (known := _identity(path))}
            return
        for folder in {path.rpartition("/")[0] or "/" for path in paths}:
            try:
                self._watch_folder(self._inotify, folder)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue  # its own path is watched, or no path in it can be reached
            except OSError:  # the user's limit of watches, or of open files
                self._due |= self._waiting(self._inotify)
                self._is_polled = True
                self._watch(self._paths)
                return

    def _watch_folder(self, inotify: Inotify, folder: str) -> None:
        opened = os.open(folder, _FOLDER)
        try:
            watch = inotify.watch(opened, NAMES)
        finally:
            os.close(opened)
        before = self._watches.get(folder)
        if before not in (None, watch):
            self._unwatch(inotify, folder)
        self._watches[folder] = watch
        self._folders.setdefault(watch, set()).add("" if folder == "/" else folder)

    def _unwatch(self, inotify: Inotify | None, folder: str) -> None:
        watch = self._watches.pop(folder)
        names = self._folders.get(watch, set())
        names.discard("" if folder == "/" else folder)
        if not names:
            self._folders.pop(watch, None)
            if inotify is not None:
                inotify.remove(watch)

    def _is_polling(self) -> bool:
        return self._inotify is None or self._is_polled

    def _forget(self, kept: Collection[str]) -> None:
        for folder in [each for each in self._watches if each not in kept]:
            self._unwatch(self._inotify, folder)
        self._known = {}

    # ------------------------------------------------------------------ without inotify

    def _compared(self) -> set[str]:
        found: set[str] = set()
        for path in self._paths:
            now = _identity(path)
            if now != self._known.get(path, ()):
                found.add(path)
                self._known[path] = now
        return found


def _identity(path: str) -> tuple[int, ...]:
    """Empty if there is nothing. A new file may get the inode of an old one, so that the change time counts as well; a
    folder's changes with its entries and does not.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, 0 if stat.S_ISDIR(found.st_mode) else found.st_ctime_ns)


def _folders_up_to(path: str, tops: Collection[str]) -> Iterator[str]:
    top = max((each for each in tops if is_within(path, each)), key=len, default="")
    while top and (path := path.rpartition("/")[0]) and path != top and is_within(path, top):
        yield path
