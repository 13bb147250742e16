"""Copies a repository's object files, and finds which ones programs removed or damaged.

Copies are in a folder that programs can't reach. They are full copies if the file system shares data (reflink) or the
file is small; else hard links, which survive removal and moving but not overwriting. A copy is used only if its content
is what its name or its end says.
"""

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from bradawl.safety.whole_writes import write_all
from bradawl.sandbox.check_failures import is_absent_or_closed
from bradawl.sandbox.filesystem.closed_folders import make_readable
from bradawl.sandbox.filesystem.time_bits import NS_BITS
from bradawl.sandbox.restore.object_content import PackedNames, PackIndex, is_sound, name_bytes, share

_FOLDERS: Final = (*(f"{number:02x}" for number in range(256)), "pack")
_LOOSE: Final = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK: Final = re.compile(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.(?:pack|idx|promisor)")
_TICK_NS: Final = 100_000_000
_COPIED_BYTES: Final = 16_777_216
_COPIED_IN_ALL: Final = 134_217_728
_LINKED: Final = 60_000
_MOST_NAMES: Final = 20_000
_LOOKED_INTO: Final = 2_000
_SAMPLED: Final = 2
_MODE: Final = 0o444
_TEMPORARY: Final = "tmp_obj_"
"""The beginning of names that git takes for its own unfinished files, and removes when it prunes."""
_KEPT_S: Final = 30 * 86_400
_UNFINISHED_S: Final = 86_400
_KEPT_SHARE: Final = 0.5
_OF_NO_USE_S: Final = 14 * 86_400
"""Age in seconds at which git removes unreachable objects by default."""
_SHARE_DATA: Final = 0x40049409  # FICLONE of linux/fs.h
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Stamp = tuple[int, int, int, int]
_UNKNOWN: Final[Stamp] = (0, 0, 0, 0)


class ObjectFolder(msgspec.Struct, frozen=True):
    """The object files that were in a folder, and when."""

    stamp: Stamp
    files: dict[str, Stamp]


class LostObject(msgspec.Struct, frozen=True):
    """An object file that is gone or has other content."""

    name: str
    """Path relative to the folder of objects."""
    kept: str
    """Path of the copy; empty if there is none with the old content."""


class ObjectFiles:
    """The object files of one repository and their copies. Not thread-safe."""

    def __init__(self, objects: str, place: str, kept: str) -> None:
        """`objects` is the folder of objects, `kept` the folder for copies. Below `place` no link is followed."""
        self._way = (place, *objects[len(place) :].strip("/").split("/"))
        self._kept = kept
        self._seen: dict[str, ObjectFolder] = {}
        self._copied: dict[str, dict[str, int]] = {}
        """Names of the copies in each folder, and their sizes in bytes."""
        self._copied_bytes = self._linked = 0
        self._top = (0, 0)
        self._owed: dict[tuple[str, str], Stamp] = {}
        """Lost files that could not be restored yet."""

    def state(self) -> dict[str, ObjectFolder]:
        """The files of the last capture, by folders, for `resume`."""
        return dict(self._seen)

    def resume(self, state: dict[str, ObjectFolder]) -> None:
        """Compare with what another agent captured."""
        self._seen = dict(state)

    def capture(self, *, is_first: bool = True) -> None:
        """Copy new objects. An unchanged folder is not read again.

        Only with `is_first`, if no program runs, may files be gone that were there at the last call: then the user has
        removed them.
        """
        with _opened(self._way) as objects:
            for name in self._folders_to_look_at(objects):
                stamp = _stamp_of(name, stat.S_IFDIR, objects)
                known = self._seen.get(name)
                if stamp is None:
                    if is_first:
                        self._seen.pop(name, None)
                elif known is None or known.stamp != stamp:
                    self._capture_folder(name, stamp, objects, {} if is_first or known is None else known.files)
        if is_first:
            self._add_owed()

    def _add_owed(self) -> None:
        for (folder, name), stamp in tuple(self._owed.items()):
            files = self._seen[folder].files if folder in self._seen else {}
            if name in files:
                del self._owed[folder, name]
            else:
                self._seen[folder] = ObjectFolder(_UNKNOWN, {**files, name: stamp})

    def _folders_to_look_at(self, objects: int) -> tuple[str, ...]:
        """The known folders, if no folder can have been added since."""
        before = self._top
        try:
            found = os.fstat(objects)
        except OSError:
            self._top = (0, 0)
            return _FOLDERS
        # Two changes within one tick of the kernel's clock have the same time.
        is_settled = time.time_ns() - found.st_ctime_ns > _TICK_NS
        self._top = (found.st_ino, found.st_ctime_ns) if is_settled else (0, 0)
        return tuple(self._seen) if is_settled and self._top == before else _FOLDERS

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that had object files at the last capture."""
        return tuple(self._seen)

    def _capture_folder(self, name: str, stamp: Stamp, objects: int, known: dict[str, Stamp]) -> None:
        with _opened((name,), objects) as folder:
            files = _files_in(folder, name, self._seen[name].files if name in self._seen else ())
            kept = {each: self._keep(name, each, files[each], folder) for each in files}
        is_complete = known.keys() <= kept.keys()
        self._seen[name] = ObjectFolder(stamp if is_complete else _UNKNOWN, {**kept, **known})

    def has_new(self) -> bool:
        """Whether there are object files that the last capture did not find."""
        with _opened(self._way) as objects:
            for name in _FOLDERS:
                known = self._seen.get(name)
                if (stamp := _stamp_of(name, stat.S_IFDIR, objects)) and (known is None or known.stamp != stamp):
                    with _opened((name,), objects) as folder:
                        if _files_in(folder, name).keys() - (known.files.keys() if known else ()):
                            return True
        return False

    def lost_objects(self, named: Callable[[], frozenset[str]] = frozenset) -> list[LostObject]:
        """Captured files that are gone or changed since; of more than 2,000 loose objects, changes in place only if
        they concern one of the first in a folder.

        `named` returns objects that git never prunes: those to which references lead.
        """
        lost: list[LostObject] = []
        gone: list[tuple[str, str]] = []
        with _opened(self._way) as objects:
            is_looked_into = self._is_looked_into(objects)
            for name, known in self._seen.items():
                is_changed = _stamp_of(name, stat.S_IFDIR, objects) != known.stamp
                if is_looked_into or is_changed or name == "pack":
                    lost += self._changed(name, known, objects)
                if is_changed:
                    with _opened((name,), objects) as folder:
                        now = _files_in(folder, name, known.files)
                    gone += [(name, each) for each in known.files if each not in now]
            if gone:
                lost += self._not_replaced(gone, named, objects)
        return lost

    def _not_replaced(
        self, gone: list[tuple[str, str]], named: Callable[[], frozenset[str]], objects: int
    ) -> list[LostObject]:
        with _opened(("pack",), objects) as pack, _Packs(pack, self._packs_before()) as packs:
            left = [each for each in gone if not packs.replace(*each, f"{self._kept}/{each[0]}/{each[1]}")]
            pruned = [(folder, name) for folder, name in left if packs.may_be_pruned(folder, self._stamp(folder, name))]
        if pruned and not named().isdisjoint("".join(each) for each in left):
            pruned = []  # git prunes nothing that it still names, so a program has removed them
        lost = dict.fromkeys(left)
        for each in pruned:
            del lost[each]
        for folder, name in gone:
            if (folder, name) not in lost:  # git's own work: the next comparison need not find out again
                del self._seen[folder].files[name]
                self._owed.pop((folder, name), None)
        return [LostObject(f"{folder}/{name}", self._place_of(folder, name)) for folder, name in lost]

    def owe(self, name: str) -> None:
        """Call if a lost file could not be restored: it counts as lost again until it is there."""
        folder, _, each = name.partition("/")
        self._owed[folder, each] = self._stamp(folder, each)

    def _stamp(self, folder: str, name: str) -> Stamp:
        return self._seen[folder].files[name]

    def _packs_before(self) -> frozenset[str]:
        return frozenset(self._seen["pack"].files if "pack" in self._seen else ())

    def _is_looked_into(self, objects: int) -> bool:
        """Whether each loose object is examined: there are not too many, or one of the first in a folder changed."""
        if sum(len(folder.files) for folder in self._seen.values()) <= _LOOKED_INTO:
            return True
        firsts = ((name, each) for name, known in self._seen.items() for each in islice(known.files, _SAMPLED))
        return any(
            name != "pack"
            and (now := _stamp_of(f"{name}/{each}", stat.S_IFREG, objects)) is not None
            and now != self._stamp(name, each)
            for name, each in firsts
        )

    def _changed(self, name: str, known: ObjectFolder, objects: int) -> Iterator[LostObject]:
        for each, before in known.files.items():
            path = f"{name}/{each}"
            try:  # the most frequent case first: nothing has changed
                found = os.lstat(path, dir_fd=objects)
            except OSError:
                continue
            if found.st_ctime_ns == before[2] and found.st_ino == before[3]:
                continue
            make_readable(path, objects)
            now = _stamp_of(path, stat.S_IFREG, objects)
            if now is None or now == before:
                continue
            if self._is_damaged(name, each, before, objects):
                yield LostObject(path, self._place_of(name, each))
            else:
                known.files[each] = now

    def _is_damaged(self, folder: str, name: str, before: Stamp, objects: int) -> bool:
        path = f"{folder}/{name}"
        now = _stamp_of(path, stat.S_IFREG, objects)
        if now is None or max(now[0], before[0]) > _COPIED_BYTES:
            return now is not None and now[0] != before[0]
        with _opened((folder,), objects) as opened:
            content = _content(name, opened)
        sound = is_sound(folder, name, content)
        # A file may have been damaged before; that of an object too large to unpack can only be compared.
        return not sound and content != _content(f"{self._kept}/{path}")

    def _place_of(self, folder: str, name: str) -> str:
        path, stamp = f"{self._kept}/{folder}/{name}", self._stamp(folder, name)
        copied = _stamp_of(path, stat.S_IFREG)
        if copied is None:
            return ""
        sound = is_sound(folder, name, _content(path)) if copied[0] <= _COPIED_BYTES else None
        return path if sound or (sound is None and copied[0] == stamp[0]) else ""

    # ------------------------------------------------------------------ copies

    def _copies(self, folder: str) -> dict[str, int]:
        if folder not in self._copied:
            with _opened((f"{self._kept}/{folder}",)) as kept:
                self._copied[folder] = {name: stamp[0] for name, stamp in _files_in(kept, folder).items()}
        return self._copied[folder]

    def _keep(self, folder: str, name: str, found: Stamp, place: int) -> Stamp:
        """Copy a file unless a copy exists. Returns its new stamp, because a hard link changes ctime."""
        copies, goal = self._copies(folder), f"{self._kept}/{folder}/{name}"
        if copies.get(name) == found[0] or (name in copies and self._is_better(folder, name, goal)):
            return found
        with contextlib.suppress(OSError):
            Path(goal).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if name in copies:  # not the whole file: bradawl was killed, the disk was full, or a hard link was written
                Path(goal).unlink()
                del copies[name]
            if self._has_copied(name, goal, found[0], place):
                copies[name] = found[0]
        return _stamp_of(name, stat.S_IFREG, place) or found

    @staticmethod
    def _is_better(folder: str, name: str, copied: str) -> bool:
        """Whether a copy of another size than the file is what git wrote, so that the file is not."""
        stamp = _stamp_of(copied, stat.S_IFREG)
        return stamp is not None and (stamp[0] > _COPIED_BYTES or is_sound(folder, name, _content(copied)) is not False)

    def _has_copied(self, name: str, goal: str, size: int, place: int) -> bool:
        is_small = size <= _COPIED_BYTES and self._copied_bytes + size <= _COPIED_IN_ALL
        with contextlib.suppress(OSError):  # such as a full disk, on which a hard link needs no place
            unfinished = f"{goal.rpartition('/')[0]}/{_TEMPORARY}{os.urandom(8).hex()}"
            if copy(name, unfinished, place=place, only_shared=not is_small):
                Path(unfinished).chmod(_MODE)
                Path(unfinished).rename(goal)
                self._copied_bytes += size
                return True
        if self._linked >= _LINKED:
            return False
        os.link(name, goal, src_dir_fd=place, follow_symlinks=False)
        self._linked += 1
        return True

    def forget_old(self) -> None:
        """Remove copies of objects that left the repository long ago, and unfinished copies."""
        for folder in _FOLDERS:
            there = self._seen[folder].files if folder in self._seen else {}
            copies = self._copies(folder)
            for name in copies.keys() - there.keys():
                path = f"{self._kept}/{folder}/{name}"
                with contextlib.suppress(OSError):
                    if _is_out_of_use(path):
                        Path(path).unlink()
                        del copies[name]
            if copies:
                _remove_unfinished(f"{self._kept}/{folder}")


def _is_out_of_use(path: str) -> bool:
    """Whether a copy's object has been gone for long. The first call notes since when."""
    found = os.lstat(path)
    if found.st_nlink == 1 and found.st_mode & stat.S_IRGRP:
        # Copying set the change time. That says nothing about when the object left the repository.
        Path(path).chmod(stat.S_IRUSR)
        return False
    return found.st_ctime < time.time() - _KEPT_S


def _remove_unfinished(folder: str) -> None:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_TEMPORARY) and entry.stat().st_mtime < time.time() - _UNFINISHED_S:
                Path(entry.path).unlink()


class _Packs:
    """The current packs, which may hold objects that were elsewhere before."""

    def __init__(self, folder: int, before: frozenset[str]) -> None:
        """`folder` must stay open while this is in use."""
        self._folder = folder
        self._before = before
        self._held = contextlib.ExitStack()
        self._is_repacked = False
        self._names: PackedNames | None = None

    def __enter__(self) -> "_Packs":
        now = _files_in(self._folder, "pack")
        indexes: list[PackIndex] = []
        for name in now:
            if name.endswith(".idx") and f"{name[:-4]}.pack" in now and (index := self._index(name)):
                indexes.append(index)
                self._is_repacked |= name not in self._before
        self._names = PackedNames(indexes)
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _index(self, name: str) -> PackIndex | None:
        """The index of a pack; None if the pack is not the one of the index: then nothing is in it."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
            index = PackIndex(_open_in(name, self._folder, self._held), name_bytes(name))
            pack = _open_in(f"{name[:-4]}.pack", self._folder, opened)
            return index if index.belongs_to(pack) else None
        return None

    def replace(self, folder: str, name: str, kept: str) -> bool:
        """Whether the objects of a lost file are in a pack."""
        names = self._names
        if names is None:
            return False
        if folder != "pack":
            return bytes.fromhex(folder + name) in names
        if not self._is_repacked:
            return False
        # Repacking leaves out unreachable objects, but hardly ever more than half of a pack.
        with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
            index = PackIndex(_open_in(f"{kept.rpartition('.')[0]}.idx", None, opened), name_bytes(name))
            return share(index.sample(), names.__contains__) >= _KEPT_SHARE
        return True

    def may_be_pruned(self, folder: str, stamp: Stamp) -> bool:
        """Whether git removes such a file when it repacks, because no reference leads to its object."""
        return folder != "pack" and self._is_repacked and stamp[1] / 1e9 < time.time() - _OF_NO_USE_S


# ------------------------------------------------------------------ files


def copy(
    source: str, goal: str, *, only_shared: bool = False, place: int | None = None, parent: int | None = None
) -> bool:
    """Copy a regular file to a new one, sharing data if possible. False if it failed; nothing is left then.

    No link is followed. `only_shared` refuses a full copy. `place` is the folder of `source`, `parent` that of `goal`.
    """
    import fcntl

    with contextlib.ExitStack() as held:
        from_ = os.open(source, _READ, dir_fd=place)
        held.callback(os.close, from_)
        if not stat.S_ISREG(os.fstat(from_).st_mode):
            return False
        to = os.open(goal, _NEW, 0o444, dir_fd=parent)
        held.callback(os.close, to)
        try:
            try:
                fcntl.ioctl(to, _SHARE_DATA, from_)
            except OSError:
                if only_shared:
                    os.unlink(goal, dir_fd=parent)
                    return False
                while piece := os.read(from_, 1_048_576):
                    write_all(to, piece)
        except OSError:
            os.unlink(goal, dir_fd=parent)
            raise
    return True


@contextlib.contextmanager
def _opened(way: tuple[str, ...], start: int | None = None) -> Iterator[int]:
    """Descriptor of a folder reached without following links; -1 if there is none."""
    held = start
    try:
        for name in way:
            inner = -1
            with _absent_or_closed():
                inner = os.open(name, _FOLDER, dir_fd=held)
            if held is not None and held != start:
                os.close(held)
            held = inner
            if held < 0:
                break
        yield -1 if held is None else held
    finally:
        if held is not None and held >= 0 and held != start:
            os.close(held)


@contextlib.contextmanager
def _absent_or_closed() -> Iterator[None]:
    """Other errors, such as that of too many open files, must not make everything count as lost."""
    try:
        yield
    except OSError as error:
        if not is_absent_or_closed(error) and error.errno != errno.EBADF:
            raise


def _stamp_of(path: str, kind: int, folder: int | None = None) -> Stamp | None:
    try:
        found = os.lstat(path, dir_fd=folder)
    except OSError:
        return None
    if stat.S_IFMT(found.st_mode) != kind:
        return None
    return found.st_size, found.st_mtime_ns & NS_BITS, found.st_ctime_ns, found.st_ino


def _files_in(folder: int, name: str, known: Iterable[str] = ()) -> dict[str, Stamp]:
    """The object files in a folder, up to a limit, and all those with `known` names; none if there is no folder."""
    names: list[str] = []
    with _absent_or_closed(), os.scandir(folder) as entries:
        names += (entry.name for entry in islice(entries, _MOST_NAMES + 1))
    fits = _PACK if name == "pack" else _LOOSE
    if len(names) > _MOST_NAMES:  # a program can fill it with others
        names += known
    found = ((each, _stamp_of(each, stat.S_IFREG, folder)) for each in names if fits.fullmatch(each))
    return {each: stamp for each, stamp in found if stamp}


def _open_in(name: str, folder: int | None, held: contextlib.ExitStack) -> int:
    """Descriptor of a file, closed with `held`. Raises `OSError`."""
    opened = os.open(name, _READ, dir_fd=folder)
    held.callback(os.close, opened)
    return opened


def _content(path: str, folder: int | None = None) -> bytes:
    try:
        opened = os.open(path, _READ, dir_fd=folder)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
