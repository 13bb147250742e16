"""Puts protected files back as they were where a sandbox can't keep programs from changing them.

They are looked at before a program starts and after it and its family are gone. What changed in between is moved to a
folder that programs can't write to, so that nothing is lost, and made again as it was. A record of what they were lies
on disk while a program runs: who starts next after a crash puts them back, too.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from bradawl.core.effects import is_within
from bradawl.sandbox.restore.harmless_git_files import is_new_repository
from bradawl.sandbox.restore.put_back import SetAsideFolder, forget_old, put_back
from bradawl.sandbox.restore.snapshot import Entry, Snapshot, WatchedPath, retake_snapshot, take_snapshot

_RECORD = "before-"
_MOST_ALONE = 20
_NEW_RECORD = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ProtectedFiles:
    """The protected files of some folders, watched while programs run. Not for several threads; its maker closes it.

    Programs that run at the same time share one picture of how things were, so that what one of them changes is not
    taken for the state that another one found. Who else changes a protected file meanwhile is undone, too: who did it
    can't be told.
    """

    def __init__(
        self,
        places: Callable[[], Iterable[WatchedPath]],
        kept: str,
        appeared: Callable[[], Iterable[WatchedPath]] | None = None,
        is_fine: Callable[[str, Entry, Entry | None], bool] | None = None,
        *,
        is_held: bool = False,
    ) -> None:
        """`places` names what is protected: a folder, and a name in it where `*` stands for one name or several. It is
        asked when the first of some programs begins; `appeared` when one has ended, for what was not there before, such
        as a repository that was made. Without it `places` is asked again. `is_fine` is told a path, what it was
        and what it is, None if it is gone: what it says yes to stays. `is_held` says that programs are held from
        changing what was there, so that it is others who have done so: after a crash all of that stays.

        `kept` is the folder for what was changed; made when first needed.
        """
        self._places = places
        self._appeared = appeared or places
        self._is_fine = is_fine
        self._is_held = is_held
        self._kept = kept
        self._looked_at: tuple[WatchedPath, ...] = ()
        self._before: Snapshot = {}
        self._running = 0
        self._record = -1
        self._record_path = ""
        self._recovered: tuple[str, ...] | None = None

    def begin(self) -> None:
        """To be called before a program starts."""
        if self._recovered is None:
            self._recovered = self._recover()
        if self._running == 0:
            self._looked_at = tuple(self._places())
            self._before = take_snapshot(self._looked_at, self._before)
            self._write_record()
        self._running += 1

    def end(self, allowed: tuple[str, ...] = ()) -> tuple[str, ...]:
        """To be called once for each `begin`, when the program is gone: what had changed and is again as it was.

        `allowed` names files and folders that the program might change. What can't be put back is said so.
        """
        self._running -= 1
        before = self._before
        now = retake_snapshot(dict.fromkeys((*self._looked_at, *self._appeared())), before)
        changed = _changed(before, now)
        given = {path for path in changed if any(is_within(path, folder) for folder in allowed)}
        fine = {path for path in changed if self._may_stay(path, before.get(path), now.get(path))}
        for path in given:
            _take_over(before, now, (each for each in {**before, **now} if is_within(each, path)))
        _take_over(before, now, fine)  # what lies in it was judged for itself
        restored = self._restore(before, now, [path for path in changed if path not in given | fine])
        if self._running == 0:
            self._empty_record()
        recovered, self._recovered = self._recovered or (), ()
        return (*recovered, *restored)

    def _may_stay(self, path: str, before: Entry | None, now: Entry | None) -> bool:
        return bool(self._is_fine and before and self._is_fine(path, before, now))

    def close(self) -> None:
        """Forget what was; safe to call twice."""
        self._drop_record()

    # ------------------------------------------------------------------ a crash in between

    def _write_record(self) -> None:
        """Without it a crash goes unnoticed, which is no reason to run nothing."""
        with contextlib.suppress(OSError):
            self._record = self._record_again() if self._record_path else -1
            if self._record < 0:
                self._open_record()
            data = memoryview(_encode(self._looked_at, self._before))
            while data:
                data = data[os.write(self._record, data) :]

    def _record_again(self) -> int:
        """The empty one of the program before, locked; -1 if another agent has taken it for left behind."""
        with contextlib.suppress(OSError):
            record = os.open(self._record_path, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(record).st_nlink:
                    return record
            except OSError:
                pass
            os.close(record)
        return -1

    def _open_record(self) -> None:
        Path(self._kept).mkdir(mode=0o700, parents=True, exist_ok=True)
        path = f"{self._kept}/{_RECORD}{os.urandom(8).hex()}"
        self._record = os.open(path, _NEW_RECORD, 0o600)
        self._record_path = path
        fcntl.flock(self._record, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _empty_record(self) -> None:
        """For the next program: to make and remove one takes longer."""
        if self._record >= 0:
            try:
                os.ftruncate(self._record, 0)
            except OSError:
                self._drop_record()
            else:
                os.close(self._record)
                self._record = -1

    def _drop_record(self) -> None:
        if self._record_path:
            with contextlib.suppress(OSError):
                Path(self._record_path).unlink()
            self._record_path = ""
        if self._record >= 0:
            os.close(self._record)
            self._record = -1

    def _recover(self) -> tuple[str, ...]:
        """Put back what programs changed whose agent was killed before it could look."""
        restored: list[str] = []
        try:
            records = [path for path in Path(self._kept).iterdir() if path.name.startswith(_RECORD)]
        except OSError:
            return ()
        forget_old(self._kept)
        for record in records:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                places, before = _abandoned(str(record))
                now = retake_snapshot(places, before)
                changed = [path for path in _changed(before, now) if not self._is_held or path not in before]
                restored += self._restore(before, now, changed)
                record.unlink()
        return tuple(restored)

    # ------------------------------------------------------------------ putting back

    def _restore(self, before: Snapshot, now: Snapshot, changed: list[str]) -> tuple[str, ...]:
        """Outermost first, so that what lies in a folder that was replaced found its folder again."""
        done: list[str] = []
        aside = SetAsideFolder(self._kept)
        for path in sorted(changed):
            entry = before.get(path)
            try:
                put_back(path, os.fsdecode((entry or now.get(path) or _anything_in(path, now)).place), entry, aside)
            except OSError as error:
                done.append(f"{path} (could not be put back: {error.strerror})")
            else:
                done.append(path)
        return tuple(done)


_Record = tuple[list[tuple[bytes, bytes]], list[tuple[bytes, Entry]]]


def _encode(places: Iterable[WatchedPath], found: Snapshot) -> bytes:
    record: _Record = (
        [(os.fsencode(folder), os.fsencode(name)) for folder, name in places],
        [(os.fsencode(path), entry) for path, entry in found.items()],
    )
    return msgspec.msgpack.encode(record)


def _abandoned(path: str) -> tuple[list[WatchedPath], Snapshot]:
    """What a record says. Raises `BlockingIOError` if who wrote it is still there."""
    opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(opened, "rb", closefd=False) as record:
            data = record.read()
    finally:
        os.close(opened)
    if not data:  # no program ran
        return [], {}
    places, pairs = msgspec.msgpack.decode(data, type=_Record)
    named = [(os.fsdecode(folder), os.fsdecode(name)) for folder, name in places]
    return named, {os.fsdecode(name): entry for name, entry in pairs}


def _changed(before: Snapshot, now: Snapshot) -> list[str]:
    """Paths whose kind, content or mode is another; of a new folder, or one that is gone, the folder alone."""
    paths = {path for path in (*before, *now) if not _same(before.get(path), now.get(path))}
    paths = {path for path in paths if path in before or not _may_be_new(path, now[path], before)}
    paths |= _crowded(paths, before)
    return [path for path in paths if path in before or not _lies_in(path, paths)]


def _anything_in(folder: str, now: Snapshot) -> Entry:
    return next(entry for path, entry in now.items() if is_within(path, folder))


def _crowded(paths: set[str], before: Snapshot) -> set[str]:
    """New folders with so much in them that is to be moved aside that they are moved as a whole."""
    from collections import Counter

    count = Counter(path.rpartition("/")[0] for path in paths if path not in before)
    return {folder for folder, number in count.items() if number > _MOST_ALONE and folder not in before}


def _may_be_new(path: str, entry: Entry, before: Snapshot) -> bool:
    return entry.kind == "parent" or is_new_repository(path, entry, before)


def _lies_in(path: str, folders: set[str]) -> bool:
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        if path in folders:
            return True
    return False


def _same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None or one.kind != other.kind:
        return one is other
    if one.kind in ("folder", "parent") or one.stamp == other.stamp:
        return True
    return one.content is not None and (one.content, one.mode) == (other.content, other.mode)


def _take_over(before: Snapshot, now: Snapshot, paths: Iterable[str]) -> None:
    for path in paths:
        if path in now:
            before[path] = now[path]
        else:
            before.pop(path, None)
