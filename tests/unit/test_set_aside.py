"""What is moved away is kept, also if the state folder is on another file system, full, or can't be written."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from without_root_rights import modes_hold

from bradawl.sandbox.restore.protected_files import ProtectedFiles
from bradawl.sandbox.restore.restore_path import put_back
from bradawl.sandbox.restore.set_aside import SetAsideFolder

OTHER_FILE_SYSTEM = Path("/dev/shm")
HOOK = "#!/bin/sh\necho planted\n"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system than the workspace."""
    if not os.access(OTHER_FILE_SYSTEM, os.W_OK) or OTHER_FILE_SYSTEM.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    with tempfile.TemporaryDirectory(dir=OTHER_FILE_SYSTEM) as folder:
        yield Path(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system for 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=20", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / ".git/hooks").mkdir(parents=True)
    return root


def files_in(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def test_a_file_for_which_the_disk_of_the_state_has_no_room_stays_under_a_harmless_name(tmp_path, small_disk):
    root = workspace(tmp_path)
    hook, content = root / ".git/hooks/pre-commit", HOOK.encode() + b"#" * 200_000
    hook.write_bytes(content)
    aside = SetAsideFolder(str(small_disk / "kept"))
    put_back(str(hook), str(root), None, aside)
    assert not os.path.lexists(hook)
    assert files_in(root) == [content]
    assert files_in(small_disk) == []
    (said,) = aside.places
    assert said.startswith(f"{root}/.bradawl-") and "No space left on device" in said
    assert not any((small_disk / "kept").iterdir())


def test_a_disk_without_room_for_a_folder_changes_nothing_about_that(tmp_path, small_disk):
    root = workspace(tmp_path)
    for number in range(20):
        try:
            (small_disk / str(number)).touch()
        except OSError:
            break
    (root / "x").mkdir()
    (root / "x/mine").write_text("mine")
    aside = SetAsideFolder(str(small_disk / "kept"))
    put_back(f"{root}/x", str(root), None, aside)
    assert not (root / "x").exists()
    assert files_in(root) == [b"mine"]
    assert "No space left on device" in aside.places[0]


def test_a_tree_that_is_too_large_to_copy_stays_complete(tmp_path, elsewhere):
    root = workspace(tmp_path)
    for number in range(5):
        (root / f"x/{number}").mkdir(parents=True)
        (root / f"x/{number}/file").write_bytes(bytes([number]) * 300)
    aside = SetAsideFolder(str(elsewhere), most_bytes=1_000)
    put_back(f"{root}/x", str(root), None, aside)
    assert not (root / "x").exists()
    assert files_in(root) == [bytes([number]) * 300 for number in range(5)]
    assert list(elsewhere.iterdir()) == []
    assert "too large" in aside.places[0]


@pytest.mark.parametrize("mode", [0o500, 0o000], ids=oct)
def test_a_state_folder_that_can_not_be_written_leaves_nothing_armed(tmp_path, mode):
    root, state = workspace(tmp_path), tmp_path / "state"
    state.mkdir()
    state.chmod(mode)
    (root / ".git/hooks/pre-commit").write_text(HOOK)
    aside = SetAsideFolder(str(state / "kept"))
    with modes_hold():
        put_back(f"{root}/.git/hooks/pre-commit", str(root), None, aside)
    assert not any((root / ".git/hooks").iterdir())
    assert files_in(root) == [HOOK.encode()]
    assert "Permission denied" in aside.places[0]


def test_a_repository_that_stays_in_the_workspace_is_none_for_git(tmp_path, elsewhere):
    root = workspace(tmp_path)
    for command in (["git", "init", "-q", "x"], ["git", "init", "-q", "--bare", "x/inner/bare"]):
        subprocess.run(command, cwd=root, check=True)
    (root / "x/large").write_bytes(b"x" * 2_000_000)
    put_back(f"{root}/x", str(root), None, SetAsideFolder(str(elsewhere), most_bytes=1_000_000))
    folders = [folder for folder, _, _ in os.walk(next(root.glob(".bradawl-*.aside")))]
    assert len(folders) > 20
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root)}
    found = [
        folder
        for folder in folders
        if not subprocess.run(
            ["git", "rev-parse", "--git-dir"], cwd=folder, env=environment, capture_output=True, check=False
        ).returncode
    ]
    assert found == []


def test_a_copy_on_another_file_system_is_complete_before_the_source_goes(tmp_path, elsewhere):
    root = workspace(tmp_path)
    inner = root / "x/a"
    inner.mkdir(parents=True)
    (inner / "file").write_bytes(b"begin" + bytes(3_000_000) + b"end")
    (inner / "file").chmod(0o640)
    os.utime(inner / "file", (1_000_000_000, 1_000_000_000))
    (inner / os.fsdecode(b"\xff\n")).write_text("odd")
    (inner / "link").symlink_to("../nowhere")
    os.mkfifo(inner / "pipe")
    aside = SetAsideFolder(str(elsewhere))
    put_back(f"{root}/x", str(root), None, aside)
    (kept,) = Path(aside.places[0]).iterdir()
    assert [path.name for path in root.iterdir()] == [".git"]
    assert (kept / "a/file").read_bytes() == b"begin" + bytes(3_000_000) + b"end"
    assert ((kept / "a/file").stat().st_mode & 0o777, (kept / "a/file").stat().st_mtime) == (0o640, 1_000_000_000)
    assert (kept / "a" / os.fsdecode(b"\xff\n")).read_text() == "odd"
    assert str((kept / "a/link").readlink()) == "../nowhere"


def test_what_stays_in_the_workspace_is_not_moved_again_by_the_next_check(tmp_path, small_disk):
    root = workspace(tmp_path)
    watched = ProtectedFiles(lambda: [(str(root), ".git/hooks")], str(small_disk / "kept"))
    large = b"#" * 200_000
    watched.begin()
    (root / ".git/hooks/post-checkout").write_bytes(large)
    assert watched.end() == (f"{root}/.git/hooks/post-checkout",)
    (said,) = watched.take_set_aside()
    assert "No space left on device" in said
    watched.begin()
    assert watched.end() == ()
    assert watched.take_set_aside() == ()
    watched.close()
    assert files_in(root) == [large]
