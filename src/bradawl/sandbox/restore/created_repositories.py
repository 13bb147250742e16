"""Remembers which repositories programs created, also for later sessions."""

import contextlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

_NAME: Final = "created-repositories"
_MOST: Final = 1_000
_LARGEST: Final = 1_048_576

_Identity = tuple[int, int, int]
_Record = list[tuple[bytes, _Identity]]


class CreatedRepositories:
    """Repositories and data folders of linked working trees that did not exist when the project was first opened.

    The record holds path and inodes, so that another repository at the same place counts as one of the user. Not
    thread-safe. Sessions that write at the same time can lose entries: those count as the user's, too.
    """

    def __init__(self, state: str) -> None:
        """`state` is a folder that programs can't reach; empty to remember nothing after this session."""
        self._state = state
        self._existed: frozenset[str] | None = None
        self._recorded: dict[str, _Identity] | None = None

    def new_among(self, folders: Iterable[str]) -> tuple[str, ...]:
        """The folders that did not exist at the first call and were not adopted, that were removed since, or that
        programs created in an earlier session.
        """
        found = tuple(folders)
        if self._existed is None:
            recorded = self._read()
            self._existed = frozenset(
                each for each in found if each not in recorded or recorded[each] != _identity(each)
            )
        missing = self._existed.difference(found)
        self._existed -= {each for each in missing if not os.path.lexists(each)}
        return tuple(each for each in found if each not in self._existed)

    def adopt(self, folders: Iterable[str]) -> None:
        """Count as the user's what is new and was not recorded. Call while no program runs."""
        if self._existed is not None:
            recorded = self._read()
            new = (each for each in folders if each not in self._existed)
            self._existed |= {each for each in new if recorded.get(each, ()) != _identity(each)}

    def record(self, created: Iterable[str]) -> None:
        """Save folders that programs created. If that fails, they count as the user's in later sessions."""
        known = self._read()
        added = {each: identity for each in created if known.get(each) != (identity := _identity(each)) and identity}
        if not added:
            return
        kept = {each: identity for each, identity in known.items() if _identity(each) == identity}
        self._recorded = kept | added
        if self._state:
            self._save(tuple(self._recorded.items())[-_MOST:])

    def _save(self, recorded: Iterable[tuple[str, _Identity]]) -> None:
        data = msgspec.msgpack.encode([(os.fsencode(path), identity) for path, identity in recorded])
        temporary = Path(f"{self._state}/{_NAME}.{os.urandom(4).hex()}")
        with contextlib.suppress(OSError):
            temporary.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(data)
            temporary.chmod(0o600)
            temporary.replace(f"{self._state}/{_NAME}")

    def _read(self) -> dict[str, _Identity]:
        if self._recorded is None:
            self._recorded = {}
            with contextlib.suppress(OSError, msgspec.DecodeError):
                file = Path(f"{self._state}/{_NAME}")
                if self._state and stat.S_ISREG(file.lstat().st_mode) and file.lstat().st_size < _LARGEST:
                    pairs = msgspec.msgpack.decode(file.read_bytes(), type=_Record)
                    self._recorded = {os.fsdecode(path): identity for path, identity in pairs}
        return self._recorded


def _identity(folder: str) -> _Identity | None:
    """Device and inodes of a repository's `.git` and its objects, or of a data folder; None if there is none.

    A `.git` file does not count but its folder: git replaces the file when it repairs a working tree.
    """
    try:
        status = os.lstat(f"{folder}/.git" if os.path.lexists(f"{folder}/.git") else folder)
        inner = f"{folder}/.git/objects" if stat.S_ISDIR(status.st_mode) else ""
        status = status if inner else os.lstat(folder)
        more = os.lstat(inner).st_ino if inner and os.path.lexists(inner) else 0
    except OSError:
        return None
    return status.st_dev, status.st_ino, more
