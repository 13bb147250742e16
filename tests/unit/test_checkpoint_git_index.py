"""What is staged in git's index is compared without the stat data that `git status` rewrites."""

import os
import subprocess
from pathlib import Path

import pytest

from bradawl.checkpoints.git_index import staged_state

ENVIRONMENT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C"}


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    environment = {**os.environ, **ENVIRONMENT}
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture(params=["2", "4"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "config", "index.version", request.param)
    (folder / "folder").mkdir()
    for name in ("a", "folder/b", "folder/bc", "é", "x" * 200):
        (folder / name).write_text(f"content of {name}")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def index(folder: Path) -> bytes:
    return (folder / ".git" / "index").read_bytes()


def test_a_refresh_of_the_stat_data_changes_nothing(repository: Path):
    before = index(repository)
    for path in repository.glob("**/b"):
        os.utime(path, (1, 1))
    git(repository, "status")
    assert index(repository) != before
    assert staged_state(index(repository)) == staged_state(before) is not None


@pytest.mark.parametrize("change", ["content", "mode", "remove", "add", "assume", "skip", "intent"])
def test_a_change_of_what_is_staged_is_seen(repository: Path, change: str):
    before = staged_state(index(repository))
    (repository / "new").write_text("new")
    if change == "content":
        (repository / "a").write_text("other")
        git(repository, "add", "a")
    else:
        git(
            repository,
            *{
                "mode": ("update-index", "--chmod=+x", "a"),
                "remove": ("rm", "-q", "--cached", "folder/b"),
                "add": ("add", "new"),
                "assume": ("update-index", "--assume-unchanged", "a"),
                "skip": ("update-index", "--skip-worktree", "a"),
                "intent": ("add", "-N", "new"),
            }[change],
        )
    after = staged_state(index(repository))
    assert None not in (before, after)
    assert before != after


def test_what_is_not_understood_is_no_state(repository: Path):
    data = index(repository)
    for end in range(len(data)):
        assert staged_state(data[:end]) is None
    for other in (b"", b"DIRC", data + b"x", data[:4] + b"\0\0\0\x09" + data[8:]):
        assert staged_state(other) is None
    git(repository, "update-index", "--split-index")
    assert staged_state(index(repository)) is None
