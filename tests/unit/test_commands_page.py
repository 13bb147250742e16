"""docs/commands.md is written from the registry, which has the commands that users of such programs expect."""

from pathlib import Path

from bradawl.app.commands.builtin import builtin_commands
from bradawl.app.commands.page import commands_page

ROOT = Path(__file__).parents[2]
_CONVERSATION = "help mode plan compact clear new reset quit exit theme keys copy model effort"
_SESSIONS = "resume fork rename export save sessions undo redo rewind diff context cost tokens status"
_PROJECT = "permissions todos jobs agents init add-dir trust doctor bug"
EXPECTED = f"{_CONVERSATION} {_SESSIONS} {_PROJECT}".split()


def test_the_page_is_what_the_script_writes():
    page = (ROOT / "docs/commands.md").read_text("utf-8")
    begin, end = "<!-- begin commands -->\n", "<!-- end commands -->"
    assert page.partition(begin)[2].partition(end)[0] == commands_page(), "run scripts/commands_page.py"


def test_the_readme_names_the_page():
    assert "(docs/commands.md)" in (ROOT / "README.md").read_text("utf-8")


def test_each_expected_command_exists_and_is_on_the_page():
    registry, page = builtin_commands(), commands_page()
    for name in EXPECTED:
        assert registry.find(name)
        assert f"\n### {name}\n" in f"\n{page}" or f"`/{name}`" in page, name
    assert {name for each in registry.commands for name in (each.name, *each.aliases)} == {*EXPECTED, "?"}


def test_each_argument_is_in_the_help_of_its_command():
    for each in builtin_commands().commands:
        names = {word.strip("[]") for word in each.usage.split()[1:]}
        unexplained = [name for name in names if name not in each.help.replace(each.usage, "")]
        assert unexplained == [], each.name
