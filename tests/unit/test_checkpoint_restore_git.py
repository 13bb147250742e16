"""Restoring git's data: listed apart, not while git works, and an index that git only refreshed is no conflict."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from restored_workspace import Workspace

from bradawl.checkpoints.errors import RestoreRefused
from bradawl.checkpoints.restore import apply


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as made:
        yield made


def git_workspace(work: Workspace) -> None:
    refs = work.top / ".git" / "refs" / "heads"
    refs.mkdir(parents=True)
    (work.top / ".git" / "logs").mkdir()
    for name in ("HEAD", "index", "refs/heads/main", "logs/HEAD"):
        (work.top / ".git" / name).write_text("old")
    (work.top / "file").write_text("old")
    work.start()
    for name in ("HEAD", "index", "refs/heads/main", "logs/HEAD"):
        (work.top / ".git" / name).write_text("new")
    (work.top / "file").write_text("new")
    work.changed()


def test_git_data_is_listed_apart_and_restored(work: Workspace):
    git_workspace(work)
    made = work.plan()
    assert [change.path for change in made.changes] == [work.path("file")]
    assert len(made.git) == 4
    apply(made, work.store)
    assert work.scan() == work.trees[0]


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_lock_of_git_refuses_the_restore(work: Workspace, lock: str):
    git_workspace(work)
    (work.top / ".git" / lock).write_text("")
    with pytest.raises(RestoreRefused, match=f"{lock}.* exists, so git may be at work"):
        apply(work.plan(), work.store)
    (work.top / ".git" / lock).unlink()
    assert work.scan() == work.trees[-1]


def test_a_refreshed_index_is_no_conflict_and_another_one_is(work: Workspace):
    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments]
        environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run(command, cwd=work.top, env=environment, check=True, capture_output=True)

    git("init", "-q")
    for name in ("a", "b"):
        (work.top / name).write_text(name)
    git("add", ".")
    work.start()
    git("rm", "-q", "--cached", "a")
    work.changed()
    os.utime(work.top / "b", (1, 1))
    git("status")
    work.trees.append(work.scan())
    git("rm", "-q", "--cached", "b")
    work.changed()
    changed = (work.top / ".git" / "index").read_bytes()
    git("update-index", "--refresh")
    assert work.plan().conflicts == ()
    git("add", "a")
    assert [change.path for change in work.plan().conflicts] == [work.path(".git/index")]
    (work.top / ".git" / "index").write_bytes(changed)
    apply(work.plan(), work.store)
    assert work.scan() == work.trees[0] | {path: state for path, state in work.scan().items() if b"/objects" in path}
