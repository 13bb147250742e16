"""Finds out whether a repository has the objects that a reference or an index names. Starts no git."""

import contextlib
import os
import re
import struct
from collections.abc import Callable
from typing import Final

from bradawl.checkpoints.file_states import open_readable, read_content
from bradawl.checkpoints.git_index import object_names
from bradawl.checkpoints.opened_folders import FolderWalk

_OBJECT: Final = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PACKED: Final = re.compile(rb"^([0-9a-f]{40}(?:[0-9a-f]{24})?) (\S+)$", re.MULTILINE)
_PACK_HEADER: Final = b"\377tOc\0\0\0\2"
_FANOUT: Final = struct.Struct(">256I")
_GIT: Final = b"/.git/"


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


def missing_objects(walk: FolderWalk, path: bytes, wanted: bytes, read_now: Callable[[], bytes]) -> list[str]:
    """Objects that a file of git's data would name with the content `wanted`, and that the repository has not.

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
    objects = _Objects(walk, git + b"/objects")
    try:
        return sorted(each.hex() for each in new if not objects.has(each)) if objects.is_complete() else []
    except (OSError, struct.error):
        return []


def _named_objects(name: bytes, content: bytes) -> set[bytes]:
    if name == b"index":
        return object_names(content)
    if name == b"packed-refs":
        return {bytes.fromhex(match[1].decode()) for match in _PACKED.finditer(content)}
    value = content.strip()
    return {bytes.fromhex(value.decode())} if _OBJECT.fullmatch(value) else set()


class _Objects:
    """The objects folder of a repository."""

    def __init__(self, walk: FolderWalk, folder: bytes) -> None:
        self._walk = walk
        self._folder = folder
        self._packs: list[bytes] | None = None

    def is_complete(self) -> bool:
        """False if objects can be elsewhere: another repository's, or at a server. Raises `OSError`."""
        self._packs = [name for name in self._names(b"/pack") if name.endswith((b".idx", b".promisor"))]
        return "alternates" not in map(os.fsdecode, self._names(b"/info")) and not any(
            name.endswith(b".promisor") for name in self._packs
        )

    def has(self, name: bytes) -> bool:
        """Whether an object is there. Raises `OSError` and `struct.error` for a pack that can't be read."""
        text = name.hex().encode()
        with contextlib.suppress(FileNotFoundError):
            os.stat(text[2:], dir_fd=self._walk.folder(self._folder + b"/" + text[:2]), follow_symlinks=False)
            return True
        return any(self._is_in_pack(pack, name) for pack in self._packs or ())

    def _names(self, below: bytes) -> list[bytes]:
        try:
            folder = os.open(b".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._walk.folder(self._folder + below))
        except FileNotFoundError:
            return []
        try:
            with os.scandir(folder) as entries:
                return [os.fsencode(entry.name) for entry in entries]
        finally:
            os.close(folder)

    def _is_in_pack(self, pack: bytes, name: bytes) -> bool:
        file = open_readable(self._walk.folder(self._folder + b"/pack"), pack)
        try:
            if os.pread(file, len(_PACK_HEADER), 0) != _PACK_HEADER:
                raise OSError(f"{os.fsdecode(pack)} has an unknown format")
            fanout = _FANOUT.unpack(os.pread(file, _FANOUT.size, len(_PACK_HEADER)))
            first, end = (fanout[name[0] - 1] if name[0] else 0), fanout[name[0]]
            start = len(_PACK_HEADER) + _FANOUT.size + first * len(name)
            names = os.pread(file, (end - first) * len(name), start)
        finally:
            os.close(file)
        at = names.find(name)
        while at > 0 and at % len(name):
            at = names.find(name, at + 1)
        return at >= 0
