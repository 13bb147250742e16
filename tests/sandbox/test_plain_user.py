"""Folders that an unprivileged user can't enter. Permissions don't stop root."""

import os
import tempfile
from pathlib import Path

import pytest
from forked import as_plain_user

from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.path_translation import reexposed_paths


@pytest.fixture
def folder():
    """A folder that every user can reach, unlike `tmp_path`."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o777)
        yield Path(place)


def test_nested_folders_without_permissions_are_removed(folder):
    def act():
        top = folder / "top"
        for path in ("a/b/c/d", "a/b/e", "f/g"):
            (top / path).mkdir(parents=True)
        (top / "a/b/e/file").touch()
        for path in ("a/b/c/d", "a/b/c", "a/b/e", "a/b", "a", "f/g", "f", ""):
            (top / path).chmod(0)
        remove_folder(str(top))
        assert not top.exists()

    as_plain_user(act)


def test_a_folder_of_path_that_can_not_be_entered_is_left_out(folder):
    def act():
        (folder / "closed/bin").mkdir(parents=True)
        (folder / "open/bin").mkdir(parents=True)
        (folder / "closed").chmod(0)
        found = reexposed_paths(
            SandboxLayout(roots=("/",), home=str(folder / "gone")),
            f"{folder}/closed/bin:{folder}/open/bin:{folder}/gone/bin",
        )
        (folder / "closed").chmod(0o700)
        assert str(folder / "open") in found
        assert str(folder / "closed/bin") not in found

    as_plain_user(act)
    if os.geteuid() == 0:
        for path in ("closed/bin", "closed", "open/bin", "open"):
            (folder / path).rmdir()
