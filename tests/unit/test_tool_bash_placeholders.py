"""A listing that shows placeholders of the sandbox says that they are no files of the project."""

from pathlib import Path

from bradawl.core.workspace import CommandResult
from bradawl.tools.shell.placeholder_names import note_on

LISTING = b".\n..\n.bradawl\n.claude\n.cursor\n.envrc\n.git\nmain.py\n"


def test_placeholders_in_a_listing_are_named(tmp_path: Path):
    note = "[.bradawl .claude .cursor .envrc are empty placeholders of the sandbox, and no files of the project]"
    assert note_on(CommandResult(0, LISTING, b"", sandbox="bubblewrap"), str(tmp_path)) == (note,)
    long = b"drwxr-xr-x 2 u u 40 Nov 1 10:00 .claude\ndrwxr-xr-x 2 u u .cursor/\n./.envrc\n"
    assert len(note_on(CommandResult(0, long, b"", sandbox="bubblewrap"), str(tmp_path))) == 1


def test_files_of_the_project_are_not_named(tmp_path: Path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text("{}")
    (tmp_path / ".envrc").write_text("x")
    (tmp_path / ".cursor").mkdir()
    assert note_on(CommandResult(0, LISTING, b"", sandbox="bubblewrap"), str(tmp_path)) == ()


def test_without_this_sandbox_there_are_none(tmp_path: Path):
    assert note_on(CommandResult(0, LISTING, b"", sandbox="landlock"), str(tmp_path)) == ()
