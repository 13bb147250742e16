"""Placeholders: empty files and folders that a sandbox mounts over missing paths, reused from a stock."""

import os
import resource
from pathlib import Path

import pytest

from bradawl.core.errors import ToolError
from bradawl.sandbox.mounts.placeholders import Placeholder, PlaceholderStore
from bradawl.sandbox.mounts.spare_placeholders import SpareFiles, SpareFolders


def test_a_placeholder_file_is_created_once_and_reused(tmp_path: Path):
    spares, path = SpareFiles(f"{tmp_path}/stock"), tmp_path / "ghost"
    spares.put_at(str(path))
    first = path.stat().st_ino
    for _ in range(3):
        path.unlink()
        spares.put_at(str(path))
        assert (path.stat().st_ino, path.stat().st_size) == (first, 0)
    spares.close()
    assert list((tmp_path / "stock").iterdir()) == []


def test_a_placeholder_file_does_not_replace_an_existing_file(tmp_path: Path):
    spares, path = SpareFiles(f"{tmp_path}/stock"), tmp_path / "ghost"
    spares.put_at(str(path))
    path.unlink()
    path.write_text("existing")
    with pytest.raises(FileExistsError):
        spares.put_at(str(path))
    assert path.read_text() == "existing"


def test_a_placeholder_file_that_was_written_to_is_not_reused(tmp_path: Path):
    spares, path = SpareFiles(f"{tmp_path}/stock"), tmp_path / "ghost"
    spares.put_at(str(path))
    with path.open("a") as file:
        path.unlink()
        file.write("kept open")
        file.flush()
        spares.put_at(str(path))
        assert path.read_text() == ""
        file.write("again")
        file.flush()
        assert path.read_text() == ""


def test_a_placeholder_file_with_a_second_link_is_not_reused(tmp_path: Path):
    spares, path = SpareFiles(f"{tmp_path}/stock"), tmp_path / "ghost"
    spares.put_at(str(path))
    (tmp_path / "other").hardlink_to(path)
    path.unlink()
    spares.put_at(str(path))
    (tmp_path / "other").write_text("by the other name")
    assert path.read_text() == ""


def test_placeholder_files_of_two_paths_are_separate(tmp_path: Path):
    spares = SpareFiles(f"{tmp_path}/stock")
    first, second = tmp_path / "first", tmp_path / "second"
    spares.put_at(str(first))
    first_inode = first.stat().st_ino
    first.unlink()
    spares.put_at(str(second))
    assert second.stat().st_ino != first_inode


def test_placeholders_of_a_killed_agent_are_removed_and_a_running_agent_recreates_its_own(tmp_path: Path):
    left, path = SpareFiles(f"{tmp_path}/stock"), tmp_path / "ghost"
    left.put_at(str(path))
    path.unlink()
    spares = SpareFiles(f"{tmp_path}/stock")
    spares.put_at(str(tmp_path / "other"))
    assert len(list((tmp_path / "stock").iterdir())) == 1
    left.put_at(str(path))
    assert path.read_text() == ""


def test_without_a_stock_placeholders_are_created_each_time(tmp_path: Path):
    (tmp_path / "stock").write_text("no folder")
    for place in ("", f"{tmp_path}/stock"):
        spares, path = SpareFiles(place), tmp_path / "ghost"
        spares.put_at(str(path))
        path.unlink()
        spares.put_at(str(path))
        path.unlink()
        spares.close()


def test_a_placeholder_folder_that_is_not_empty_stays(tmp_path: Path):
    spares, path = SpareFolders(f"{tmp_path}/stock"), tmp_path / "ghost"
    spares.put_at(str(path))
    assert spares.take_back(str(path))
    assert not path.exists()
    spares.put_at(str(path))
    (path / "new").touch()
    assert spares.take_back(str(path))
    assert (path / "new").exists()


def test_a_spare_folder_that_a_program_filled_meanwhile_is_not_used(tmp_path):
    spares, path = SpareFolders(f"{tmp_path}/stock"), tmp_path / "ghost"
    spares.put_at(str(path))
    held = os.open(path, os.O_RDONLY)
    assert spares.take_back(str(path))
    os.close(os.open("planted", os.O_CREAT | os.O_WRONLY, dir_fd=held))
    os.close(held)
    spares.put_at(str(path))
    assert list(path.iterdir()) == []
    assert SpareFolders(f"{tmp_path}/stock").take_back(str(path))


@pytest.mark.parametrize("is_folder", [True, False])
def test_a_placeholder_that_cannot_be_opened_is_not_left_in_the_workspace(tmp_path: Path, is_folder: bool) -> None:
    store, path = PlaceholderStore(str(tmp_path / "state")), tmp_path / "placeholder"
    placeholder = Placeholder(str(path), is_folder)
    if not is_folder:  # a file that is reused is linked, which needs no descriptor
        store.release(store.acquire([placeholder]))
    os.close(next_free := os.open("/dev/null", os.O_RDONLY))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_free, limits[1]))
    try:
        with pytest.raises(ToolError, match="Too many open files"):
            store.acquire([placeholder])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not path.exists()
    store.close()
