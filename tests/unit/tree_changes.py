"""A simple scanner of whole trees, and random changes of them, for tests of restoring."""

import contextlib
import os
import random
import shutil
import stat
from pathlib import Path

from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore

NAMES = ("a", "b", os.fsdecode(b"c\xff\xfe"), "d e", ".git", "-x", "\n", "README.md", "index")

Tree = dict[bytes, FileState]


def scan(top: Path, store: ContentStore) -> Tree:
    """The states of everything below a folder, and of the folder."""
    found, name = top.lstat(), os.fsencode(top)
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return {name: FileState("link", 0o777, target=os.fsencode(top.readlink()))}
    if stat.S_ISDIR(found.st_mode):
        with _opened(top, mode):
            inner = [scan(path, store) for path in top.iterdir()]
        return {name: FileState("folder", mode)} | {path: state for tree in inner for path, state in tree.items()}
    if not stat.S_ISREG(found.st_mode):
        return {name: FileState("other", mode)}
    with _opened(top, mode), top.open("rb") as file:
        return {name: FileState("file", mode, store.add(file.fileno(), found.st_size), found.st_size)}


@contextlib.contextmanager
def _opened(path: Path, mode: int):
    if mode & 0o700 != 0o700 and os.geteuid():
        path.chmod(mode | 0o700)
        yield
        path.chmod(mode)
    else:
        yield


def difference(before: Tree, after: Tree, call_id: str = "", at: int = 0) -> ChangeRecord:
    """The record of what changed between two scans."""
    paths = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return ChangeRecord(call_id, at, tuple(Change(path, before.get(path), after.get(path)) for path in paths))


def random_change(choice: random.Random, top: Path) -> None:
    """Change something in a tree: contents, names, modes, kinds."""
    with all_open(top):
        work = choice.choice((_write, _write, _edit, _remove, _rename, _link, _hard_link, _make_folder, _swap, _chmod))
        with contextlib.suppress(OSError):
            work(choice, top)
    if choice.random() < 0.4:
        _chmod(choice, top)


@contextlib.contextmanager
def all_open(top: Path):
    """Open all closed folders and files in the block; those that exist after it are closed again."""
    modes: list[tuple[Path, int, int]] = []

    def enter(path: Path) -> None:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o600 != 0o600 or (stat.S_ISDIR(found.st_mode) and mode & 0o700 != 0o700):
            modes.append((path, found.st_ino, mode))
            path.chmod(mode | 0o700)
        if stat.S_ISDIR(found.st_mode):
            for inner in path.iterdir():
                enter(inner)

    enter(top)
    yield
    for path, inode, mode in reversed(modes):
        with contextlib.suppress(OSError):
            if path.lstat().st_ino == inode and not path.is_symlink():
                path.chmod(mode)


def _paths(top: Path, kinds: str = "fdl") -> list[Path]:
    found = []
    for folder, folders, files in os.walk(top):
        for name in sorted(folders) + sorted(files):
            path = Path(folder, name)
            kind = "l" if path.is_symlink() else "d" if path.is_dir() else "f"
            if kind in kinds:
                found.append(path)
    return found


def _place(choice: random.Random, top: Path) -> Path:
    folders = [top, *_paths(top, "d")]
    return choice.choice(folders) / choice.choice(NAMES)


def _content(choice: random.Random) -> bytes:
    size = choice.choice((0, 1, 10, 100, 5_000, 20_000))
    return choice.randbytes(size) if choice.random() < 0.7 else b"line\r\n" * (size // 6)


def _write(choice: random.Random, top: Path) -> None:
    path = _place(choice, top)
    if not path.is_symlink():
        path.write_bytes(_content(choice))


def _edit(choice: random.Random, top: Path) -> None:
    with choice.choice(_paths(top, "f") or [top]).open("r+b") as file:
        file.seek(choice.randrange(50))
        file.write(choice.randbytes(3))


def _remove(choice: random.Random, top: Path) -> None:
    path = choice.choice(_paths(top) or [top / "missing"])
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _rename(choice: random.Random, top: Path) -> None:
    path, to = choice.choice(_paths(top) or [top / "missing"]), _place(choice, top)
    if path not in to.parents:
        path.rename(to)


def _link(choice: random.Random, top: Path) -> None:
    _place(choice, top).symlink_to(choice.choice(("..", "a", "/etc/passwd", "/nowhere", os.fsdecode(b"\xff"), ".")))


def _hard_link(choice: random.Random, top: Path) -> None:
    _place(choice, top).hardlink_to(choice.choice(_paths(top, "f") or [top / "missing"]))


def _make_folder(choice: random.Random, top: Path) -> None:
    path = _place(choice, top)
    path.mkdir()
    for _ in range(choice.randrange(3)):
        _write(choice, path)


def _swap(choice: random.Random, top: Path) -> None:
    """Replace something by another kind under the same name."""
    path = choice.choice(_paths(top) or [top / "missing"])
    kind = choice.choice("fdl")
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    if kind == "f":
        path.write_bytes(_content(choice))
    elif kind == "l":
        path.symlink_to(choice.choice(("..", "a", "/proc/self")))  # no folder that a mistake could change
    else:
        path.mkdir()
        _write(choice, path)


def _chmod(choice: random.Random, top: Path) -> None:
    with contextlib.suppress(OSError):
        path = choice.choice(_paths(top, "fd") or [top])
        modes = (0o755, 0o700, 0o500, 0o000, 0o2755, 0o1777) if path.is_dir() else (0o644, 0o755, 0o400, 0, 0o4711)
        path.chmod(choice.choice(modes))


def remove_tree(top: Path) -> None:
    """Remove a tree whose folders are open."""
    for path in _paths(top, "d"):
        path.chmod(0o700)
    shutil.rmtree(top)
