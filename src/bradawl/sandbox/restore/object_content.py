"""Checks contents of git's object files against their own hashes, and looks objects up in the indexes of packs."""

import os
from collections.abc import Callable, Iterable
from hashlib import sha1, sha256
from typing import Final

_ALGORITHMS: Final = {40: sha1, 64: sha256}
_MOST_UNPACKED: Final = 268_435_456
_PIECE: Final = 1_048_576
_INDEX_MAGIC: Final = b"\xfftOc\0\0\0\2"
_NAMES_AT: Final = 1_032
_PACK_HEADER: Final = 12
_SAMPLE: Final = 2_000
_LOADED_EACH: Final = 50_000
_LOADED_IN_ALL: Final = 1_000_000


def is_sound(folder: str, name: str, content: bytes) -> bool | None:
    """Whether an object file has the content that git wrote; None if that would take too long to find out.

    `folder` and `name` are those in the folder of objects. A loose object is named by the hash of what it holds, the
    files of a pack end with their hash. Other files count as sound.
    """
    if folder != "pack":
        return _is_sound_object(folder + name, content)
    kind = name.rpartition(".")[2]
    if kind not in ("pack", "idx"):
        return True
    made = _ALGORITHMS[2 * name_bytes(name)]
    digest = made(usedforsecurity=False)
    digest.update(memoryview(content)[: -digest.digest_size])
    return content[-digest.digest_size :] == digest.digest()


def _is_sound_object(name: str, content: bytes) -> bool | None:
    """Unpacks at most 256 MB: a few bytes can hold very much more."""
    import zlib

    digest, unpacking, left = _ALGORITHMS[len(name)](usedforsecurity=False), zlib.decompressobj(), _MOST_UNPACKED
    try:
        while left > 0 and (piece := unpacking.decompress(content, min(_PIECE, left))):
            digest.update(piece)
            content, left = unpacking.unconsumed_tail, left - len(piece)
    except zlib.error:
        return False
    if left <= 0:
        return None
    return unpacking.eof and not unpacking.unused_data and digest.hexdigest() == name


def name_bytes(name: str) -> int:
    """Length of the hashes in a repository, from the name of one of a pack's files."""
    return (len(name.partition(".")[0]) - len("pack-")) // 2


class PackIndex:
    """The objects of a pack, from its index (version 2). Reads single entries of an open file, which must stay open."""

    def __init__(self, file: int, size: int) -> None:
        """`size` is the length of a hash in bytes. An index that can't be read names no object."""
        self._file = file
        self._size = size
        head = os.pread(file, _NAMES_AT, 0)
        is_index = len(head) == _NAMES_AT and head.startswith(_INDEX_MAGIC)
        self._ends = [int.from_bytes(head[at : at + 4]) for at in range(8, _NAMES_AT, 4)] if is_index else [0] * 256
        if sorted(self._ends) != self._ends or os.fstat(file).st_size < _NAMES_AT + len(self) * size:
            self._ends = [0] * 256

    def __len__(self) -> int:
        return self._ends[-1]

    def __contains__(self, name: bytes) -> bool:
        low, high = self._ends[name[0] - 1] if name[0] else 0, self._ends[name[0]]
        while low < high:
            middle = (low + high) // 2
            found = self._name(middle)
            if found == name:
                return True
            low, high = (middle + 1, high) if found < name else (low, middle)
        return False

    def names(self) -> frozenset[bytes]:
        """All names."""
        data, size = os.pread(self._file, len(self) * self._size, _NAMES_AT), self._size
        return frozenset(data[at : at + size] for at in range(0, len(data), size))

    def sample(self) -> list[bytes]:
        """At most 2,000 names, which no program can foresee."""
        if len(self) <= _SAMPLE:
            return list(self.names())
        import random

        return [self._name(number) for number in random.SystemRandom().sample(range(len(self)), _SAMPLE)]

    def belongs_to(self, pack: int) -> bool:
        """Whether an open file looks as the pack of this index: the number of objects and the pack's hash agree."""
        head = os.pread(pack, _PACK_HEADER, 0)
        end = os.pread(pack, self._size, max(0, os.fstat(pack).st_size - self._size))
        named = os.pread(self._file, self._size, os.fstat(self._file).st_size - 2 * self._size)
        return head[:4] == b"PACK" and int.from_bytes(head[8:]) == len(self) > 0 and end == named

    def _name(self, number: int) -> bytes:
        return os.pread(self._file, self._size, _NAMES_AT + number * self._size)


class PackedNames:
    """The objects in some packs: those of small packs in memory, the others looked up on the disk."""

    def __init__(self, indexes: Iterable[PackIndex]) -> None:
        names: list[frozenset[bytes]] = []
        self._large: list[PackIndex] = []
        left = _LOADED_IN_ALL
        for index in indexes:
            if len(index) <= min(_LOADED_EACH, left):
                left -= len(index)
                names.append(index.names())
            else:
                self._large.append(index)
        self._small: frozenset[bytes] = frozenset().union(*names)

    def __contains__(self, name: bytes) -> bool:
        return name in self._small or any(name in index for index in self._large)


def share(names: Iterable[bytes], has: Callable[[bytes], bool]) -> float:
    """The part of the names that `has` accepts; 1.0 if there are none."""
    found = [has(name) for name in names]
    return sum(found) / len(found) if found else 1.0
