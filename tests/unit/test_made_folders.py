"""Undo of calls that made repositories and caches: they go as a whole and come back; the user's data stay."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kept_copies_world import Work

from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.errors import RestoreStopped
from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import apply, plan

GIT = {
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": "/nonexistent",
        "PATH": os.environ["PATH"],
    },
}


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    made = Work(tmp_path, Coverage())
    yield made
    made.close()


def shell(work: Work, line: str) -> str:
    done = subprocess.run(["bash", "-ec", line], cwd=work.top, env=GIT, capture_output=True, text=True, check=True)
    return done.stdout


def roundtrip(work: Work, before: dict[str, tuple[int, int, bytes]]) -> None:
    after = work.state()
    undone = work.undo()
    assert undone.uncovered == () and work.state() == before
    redone = work.redo(undone)
    assert redone.uncovered == () and work.state() == after


def test_a_new_repository_goes_as_a_whole_and_comes_back(work: Work) -> None:
    (work / "file").write_bytes(b"1")
    work.start()
    before = work.state()
    shell(
        work, "git init -q -b main; git add -A; git commit -qm first; git gc -q; echo 2 >> file; git commit -qam second"
    )
    work.call()
    roundtrip(work, before)
    assert shell(work, "git log --format=%s; git fsck --strict; git status --short") == "second\nfirst\n"


def test_an_added_submodule_goes_as_a_whole_and_can_be_added_again(work: Work) -> None:
    shell(work, "git init -q -b main sub; cd sub; echo s > s; git add -A; git commit -qm sub")
    shell(work, "git init -q -b main; echo a > a; git add a; git commit -qm first")
    add = "git -c protocol.file.allow=always submodule add -q ./sub libs/smod"
    work.start()
    before = work.state()
    shell(work, add)
    work.call()
    after = work.state()
    undone = work.undo()
    assert undone.uncovered == ()
    ours = {name for name in work.state() if "/objects/" not in name}
    assert ours == {name for name in before if "/objects/" not in name}
    assert not (work / ".git/modules").exists()
    work.redo(undone)
    assert work.state().keys() == after.keys()
    assert (
        shell(work, "git submodule status --recursive; git -C libs/smod status --short")
        .strip()
        .endswith("(heads/main)")
    )
    work.undo()
    shell(work, add)
    assert (work / "libs/smod/s").read_text() == "s\n"


def test_a_new_working_tree_goes_as_a_whole(work: Work) -> None:
    shell(work, "git init -q -b main; echo a > a; git add a; git commit -qm first")
    work.start()
    before = work.state()
    shell(work, "git worktree add -q wt; cd wt; echo 1 > new; git add new; git commit -qm in-wt")
    work.call()
    undone = work.undo()
    assert undone.uncovered == ()
    assert {name for name in work.state() if "/objects/" not in name} == {n for n in before if "/objects/" not in n}
    work.redo(undone)
    assert shell(work, "git -C wt log --format=%s") == "in-wt\nfirst\n"


@pytest.mark.parametrize(
    "line",
    [
        "echo '#!/bin/sh' > .git/hooks/pre-commit",
        "mkdir -p .git/lfs/objects; echo large > .git/lfs/objects/1",
        "echo mine > .git/notes-of-the-user",
        "mkfifo .git/objects/pipe",
        "git update-ref refs/heads/mine main",
        "touch .git/index.lock.other",
    ],
)
def test_a_new_repository_with_data_of_the_user_keeps_its_objects(work: Work, line: str) -> None:
    (work / "file").write_bytes(b"1")
    work.start()
    shell(work, "git init -q -b main; git add -A; git commit -qm first")
    work.call()
    shell(work, line)
    before = {name for name in work.state() if name.startswith(".git/objects")}
    planned = work.plan()
    undone = apply(planned, work.store)
    assert any("objects or hooks in it stay" in each for each in undone.uncovered)
    assert {name for name in work.state() if name.startswith(".git/objects")} == before
    work.redo(undone)
    assert shell(work, "git log --format=%s main") == "first\n"


def test_a_commit_of_the_user_in_a_new_repository_is_a_conflict_and_keeps_the_objects(work: Work) -> None:
    (work / "file").write_bytes(b"1")
    work.start()
    shell(work, "git init -q -b main; git add -A; git commit -qm first")
    work.call()
    shell(work, "echo 2 >> file; git commit -qam mine")
    planned = work.plan()
    assert work.path(".git/refs/heads/main") in [each.path for each in planned.conflicts]
    apply(planned, work.store)
    (work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    assert shell(work, "git log --format=%s") == "mine\nfirst\n"


def test_a_repository_that_existed_before_keeps_its_objects(work: Work) -> None:
    shell(work, "git init -q -b main; echo a > a; git add a; git commit -qm first")
    work.start()
    shell(work, "echo b > b; git add b; git commit -qm second")
    work.call()
    before = {name for name in work.state() if name.startswith(".git/objects")}
    assert work.undo().uncovered == ()
    assert {name for name in work.state() if name.startswith(".git/objects")} == before


@pytest.mark.parametrize("stop_after", [1, 5, 20])
def test_a_stopped_removal_of_a_repository_is_finished_and_taken_back(work: Work, stop_after: int) -> None:
    work.start()
    before = work.state()
    shell(work, "git init -q -b main; echo 1 > file; git add -A; git commit -qm first")
    work.call()
    after = work.state()
    intended: list[ChangeRecord] = []
    calls: Callable[[], int] = iter(range(999)).__next__
    with pytest.raises(RestoreStopped):
        apply(
            work.plan(),
            work.store,
            begin=lambda record, _: intended.append(record),
            should_stop=lambda: calls() >= stop_after,
        )
    undone = apply(plan(work.store, intended, [os.fsencode(work.top)], is_interrupted=True), work.store)
    assert undone.uncovered == () and work.state() == after
    assert work.undo().uncovered == () and work.state() == before


# ------------------------------------------------------------------ caches

PACKAGE = "mkdir -p src/app tests; echo 1 > src/app/__init__.py; echo 2 > tests/test_a.py"
COMPILED = "mkdir -p src/app/__pycache__ tests/__pycache__; echo c | tee {src/app,tests}/__pycache__/x.cpython-311.pyc"


def test_compiled_files_go_with_the_folders_that_a_call_made(work: Work) -> None:
    (work / "tests").mkdir()
    work.start()
    before = work.state()
    shell(work, f"{PACKAGE}; {COMPILED}; echo half > tests/__pycache__/x.cpython-311.pyc.140737")
    work.call()
    roundtrip(work, before)


@pytest.mark.parametrize("line", ["echo mine > note", "mkdir inner", "ln -s /etc/passwd a.pyc", "mkfifo b.pyc"])
def test_a_cache_with_other_files_stays_and_is_named_once(work: Work, line: str) -> None:
    work.start()
    shell(work, f"{PACKAGE}; {COMPILED}; mkdir -p .pytest_cache/v; echo 1 > .pytest_cache/v/last")
    work.call()
    shell(work, f"cd src/app/__pycache__; {line}")
    undone = work.undo()
    assert undone.uncovered == () and not (work / "tests").exists()
    assert undone.stayed == (work.path(".pytest_cache"), work.path("src/app/__pycache__"))
    assert (work / "src/app/__pycache__/x.cpython-311.pyc").exists() and (work / ".pytest_cache/v/last").exists()
    assert not (work / "src/app/__init__.py").exists()
    redone = work.redo(undone)
    assert redone.uncovered == () and (work / "src/app/__init__.py").read_text() == "1\n"


def test_a_folder_with_a_cache_and_a_file_of_the_user_fails(work: Work) -> None:
    work.start()
    shell(work, f"{PACKAGE}; {COMPILED}")
    work.call()
    (work / "src/app/mine").write_text("mine")
    undone = work.undo()
    assert [each.split("'")[1] for each in undone.uncovered] == [str(work / "src"), str(work / "src/app")]
    assert undone.stayed == () and not (work / "src/app/__pycache__").exists()


def test_a_cache_that_was_there_before_and_one_that_was_renamed_keep_their_files(work: Work) -> None:
    shell(work, f"{PACKAGE}; {COMPILED}")
    work.start()
    before = work.state()
    shell(work, "mv tests other; echo c > src/app/__pycache__/y.pyc; echo new > src/app/new.py")
    work.call()
    assert work.undo().uncovered == ()
    assert work.state() == {**before, "src/app/__pycache__/y.pyc": work.state()["src/app/__pycache__/y.pyc"]}


@pytest.mark.parametrize(
    ("line", "staying", "caches"),
    [
        ("mkdir -p node_modules/x; echo 1 > node_modules/x/i.js", ["node_modules"], []),
        ("mkdir -p a/.venv; echo > a/.venv/pyvenv.cfg; echo 1 > a/.venv/x", ["a", "a/.venv"], []),
        ("mkdir -p a/b/.cache; echo 1 > a/b/.cache/x; echo y > a/b/y", [], ["a/b/.cache"]),
        ("mkdir -p a/.cache a/Pods; echo 1 > a/.cache/x; echo y > a/Pods/y", ["a", "a/Pods"], ["a/.cache"]),
        ("mkdir -p a/__pycache__ a/.cache empty; echo 1 > a/__pycache__/x.pyc", [], []),
    ],
)
def test_a_plan_names_what_stays_as_the_result_does(
    work: Work, line: str, staying: list[str], caches: list[str]
) -> None:
    work.start()
    shell(work, line)
    work.call()
    planned = work.plan()
    assert planned.staying == tuple(work.path(name) for name in staying)
    assert planned.caches == tuple(work.path(name) for name in caches)
    assert planned.is_partial == bool(staying)
    undone = work.undo()
    assert undone.stayed == planned.caches
    assert sorted(each.split("'")[1].encode() for each in undone.uncovered) == list(planned.staying)


def test_a_plan_does_not_name_folders_that_become_empty_by_renames(work: Work) -> None:
    (work / "node_modules").mkdir()
    (work / "node_modules/i.js").write_text("1")
    work.start()
    shell(work, "mkdir -p new/in; mv node_modules new/in/")
    work.call()
    assert work.plan().staying == ()
    assert work.undo().uncovered == ()
