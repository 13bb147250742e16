"""Searches a folder of the machine's `/tmp` for what programs must not reach when the folder is shown to them."""

import os
import stat
import time
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.safety.permissions.home_paths import CREDENTIALS
from bradawl.safety.permissions.protected_paths import is_secret_name

_MOST_ENTRIES: Final = 50_000
_WITHIN_S: Final = 1.0
_MOST_FOUND: Final = 200
_SETTLED_NS: Final = 50_000_000
_WRITABLE_BY_GROUP, _WRITABLE_BY_ALL = stat.S_IWGRP, stat.S_IWOTH


class NotSearched(Exception):
    """A folder can't be shown; the text says why."""


class _Folder(msgspec.Struct, frozen=True):
    stamp: tuple[int, int, int]
    entries: int
    inner: tuple[str, ...]
    hidden: tuple[str, ...]


class TmpSurvey:
    """Finds keys, sockets, named pipes, devices and closed folders. Unchanged folders are not read again."""

    def __init__(self, most_entries: int = _MOST_ENTRIES, within_s: float = _WITHIN_S) -> None:
        """Limits of one search."""
        self._most_entries = most_entries
        self._within_s = within_s
        self._known: dict[str, _Folder] = {}

    def hidden_in(self, top: str) -> tuple[str, ...]:
        """The outermost paths below a folder that must be hidden. No link is followed.

        Raises `NotSearched` if they can't be determined in time, can't be covered, or if another user could exchange
        them; and `OSError`.
        """
        until, left = time.monotonic() + self._within_s, self._most_entries
        hidden: list[str] = []
        waiting, seen = [top], dict[str, _Folder]()
        while waiting:
            folder = self._examine(waiting.pop(), is_top=not seen)
            if folder is None:
                continue
            path, found = folder
            seen[path] = found
            left -= found.entries + 1
            if left < 0 or time.monotonic() > until:
                raise NotSearched("it has more files than could be searched for keys; name a folder or file in it")
            hidden += found.hidden
            waiting += found.inner
        self._known = {**{path: each for path, each in self._known.items() if not is_within(path, top)}, **seen}
        if len(hidden) > _MOST_FOUND:
            raise NotSearched(f"it has more keys, sockets and pipes than can be hidden ({_MOST_FOUND})")
        _check_is_own(top, hidden)
        return tuple(sorted(hidden))

    def _examine(self, path: str, *, is_top: bool) -> tuple[str, _Folder] | None:
        """None for a folder that is gone, or that this user can't open and can't change either."""
        try:
            status = os.lstat(path)
            stamp = (status.st_dev, status.st_ino, status.st_ctime_ns)
            known = self._known.get(path)
            if known is not None and known.stamp == stamp:
                return path, known
            found = _read(path, stamp)
        except FileNotFoundError:
            if is_top:
                raise
            return None
        except PermissionError as error:
            if is_top or _is_own(path):
                raise NotSearched(f"{path} can't be searched for keys") from error
            return None
        is_settled = time.time_ns() - stamp[2] > _SETTLED_NS  # a change within the clock's resolution may not show
        return path, found if is_settled else msgspec.structs.replace(found, stamp=(0, 0, 0))


def _read(path: str, stamp: tuple[int, int, int]) -> _Folder:
    inner: list[str] = []
    hidden: list[str] = []
    count = 0
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(opened) as entries:
            for entry in entries:
                count += 1
                place = f"{path}/{entry.name}"
                if entry.is_symlink():
                    continue  # it leads to what the program sees at its target
                is_folder = entry.is_dir(follow_symlinks=False)
                if not (is_folder or entry.is_file(follow_symlinks=False)) or _is_key(place, is_folder=is_folder):
                    hidden.append(place)
                elif is_folder:
                    inner.append(place)
    finally:
        os.close(opened)
    return _Folder(stamp, count, tuple(inner), tuple(hidden))


def _is_own(path: str) -> bool:
    return os.lstat(path).st_uid == os.geteuid()


# ------------------------------------------------------------------ names


def holds_keys_by_name(path: str) -> bool:
    """Whether a path, or a folder that it lies in, has a name of keys or passwords."""
    parts = path.strip("/").split("/")
    return any(is_secret_name(part) for part in parts) or any(
        _ends_like_credentials(parts[: number + 1]) for number in range(len(parts))
    )


def _is_key(path: str, *, is_folder: bool) -> bool:
    parts = path.split("/")
    return (not is_folder and is_secret_name(parts[-1])) or _ends_like_credentials(parts)


def _ends_like_credentials(parts: Sequence[str]) -> bool:
    longest, names = _credentials()
    last = [part.lower() for part in parts[-longest:]]
    return any("/".join(last[start:]) in names for start in range(len(last)))


@cache
def _credentials() -> tuple[int, frozenset[str]]:
    names = frozenset(name.lower() for name in CREDENTIALS.split())
    return max(name.count("/") + 1 for name in names), names


# ------------------------------------------------------------------ other users


def _check_is_own(top: str, hidden: Sequence[str]) -> None:
    """Raises `NotSearched` if another user could replace one of the `hidden` paths, or a folder above it in `top`: a
    mount over it would be elsewhere.
    """
    above: set[str] = set()
    for path in hidden:
        folder = path.rpartition("/")[0]
        while folder not in above and len(folder) >= len(top):
            above.add(folder)
            folder = folder.rpartition("/")[0]
    for folder in above:
        if not _belongs_to_user_alone(os.lstat(folder)):
            raise NotSearched(f"it has keys, sockets or pipes in {folder}, where other users may change files")


def _belongs_to_user_alone(status: os.stat_result) -> bool:
    """Whether only this user and root may change entries. A group with the number of the user has no other member."""
    is_closed = not status.st_mode & _WRITABLE_BY_ALL and (
        not status.st_mode & _WRITABLE_BY_GROUP or status.st_gid in (0, os.geteuid())
    )
    return is_closed and status.st_uid in (0, os.geteuid())
