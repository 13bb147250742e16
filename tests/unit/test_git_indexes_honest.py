"""Whatever git itself does to an index stays, and is examined without complaint."""

import os
import subprocess
from pathlib import Path
from random import Random

import pytest

from bradawl.sandbox.restore.git_directories import GitDirectories
from bradawl.sandbox.restore.git_indexes import GitIndexes
from bradawl.sandbox.restore.index_places import IndexPlaces

SETUP = (
    "git init -q -b main {format} . && mkdir -p a/b c && echo 1 > a/b/f && echo 1 > c/g && echo 1 > h && git add . &&"
    " git commit -qm 1 && git checkout -q -b side && echo 2 > a/b/f && git rm -q c/g && git commit -qam 2 &&"
    " git checkout -q main && echo 3 > a/b/f && echo n > n && git add n && git commit -qam 3 &&"
    " git clone -q . ../other"
)
STEPS = (
    "echo {n} > x{n}; git add x{n}",
    "mkdir -p d{n}/e; echo {n} > d{n}/e/f; git add -A",
    "echo {n} > 'é ~ {n}.txt'; echo > '.gitx{n}'; echo > 'a b.git'; echo > $'odd\\xff{n}\\n'; git add -A",
    "ln -s ../../etc link{n}; git add link{n}",
    "git add -N .; echo {n} > i{n}; git add -N i{n}",
    "git mv h h{n} || git mv h* h",
    "git rm -q --cached x* || true",
    "git commit -qm {n}",
    "git commit -qam {n}",
    "git merge -q side || true",
    "git merge --abort || git reset -q --merge",
    "git rebase -q side || true",
    "git rebase --abort || true",
    "git cherry-pick side || true",
    "git cherry-pick --abort || true",
    "git stash -q -u; git stash pop -q || true",
    "git reset -q --hard HEAD",
    "git reset -q HEAD~1 || true",
    "git checkout -q side || git checkout -q -f side",
    "git checkout -q -f main",
    "git read-tree -m main side || true",
    "git update-index --index-version 4",
    "git update-index --index-version 2",
    "git update-index --split-index",
    "git update-index --no-split-index",
    "git update-index --untracked-cache; git status",
    "git update-index --skip-worktree h; git update-index --assume-unchanged n",
    "git update-index --really-refresh",
    "git sparse-checkout set --cone --sparse-index a",
    "git sparse-checkout set --no-cone '/*' '!c'",
    "git sparse-checkout disable",
    "git worktree add -q -f w{n}; cd w{n} && echo {n} > k && git add k",
    "git worktree prune; rm -rf w*",
    "git -c protocol.file.allow=always submodule --quiet add -f ../other sub{n}",
    "cd sub* && echo {n} > k && git add k && git mv k l",
    "git submodule deinit -q -f --all",
    "git init -q -b main r{n}; cd r{n}; echo > k; git add k",
    "git -c index.skipHash=true add -A",
    "git -c core.untrackedCache=true -c index.threads=4 status",
    "git apply --cached --intent-to-add --allow-empty /dev/null",
    "git gc -q",
    "rm -f .git/index; git reset -q",
    "git rm -rfq .; git checkout -q -f HEAD -- . || true",
)


def run(line: str, folder: Path) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder.parent),
        "LC_ALL": "C",
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "GIT_EDITOR": "true",
    }
    subprocess.run(["/bin/bash", "-c", line], cwd=folder, env=environment, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("seed", range(int(os.environ.get("HONEST_SEQUENCES", "8"))))
def test_random_sequences_of_git_commands_change_an_index_only_as_git_does(seed: int, tmp_path: Path):
    chance = Random(seed)  # noqa: S311 - test data
    root = tmp_path / "ws"
    root.mkdir()
    run(SETUP.format(format="--object-format=sha256" if seed % 4 == 3 else ""), root)
    directories = GitDirectories((str(root),))
    indexes = GitIndexes(IndexPlaces((str(root),), str(tmp_path / "home"), directories), str(tmp_path / "aside"))
    done: list[str] = []
    for number in range(20):
        directories.search()
        directories.adopt()
        indexes.begin()
        done.append(chance.choice(STEPS).replace("{n}", str(number)))
        run(done[-1], root)
        directories.search(opens=True)
        assert indexes.end() == (), done
    assert not (tmp_path / "aside").exists()
