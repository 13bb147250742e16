"""`WorkspaceTree` against an independent full comparison, over random changes."""

import mmap
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from workspace_states import MemoryContents, difference, states_in

from bradawl.checkpoints.tree import WorkspaceTree

_CASES = int(os.environ.get("BRADAWL_TREE_CASES", "320"))
_NAMES = ("a", "b", "c", os.fsdecode(b"\xff\xfe"), "name with space", "\n", "ü", "x.lock")
_HOOKS_REMOVED = "Not covered in git data: .git/hooks."
_FOLDERS = ("d", "e", os.fsdecode(b"\xfed"), ".git", "refs", "logs", "info", "objects", "hooks")
_GIT_FILES = ("HEAD", "index", "config", "packed-refs", "exclude", "description")
_TARGETS = ("a", "/etc", "..", "/nowhere", os.fsdecode(b"\xff"))


class Scribbler:
    """Makes random changes below a folder."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.random = random.Random(seed)  # noqa: S311 - not used for secrets
        self.is_user = False

    def change(self, *, is_user: bool) -> str:
        """One change; returns its kind. Those of the user can all be seen by inotify."""
        self.is_user = is_user
        kinds = [
            self._create,
            self._create,
            self._make_folder,
            self._make_folder,
            self._rewrite,
            self._rewrite_in_place,
        ]
        kinds += [
            self._rewrite_and_reset_times,
            self._remove,
            self._rename,
            self._change_mode,
            self._swap_link,
            self._touch,
        ]
        kinds += [self._make_repository, self._make_pipe, self._link_again]
        if not is_user:
            kinds.append(self._write_by_mmap)
        kind = self.random.choice(kinds)
        kind()
        return kind.__name__.strip("_")

    def _create(self) -> None:
        path = self._new_path(_NAMES + _GIT_FILES)
        if not os.path.lexists(path):
            path.write_bytes(self._some_bytes())

    def _make_folder(self) -> None:
        path = self._new_path(_FOLDERS)
        if not os.path.lexists(path):
            path.mkdir()

    def _rewrite(self) -> None:
        if path := self._a_file():
            path.write_bytes(self._some_bytes())

    def _rewrite_in_place(self) -> None:
        """The same size."""
        if path := self._a_file():
            with path.open("r+b", buffering=0) as file:
                file.write(self.random.randbytes(path.stat().st_size))

    def _rewrite_and_reset_times(self) -> None:
        if path := self._a_file():
            status = path.stat()
            self._rewrite_in_place()
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _write_by_mmap(self) -> None:
        if (path := self._a_file()) and path.stat().st_size:
            with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
                memory[0] ^= 0xFF

    def _remove(self) -> None:
        if path := self._any_path():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _rename(self) -> None:
        source, target = self._any_path(), self._new_path(_NAMES + _FOLDERS)
        if source and source not in target.parents and not os.path.lexists(target):
            source.rename(target)

    def _change_mode(self) -> None:
        path = self._any_path() if self.random.random() < 0.5 else self._a_file()
        if path and not path.is_symlink() and not self._is_shared(path):
            path.chmod(self.random.choice((0o755, 0o700, 0o775) if path.is_dir() else (0o644, 0o755, 0o600, 0o4755)))

    def _swap_link(self) -> None:
        self._remove()
        path = self._new_path(_NAMES + _FOLDERS)
        if not os.path.lexists(path):
            path.symlink_to(self.random.choice(_TARGETS))

    def _touch(self) -> None:
        if path := self._a_file():
            os.utime(path, (1, 1))

    def _make_repository(self) -> None:
        path = self._a_folder() / "nested"
        if not os.path.lexists(path):
            for below in (".git/objects/ab", ".git/refs/heads", ".git/hooks"):
                (path / below).mkdir(parents=True)
            (path / ".git/HEAD").write_bytes(b"ref: refs/heads/main\n")
            (path / ".git/objects/ab/cd").write_bytes(self._some_bytes())
            (path / ".git/index.lock").touch()

    def _make_pipe(self) -> None:
        path = self._new_path(("pipe",))
        if not os.path.lexists(path):
            os.mkfifo(path)

    def _link_again(self) -> None:
        path = self._new_path(("hard",))
        if (source := self._a_file()) and not os.path.lexists(path):
            path.hardlink_to(source)

    def _some_bytes(self) -> bytes:
        return self.random.randbytes(self.random.choice((0, 1, 20, 20, 5_000)))

    def _paths(self) -> list[Path]:
        return sorted(self.root.rglob("*"))

    def _any_path(self) -> Path | None:
        return self.random.choice(self._paths() or [None])

    def _a_file(self) -> Path | None:
        files = [
            path for path in self._paths() if path.is_file() and not path.is_symlink() and not self._is_shared(path)
        ]
        return self.random.choice(files or [None])

    def _is_shared(self, path: Path) -> bool:
        """Whether the user must leave a file: its other names get no event."""
        return self.is_user and not path.is_dir() and path.stat().st_nlink > 1

    def _a_folder(self) -> Path:
        folders = [path for path in self._paths() if path.is_dir() and not path.is_symlink()]
        return self.random.choice([self.root, self.root, *folders])

    def _new_path(self, names: tuple[str, ...]) -> Path:
        return self._a_folder() / self.random.choice(names)


def has_fine_times(folder: Path) -> bool:
    """Whether each change after a look leaves a new ctime, as on Linux since 6.13."""
    file, seen = folder / "probe", set[int]()
    for number in range(50):
        file.write_bytes(b"%d" % number)
        seen.add(file.stat().st_ctime_ns)
    file.unlink()
    return len(seen) == 50


def check_sequence(root: Path, seed: int, clock_ns: Callable[[], int]) -> None:
    """Random changes of the user, then of a call, several times: exactly the call's changes are found."""
    scribbler = Scribbler(root, seed)
    for _ in range(scribbler.random.randrange(30)):
        scribbler.change(is_user=False)
    contents = MemoryContents()
    tree = WorkspaceTree((str(root),), contents, clock_ns=clock_ns)
    try:
        while not tree.baseline(time.monotonic()):
            pass
        for _ in range(3):
            done = ["user", *(scribbler.change(is_user=True) for _ in range(scribbler.random.randrange(4)))]
            tree.refresh()
            before = states_in(root)
            done += ["call", *(scribbler.change(is_user=False) for _ in range(scribbler.random.randrange(8)))]
            found, uncovered = tree.changes()
            assert found == difference(before, states_in(root)), (seed, done)
            assert set(uncovered) <= {_HOOKS_REMOVED}, (seed, done)
            if scribbler.random.random() < 0.2:
                dumped = tree.dump()
                tree.close()
                tree = WorkspaceTree((str(root),), contents, known=dumped, clock_ns=clock_ns)
                assert tree.changes() == ((), ())
        for state in states_in(root).values():
            assert not state.content or state.content in contents.saved
    finally:
        tree.close()


@pytest.mark.parametrize("part", range(4))
def test_finds_what_a_full_comparison_finds(tmp_path: Path, part: int) -> None:
    for number in range(_CASES // 8):
        root = tmp_path / str(number)
        root.mkdir()
        check_sequence(root, part * 10_000 + number, time.time_ns)
        shutil.rmtree(root)


@pytest.mark.parametrize("part", range(4))
def test_finds_it_without_looking_again_at_recent_files(tmp_path: Path, part: int) -> None:
    if not has_fine_times(tmp_path):
        pytest.skip("two changes may leave the same ctime on this kernel")
    for number in range(_CASES // 8):
        root = tmp_path / str(number)
        root.mkdir()
        check_sequence(root, 50_000 + part * 10_000 + number, lambda: time.time_ns() + 10**10)
        shutil.rmtree(root)
