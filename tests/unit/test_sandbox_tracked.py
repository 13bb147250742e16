"""Files that git tracks are not hidden by the sandbox: they are no secrets, and git would commit the mask."""

import subprocess
from pathlib import Path

import pytest

from bradawl.safety.git.tracked_files import is_tracked
from bradawl.sandbox.discovery.workspace_survey import WorkspaceSurvey
from bradawl.sandbox.mounts.plan import MountPlan


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init")
    (tmp_path / "sub").mkdir()
    for name in (".env", "sub/.env", "sub/.env.production"):
        (tmp_path / name).write_text("KEY=1\n")
    git(tmp_path, "add", "sub/.env")
    git(tmp_path, "commit", "-m", "x")
    return tmp_path


def test_a_file_is_tracked_by_its_whole_path(repository: Path) -> None:
    top = str(repository)
    assert is_tracked(f"{top}/sub/.env", top)
    assert not is_tracked(f"{top}/.env", top)
    assert not is_tracked(f"{top}/sub/.env.production", top)


def test_changes_of_the_index_take_effect_at_once(repository: Path) -> None:
    top = str(repository)
    git(repository, "add", "-f", ".env")
    assert is_tracked(f"{top}/.env", top)
    git(repository, "rm", "--cached", ".env")
    assert not is_tracked(f"{top}/.env", top)


def test_a_second_working_tree_has_an_index_of_its_own(repository: Path, tmp_path_factory) -> None:
    other = tmp_path_factory.mktemp("other") / "tree"
    git(repository, "worktree", "add", str(other), "-b", "more")
    assert is_tracked(f"{other}/sub/.env", str(other))
    assert not is_tracked(f"{other}/.env", str(other))


def test_outside_a_repository_nothing_is_tracked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1\n")
    assert not is_tracked(f"{tmp_path}/.env", str(tmp_path))


def test_only_untracked_files_are_masked(repository: Path) -> None:
    top = str(repository)
    mounts = MountPlan(top).for_workspace(WorkspaceSurvey(top).result()).mounts
    hidden = {path[len(top) + 1 :] for path, cover in mounts.items() if cover.kind == "secret"}
    assert hidden == {".env", "sub/.env.production"}
