"""Changes in folders that a program then made inaccessible are found and undone."""

import os
import resource
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import as_owner

from bradawl.sandbox.filesystem.closed_folders import open_parents, open_with_access, restore_modes
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.restore.git_history import GitHistory, RepositoryLocation, WorkspaceWatch
from bradawl.sandbox.restore.protected_files import ProtectedFiles
from bradawl.sandbox.restore.restore_path import forget_old, put_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder

NAMES = (".git/config", ".git/hooks", ".git/commondir", "*/.git/config", ".vscode", ".mcp.json", "migrations/001.sql")
CLOSED = (0, 0o111, 0o300, 0o400, 0o444, 0o500, 0o555)


@pytest.fixture
def place():
    """A folder that an unprivileged process can remove. pytest may keep `tmp_path`."""
    folder = Path(tempfile.mkdtemp()).resolve()
    yield folder
    remove_folder(str(folder))


class WatchedWorkspace:
    """A workspace with watches. Programs are functions."""

    def __init__(self, place: Path, kept: Path | None = None) -> None:
        self.root, self.kept = place / "ws", kept or place / "kept"
        for name in (".git/hooks", ".git/objects/info", ".git/refs/heads", ".vscode", "migrations"):
            (self.root / name).mkdir(parents=True)
        for name, text in {".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n"}.items():
            (self.root / name).write_text(text)
        (self.root / ".vscode/tasks.json").write_text("{}")
        (self.root / "migrations/001.sql").write_text("create")
        files = ProtectedFiles(lambda: [(str(self.root), name) for name in NAMES], str(self.kept / "changed"))
        data = RepositoryLocation(f"{self.root}/.git", str(self.root))
        self.watches = WorkspaceWatch(files, GitHistory(lambda: [data], str(self.kept / "history")))

    def run(self, program: Callable[[Path], object]) -> tuple[str, ...]:
        self.watches.begin()
        program(self.root)
        return self.watches.end()


def change(name: str, closed: str, mode: int) -> Callable[[Path], object]:
    """A program that writes a file and removes all permissions of a folder."""

    def program(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("EVIL")
        (root / closed).chmod(mode)

    return program


@pytest.mark.parametrize("mode", CLOSED, ids=oct)
@pytest.mark.parametrize(
    ("name", "closed"),
    [
        *(
            (".git/config", ".git"),
            (".git/config", "."),
            (".vscode/tasks.json", ".vscode"),
            (".vscode/more", ".vscode"),
        ),
        *((".git/hooks/pre-commit", ".git/hooks"), (".git/hooks/pre-commit", ".git"), (".git/commondir", ".git")),
        *((".mcp.json", "."), ("migrations/001.sql", "migrations"), ("migrations/001.sql", ".")),
        *(("x/.git/config", "x/.git"), ("x/.git/config", "x")),
    ],
)
def test_changes_are_undone(place: Path, name: str, closed: str, mode: int) -> None:
    def act() -> None:
        watched = WatchedWorkspace(place)
        was = {path: path.read_text() for path in watched.root.rglob("*") if path.is_file()}
        told = watched.run(change(name, closed, mode))
        assert any(f"{watched.root}/{name}".startswith(each) for each in told), told
        assert not any("could not" in each for each in told)
        watched.root.chmod(0o700)
        for path in watched.root.rglob("*"):
            if path.is_dir():
                path.chmod(0o700)
        assert {path: path.read_text() for path in watched.root.rglob("*") if path.is_file()} == was
        assert any(b"EVIL" in path.read_bytes() for path in watched.kept.rglob("*") if path.is_file())

    as_owner(act)


def test_a_folder_that_was_moved_into_a_closed_one_is_moved_back(place: Path) -> None:
    def act() -> None:
        watched = WatchedWorkspace(place)

        def program(root: Path) -> None:
            (root / "migrations").rename(root / "m")
            (root / ".vscode").rename(root / "v")
            root.chmod(0o555)

        watched.run(program)
        assert (watched.root / "migrations/001.sql").read_text() == "create"
        assert (watched.root / ".vscode/tasks.json").read_text() == "{}"

    as_owner(act)


@pytest.mark.parametrize("mode", CLOSED, ids=oct)
def test_a_closed_folder_without_changes_stays_closed(place: Path, mode: int) -> None:
    def act() -> None:
        watched = WatchedWorkspace(place)
        assert not watched.run(lambda root: (root / ".vscode").chmod(mode))
        assert stat.S_IMODE((watched.root / ".vscode").stat().st_mode) == mode

    as_owner(act)


def test_closed_folders_can_be_moved_to_another_file_system(place: Path) -> None:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == place.stat().st_dev:
        pytest.skip("there is no other file system to write to")

    def act() -> None:
        with tempfile.TemporaryDirectory(dir=shared) as other:
            inner = place / "folder/a/b"
            inner.mkdir(parents=True)
            (inner / "file").write_text("EVIL")
            (inner / "file").chmod(0)
            for each in (inner, inner.parent, place / "folder"):
                each.chmod(0)
            put_back(str(place / "folder"), str(place), None, SetAsideFolder(other))
            assert not (place / "folder").exists()
            assert [path.read_text() for path in Path(other).rglob("*") if path.is_file()] == ["EVIL"]

    as_owner(act)


def test_a_tree_too_deep_to_copy_to_another_file_system_stays_under_another_name(place: Path) -> None:
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == place.stat().st_dev:
        pytest.skip("there is no other file system to write to")
    (place / "folder").mkdir()
    held = os.open(place / "folder", os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("a", dir_fd=held)
        inner = os.open("a", os.O_RDONLY, dir_fd=held)
        os.close(held)
        held = inner
    os.close(held)
    with tempfile.TemporaryDirectory(dir=shared) as other:
        aside = SetAsideFolder(other)
        put_back(str(place / "folder"), str(place), None, aside)
        forget_old(other)
        assert not any(Path(other).iterdir())
    assert not (place / "folder").exists()
    (kept,) = place.glob(".bradawl-*.aside/*")
    assert (kept / "a/a/a").is_dir()
    assert f"{kept.parent} " in aside.places[0]


def test_parent_folders_are_opened_without_following_links_and_closed_again(place: Path) -> None:
    def act() -> None:
        inner, outside = place / "a/b/c", place / "outside"
        inner.mkdir(parents=True)
        outside.mkdir()
        (place / "a/link").symlink_to(outside)
        for each in (outside, inner, inner.parent, place / "a"):
            each.chmod(0)
        assert open_parents(f"{place}/a/link", str(place)).keys() == {f"{place}/a"}
        assert stat.S_IMODE(outside.stat().st_mode) == 0
        opened = open_parents(f"{place}/a/b/c/gone", str(place))
        assert opened.keys() == {f"{place}/a/b", f"{place}/a/b/c"}
        os.close(open_with_access(f"{place}/a/b/c"))
        restore_modes(opened)
        assert stat.S_IMODE((place / "a/b").stat().st_mode) == 0

    as_owner(act)


def test_more_nested_closed_folders_than_open_files_are_opened_and_closed_again(place: Path) -> None:
    reached, folders = str(place), []
    for _ in range(400):
        reached += "/d"
        Path(reached).mkdir()
        folders.append(reached)
    for folder in reversed(folders):
        Path(folder).chmod(0o111)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        opened = open_parents(reached, str(place))
        assert list(opened) == folders
        assert stat.S_IMODE(os.lstat(reached).st_mode) == 0o711
        restore_modes(opened)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {stat.S_IMODE(os.lstat(folder).st_mode) for folder in folders} == {0o111}
