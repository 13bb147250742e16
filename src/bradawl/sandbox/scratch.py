"""The folder behind `/tmp` of sandboxed commands: kept with a saved session, else temporary."""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.core.errors import ToolError
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.sandbox.path_translation import nearest_existing

UNUSED_DAYS: Final = 30
"""Days after which the folder of a session that was not continued is removed."""
MOST_BYTES: Final = 2_000_000_000
"""Bytes of all folders of a project; above that the longest unused ones are removed."""
_MOST_ENTRIES: Final = 500_000
"""Entries of one folder that are measured. A larger one is removed before all others, and counts as far as it was
measured, so that none is removed in its place.
"""
_ID_LENGTH: Final = 26
COPIED: Final = ".copied"
"""Ending of the record, beside a session's folder, of what was copied to the machine's `/tmp`."""


class SessionScratch:
    """Chooses the folder behind `/tmp`: `<folder>/<session id>`, or a temporary one.

    The folder is made by the sandbox, when it is first needed. Sessions that are open at the same time share the folder
    of the first one.
    """

    def __init__(self, folder: str, temporary: str) -> None:
        """`folder` holds those of all sessions of the project. `temporary` is for sessions that are not saved."""
        self.folder = folder
        self._temporary = temporary
        self._place = ""
        self.is_kept = False
        """Whether the folder stays when the session ends. Determined by `choose`."""

    def choose(self, session_id: str) -> None:
        """Use the folder of a saved session, where one can be made; call between sessions."""
        self.leave()
        if _is_usable(self.folder):
            self._place, self.is_kept = f"{self.folder}/{session_id}", True

    @property
    def known(self) -> str:
        """The folder; empty as long as no session has been opened and no command needed one."""
        return self._place

    def place(self) -> str:
        """The folder, which need not exist. From now on it stays the same, until the next session."""
        if not self._place:
            self._place = f"{self._temporary}/bradawl-{os.urandom(8).hex()}"
        return self._place

    def leave(self) -> None:
        """End the use of the folder: without files it is removed. Call when no command can use it any more."""
        place, self._place = self._place, ""
        if self.is_kept and place and not _has_files(place):
            remove_folder(place)
            with contextlib.suppress(OSError):
                Path(self.folder).rmdir()  # refused unless it is empty
        self.is_kept = False

    def remove_unused(self) -> None:
        """Remove folders that other sessions left and no longer need; see `remove_unused`. Raises nothing."""
        remove_unused(self.folder, str(Path(self.folder).with_name("sessions")), self._place)


def make_scratch(layout: SandboxLayout, store: PlaceholderStore) -> None:
    """Create the folder behind `/tmp` of a layout. The store removes it with its `close`, unless it is kept.

    Raises `ToolError`.
    """
    try:
        if layout.keeps_scratch:
            make_kept_folder(layout.scratch)
        elif not Path(layout.scratch).is_dir():
            store.make_folder(layout.scratch)
    except OSError as error:
        raise ToolError(
            f"the sandbox's temporary folder {layout.scratch} can't be made: {error.strerror}; nothing was run"
        ) from error


def make_kept_folder(path: str) -> None:
    """Create the folder of a session, or use the one that its last run left. Only this user may enter it.

    Raises `OSError` if something else is in its place.
    """
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        Path(path).mkdir(0o700)
    opened = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(opened).st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", path)
        os.chmod(f"/proc/self/fd/{opened}", 0o700)  # noqa: PTH101 - a command may have closed it
    finally:
        os.close(opened)


class _Left(NamedTuple):
    """The folder of another session. Sorted, those to remove first come first."""

    is_whole: bool
    """Whether all of it was measured."""
    used_s: float
    path: str
    size_bytes: int


def remove_unused(folder: str, sessions: str, keep: str, now_s: float | None = None) -> None:
    """Remove folders of sessions that were deleted, or not used for `UNUSED_DAYS`, and the longest unused ones as long
    as all together have more than `MOST_BYTES`.

    `sessions` is the folder of the logs. `keep` is the present one. Those of open sessions stay. Raises nothing.
    """
    now = time.time() if now_s is None else now_s
    with contextlib.suppress(OSError):
        left: list[_Left] = []
        for name in os.listdir(folder):  # noqa: PTH208 - names suffice
            path = f"{folder}/{name}"
            if COPIED in name and not os.path.lexists(f"{sessions}/{name.partition(COPIED)[0]}.jsonl"):
                Path(path).unlink()
            if path == keep or len(name) != _ID_LENGTH or not name.isalnum():
                continue
            used = _last_use(f"{sessions}/{name}.jsonl")
            if now - used > UNUSED_DAYS * 86_400:
                _remove_unless_open(path, f"{sessions}/{name}.lock")
            else:
                size, is_whole = _size(path)
                left.append(_Left(is_whole, used, path, size))
        total = sum(each.size_bytes for each in left) + (_size(keep)[0] if keep else 0)
        for each in sorted(left):
            if total <= MOST_BYTES:
                return
            name = each.path.rpartition("/")[2]
            if _remove_unless_open(each.path, f"{sessions}/{name}.lock"):
                total -= each.size_bytes


def _last_use(log: str) -> float:
    """Unix time; 0 for a session whose log was deleted. Commands can set the times of their folder, not of the log."""
    try:
        return Path(log).stat().st_mtime
    except OSError:
        return 0.0


def _remove_unless_open(path: str, lock: str) -> bool:
    """Remove a folder if no program holds the lock of its session."""
    held = -1
    with contextlib.suppress(FileNotFoundError):
        held = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if held >= 0:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_folder(path)
    except OSError:
        return False
    finally:
        if held >= 0:
            os.close(held)
    return True


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Entries of a folder at any depth; no link is followed, and what can't be listed is left out."""
    waiting = [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                yield entry


def _has_files(folder: str) -> bool:
    """Whether a folder holds anything but folders. A folder that can't be listed may."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    if not entry.is_dir(follow_symlinks=False):
                        return True
                    waiting.append(entry.path)
        except FileNotFoundError:
            continue
        except OSError:
            return True
    return False


def _size(folder: str) -> tuple[int, bool]:
    """Bytes on the disk, and whether everything was measured. A file with several names counts once."""
    total, linked = 0, set[tuple[int, int]]()
    for count, entry in enumerate(_entries(folder)):
        if count >= _MOST_ENTRIES:
            return total, False
        with contextlib.suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            place = (status.st_dev, status.st_ino)
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                if place in linked:
                    continue
                linked.add(place)
            total += status.st_blocks * 512
    return total, True


def _is_usable(folder: str) -> bool:
    """Whether a folder can be made there in which programs may start files."""
    place = nearest_existing(folder)
    try:
        is_noexec = bool(os.statvfs(place).f_flag & os.ST_NOEXEC)
        return stat.S_ISDIR(os.lstat(place).st_mode) and os.access(place, os.W_OK | os.X_OK) and not is_noexec
    except OSError:
        return False
