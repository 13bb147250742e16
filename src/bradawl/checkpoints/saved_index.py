"""The index of a workspace as bytes, so that the next session does not read all files again."""

import hashlib
import os
from typing import Final

import msgspec

from bradawl.checkpoints.coverage import Reason
from bradawl.checkpoints.folder import Folder, Signature
from bradawl.checkpoints.git_data import Role
from bradawl.checkpoints.record import FileState
from bradawl.checkpoints.search import Index

_START: Final = b"bradawl-index-1\n"
_DIGEST_BYTES: Final = 32


class _SavedFolder(msgspec.Struct, array_like=True):
    path: bytes
    role: Role
    reason: Reason
    is_listed: bool
    device: int
    entries: list[tuple[bytes, Signature, FileState]]


class _SavedIndex(msgspec.Struct, array_like=True):
    roots: list[tuple[bytes, FileState | None]]
    folders: list[_SavedFolder]
    """Parents before the folders in them."""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_SavedIndex)


def encode_index(index: Index) -> bytes:
    """The index with a version and a digest."""
    folders = [_saved(folder) for root in index.roots.values() for folder in root.below()]
    data = _encoder.encode(_SavedIndex(list(index.root_states.items()), folders))
    return _START + hashlib.sha256(data).digest() + data


def decode_index(data: bytes, roots: tuple[bytes, ...]) -> Index | None:
    """The index; None if it is damaged, of another version or of other roots."""
    head = len(_START) + _DIGEST_BYTES
    if not data.startswith(_START) or hashlib.sha256(data[head:]).digest() != data[len(_START) : head]:
        return None
    try:
        saved = _decoder.decode(data[head:])
    except msgspec.DecodeError:
        return None
    if tuple(path for path, _ in saved.roots) != roots:
        return None
    index = Index(roots)
    index.root_states.update(saved.roots)
    by_path: dict[bytes, Folder] = {}
    for each in saved.folders:
        by_path[each.path] = folder = index.roots.get(each.path) or _added(each, by_path)
        _fill(folder, each)
        index.entry_count += len(folder.states)
    return index


def _saved(folder: Folder) -> _SavedFolder:
    states = folder.states
    entries = [(os.fsencode(name), at, states[name]) for name, at in folder.signatures.items()]
    return _SavedFolder(folder.path, folder.role, folder.reason, folder.is_listed, folder.device, entries)


def _added(saved: _SavedFolder, by_path: dict[bytes, Folder]) -> Folder:
    above, _, name = saved.path.rpartition(b"/")
    return by_path[above or b"/"].add_folder(os.fsdecode(name), saved.role)


def _fill(folder: Folder, saved: _SavedFolder) -> None:
    """Add the entries. A folder left out for too many entries gets another chance."""
    folder.role, folder.is_listed = saved.role, saved.is_listed
    folder.reason = "" if saved.reason == "limit" else saved.reason
    folder.device = saved.device
    for encoded, at, state in saved.entries:
        name = os.fsdecode(encoded)
        folder.signatures[name], folder.states[name] = at, state
