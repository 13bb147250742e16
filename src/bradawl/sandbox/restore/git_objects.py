"""Copies a repository's object files, and finds which ones programs removed or damaged.

Copies are in a folder that programs can't reach. They are full copies if the file system shares data (reflink) or the
file is small; else hard links, which survive removal and moving but not overwriting.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from bradawl.sandbox.filesystem.closed_folders import make_readable

_FOLDERS: Final = (*(f"{number:02x}" for number in range(256)), "pack")
_LOOSE: Final = re.compile(r"[0-9a-f]{38}(?:[0-9a-f]{24})?")
_PACK: Final = re.compile(r"pack-[0-9a-f]{40}(?:[0-9a-f]{24})?\.(?:pack|idx)")
_TICK_NS: Final = 100_000_000
_COPIED_BYTES: Final = 16_777_216
_COPIED_IN_ALL: Final = 134_217_728
_LINKED: Final = 60_000
_MOST_NAMES: Final = 20_000
_LOOKED_INTO: Final = 250
_KEPT_S: Final = 30 * 86_400
_OF_NO_USE_S: Final = 14 * 86_400
"""Age in seconds at which git removes unreachable objects by default."""
_SHARE_DATA: Final = 0x40049409  # FICLONE of linux/fs.h
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

Stamp = tuple[int, int, int, int]


class _Folder(msgspec.Struct, frozen=True):
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
        self._seen: dict[str, _Folder] = {}
        self._copied: dict[str, set[str]] = {}
        self._copied_bytes = self._linked = 0
        self._top = (0, 0)

    def capture(self) -> None:
        """Copy new objects. An unchanged folder is not read again."""
        with _opened(self._way) as objects:
            for name in self._folders_to_look_at(objects):
                stamp = _stamp_of(name, stat.S_IFDIR, objects)
                known = self._seen.get(name)
                if stamp is None:
                    self._seen.pop(name, None)
                elif known is None or known.stamp != stamp:
                    self._capture_folder(name, stamp, objects)

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

    def _capture_folder(self, name: str, stamp: Stamp, objects: int) -> None:
        with _opened((name,), objects) as folder:
            files = _files_in(folder, name)
            self._seen[name] = _Folder(stamp, {each: self._keep(name, each, files[each], folder) for each in files})

    def lost_objects(self) -> Iterator[LostObject]:
        """Captured files that are gone or changed since; with many loose objects only those that are gone."""
        is_looked_into = sum(len(folder.files) for folder in self._seen.values()) <= _LOOKED_INTO
        gone: list[tuple[str, str]] = []
        with _opened(self._way) as objects:
            for name, known in self._seen.items():
                if is_looked_into or name == "pack":
                    yield from self._changed(name, known, objects)
                if _stamp_of(name, stat.S_IFDIR, objects) != known.stamp:
                    with _opened((name,), objects) as folder:
                        now = _files_in(folder, name)
                    gone += [(name, each) for each in known.files if each not in now]
            if not gone:
                return
            with _opened(("pack",), objects) as pack:
                packs = _Packs(pack, frozenset(self._packs_before()))
                for folder_name, each in gone:
                    stamp, kept = self._seen[folder_name].files[each], f"{self._kept}/{folder_name}/{each}"
                    if not packs.replace(folder_name, each, kept, stamp):
                        yield LostObject(f"{folder_name}/{each}", self._place_of(folder_name, each))

    def _packs_before(self) -> Iterator[str]:
        if folder := self._seen.get("pack"):
            yield from folder.files

    def _changed(self, name: str, known: _Folder, objects: int) -> Iterator[LostObject]:
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
            if now is not None and now != before:
                kept = f"{self._kept}/{name}/{each}"
                copied = _stamp_of(kept, stat.S_IFREG)
                is_whole = copied is not None and copied[3] != now[3]  # not a hard link to the same file
                if now[0] != before[0] or (
                    is_whole and now[0] <= _COPIED_BYTES and _differs(name, each, kept, objects)
                ):
                    yield LostObject(f"{name}/{each}", kept if is_whole else "")

    def _place_of(self, folder: str, name: str) -> str:
        path = f"{self._kept}/{folder}/{name}"
        return path if name in self._copies(folder) and os.path.lexists(path) else ""

    # ------------------------------------------------------------------ copies

    def _copies(self, folder: str) -> set[str]:
        if folder not in self._copied:
            with _opened((f"{self._kept}/{folder}",)) as kept:
                self._copied[folder] = set(_files_in(kept, folder))
        return self._copied[folder]

    def _keep(self, folder: str, name: str, found: Stamp, place: int) -> Stamp:
        """Copy a file unless a copy exists. Returns its new stamp, because a hard link changes ctime."""
        copies = self._copies(folder)
        if name in copies:
            return found
        goal = f"{self._kept}/{folder}/{name}"
        with contextlib.suppress(OSError):
            Path(goal).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_small = found[0] <= _COPIED_BYTES and self._copied_bytes + found[0] <= _COPIED_IN_ALL
            if copy(name, goal, place=place, only_shared=not is_small):
                self._copied_bytes += found[0]
            elif self._linked < _LINKED:
                os.link(name, goal, src_dir_fd=place, follow_symlinks=False)
                self._linked += 1
            else:
                return found
            copies.add(name)
        return _stamp_of(name, stat.S_IFREG, place) or found

    def forget_old(self) -> None:
        """Remove copies of objects that left the repository long ago."""
        now = time.time()
        for folder in _FOLDERS:
            there = self._seen[folder].files if folder in self._seen else {}
            for name in self._copies(folder) - set(there):
                path = f"{self._kept}/{folder}/{name}"
                with contextlib.suppress(OSError):
                    # Removing the other hard link, and copying, set this time.
                    if os.lstat(path).st_ctime < now - _KEPT_S:
                        Path(path).unlink()
                        self._copied[folder].discard(name)


class _Packs:
    """The current packs, which may hold objects that were elsewhere before."""

    def __init__(self, folder: int, before: frozenset[str]) -> None:
        """`folder` must stay open while this is in use."""
        now = _files_in(folder, "pack")
        self._folder = folder
        self._indices = [name for name in now if name.endswith(".idx") and f"{name[:-4]}.pack" in now]
        self._is_repacked = any(name not in before for name in self._indices)
        self._names: frozenset[bytes] | None = None

    def replace(self, folder: str, name: str, kept: str, stamp: Stamp) -> bool:
        """Whether a lost file needs no restoring: its objects are in a pack, or git has pruned it."""
        if folder == "pack":
            return self._is_repacked and self._replaces_pack(name, kept)
        if bytes.fromhex(folder + name) in self._all():
            return True
        return self._is_repacked and stamp[1] / 1e9 < time.time() - _OF_NO_USE_S

    def _replaces_pack(self, name: str, kept: str) -> bool:
        """Repacking leaves out unreachable objects, but hardly ever more than half of a pack."""
        size = _name_bytes(name)
        before = _listed(f"{kept.rpartition('.')[0]}.idx", size)
        return 2 * len(before & self._all()) >= len(before)

    def _all(self) -> frozenset[bytes]:
        if self._names is None:
            listed = (_listed(name, _name_bytes(name), self._folder) for name in self._indices)
            self._names = frozenset().union(*listed)
        return self._names


def _name_bytes(name: str) -> int:
    return (len(name.partition(".")[0]) - len("pack-")) // 2


def _listed(index: str, size: int, folder: int | None = None) -> frozenset[bytes]:
    """Names of the objects in a pack, from its index (version 2); empty if it is not an index."""
    data = _content(index, folder)
    if data[:8] != b"\xfftOc\0\0\0\2" or len(data) < 1_032:
        return frozenset()
    count = int.from_bytes(data[1_028:1_032])
    if len(data) < 1_032 + count * size:
        return frozenset()
    return frozenset(data[1_032 + each * size : 1_032 + (each + 1) * size] for each in range(count))


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
                    os.write(to, piece)
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
            try:
                inner = os.open(name, _FOLDER, dir_fd=held)
            except OSError:
                inner = -1
            if held is not None and held != start:
                os.close(held)
            held = inner
            if held < 0:
                break
        yield -1 if held is None else held
    finally:
        if held is not None and held >= 0 and held != start:
            os.close(held)


def _stamp_of(path: str, kind: int, folder: int | None = None) -> Stamp | None:
    try:
        found = os.lstat(path, dir_fd=folder)
    except OSError:
        return None
    if stat.S_IFMT(found.st_mode) != kind:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _files_in(folder: int, name: str) -> dict[str, Stamp]:
    """The object files in a folder, up to a limit; none if it can't be read."""
    fits = _PACK if name == "pack" else _LOOSE
    found: dict[str, Stamp] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count > _MOST_NAMES:
                break
            if fits.fullmatch(entry.name) and (stamp := _stamp_of(entry.name, stat.S_IFREG, folder)):
                found[entry.name] = stamp
    return found


def _differs(folder: str, name: str, kept: str, objects: int) -> bool:
    with _opened((folder,), objects) as opened:
        return _content(kept) != _content(name, opened)


def _content(path: str, folder: int | None = None) -> bytes:
    try:
        opened = os.open(path, _READ, dir_fd=folder)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b""
