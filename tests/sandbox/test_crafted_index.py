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
        shutil.copy(Path(__file__).with_name("index_writer.py"), made.root / "tool.py")
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
