"""Finds out whether a repository has, or will have after a restore, the objects that a reference or an index names.

Starts no git.
"""

import contextlib
import os
import re
import struct
from collections.abc import Callable, Mapping
from typing import Final

from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.file_states import open_readable, read_content
from bradawl.checkpoints.git_index import object_names
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.record import FileState

_OBJECT: Final = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PACKED: Final = re.compile(rb"^([0-9a-f]{40}(?:[0-9a-f]{24})?) (\S+)$", re.MULTILINE)
_PACK_HEADER: Final = b"\377tOc\0\0\0\2"
_FANOUT: Final = struct.Struct(">256I")
_GIT: Final = b"/.git/"
_OBJECTS: Final = b"/.git/objects"


def git_folder_of(path: bytes) -> tuple[bytes, bytes]:
    """The `.git` folder that a path is in, and its name in there; empty ones for a path outside of git's data."""
    at = path.rfind(_GIT)
    return (path[: at + len(_GIT) - 1], path[at + len(_GIT) :]) if at >= 0 else (b"", b"")


def packed_reference(walk: FolderWalk, path: bytes) -> bytes:
    """The value that `packed-refs` has for the reference of this file; empty if there is none."""
    git, name = git_folder_of(path)
    if not name.startswith(b"refs/"):
        return b""
    with contextlib.suppress(OSError):
        found = _PACKED.finditer(read_content(walk, git + b"/packed-refs"))
        return next((match[1] for match in found if match[2] == name), b"")
    return b""


class PlannedObjects:
    """What a restore makes of the folders of git's objects."""

    def __init__(
        self,
        wanted: Mapping[bytes, FileState | None],
        sources: Mapping[bytes, bytes],
        read: Callable[[str], bytes],
    ) -> None:
        """`wanted` are the states of the paths that are restored, None for those that are removed.

        `sources` are the present paths of those that are renamed. `read` returns a content by its name in the store,
        and raises `StoreError`.
        """
        self.read = read
        self._sources = sources
        self._of_folder: dict[bytes, dict[bytes, FileState | None]] = {}
        for path, state in wanted.items():
            at = path.rfind(_OBJECTS + b"/")
            if at >= 0 and path not in sources:
                self._of_folder.setdefault(path[: at + len(_OBJECTS)], {})[path] = state

    def wanted_in(self, folder: bytes) -> Mapping[bytes, FileState | None]:
        """By path, the states of what is restored in a folder `objects`, at any depth."""
        return self._of_folder.get(folder, {})

    def present(self, path: bytes) -> bytes:
        """The present path of what will have this path: another one if it, or a folder above it, is renamed."""
        above = path if self._sources else b""
        while above:
            if (source := self._sources.get(above)) is not None:
                return source + path[len(above) :]
            above = above.rpartition(b"/")[0]
        return path


def missing_objects(
    walk: FolderWalk, path: bytes, wanted: bytes, read_now: Callable[[], bytes], planned: PlannedObjects
) -> list[str]:
    """Objects that a file of git's data would name with the content `wanted`, and that its repository will not have.

    `read_now` returns the present content: what that names is not looked for. Empty also if it can't be determined,
    as in a repository that borrows objects.
    """
    git, name = git_folder_of(path)
    if not (name in (b"HEAD", b"index", b"packed-refs") or name.startswith(b"refs/")):
        return []
    named = _named_objects(name, wanted)
    try:
        now = read_now()
    except OSError:
        now = b""
    new = named - _named_objects(name, now) if named else set[bytes]()
    if not new:
        return []
    objects = _Objects(walk, git + b"/objects", planned)
    try:
        return sorted(each.hex() for each in new if not objects.has(each)) if objects.is_complete() else []
    except (OSError, StoreError, struct.error):
        return []


def _named_objects(name: bytes, content: bytes) -> set[bytes]:
    if name == b"index":
        return object_names(content)
    if name == b"packed-refs":
        return {bytes.fromhex(match[1].decode()) for match in _PACKED.finditer(content)}
    value = content.strip()
    return {bytes.fromhex(value.decode())} if _OBJECT.fullmatch(value) else set()


class _Objects:
    """The objects folder of a repository after a restore."""

    def __init__(self, walk: FolderWalk, folder: bytes, planned: PlannedObjects) -> None:
        self._walk = walk
        self._folder = folder
        self._planned = planned
        self._wanted = planned.wanted_in(folder)
        self._packs: list[bytes] | None = None

    def is_complete(self) -> bool:
        """False if objects can be elsewhere: another repository's, or at a server. Raises `OSError`."""
        self._packs = [name for name in self._names(b"/pack") if name.endswith((b".idx", b".promisor"))]
        return b"alternates" not in self._names(b"/info") and not any(
            name.endswith(b".promisor") for name in self._packs
        )

    def has(self, name: bytes) -> bool:
        """Whether an object is there. Raises `OSError`, `StoreError` and `struct.error` for an unreadable pack."""
        text = name.hex().encode()
        folder = self._folder + b"/" + text[:2]
        loose = folder + b"/" + text[2:]
        if self._wanted.get(loose) is not None:
            return True
        if loose not in self._wanted:
            with contextlib.suppress(FileNotFoundError):
                parent, inner = self._walk.parent(self._planned.present(loose))
                os.stat(inner, dir_fd=parent, follow_symlinks=False)
                return True
        return any(self._is_in_pack(pack, name) for pack in self._packs or ())

    def _names(self, below: bytes) -> list[bytes]:
        """Names in a folder below `objects`."""
        folder = self._folder + below
        wanted = {path.rpartition(b"/")[2]: state for path, state in self._wanted.items() if _is_in(path, folder)}
        kept = (name for name in self._names_now(folder) if name not in wanted)
        return [*kept, *(name for name, state in wanted.items() if state is not None)]

    def _names_now(self, path: bytes) -> list[bytes]:
        try:
            folder = os.open(b".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._walk.folder(self._planned.present(path)))
        except FileNotFoundError:
            return []
        try:
            with os.scandir(folder) as entries:
                return [os.fsencode(entry.name) for entry in entries]
        finally:
            os.close(folder)

    def _is_in_pack(self, pack: bytes, name: bytes) -> bool:
        path = self._folder + b"/pack/" + pack
        wanted = self._wanted.get(path)
        if wanted is not None:
            content = self._planned.read(wanted.content)
            return _is_in_index(lambda size, at: content[at : at + size], name)
        file = open_readable(*self._walk.parent(self._planned.present(path)))
        try:
            return _is_in_index(lambda size, at: os.pread(file, size, at), name)
        finally:
            os.close(file)


def _is_in(path: bytes, folder: bytes) -> bool:
    return path.rpartition(b"/")[0] == folder


def _is_in_index(read: Callable[[int, int], bytes], name: bytes) -> bool:
    """Whether the index of a pack names an object; `read` returns so many bytes from an offset."""
    if read(len(_PACK_HEADER), 0) != _PACK_HEADER:
        raise OSError("the index of a pack has an unknown format")
    fanout = _FANOUT.unpack(read(_FANOUT.size, len(_PACK_HEADER)))
    first, end = (fanout[name[0] - 1] if name[0] else 0), fanout[name[0]]
    names = read((end - first) * len(name), len(_PACK_HEADER) + _FANOUT.size + first * len(name))
    at = names.find(name)
    while at > 0 and at % len(name):
        at = names.find(name, at + 1)
    return at >= 0
