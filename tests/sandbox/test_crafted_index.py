"""Indexes that git itself would not write: with them, the user's next git command writes or reads files elsewhere.

Each way works without a sandbox, and not after bubblewrap.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from bwrap import needs_bwrap
from planted_ways import SETUP
from sandboxed_session import SandboxedSession, sandboxed_session
from test_planted_ways import run_line

from bradawl.core.permissions import Grant

pytestmark = needs_bwrap

HOOK = "#!/bin/sh\\ntouch @MARKER@\\n"
WRITER = "python3 -I tool.py"


def entry(*pairs: str, folder: str = ".", writer: str = WRITER) -> str:
    """A line that adds entries, each `NAME=CONTENT` with escapes, to the index that git uses in a folder."""
    return f"{writer} {folder} " + " ".join(f"$'{pair}'" for pair in pairs)


class Way(NamedTuple):
    """As `PlantedWay`. The way works if the marker exists, or the file `precious` beside the workspace changed."""

    plant: str
    fire: str = "git checkout . ; git status"
    before: str = "true"
    named: str = ".git/hooks/post-index-change"


_IN_HOOKS = f".git/hooks/post-index-change={HOOK}"
_CONFIG = '.git/config=[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = "touch @MARKER@; false"\\n'
_NESTED = "git clone -q . n"
_SUBMODULE = (
    "git clone -q . ../origin && git -c protocol.file.allow=always submodule --quiet add ../origin sub &&"
    " git commit -qm sub"
)
WAYS = {
    "a hook, by git checkout": Way(entry(_IN_HOOKS)),
    "a hook, by git restore": Way(entry(_IN_HOOKS), "git restore .; touch a.txt; git status"),
    "a hook, by git checkout-index": Way(entry(_IN_HOOKS), "git checkout-index -a; touch a.txt; git status"),
    "a hook, in version 4": Way(
        entry(_IN_HOOKS, writer="python3 -I tool.py --version=4"), "git checkout .; touch a.txt; git status"
    ),
    "a hook, through a folder": Way(entry(f"src/../{_IN_HOOKS}"), named="src/../.git/hooks/post-index-change"),
    "the configuration": Way(entry(_CONFIG), named=".git/config"),
    "a split index": Way(f"{entry(_IN_HOOKS)}; git update-index --split-index"),
    "a linked working tree": Way(
        entry(f"../{_IN_HOOKS}", folder="wt"),
        "cd wt; git checkout .; cd ..; touch a.txt; git status",
        "git worktree add -q wt",
        "../.git/hooks/post-index-change",
    ),
    "a nested repository": Way(
        entry(f"../{_IN_HOOKS}", folder="n"),
        "cd n; git checkout .; cd ..; touch a.txt; git status",
        _NESTED,
        "../.git/hooks/post-index-change",
    ),
    "a new repository": Way(
        f"git init -q n; {entry(f'../{_IN_HOOKS}', folder='n')}",
        "cd n; git checkout .; cd ..; touch a.txt; git status",
        named="../.git/hooks/post-index-change",
    ),
    "a submodule": Way(
        entry(f"../{_IN_HOOKS}", folder="sub"),
        "cd sub; git checkout .; cd ..; touch a.txt; git status",
        _SUBMODULE,
        "../.git/hooks/post-index-change",
    ),
    "a separate folder of data": Way(
        entry(f"../data/hooks/post-index-change={HOOK}", folder="s"),
        "cd s; git checkout .; git status",
        "git init -q --separate-git-dir=data s",
        "../data/hooks/post-index-change",
    ),
    "a repository with sha256": Way(
        entry(f"../{_IN_HOOKS}", folder="n"),
        "cd n; git checkout .; cd ..; touch a.txt; git status",
        "git init -q --object-format=sha256 n",
        "../.git/hooks/post-index-change",
    ),
    "a file outside, overwritten": Way(entry("../precious=evil"), "git checkout .", named="../precious"),
    "a file outside, removed": Way(entry("../precious=evil"), "git rm -rfq .", named="../precious"),
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SandboxedSession]:
    (tmp_path / "home").mkdir()
    with sandboxed_session(tmp_path / "parent") as made:
        shutil.copy(Path(__file__).parents[1] / "index_writer.py", made.root / "tool.py")
        (made.place / "precious").write_text("precious")
        yield made


def has_fired(session: SandboxedSession, top: Path) -> bool:
    precious = session.place / "precious"
    return (top / "marker").exists() or not precious.exists() or precious.read_text() != "precious"


def prepare(session: SandboxedSession, top: Path, *lines: str) -> None:
    for line in (SETUP, *lines):
        done = run_line(line, top)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", WAYS)
def test_a_crafted_index_works_without_a_sandbox(session: SandboxedSession, name: str, tmp_path: Path):
    way = WAYS[name]
    prepare(session, tmp_path, way.before, way.plant)
    assert not has_fired(session, tmp_path)
    run_line(way.fire, tmp_path)
    assert has_fired(session, tmp_path)


@pytest.mark.parametrize("name", WAYS)
def test_a_crafted_index_is_put_back_and_the_result_names_the_entry(
    session: SandboxedSession, name: str, tmp_path: Path
):
    way = WAYS[name]
    prepare(session, tmp_path, way.before)
    session.run("true")
    before = run_line("git ls-files -s", tmp_path).stdout
    result = session.run(way.plant.replace("@MARKER@", f"{tmp_path}/marker"))
    assert any(f"it named {way.named}" in each for each in result.restored), (result.restored, result.stderr)
    run_line(way.fire, tmp_path)
    assert not has_fired(session, tmp_path)
    if "git rm" not in way.fire:
        assert run_line("git ls-files -s", tmp_path).stdout == before
    assert session.run("true").restored == ()


# ------------------------------------------------------------------ hidden files

_BLOB = "$(echo x | git hash-object -w --stdin)"
SECRETS = {
    "an entry": (f"git update-index --add --cacheinfo 100644,{_BLOB},.env", ""),
    "an entry in version 4": (
        f"git update-index --index-version 4; git update-index --add --cacheinfo 100644,{_BLOB},.env",
        "",
    ),
    "an entry in a split index": (
        f"git update-index --add --cacheinfo 100644,{_BLOB},.env; git update-index --split-index",
        "",
    ),
    "an entry in a folder": (f"git update-index --add --cacheinfo 100644,{_BLOB},conf/deep/.env", ""),
    "the cover": ("git add -f .env", ""),
    "the cover, committed": ("git add -f .env && git commit -qm y", ""),
    "an intent to add": ("git add -N -f .env", ""),
    "a nested repository": (
        f"git init -q conf; cd conf; git update-index --add --cacheinfo 100644,{_BLOB},deep/.env",
        "cd conf; ",
    ),
    "an existing nested repository": (f"cd n; git update-index --add --cacheinfo 100644,{_BLOB},.env", "cd n; "),
    "a moved folder": (
        f'python3 -I -c \'import os; os.rename("many/d7", "moved")\';'
        f" git update-index --add --cacheinfo 100644,{_BLOB},moved/.env",
        "",
    ),
}


@pytest.mark.parametrize("name", SECRETS)
def test_a_hidden_file_that_a_command_adds_does_not_reach_the_next_commit(
    session: SandboxedSession, name: str, tmp_path: Path
):
    plant, folder = SECRETS[name]
    many = (
        "for i in $(seq 130); do mkdir -p many/d$i; echo SECRET > many/d$i/.env; done" if "moved" in plant else "true"
    )
    made = f"{_NESTED}; mkdir -p conf/deep; for f in . conf/deep n; do echo SECRET > $f/.env; done; {many}"
    prepare(session, tmp_path, made)
    session.run("true")
    result = session.run(plant)
    assert any("which commands can't read" in each for each in result.restored), (result.restored, result.stderr)
    commit = f"git config --global user.name u; git config --global user.email u@e; {folder}git commit -qam x"
    run_line(f"{commit}; git add -u; git stash", tmp_path)
    objects = "git cat-file --batch-all-objects --batch"
    assert b"SECRET" not in run_line(f"{folder}{objects}", tmp_path).stdout
    assert run_line(f"{folder}git fsck", tmp_path).returncode == 0


@pytest.mark.parametrize("name", SECRETS)
def test_without_a_sandbox_the_next_commit_takes_the_file(session: SandboxedSession, name: str, tmp_path: Path):
    plant, folder = SECRETS[name]
    made = f"{_NESTED}; mkdir -p conf/deep many/d7; for f in . conf/deep n many/d7; do echo SECRET > $f/.env; done"
    commit = f"git config --global user.name u; git config --global user.email u@e; {folder}git commit -qam x"
    prepare(session, tmp_path, made, plant)
    run_line(commit, tmp_path)
    assert b"SECRET" in run_line(f"{folder}git cat-file --batch-all-objects --batch", tmp_path).stdout


def test_other_staged_changes_stay_when_a_hidden_file_is_taken_out(session: SandboxedSession, tmp_path: Path):
    prepare(session, tmp_path, "echo SECRET > .env")
    session.run(
        "echo new > new; git add new; echo changed > a.txt; git add a.txt; git add -f .env; git rm -q src/b.txt"
    )
    status = run_line("git status --porcelain", tmp_path).stdout.decode().splitlines()
    assert status == ["M  a.txt", "A  new", "D  src/b.txt", "?? .env"]


def test_a_file_that_the_user_has_added_or_uncovered_stays_in_the_index(session: SandboxedSession, tmp_path: Path):
    prepare(session, tmp_path, "echo SECRET > .env; echo SECRET > id_rsa; git add -f .env; git commit -qm env")
    result = session.run("echo 1 > b; git add b; git commit -qm b; git update-index --chmod=+x .env")
    assert result.restored == ()
    grant = Grant(writable=session.grant.writable, uncovered=(f"{session.root}/id_rsa",))
    assert session.run("git add -f id_rsa", grant).restored == ()
    assert b"id_rsa" in run_line("git ls-files", tmp_path).stdout


def test_a_file_that_a_command_has_made_and_added_itself_stays_in_the_index(session: SandboxedSession, tmp_path: Path):
    prepare(session, tmp_path)
    session.run("true")
    assert session.run("echo KEY=1 > .env; git add -f .env").restored == ()
    assert b".env" in run_line("git ls-files", tmp_path).stdout


# ------------------------------------------------------------------ what was there before, and what can't be examined


def test_an_index_that_was_so_before_the_command_is_left_and_said_once(session: SandboxedSession, tmp_path: Path):
    prepare(session, tmp_path, entry("../precious=evil"))
    first = session.run("true")
    assert [f"{session.root}/.git/index (could not be put back: it names ../precious, as before the command)"] == [
        *first.restored
    ]
    assert session.run("echo x > b; git add b").restored == ()
    assert session.run("echo x > c; git add c").restored == ()
    assert b"../precious" in run_line("git ls-files -s --full-name", tmp_path).stdout
    again = session.run(entry("../more=x"))
    assert any("it named ../more" in each for each in again.restored)
    listed = run_line("git ls-files", tmp_path).stdout
    assert b"../precious" in listed
    assert b"c" in listed
    assert b"../more" not in listed


@pytest.mark.parametrize(
    "line",
    [
        "truncate -s 200M .git/index",
        "truncate -s 8T .git/index",
        "rm .git/index; mkdir .git/index",
        "rm .git/index; mkfifo .git/index",
        "cp .git/index i; rm .git/index; ln -s ../i .git/index",
        "printf x >> .git/index",
        'python3 -c \'open(".git/index", "r+b").write(b"DIRC\\0\\0\\0\\2\\xff\\xff\\xff\\xff")\'',
    ],
)
@pytest.mark.parametrize("folder", [".", "n"])
def test_a_damaged_index_is_put_back(session: SandboxedSession, line: str, folder: str, tmp_path: Path):
    prepare(session, tmp_path, _NESTED)
    session.run("true")
    before = run_line(f"cd {folder}; git ls-files -s", tmp_path).stdout
    result = session.run(f"cd {folder}; {line}; cd {session.root}")
    assert any(each.startswith(f"{session.root / folder}/.git/index") for each in result.restored), result.restored
    assert run_line(f"cd {folder}; git ls-files -s", tmp_path).stdout == before
    assert (session.root / folder / ".git/index").is_file()
    assert session.run("true").restored == ()


def test_an_index_of_several_megabytes_is_put_back(session: SandboxedSession, tmp_path: Path):
    names = "".join(f"100644 {'1' * 40}\tfolder/file{number}\n" for number in range(30_000))
    (session.place / "names").write_text(names)
    prepare(session, tmp_path, "git update-index --index-info < ../names")
    session.run("true")
    result = session.run(entry("../precious=evil"))
    assert result.restored == (f"{session.root}/.git/index (it named ../precious)",)
    assert run_line("git ls-files | wc -l", tmp_path).stdout.strip() == b"30003"


def test_an_index_written_in_place_with_other_times_is_put_back(session: SandboxedSession, tmp_path: Path):
    prepare(session, tmp_path)
    session.run("git add tool.py")
    before = run_line("git ls-files -s", tmp_path).stdout
    result = session.run(
        "python3 -I tool.py . ../precious=evil; cp .git/index bad; git read-tree HEAD; git add tool.py;"
        " cat bad > .git/index; touch -d 2001-01-01 .git/index"
    )
    assert any("it named ../precious" in each for each in result.restored)
    assert run_line("git ls-files -s", tmp_path).stdout == before
