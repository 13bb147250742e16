"""Advice repeats the command line of the undo that it is about."""

import shlex

import pytest

from bradawl.app.cli import parse
from bradawl.app.undo_line import UndoLine, line_of

LINES = (
    [],
    ["--redo"],
    ["--to", "3.2"],
    ["--code-only"],
    ["--talk-only"],
    ["01J9ZK", "--to", "3", "--code-only"],
    ["-C", "a folder", "--add-dir", "x'y", "--add-dir", "z", "01J9ZK", "--redo"],
    ["--to", "1", "--force", "a b", "--force", "c"],
)


@pytest.mark.parametrize("line", LINES, ids=shlex.join)
def test_the_command_repeats_all_that_was_asked_for(line):
    options = parse(["undo", *line])
    answer = [] if "--talk-only" in line else ["--keep-conflicts"]
    said = shlex.split(line_of(options).command(*answer))
    assert said[:2] == ["bradawl", "undo"]
    assert parse(said[1:]) == {**options, "keep_conflicts": bool(answer)}


def test_an_option_that_only_shows_is_not_repeated():
    assert line_of(parse(["undo", "--to", "1", "--dry-run"])).command() == "bradawl undo --to 1"


def test_a_slash_command_repeats_step_and_part():
    assert UndoLine(step="1", part="code").slash() == "/undo 1 code"
    assert UndoLine(part="talk").slash() == "/undo talk"
    assert UndoLine(step="3.2", session="S").slash() == "/undo 3.2"
    assert UndoLine(step="1").redo().slash() == "/redo"


def test_a_line_for_something_else_keeps_the_session_and_its_folders():
    line = UndoLine(session="S", step="1", part="code", places=("-C", "x"), forced=("f",))
    assert line.redo().command() == "bradawl undo -C x S --redo"
    assert line.of("2", "talk").command() == "bradawl undo -C x S --to 2 --talk-only --force f"
