"""The tool `bash` does not start programs that need a terminal."""

import pytest

from bradawl.core.errors import ToolError
from bradawl.tools.bash import Bash


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("vim main.py", "vim needs a terminal, and there is none; change files with edit_file"),
        ("ls && /usr/bin/nano x", "nano needs a terminal, and there is none; change files with edit_file"),
        (
            "watch -n1 date",
            "watch needs a terminal, and there is none; run the command itself, again when it is needed",
        ),
        (
            "top",
            "top needs a terminal, and there is none; ps aux --sort=-%cpu | head, or top -bn1, shows the same once",
        ),
    ],
)
async def test_programs_that_need_a_terminal_are_refused_at_once(place, command, why):
    with pytest.raises(ToolError) as refused:
        await place.call(Bash(), command=command)
    assert str(refused.value) == why


@pytest.mark.parametrize("command", ["echo vim", "type watch; true", "command -v vim; true", "echo x | cat; : top -b"])
async def test_their_names_alone_are_not(place, command):
    assert "[exit code 0]" in await place.text(Bash(), command=command)


@pytest.mark.parametrize("line", ["vim -es -c wq x", "vim -c ':%s/a/b/' -c wq x", "top -bn1", "emacs --batch -l x"])
def test_with_options_that_need_none_they_are_not(line):
    from bradawl.tools.shell.terminal_programs import needs_terminal

    assert needs_terminal([tuple(line.split())]) == ""
