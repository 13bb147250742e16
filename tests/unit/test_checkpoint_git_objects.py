"""Restoring git's data: values instead of files for packed references, and objects that git no longer has."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from restored_workspace import Workspace

from bradawl.checkpoints.git_index import object_names
from bradawl.checkpoints.git_objects import PlannedObjects, missing_objects
from bradawl.checkpoints.opened_folders import FolderWalk
from bradawl.checkpoints.restore import apply, plan

ABSENT = "deadbeef" * 5


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as made:
        yield made


def git(work: Workspace, *arguments: str) -> str:
    command = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "gc.auto=0", *arguments]
    environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(command, cwd=work.top, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(work: Workspace, *options: str) -> None:
    git(work, "init", "-q", "-b", "main", *options)
    for number in range(2):
        (work.top / "file").write_text(f"{number}")
        (work.top / f"file{number}").write_text(f"file {number}")
        git(work, "add", ".")
        git(work, "commit", "-qm", f"{number}")


def changed(work: Workspace) -> None:
    """Record what changed, without git's objects, which undo does not cover."""
    work.changed()
    record = work.records[-1]
    kept = tuple(each for each in record.changes if b"/objects" not in each.path)
    work.records[-1] = msgspec.structs.replace(record, changes=kept)


def missing(work: Workspace, name: str, wanted: bytes) -> list[str]:
    with FolderWalk((os.fsencode(work.top),)) as walk:
        return missing_objects(
            walk, work.path(f".git/{name}"), wanted, lambda: b"", PlannedObjects({}, {}, lambda _: b"")
        )


@pytest.mark.parametrize("options", [(), ("--object-format=sha256",)])
@pytest.mark.parametrize("is_packed", [False, True])
def test_objects_are_found_loose_and_in_packs(work: Workspace, options: tuple[str, ...], *, is_packed: bool) -> None:
    repository(work, *options)
    if is_packed:
        git(work, "repack", "-adq")
    names = git(work, "rev-list", "--all", "--objects", "--no-object-names").split()
    assert len(names) >= 7
    for name in names:
        assert missing(work, "refs/heads/x", f"{name}\n".encode()) == []
        absent = f"{int(name, 16) ^ 1:0{len(name)}x}"
        assert missing(work, "refs/heads/x", f"{absent}\n".encode()) == [absent]
    assert missing(work, "index", (work.top / ".git" / "index").read_bytes()) == []


def test_what_names_no_object_lacks_none(work: Workspace) -> None:
    repository(work)
    for name, content in (
        ("HEAD", b"ref: refs/heads/none\n"),
        ("refs/heads/x", b"ref: refs/heads/main\n"),
        ("config", f"{ABSENT}\n".encode()),
        ("logs/HEAD", f"{ABSENT}\n".encode()),
        ("index", b"DIRC"),
    ):
        assert missing(work, name, content) == []
    assert missing(work, "HEAD", f"{ABSENT}\n".encode()) == [ABSENT]
    packed = f"# pack-refs with: peeled\n{ABSENT} refs/tags/a\n^{ABSENT}\n"
    assert missing(work, "packed-refs", packed.encode()) == [ABSENT]


@pytest.mark.parametrize("where", ["objects/info/alternates", "objects/pack/pack-1.promisor"])
def test_a_repository_that_borrows_objects_lacks_none(work: Workspace, where: str) -> None:
    repository(work)
    path = work.top / ".git" / where
    path.parent.mkdir(exist_ok=True)
    path.write_text("/elsewhere\n")
    assert missing(work, "refs/heads/x", f"{ABSENT}\n".encode()) == []


@pytest.mark.parametrize("case", range(40))
def test_damaged_packs_and_indexes_raise_nothing(work: Workspace, case: int) -> None:
    repository(work)
    git(work, "repack", "-adq")
    (idx,) = (work.top / ".git" / "objects" / "pack").glob("*.idx")
    idx.chmod(0o600)
    choice = random.Random(case)  # noqa: S311 a repeatable test
    for path in (idx, work.top / ".git" / "index"):
        data = bytearray(path.read_bytes())
        for _ in range(choice.randrange(1, 40)):
            data[choice.randrange(len(data))] = choice.randrange(256)
        path.write_bytes(data[: choice.randrange(len(data) + 1)])
    os.mkfifo(idx.with_name("pack-2.idx"))
    assert missing(work, "refs/heads/x", f"{ABSENT}\n".encode()) in ([], [ABSENT])
    object_names((work.top / ".git" / "index").read_bytes())


def test_an_index_and_a_branch_whose_objects_are_gone_are_conflicts(work: Workspace) -> None:
    repository(work)
    last = git(work, "rev-parse", "HEAD")
    work.start()
    git(work, "reset", "-q", "--hard", "HEAD~1")
    changed(work)
    (work.top / ".git" / "ORIG_HEAD").unlink()
    git(work, "reflog", "expire", "--expire=now", "--all")
    git(work, "prune", "--expire=now")
    conflicts = {os.fsdecode(each.path).rpartition(".git/")[2]: each.conflict for each in work.plan().conflicts}
    assert "git no longer has the object" in conflicts["index"]
    assert conflicts["refs/heads/main"] == f"git no longer has the object {last[:12]}, which it would name"
    apply(work.plan(), work.store)
    git(work, "fsck", "--strict")
    assert git(work, "status", "--porcelain", "--untracked-files=no") == "M file"


def test_a_branch_that_was_packed_since_has_its_value_and_goes_back(work: Workspace) -> None:
    repository(work)
    first = git(work, "rev-parse", "HEAD")
    work.start()
    (work.top / "file").write_text("third")
    git(work, "commit", "-qam", "third")
    git(work, "branch", "made")
    changed(work)
    second = git(work, "rev-parse", "HEAD")
    git(work, "pack-refs", "--all")
    made = work.plan()
    assert made.conflicts == ()
    assert made.impossible == (
        (work.path(".git/refs/heads/made"), "git has moved it to packed-refs since, so it stays"),
    )
    apply(made, work.store)
    assert (git(work, "rev-parse", "main"), git(work, "rev-parse", "made")) == (first, second)
    git(work, "fsck", "--strict")


def test_a_branch_that_was_packed_with_another_value_is_a_conflict(work: Workspace) -> None:
    repository(work)
    work.start()
    (work.top / "file").write_text("third")
    git(work, "commit", "-qam", "third")
    changed(work)
    git(work, "commit", "-q", "--allow-empty", "-m", "the user's")
    git(work, "pack-refs", "--all")
    conflicts = {os.fsdecode(each.path).rpartition(".git/")[2]: each.conflict for each in work.plan().conflicts}
    assert conflicts["refs/heads/main"] == "it was removed since"


@pytest.mark.parametrize("is_packed", [False, True])
def test_objects_that_come_back_with_a_nested_repository_are_not_missing(work: Workspace, *, is_packed: bool) -> None:
    before = work.scan()
    repository(work)
    if is_packed:
        git(work, "repack", "-adq")
    work.changed()
    after = work.scan()
    undone = apply(work.plan(), work.store)
    assert work.scan() == before
    redo = plan(work.store, [undone], [os.fsencode(work.top)])
    assert redo.conflicts == ()
    apply(redo, work.store)
    assert work.scan() == after
    git(work, "fsck", "--strict")


def test_an_object_that_does_not_come_back_with_its_repository_is_missing(work: Workspace) -> None:
    repository(work)
    head = git(work, "rev-parse", "HEAD")
    work.changed()
    undone = apply(work.plan(), work.store)
    left = tuple(each for each in undone.changes if each.path != work.path(f".git/objects/{head[:2]}/{head[2:]}"))
    assert len(left) == len(undone.changes) - 1
    redo = plan(work.store, [msgspec.structs.replace(undone, changes=left)], [os.fsencode(work.top)])
    assert [each.conflict for each in redo.conflicts] == [
        f"git no longer has the object {head[:12]}, which it would name"
    ]


def test_objects_of_a_repository_that_is_renamed_back_are_found(work: Workspace) -> None:
    repository(work)
    names = git(work, "rev-list", "--all", "--objects", "--no-object-names").split()
    git(work, "repack", "-q")
    (work.top / ".git").rename(work.top / "moved")
    planned = PlannedObjects({}, {work.path(".git/objects"): work.path("moved/objects")}, lambda _: b"")
    with FolderWalk((os.fsencode(work.top),)) as walk:
        for name in (*names, ABSENT):
            found = missing_objects(walk, work.path(".git/HEAD"), f"{name}\n".encode(), lambda: b"", planned)
            assert found == ([ABSENT] if name == ABSENT else [])
