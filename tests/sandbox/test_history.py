"""The history of a repository is restored after sandboxed programs destroyed it; changes by git itself are kept."""

import subprocess

import pytest
from bubblewrap_programs import programs_with
from landlock_programs import USERS

from bradawl.core.permissions import Grant
from patience import call_limit

_GIT = "git -c user.name=A -c user.email=a@b.c -c commit.gpgsign=false -c gc.auto=0"


@pytest.fixture(params=[f"{kind} {user}" for kind in ("bubblewrap", "landlock") for user in USERS])
def made(request):
    with programs_with(*request.param.split()) as here:
        here.bare(
            f"rm -rf .git; git init -q -b main; echo one > a; git add a; {_GIT} commit -qm one; echo two > a;"
            f" {_GIT} commit -qam two; git branch side; git tag v1; {_GIT} gc -q;"
            f" echo three > a; {_GIT} commit -qam three; echo staged > b; git add b"
        )
        yield here


def restart_if_bubblewrap(made, *roots) -> None:
    """Use a new backend, as a new session does, if it is bubblewrap. With these roots, if any are given."""
    if hasattr(made, "restart_backend"):
        made.restart_backend(*roots)


def history(made) -> str:
    """All commits of all references, checked for readability, and the staged files."""
    return made.bare(
        "git fsck --full --strict --no-dangling 2>&1; git for-each-ref; git log --oneline main; git cat-file -p main:a;"
        " git ls-files -s; git rev-parse HEAD"
    )


DESTROYED = [
    "python3 -c 'import shutil; shutil.rmtree(\".git\", ignore_errors=True)'",
    "rm -rf .git",
    "rm -rf .git/*",
    "find .git -delete",
    "find .git -type f -exec rm -f {} +",
    "mv .git x; true",
    "mkdir x; mv .git/* x/",
    "mv .git/objects x",
    "mv .git/objects x; ln -s ../x .git/objects",
    "mv .git/refs x",
    "rm -rf .git/objects",
    "rm -rf .git/objects/pack",
    "rm -f .git/objects/pack/*.idx",
    "rm -rf .git/objects/??",
    "rm -rf .git/refs",
    "rm -rf .git/refs/heads .git/logs",
    "rm -f .git/refs/heads/main",
    "rm -f .git/packed-refs",
    "rm -f .git/HEAD",
    "echo nonsense > .git/HEAD",
    "rm .git/HEAD; mkfifo .git/HEAD",
    "rm .git/HEAD; ln -s /etc/passwd .git/HEAD",
    "chmod -R u+w .git/objects; find .git/objects -type f -exec truncate -s 0 {} +",
    ": > .git/packed-refs",
    "echo nonsense > .git/packed-refs",
    "head -c 100 /dev/urandom > .git/packed-refs",
    "echo nonsense >> .git/packed-refs",
    "truncate -s 3G .git/packed-refs",
    "truncate -s 40M .git/packed-refs",
    "truncate -s 3G .git/HEAD",
    "head -n 1 .git/packed-refs > p; cp p .git/packed-refs",
    "grep -v side .git/packed-refs > p; cat p > .git/packed-refs",
    "git pack-refs --all; : > .git/packed-refs",
    "echo nonsense > .git/refs/heads/main",
    ": > .git/refs/heads/main",
    "printf '%040d\\n' 0 > .git/refs/heads/main",
    "printf '%040d\\n' 0 > .git/HEAD",
    "echo 'ref: refs/heads/main' > .git/refs/heads/main",
    "echo nonsense > .git/shallow",
    "echo nonsense > .git/index",
    ": > .git/index",
    "chmod -R u+w .git/objects; find .git/objects -type f -exec sh -c 'echo bad > $0' {} ';'",
    "for each in .git/objects/??/*; do rm -f $each; mkfifo $each; done",
    "for each in .git/objects/??/*; do rm -f $each; ln -s /etc/passwd $each; done",
    "for each in .git/objects/??/*; do rm -f $each; mkdir $each; done",
    "d=$(ls -d .git/objects/?? | head -1); rm -rf $d; ln -s /etc $d",
    "rm -rf .git/objects/??; touch -d @0 .git/objects",
    "mv .git/objects .git/objects2; mkdir .git/objects",
    "cp -r .git x; rm -rf .git; mkdir .git",
    "rm -rf .git .git/* ; git init -q; true",
    "tar czf x.tgz .git; rm -rf .git",
    "git update-ref -d HEAD; rm -rf .git/objects/??",
    "for f in $(git rev-list --objects --all | cut -c1-40); do rm -f .git/objects/${f:0:2}/${f:2}; done",
    "(sleep 0.1; rm -rf .git/objects) & wait",
    "chmod -R 0 .git",
    "find .git/objects .git/refs -depth -exec chmod 0 {} +",
    "chmod 0 .git/refs/heads/main .git/index",
    "chmod 0 .git/HEAD",
    "rm -f .git/packed-refs; mkfifo .git/packed-refs",
]


@pytest.mark.parametrize("line", DESTROYED)
def test_destroyed_history_is_restored(made, line):
    before = history(made)
    assert "three" in before
    ended = made.sh(line)
    after = history(made)
    if "update-ref -d" in line or "init -q" in line:  # this is how git deletes a branch
        assert made.bare(f"git cat-file -p {before.split()[-1]}^:a") == "two\n"
    else:
        assert after == before
    is_refused = line.startswith("mv .git x") and made.backend.sandbox.name == "bubblewrap"
    assert is_refused or any("/.git/" in path for path in ended.restored), ended


ORDINARY = [
    f"echo four > a; {_GIT} commit -qam four",
    f"{_GIT} gc -q",
    f"{_GIT} repack -adq",
    f"{_GIT} repack -dq; git prune-packed",
    f"{_GIT} pack-refs --all",
    "git branch -D side",
    "git tag -d v1",
    "git reset -q --hard HEAD~1",
    f"{_GIT} stash -q; {_GIT} stash pop -q",
    f"git checkout -q side; echo x > c; git add c; {_GIT} commit -qm c; {_GIT} rebase -q main",
    f"{_GIT} commit -q --amend -m other",
    "git switch -qc new; git switch -q main; git branch -D new",
    "git worktree add -q tree side; git worktree remove tree",
    "git rm -q --cached a",
    "git maintenance run --task=loose-objects --task=incremental-repack -q",
    "git rev-list --objects --all | git pack-objects -q .git/objects/pack/pack >/dev/null; git prune-packed",
    "rm -f .git/index; git reset -q",
    "git update-ref refs/heads/new HEAD; git symbolic-ref refs/heads/other refs/heads/main; git pack-refs --all",
    f"git pack-refs --all; git branch -D side; git tag -d v1; {_GIT} commit -qam more; git pack-refs --all",
    "git fetch -q . side:fetched; git update-ref refs/heads/side main; git update-ref -d refs/heads/fetched",
    "git clean -fdq; git checkout -q -f HEAD~1; git checkout -q main",
]


@pytest.mark.parametrize("line", ORDINARY)
def test_changes_by_git_are_kept(made, line):
    ended = made.sh(line)
    assert ended.restored == (), ended
    assert made.bare("git fsck --full --strict 2>&1 >/dev/null | grep -v dangling") == ""
    ended = made.sh("git log -1 --format=%H")
    assert ended.restored == () and ended.code == 0


PIPES = [
    "mkfifo .git/refs/heads/new",
    "mkdir -p .git/refs/heads/a/b; mkfifo .git/refs/heads/a/b/new",
    "mkfifo .git/refs/new; mkfifo .git/refs/tags/new",
    "mkfifo .git/MERGE_HEAD .git/ORIG_HEAD .git/shallow .git/CHERRY_PICK_HEAD",
    "git pack-refs --all; rm .git/packed-refs; mkfifo .git/packed-refs",
    "mkfifo .git/logs/refs/heads/new; mkfifo .git/logs/new",
    "for n in $(seq 30); do mkfifo .git/refs/heads/p$n; done",
    "mkfifo .git/refs/heads/new; mkdir -p .git/refs/remotes/o; mkfifo .git/refs/remotes/o/HEAD",
]


@pytest.mark.parametrize("line", PIPES)
def test_git_does_not_block_on_a_pipe_made_by_a_program(made, line):
    before = history(made)
    ended = made.sh(line)
    assert ended.restored, ended
    assert made.bare("find .git -type p") == ""
    assert made.bare("timeout 20 git status >/dev/null && timeout 20 git for-each-ref >/dev/null; echo $?") == "0\n"
    assert history(made) == before


def test_a_branch_deleted_by_git_stays_deleted_and_is_recorded(made):
    assert made.sh("git branch -D side").restored == ()
    assert made.sh("true").restored == ()
    assert "side" not in made.bare("git branch")
    lists = list((made.own / "state/history").glob("*/references/*"))
    assert any("refs/heads/side" in path.read_text() for path in lists)


def test_a_second_session_knows_the_history_of_the_first(made):
    made.sh("true")
    made.backend.close()
    restart_if_bubblewrap(made)
    before = history(made)
    made.sh("rm -rf .git/objects")
    assert history(made) == before


def test_programs_can_not_reach_backup_copies_of_objects(made):
    made.sh("true")
    kept = made.own / "state/history"
    assert list(kept.rglob("*.pack"))
    ended = made.sh(f"find {kept} -name '*.pack'; rm -rf {kept}; ls {made.own}/state")
    assert ".pack" not in ended.out and list(kept.rglob("*.pack"))


def test_a_folder_of_a_repository_keeps_the_history_above_it(made):
    made.bare("mkdir -p inner; echo i > inner/f; git add inner; " + _GIT + " commit -qm inner")
    before = history(made)
    restart_if_bubblewrap(made, made.root / "inner")
    if made.user != "me" or not hasattr(made, "restart_backend"):
        pytest.skip("checked with bubblewrap and a repository of this user")
    grant = Grant(writable=(str(made.root / "inner"),))
    ended = made.run(("/bin/bash", "-c", "cd inner; rm -rf ../.git/objects ../.git/refs; true"), grant=grant)
    assert ended.restored
    assert history(made) == before


def test_watching_reads_nothing_through_a_link(made):
    secret = made.own / ("blobs/" + "a" * 38)
    made.write(secret, "PRIVATE")
    made.give_away()
    made.sh(f"rm -rf .git/objects/aa; ln -s {secret.parent} .git/objects/aa")
    made.sh(f"mv .git/objects .git/o; mkdir -p .git/objects; ln -s {secret.parent} .git/objects/aa")
    made.sh("true")
    held = subprocess.run(["grep", "-rl", "PRIVATE", made.root, made.own / "state"], capture_output=True, text=True)
    assert held.stdout == ""


def test_watching_a_repository_takes_few_calls(made):
    from bradawl.sandbox.restore.git_history import GitHistory, RepositoryLocation

    data = str(made.root / ".git")
    watched = GitHistory(lambda: [RepositoryLocation(data, str(made.root))], str(made.place / "kept"))
    watched.begin()
    assert watched.end() == ()
    with call_limit(5_000):
        watched.begin()
        assert watched.end() == ()
