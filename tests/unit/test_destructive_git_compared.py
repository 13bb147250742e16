"""Random git commands are run by git: where something is lost, the analysis of the command has found that."""

import shutil
import subprocess
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shell_workspace import HOME, cases, scanned

from bradawl.safety.shell.analysis import ShellContext, line_effects
from bradawl.workspace.files import LocalFiles

_GIT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
    "GIT_EDITOR": "true",
}
_GIT |= {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, env=_GIT, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert not check or done.returncode == 0, (words, done.stderr)
    return done.stdout.decode("utf-8", "replace")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working tree `here` and the remote repository `there`, whose branches are not ancestors of those `here`.

    `here` has each kind of thing that git commands may lose; every one holds a text `lost-NAME`.
    """
    top = tmp_path_factory.mktemp("git")
    here = top / "here"
    git(top, "init", "-q", "-b", "main", "here")
    git(top, "init", "-q", "--bare", "-b", "main", "there")
    for name in ("a", "b", "c"):
        (here / name).write_text(f"{name}\n")
    git(here, "add", ".")
    git(here, "commit", "-qm", "one")
    (here / "a").write_text("lost-amended\n")
    git(here, "commit", "-qam", "two")
    (here / "a").write_text("a2\n")
    git(here, "commit", "-qa", "--amend", "-m", "three")
    (here / "b").write_text("lost-stashed\n")
    git(here, "stash")
    tree = git(here, "rev-parse", "HEAD^{tree}").strip()
    git(here, "branch", "x", git(here, "commit-tree", tree, "-p", "HEAD", "-m", "lost-branch").strip())
    git(here, "branch", "dev")
    for name in ("main", "dev"):
        other = git(here, "commit-tree", tree, "-m", f"remote {name}").strip()
        git(here, "push", "-q", "../there", f"{other}:refs/heads/{name}")
    git(here, "remote", "add", "origin", "../there")
    git(here, "config", "push.default", "current")
    (here / "a").write_text("lost-changed\n")
    (here / "c").write_text("lost-staged\n")
    git(here, "add", "c")
    (here / "u").write_text("lost-untracked\n")
    return top


def copied(template: Path, tmp_path: Path) -> Path:
    target = tmp_path / "copy"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(template, target, symlinks=True)
    return target


def words_of(*choices: list[str]) -> st.SearchStrategy[list[str]]:
    options, operands = choices
    some = st.lists(st.sampled_from(options), max_size=3)
    return st.tuples(some, st.lists(st.sampled_from(operands), max_size=3), some).map(lambda parts: [*chain(*parts)])


PUSH_WORDS = words_of(
    cases("""
        -f  --force  --forc  --force-with-lease  --force-with-lease=main  --force-if-includes  --no-force  -fn
        --no-force-with-lease  -n  --dry-run  --dry  --no-dry-run  --no-dr  -d  --del  --delete  --mirror  --all
        --prune  -o  -of  --push-option  --repo  --repo=origin  --  -q  -qf  --no-verify  -u  --receive-pack
        git-receive-pack  --recurse-submodules  --recurse-submodules=no  --signed=no  --thin
    """),
    cases("""
        origin  ../there  main  +main  dev  +dev  :dev  main:dev  +main:dev  :  +:  HEAD  +HEAD  tag  x  new
        refs/heads/*:refs/heads/*  +refs/heads/*:refs/heads/*
    """),
)
COMPARED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@COMPARED
@given(words=PUSH_WORDS)
def test_a_push_by_git_that_loses_remote_commits_is_found(template: Path, tmp_path: Path, words: list[str]):
    top = copied(template, tmp_path)
    before = dict(line.split()[::-1] for line in git(top / "there", "show-ref").splitlines())
    git(top / "here", "push", *words, check=False)
    after = dict(line.split()[::-1] for line in git(top / "there", "show-ref", check=False).splitlines())
    if any(after.get(name) != commit for name, commit in before.items()):
        assert scanned(" ".join(("git push", *words))).forced


LOCAL_WORDS = """
reset: --hard --har --h --merge --keep --mixed --soft -q --no-refresh -N | HEAD HEAD~1 a c
clean: -f -d -x -n --dry-run --no-dry-run --no-dr -e --exclude -q -ff --force | u . -n
checkout: -f --force -q -- -b -B --orphan --detach -m --merge --ours -d --no-force --no-overlay --conflict
    --conflict=diff3 | main x dev a . c HEAD HEAD~1 new
switch: -f --force --discard-changes --disc -c -C -m --detach -q --orphan | main x dev HEAD~1 new
restore: -S --staged -W --worktree --sta -s --source --source=HEAD~1 -q -SW --no-staged --ignore-unmerged | a c . HEAD
    HEAD~1
stash: drop clear pop apply push -u -q list show -k -m --index branch | new stash@{0} 0
rm: -f -r --cached -n --force --dry-run --no-dry-run -q --no-cached -rf | a c .
mv: -f --force -n -k -v | a b c u new
branch: -D -d -f -M -m -C -c --delete --force --move --copy -q -df --list | x dev main new
reflog: expire delete --expire=now --all -n --dry-run --updateref --rewrite --expire-unreachable=now show | HEAD@{0}
    HEAD@{1} main@{1} stash@{0}
update-ref: -d --no-deref -m --create-reflog | refs/heads/x refs/stash HEAD dev
gc: --prune=now --prune=all --prune --no-prune --auto --aggressive -q --pru=now --prune=never | x
repack: -a -d -A -k -ad -adk -f -q -l --cruft --keep-unreachable | x
prune: -n --dry-run --expire --expire=now --expire=never -v --no-dry-run | now never
checkout-index: -f -a -u -q --force --all --prefix=out/ | a c
read-tree: --reset -u -m -i --empty | HEAD HEAD~1 x
rebase: --abort --autostash -f --skip -q --onto | x dev HEAD~1
merge: --abort -q --no-ff --autostash -s -X | x dev ours
commit: --amend -a -m -q --allow-empty -o -i | t a c
tag: -d -f -l | v1 x
add: -A -u -f -N | . a u
pull: --force --rebase --autostash -q --allow-unrelated-histories | origin main +main:dev dev:x +dev:x
fetch: --force -q --prune -u | origin +main:dev +main:x main:new
"""
"""Subcommands with options and, behind the bar, operands."""


def words_by_subcommand() -> dict[str, tuple[list[str], list[str]]]:
    entries = (line.split(": ", 1) for line in LOCAL_WORDS.replace("\n    ", " ").strip().split("\n"))
    parts = {name: rest.split(" | ") for name, rest in entries}
    return {name: (options.split(), operands.split()) for name, (options, operands) in parts.items()}


LOCAL_COMMANDS = st.sampled_from(sorted(words_by_subcommand().items())).flatmap(
    lambda entry: words_of(*entry[1]).map(lambda words: [entry[0], *words])
)
KEPT = ("amended", "stashed", "branch", "changed", "staged", "untracked")


def missing(here: Path) -> set[str]:
    """Names of the texts that are neither in the working tree nor in an object that a reference or reflog leads to."""
    objects = git(here, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects", check=False)
    names = "\n".join(line.split()[0] for line in objects.splitlines()).encode()
    done = subprocess.run(
        ["git", "cat-file", "--batch"], cwd=here, env=_GIT, input=names, capture_output=True, check=False
    )
    found = done.stdout + b"".join(path.read_bytes() for path in here.iterdir() if path.is_file())
    return {name for name in KEPT if b"lost-" + name.encode() not in found}


def pruned(here: Path, before: str) -> bool:
    """Whether git has deleted an object."""
    return not set(before.split()) <= set(all_objects(here).split())


def all_objects(here: Path) -> str:
    return git(here, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")


@COMPARED
@given(words=LOCAL_COMMANDS)
def test_a_command_of_git_that_loses_something_is_found(template: Path, tmp_path: Path, words: list[str]):
    here = copied(template, tmp_path) / "here"
    git(here, "hash-object", "-w", "b")  # an object that nothing refers to
    (here / "d").write_text("unreachable")
    git(here, "hash-object", "-w", "d")
    (here / "d").unlink()
    before = all_objects(here)
    git(here, *words, check=False)
    effects = line_effects(
        " ".join(f"'{word}'" for word in ("git", *words)),
        str(template / "here"),
        {},
        ShellContext(LocalFiles(HOME).resolve, HOME, (str(template),)),
    )
    if lost := missing(here):
        assert effects.discards, lost
    if pruned(here, before):
        assert effects.discards and not effects.undoable
