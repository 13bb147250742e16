"""Layouts of git's data that commands complete step by step, or that lead out of the workspace."""

from pathlib import Path

from bwrap import needs_bwrap
from planted_layouts import WITHOUT_HEAD
from planted_ways import armed
from sandboxed_session import sandboxed_session
from test_planted_ways import run_line

pytestmark = needs_bwrap


def test_what_linked_working_trees_share_is_compared_after_it_was_made(tmp_path: Path):
    (tmp_path / "home").mkdir()
    arms = armed("x/config").replace("@MARKER@", f"{tmp_path}/marker")
    with sandboxed_session(tmp_path / "parent", home=str(tmp_path / "home")) as session:
        session.run(f"{WITHOUT_HEAD} && printf '[core]\\n\\trepositoryformatversion = 0\\n' > x/config")
        assert b"worktrees" in run_line("cd w && git rev-parse --git-dir", tmp_path).stdout
        session.run(arms)
        run_line("cd w && git status", tmp_path)
        session.run("mv x/objects x/moved")
        session.run(f"{arms}; mv x/moved x/objects")
        run_line("cd w && git status", tmp_path)
        session.run("mkdir x/hidden && mv x/objects x/refs x/hidden")
        session.run(arms)
        session.run("mv x/hidden/* x")
        run_line("cd w && git status", tmp_path)
    assert not (tmp_path / "marker").exists()
