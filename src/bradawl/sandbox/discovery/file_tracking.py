"""Tracks files across renames by open descriptors, whose current path the kernel knows."""

import contextlib
import os
import stat
import weakref
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.permissions.protected_paths import is_secret_name
from bradawl.sandbox.check_failures import is_absent_or_closed, reason_of

_MOST: Final = 400
_MOST_ENTRIES: Final = 300_000

Inode = tuple[int, int]


class FileTracker:
    """Files of one folder that are tracked wherever programs move them. Not thread-safe."""

    def __init__(self, root: str) -> None:
        """A file that leaves `root` is not reported until it is back."""
        self._root = root
        self._held: dict[Inode, tuple[int, str]] = {}
        weakref.finalize(self, _close, self._held)

    def track(self, path: str, inode: Inode) -> None:
        """Track a file from now on. Raises `ToolError` if no descriptor is left."""
        if inode in self._held:
            return
        try:
            file = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            raise not_examined(path, error) from error
        if _inode(os.fstat(file)) != inode or len(self._held) >= _MOST:
            os.close(file)
            return
        self._held[inode] = (file, path)

    def moved(self, seen: Collection[Inode]) -> Iterator[tuple[str, Inode]]:
        """Current paths of tracked files that are not among the `seen`, and files that replaced lost ones.

        Raises `ToolError` if that can't be determined.
        """
        lost: list[tuple[Inode, int, str]] = []
        for inode in [each for each in self._held if each not in seen]:
            file, known = self._held[inode]
            try:
                path = os.readlink(f"/proc/self/fd/{file}")  # noqa: PTH115 - no path: it may end in " (deleted)"
            except OSError:
                path = ""
            try:
                is_there = _inode(os.lstat(path)) == inode
            except PermissionError:
                continue  # in a folder that can't be entered, which is hidden as a whole
            except OSError:
                is_there = False
            if is_there:
                self._held[inode] = (file, path)
                if is_within(path, self._root):
                    yield path, inode
                continue
            lost.append((inode, file, path.removesuffix(" (deleted)") or known))
        yield from self._find_lost(lost)
        for inode, _, known in lost:
            if is_secret_name(known.rpartition("/")[2]):
                with contextlib.suppress(OSError):
                    after = os.lstat(known)
                    if stat.S_ISREG(after.st_mode) and _inode(after) not in (inode, *seen):
                        yield known, _inode(after)

    def _find_lost(self, lost: Iterable[tuple[Inode, int, str]]) -> Iterator[tuple[str, Inode]]:
        """Find lost files by their other hard links, anywhere below the root; one without any is no longer tracked."""
        linked = {inode for inode, file, _ in lost if os.fstat(file).st_nlink}
        others = list(_hard_links_of(linked, self._root)) if linked else []
        for inode, file, _ in lost:
            del self._held[inode]
            os.close(file)
        for path, inode in others:
            self.track(path, inode)
            yield path, inode

    def close(self) -> None:
        """Stop tracking; safe to call twice."""
        _close(self._held)


def _close(held: dict[Inode, tuple[int, str]]) -> None:
    for file, _ in held.values():
        os.close(file)
    held.clear()


def _hard_links_of(inodes: Collection[Inode], root: str) -> Iterator[tuple[str, Inode]]:
    """In one search for all of them: each takes long."""
    waiting, left = [root], _MOST_ENTRIES
    while waiting:
        folder = waiting.pop()
        with _examining(folder), os.scandir(folder) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    raise ToolError(
                        f"nothing can run in the sandbox: a file with keys was hidden in {root} and has got another "
                        "name, and there are too many files to look for it. Move it back, or end this session and "
                        "start anew"
                    )
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif (inode := _inode(entry.stat(follow_symlinks=False))) in inodes:
                    yield entry.path, inode


@contextlib.contextmanager
def _examining(folder: str) -> Iterator[None]:
    """Pass over a folder that is gone or closed to this user."""
    try:
        yield
    except OSError as error:
        if not is_absent_or_closed(error):
            raise not_examined(folder, error) from error


def not_examined(path: str, error: OSError) -> ToolError:
    """The refusal to start a program while it is not known whether there are keys at a path."""
    return ToolError(
        f"nothing can run in the sandbox: {path} may hold keys and could not be examined ({reason_of(error)}). Try "
        "again, or ask to run without the sandbox"
    )


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino
