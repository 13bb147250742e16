"""What a restore is about to do, written to the disk before its first change, so that one that was killed can go on.

A file `SESSION.restore` in the store's folder, locked while the restore runs, names the change record of the restore
and its temporary files. It is removed when the session's log has the restore. If the session goes on instead, the name
of the change record is added to `SESSION.abandoned`: what that restore had done is no change by others.
"""

import contextlib
import fcntl
import os
import shlex
import stat
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.opened_notes import close_again
from bradawl.checkpoints.store_folder import StoreFolder
from bradawl.safety.whole_writes import write_all

_SUFFIX: Final = ".restore"
_ABANDONED: Final = ".abandoned"
_REF_BYTES: Final = 64
_MOST_ABANDONED: Final = 100
_MOST_BYTES: Final = 64_000_000
_HEX: Final = frozenset("0123456789abcdef")


class RestoreIntent(msgspec.Struct, frozen=True):
    """An undo or redo that has begun, and may have changed any part of its files."""

    session: str
    kind: Literal["undo", "redo"]
    part: Literal["code", "both"]
    to: int
    """The entry of the log to return to."""
    head: int
    """The last entry of the log when it began. A later prompt or return in the log means that it is over."""
    step: str
    """Name of the first step that is undone; empty for a redo."""
    ref: str
    """Name of the change record: the states before, and those to restore."""
    temporary: bytes
    """Name of the temporary file in the folder of the path that is restored."""
    opened: tuple[tuple[bytes, int], ...] = ()
    """Folders without rights for their owner that were opened, with their modes."""


def unfinished_text(intent: RestoreIntent, session: str = "", places: Sequence[str] = ()) -> str:
    """That an undo or redo stopped in the middle, and how to go on; `session` is named if it is another one.

    `places` are the options of the command that name folders.
    """
    to = f" to before step {intent.step}" if intent.step else ""
    of = f" of session {session}" if session else ""
    command = shlex.join(["bradawl", "undo", *places, *filter(None, [session])])
    finish, back = ("/undo", "/redo") if intent.kind == "undo" else ("/redo", "/undo")
    commands = {"/undo": f"`{command}`", "/redo": f"`{command} --redo`"}
    inside = dict.fromkeys(commands, "") if session else {each: f"{each} or " for each in commands}
    return (
        f"{'An undo' if intent.kind == 'undo' else 'A redo'}{to}{of} stopped in the middle: some of its files are "
        f"restored, others are not. {inside[finish]}{commands[finish]} finishes it, "
        f"{inside[back]}{commands[back]} takes it back."
    )


def new_temporary_name() -> bytes:
    """A name that no other file has."""
    return b".bradawl-%s.tmp" % os.urandom(8).hex().encode()


class RestoreIntents:
    """The intents in a store's folder. `close` unlocks the intent that was written last; its file stays."""

    def __init__(self, folder: StoreFolder) -> None:
        self._folder = folder
        self._locked = -1

    def read(self, session: str) -> RestoreIntent | None:
        """The intent of a session; None if there is none. Raises `OSError`."""
        if self._folder.descriptor() < 0:
            return None
        try:
            file = self._folder.open(session + _SUFFIX)
        except FileNotFoundError:
            return None
        try:
            return _decoded(file)
        finally:
            os.close(file)

    def left_over(self) -> list[RestoreIntent]:
        """The intents of restores that do not run any more. Raises `OSError`."""
        names = sorted(name for name in self._folder.names() if name.endswith(_SUFFIX))
        return [intent for name in names if (intent := self._unlocked(name)) is not None]

    def _unlocked(self, name: str) -> RestoreIntent | None:
        try:
            file = self._folder.open(name)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return _decoded(file)
        except OSError:
            return None
        finally:
            os.close(file)

    def write(self, intent: RestoreIntent) -> None:
        """Write the intent of a session to the disk, in place of an earlier one, and lock it. Raises `OSError`."""
        file = self._replaced(intent.session + _SUFFIX, msgspec.msgpack.encode(intent))
        self.close()
        self._locked = file

    def _replaced(self, name: str, data: bytes) -> int:
        """Write a file to the disk, in place of an earlier one; returns its descriptor, locked."""
        temporary = f"{name}.new"
        self._folder.made()
        self._folder.remove(temporary)
        file = self._folder.new(temporary)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            write_all(file, data)
            os.fsync(file)
            self._folder.rename(temporary, name)
            self._folder.sync()
        except BaseException:
            os.close(file)
            with contextlib.suppress(OSError):
                self._folder.remove(temporary)
            raise
        return file

    def abandon(self, session: str) -> None:
        """Remove the intent of a session that went on, and keep the name of its record. Raises `OSError`."""
        if (intent := self.read(session)) is not None:
            refs = dict.fromkeys((*self.abandoned(session), intent.ref))
            os.close(self._replaced(session + _ABANDONED, "".join(refs).encode()[-_MOST_ABANDONED * _REF_BYTES :]))
        self.remove(session)

    def abandoned(self, session: str) -> tuple[str, ...]:
        """Names of the change records of the session's restores that were neither finished nor taken back, the oldest
        first, and of the one with an intent. Raises `OSError`.
        """
        intent = self.read(session)
        last = () if intent is None else (intent.ref,)
        if self._folder.descriptor() < 0:
            return last
        try:
            file = self._folder.open(session + _ABANDONED)
        except FileNotFoundError:
            return last
        try:
            refs = os.pread(file, _MOST_ABANDONED * _REF_BYTES, 0).decode(errors="replace")
        finally:
            os.close(file)
        found = (refs[at : at + _REF_BYTES] for at in range(0, len(refs), _REF_BYTES))
        return (*(ref for ref in found if _HEX.issuperset(ref) and len(ref) == _REF_BYTES), *last)

    def remove(self, session: str) -> None:
        """Remove the intent of a session if there is one. Raises `OSError`."""
        if self._folder.descriptor() >= 0:
            self._folder.remove(session + _SUFFIX)
        self.close()

    def close(self) -> None:
        """Unlock the intent; safe to call twice."""
        if self._locked >= 0:
            os.close(self._locked)
        self._locked = -1


def _decoded(file: int) -> RestoreIntent | None:
    try:
        return msgspec.msgpack.decode(os.pread(file, _MOST_BYTES, 0), type=RestoreIntent)
    except msgspec.DecodeError:
        return None


def remove_temporary_files(intent: RestoreIntent, paths: Iterable[bytes], roots: Sequence[bytes]) -> None:
    """Remove the temporary file that a killed restore of these paths left, and its lock of a file of git.

    A lock is removed only if it is another name of the temporary file.
    """
    of_folder: dict[bytes, list[bytes]] = {}
    for path in paths:
        folder, name = os.path.split(path)
        of_folder.setdefault(folder, []).append(name)
    with FolderWalk(tuple(roots)) as walk:
        for folder, names in of_folder.items():
            with contextlib.suppress(OSError):
                _remove_temporary_file(walk.folder(folder), intent.temporary, names)


def _remove_temporary_file(folder: int, temporary: bytes, names: Sequence[bytes]) -> None:
    found = os.stat(temporary, dir_fd=folder, follow_symlinks=False)
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        return
    for name in names if found.st_nlink > 1 else ():
        with contextlib.suppress(OSError):
            lock = os.stat(name + b".lock", dir_fd=folder, follow_symlinks=False)
            if os.path.samestat(lock, found):
                os.unlink(name + b".lock", dir_fd=folder)
    os.unlink(temporary, dir_fd=folder)


def close_opened_folders(intent: RestoreIntent, roots: Sequence[bytes]) -> None:
    """Give the folders that a killed restore opened their modes again, unless they have another mode by now."""
    close_again(intent.opened, roots)
