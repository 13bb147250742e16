"""Moves what programs made, and what is in the way of what is restored, to a place where it is kept.

That is a folder in bradawl's state. If that is on another file system, it is copied there, and removed when the copy is
complete. If it can't be moved there, such as for a full disk, it stays in the workspace under names that git, editors
and shells do not obey. Nothing is removed without a copy.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from bradawl.safety.control_characters import in_remark
from bradawl.sandbox.filesystem.closed_folders import open_with_access
from bradawl.sandbox.filesystem.tree_removal import remove_entry

MOST_COPIED_BYTES: Final = 1_000_000_000
_SUFFIX: Final = ".aside"
_ARMED: Final = frozenset((".git", "commondir"))
"""Names that git obeys in any folder. In a folder with the others it obeys `HEAD` as well."""
_OF_DATA: Final = frozenset(("refs", "objects", "commondir"))


class SetAsideFolder:
    """Moves files and folders in the way to a new folder below `folder`, created when first needed."""

    def __init__(self, folder: str, *, most_bytes: int = MOST_COPIED_BYTES) -> None:
        """At most `most_bytes` of one file or folder are copied to another file system."""
        self._parent = folder
        self._most_bytes = most_bytes
        self._folder = ""
        self._beside: dict[str, str] = {}
        """Folders or files in the workspace that hold what could not be moved to the new folder, and why."""

    @property
    def places(self) -> tuple[str, ...]:
        """Where things were moved to: the new folder, and places in the workspace, with a remark."""
        beside = (
            f"{in_remark(path)} (it stays there until you remove it: it could not be moved to {self._parent}: {why})"
            for path, why in self._beside.items()
        )
        return (*filter(None, [self._folder]), *beside)

    def move_in(self, name: str, parent: int, path: str, place: str) -> None:
        """Move a file, link or folder away; does nothing if it does not exist. `path` names it in the new folder.

        `place` is a folder above that programs can't move. If the new folder can't take it, it is moved to a new folder
        in `place`, or renamed. Raises `OSError` if that fails as well; then it is unchanged.
        """
        try:
            mode = os.lstat(name, dir_fd=parent).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            # Moving a folder changes its entry "..", so it must be writable.
            with contextlib.suppress(OSError):
                os.close(open_with_access(name, parent))
        new = f"{os.urandom(2).hex()}{path.replace('/', '%')[-200:]}"
        try:
            goal = f"{self._made()}/{new}"
            os.rename(name, goal, src_dir_fd=parent)
        except OSError as error:
            self._keep_beside(name, parent, path, place, new, error)

    def _made(self) -> str:
        if not self._folder:
            folder = f"{self._parent}/{os.urandom(8).hex()}"
            Path(folder).mkdir(mode=0o700, parents=True)
            self._folder = folder
        return self._folder

    def _keep_beside(self, name: str, parent: int, path: str, place: str, new: str, error: OSError) -> None:
        """Move it to a harmless place in the workspace at once, then to the new folder if that can take a copy."""
        from bradawl.sandbox.filesystem.tree_copy import copy_tree

        with _beside(name, parent, path, place, new) as (folder, kept, shown):
            if error.errno == errno.EXDEV:
                try:
                    copy_tree(kept, folder, f"{self._folder}/{new}", most_bytes=self._most_bytes)
                except OSError as failure:
                    error = failure
                else:
                    remove_entry(kept, folder)
                    return
            disarm(kept, folder)
            self._beside[shown] = error.strerror or str(error)
            if self._folder:
                with contextlib.suppress(OSError):  # it holds what was moved before
                    Path(self._folder).rmdir()
                    self._folder = ""


@contextlib.contextmanager
def _beside(name: str, parent: int, path: str, place: str, new: str) -> Iterator[tuple[int, str, str]]:
    """Move it to a new folder in `place`, or rename it where it is: the folder, its name there, and the path to show.

    The folder is removed at the end if it is empty.
    """
    folder, kept, above = f".bradawl-{os.urandom(8).hex()}{_SUFFIX}", f"{new}{_SUFFIX}", path.rpartition("/")[0]
    with contextlib.ExitStack() as held:
        top = os.dup(parent) if place == "/" else open_with_access(place)
        held.callback(os.close, top)
        try:
            os.mkdir(folder, 0o700, dir_fd=top)
            inner = open_with_access(folder, top)
            held.callback(os.close, inner)
            held.callback(_remove_empty, folder, top)
            os.rename(name, kept, src_dir_fd=parent, dst_dir_fd=inner)
        except OSError:  # such as a file system that is mounted below, or is full
            os.rename(name, folder, src_dir_fd=parent, dst_dir_fd=parent)
            yield parent, folder, f"{above}/{folder}"
        else:
            yield inner, kept, f"{above if place == '/' else place}/{folder}"


def _remove_empty(name: str, parent: int) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(name, dir_fd=parent)


def disarm(name: str, parent: int) -> None:
    """Rename what git would obey in a folder, at any depth that has a path. What can't be renamed stays."""
    waiting = [f"/proc/self/fd/{parent}/{name}"]
    while waiting:
        folder = waiting.pop()
        with contextlib.suppress(OSError):  # a file or link, or too deep for a path
            os.close(open_with_access(folder))
            with os.scandir(folder) as entries:
                found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            waiting += (f"{folder}/{_disarmed(folder, each, found)}" for each, is_folder in found.items() if is_folder)
            for each in (each for each, is_folder in found.items() if not is_folder):
                _disarmed(folder, each, found)


def _disarmed(folder: str, name: str, names: Collection[str]) -> str:
    """The name of an entry after it was renamed, if git would obey it in a folder with such names."""
    if name in _ARMED or (name == "HEAD" and not _OF_DATA.isdisjoint(names)):
        with contextlib.suppress(OSError):
            Path(f"{folder}/{name}").rename(f"{folder}/{name}{_SUFFIX}")
            return f"{name}{_SUFFIX}"
    return name
