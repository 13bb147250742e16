"""An independent full comparison of a folder before and after changes, for tests of `WorkspaceTree`."""

import hashlib
import os
import stat
from pathlib import Path

from bradawl.checkpoints.record import Change, FileState

States = dict[bytes, FileState]


class MemoryContents:
    """Contents in memory, by sha256."""

    def __init__(self) -> None:
        self.saved: dict[str, bytes] = {}
        self.error: OSError | None = None

    def add(self, descriptor: int, size: int, previous: str = "") -> str:
        if self.error is not None:
            raise self.error
        assert not previous or previous in self.saved
        pieces = [os.pread(descriptor, size + 1, 0)]
        while piece := os.pread(descriptor, 65_536, sum(map(len, pieces))):
            pieces.append(piece)
        data = b"".join(pieces)
        sha256 = hashlib.sha256(data).hexdigest()
        self.saved[sha256] = data
        return sha256

    def has(self, sha256: str) -> bool:
        return sha256 in self.saved

    def flush(self) -> None: ...


def states_in(root: Path) -> States:
    """The state of everything in a folder, read anew; of git data at the top only what is covered."""
    found: States = {}
    waiting = [root]
    while waiting:
        for path in waiting.pop().iterdir():
            is_folder = path.is_dir() and not path.is_symlink()
            if _is_covered(path.relative_to(root).parts, is_folder=is_folder):
                found[os.fsencode(path)] = _state(path)
                waiting += [path] if is_folder else []
    return found


def difference(before: States, after: States) -> tuple[Change, ...]:
    """What differs, sorted by path."""
    paths = sorted(before.keys() | after.keys())
    changes = (Change(path, before.get(path), after.get(path)) for path in paths)
    return tuple(change for change in changes if change.before != change.after)


def _state(path: Path) -> FileState:
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return FileState("folder", stat.S_IMODE(mode))
    if stat.S_ISLNK(mode):
        return FileState("link", stat.S_IMODE(mode), target=os.fsencode(path.readlink()))
    if not stat.S_ISREG(mode):
        return FileState("other", stat.S_IMODE(mode))
    data = path.read_bytes()
    return FileState("file", stat.S_IMODE(mode), hashlib.sha256(data).hexdigest(), len(data))


def _is_covered(path: tuple[str, ...], *, is_folder: bool) -> bool:
    """The rule for git data at the top, for the names that the tests use."""
    first, *rest = path
    if first != ".git" or not rest:
        return True
    if rest[0] in {"refs", "logs", "rebase-merge"}:
        return is_folder or (len(rest) > 1 and not rest[-1].endswith(".lock"))
    if rest[0] == "info":
        return (is_folder and len(rest) == 1) or (not is_folder and rest[1:] == ["exclude"])
    return not is_folder and rest in (["HEAD"], ["index"], ["config"], ["packed-refs"])
