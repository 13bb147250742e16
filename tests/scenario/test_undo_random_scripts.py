"""Random scripts of shell and git commands are undone to the byte, through the process that finds changes.

`BRADAWL_UNDO_SCRIPTS` sets the number of scripts.
"""

import os
import random
import stat
import subprocess
from pathlib import Path

import pytest

from bradawl.checkpoints.client import LocalChanges
from bradawl.checkpoints.restore import apply, plan
from bradawl.checkpoints.store import ContentStore

SCRIPTS = int(os.environ.get("BRADAWL_UNDO_SCRIPTS", "30"))
STEPS = 4
MADE_ANEW = (b"/.git/objects", b"/.git/index", b"/.git/COMMIT_EDITMSG", b"/.git/info/refs", b"/.git/gc.log")
"""Objects are only added; the index is compared by what is staged; the rest are git's notes to itself."""
LINES = (
    "echo {word} > {name}",
    "echo {word} >> {name}",
    "printf '{word}\\r\\nx\\r\\n' > {folder}/crlf.txt",
    "mkdir -p {folder}/{word} && echo {word} > {folder}/{word}/{word}.txt",
    "mkdir -p empty/{word}",
    "mv {folder} {word}-moved",
    "mv {name} {folder}/{word}",
    "rm -rf {folder}",
    "rm -f {name}",
    "chmod 600 {name}",
    "chmod +x {name}",
    "chmod 500 {folder}",
    "ln -sfn {folder} link-{word}",
    "ln -sf /nowhere {name}",
    "cp {name} {word}.copy",
    "sed -i s/a/b/ {name}",
    "head -c 70000 /dev/zero | tr '\\0' {word} > big.bin",
    "git init -q {folder}/nested && echo {word} > {folder}/nested/file && git -C {folder}/nested add -A",
    "git -C {folder}/nested commit -qm {word}",
    "git -C {folder}/nested repack -adq",
    "git clone -q . {folder}/nested",
    "mv {folder}/nested {word}-nested",
    "mv {word}-nested {folder}",
    "rm -rf {folder}/nested",
    "git add -A",
    "git add -A && git commit -qm {word}",
    "git commit -q --amend -m {word} --allow-empty",
    "git reset -q --hard",
    "git reset -q --hard HEAD~1",
    "git clean -fdxq",
    "git stash -q",
    "git stash -q && git stash drop -q",
    "git checkout -q -b {word}",
    "git checkout -q -f main",
    "git checkout -- . ",
    "git rm -rq --cached . ",
    "git branch -D {word}",
    "git gc -q",
    "git pack-refs --all",
    "tar cf {word}.tar {folder} && rm -rf {folder}",
    "tar xf {word}.tar && rm {word}.tar",
    "gzip -f {name}",
    "cp {name} {word}.moved && rm {name}",
    "ln -f {name} {word}.hard",
    "ln -f {word}.hard {folder}/hard && rm {word}.hard",
    "git -c protocol.file.allow=always submodule add -q ./{folder}/nested sub-{word}",
    "git -c protocol.file.allow=always submodule update -q --init --recursive",
    "git submodule deinit -q -f --all",
    "echo {word} >> sub-{word}/{word} && git -C sub-{word} add -A && git -C sub-{word} commit -qm {word}",
    "git rm -rqf sub-{word} && rm -rf .git/modules/sub-{word}",
    "git worktree add -q wt-{word} && echo {word} > wt-{word}/{word}",
    "git worktree remove --force wt-{word}",
)
NAMES = ("a", "b.txt", "c.crlf", "src/d.py", "src/deep/e", "g h", "tracked.lfs")
FOLDERS = ("src", "src/deep", "docs", "new")
WORDS = ("alpha", "beta", "gamma", "delta")
GIT = {
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    **{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", "LC_ALL": "C"},
    "PATH": os.environ["PATH"],
}


def shell(root: Path, line: str) -> None:
    subprocess.run(["bash", "-c", line], cwd=root, env=GIT, capture_output=True, check=False, timeout=60)


def make_project(root: Path, marker: Path, choice: random.Random) -> None:
    root.mkdir()
    shell(root, "git init -q -b main && mkdir -p src/deep docs new/inner && echo ignored > .gitignore")
    (root / ".gitattributes").write_text("*.crlf text eol=crlf\n*.lfs filter=mark\n")
    shell(
        root,
        f"git config filter.mark.clean 'touch {marker}; cat' && git config filter.mark.smudge 'touch {marker}; cat'",
    )
    for name in NAMES:
        (root / name).write_bytes(choice.choice((b"a\n", b"a\r\nb\r\n", b"", b"\0\xff\n" * 40)))
    shell(root, "git add -A && git commit -qm first && echo later >> a && git commit -qam second")
    (root / "ignored").mkdir()
    (root / "ignored" / "built").write_bytes(b"built")
    (root / "src" / "untracked").write_text("not saved anywhere else")


def random_line(choice: random.Random) -> str:
    line = choice.choice(LINES)
    quoted = {"name": f"'{choice.choice(NAMES)}'", "folder": choice.choice(FOLDERS), "word": choice.choice(WORDS)}
    return line.format(**quoted)


def states(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Kind, mode and content of everything, and what is staged."""
    found: dict[bytes, tuple[object, ...]] = {}
    top = os.fsencode(root)
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = folder + b"/" + name
            if path[len(top) :].startswith(MADE_ANEW):
                continue
            status = os.lstat(path)
            content = b""
            if stat.S_ISLNK(status.st_mode):
                content = os.fsencode(Path(os.fsdecode(path)).readlink())
            elif stat.S_ISREG(status.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
            found[path] = (stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), content)
    staged = subprocess.run(["git", "ls-files", "-s"], cwd=root, env=GIT, capture_output=True, check=False)
    found[b"staged"] = (staged.stdout,)
    return found


@pytest.mark.skipif(os.geteuid() != 0, reason="closed folders are compared as root, who can read them")
@pytest.mark.parametrize("seed", range(SCRIPTS))
async def test_a_random_script_is_undone_and_redone_to_the_byte(tmp_path: Path, seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - test data
    root, marker = tmp_path / "project", tmp_path / "filter-ran"
    make_project(root, marker, choice)
    changes = LocalChanges((str(root),), str(tmp_path / "store"), environment={})
    try:
        before, lines, refs = states(root), [], []
        for number in range(STEPS):
            lines.append(random_line(choice))
            await changes.begin(f"c{number}", None)
            shell(root, lines[-1])
            changes.end(f"c{number}")
            refs += [found.ref for found in await changes.settle() if found.ref]
        after = states(root)
    finally:
        changes.close()
    marker.unlink(missing_ok=True)
    with ContentStore(tmp_path / "store") as store:
        records = [store.record(ref) for ref in reversed(refs)]
        planned = plan(store, records, (os.fsencode(root),))
        assert not planned.conflicts and not planned.impossible, lines
        undone = apply(planned, store)
        assert states(root) == before, lines
        back = plan(store, (undone,), (os.fsencode(root),))
        assert not back.conflicts and not back.impossible, lines
        apply(back, store)
        assert states(root) == after, lines
    assert not marker.exists()
