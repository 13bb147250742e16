import asyncio
import os

import msgspec
import pytest
from tool_calls import workspace

from bradawl.core.effects import UNKNOWN
from bradawl.core.errors import ToolError
from bradawl.core.ports import Command, CommandResult
from bradawl.tools.bash import Bash

BASH = Bash()


@pytest.fixture
def place(tmp_path):
    with workspace(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("true", "(no output)\n[exit code 0]"),
        ("echo a; echo b >&2; exit 3", "a\n[stderr]\nb\n[exit code 3]"),
        ("echo b >&2", "[stderr]\nb\n[exit code 0]"),
        ("echo a; false | cat", "a\n[exit code 0] (pipeline: 1 0)"),
        ("false | true; exit 7", "(no output)\n[exit code 7]"),
        ("true | true", "(no output)\n[exit code 0]"),
        ("kill -9 $$", "(no output)\n[exit code 137] (ended by SIGKILL)"),
        ("printf '10%%\\r50%%\\r100%%\\nnext\\r\\n'", "100%\nnext\n[exit code 0]"),
        ("printf 'a\\xffb\\0\\n'", "a\ufffdb\ufffd\n[exit code 0]"),
        ("printf '\\033[1;31mred\\033[0m\\033]0;title\\007'", "red\n[exit code 0]"),
        ("pytest() { return 5; }; pytest", "(no output)\n[exit code 5]\nno tests were collected"),
        (
            "pytest() { return 5; }; pytest | tail -1",
            "(no output)\n[exit code 0] (pipeline: 5 0)\nno tests were collected",
        ),
        ("cat <<'E'\n  \"quoted\" $x\nE", '  "quoted" $x\n[exit code 0]'),
    ],
)
def test_the_result_shows_output_stderr_and_exit_code(place, command, shown):
    output = place.call(BASH, command=command)
    assert output.parts[0].text == shown
    assert output.is_error == ("[exit code 0]" not in shown)
    assert output.full is None


def test_the_folder_a_line_ends_in_is_kept_for_the_next(place, tmp_path):
    (tmp_path / "sub").mkdir()
    assert place.text(BASH, command="cd sub && pwd").endswith(
        "/sub\n[exit code 0]\n[working directory is now " + f"{tmp_path}/sub]"
    )
    assert place.text(BASH, command="pwd") == f"{tmp_path}/sub\n[exit code 0]"
    place.call(BASH, command="(cd ..); cd .. | cat; false && cd /; echo 'x && cd /'")
    assert place.cwd == f"{tmp_path}/sub"
    place.call(BASH, command="cd -P ..; false")
    assert place.cwd == os.path.realpath(tmp_path)


def test_a_folder_that_is_gone_is_told(place, tmp_path):
    (tmp_path / "sub").mkdir()
    place.call(BASH, command="cd sub")
    assert "[working directory" not in place.text(BASH, command="rmdir ../sub")
    text = place.text(BASH, command="pwd")
    assert text == f"{tmp_path}\n[exit code 0]\n[working directory {tmp_path}/sub is gone; this ran in {tmp_path}]"
    assert place.cwd == str(tmp_path)
    assert place.text(BASH, command="pwd") == f"{tmp_path}\n[exit code 0]"


@pytest.mark.parametrize("command", ["true", "cd /usr"])
def test_a_folder_that_is_gone_deep_down_is_left_for_the_nearest_one(place, tmp_path, command):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    place.call(BASH, command="cd a/b/c")
    (tmp_path / "a" / "b" / "c").rmdir()
    (tmp_path / "a" / "b").rmdir()
    (tmp_path / "a" / "b").write_text("now a file")
    assert f"this ran in {tmp_path}/a]" in place.text(BASH, command=command)
    assert place.cwd == ("/usr" if command == "cd /usr" else f"{tmp_path}/a")


def test_what_else_keeps_a_line_from_starting_is_told_and_not_tried_elsewhere(place):
    with pytest.raises(ToolError, match="too long"):
        place.call(BASH, command="true " + "x" * 200_000)


def test_background_programs_are_mentioned_beside_the_exit_code(place):
    text = place.text(BASH, command="setsid sleep 300 & echo up")
    assert text == "up\n[exit code 0]\n" + (
        "[programs it had left running were ended; start, use and stop a server within one call]"
    )


class Ended:
    """Processes that end as they are told, and remember what they ran."""

    def __init__(self, result: CommandResult) -> None:
        self.result = result
        self.ran: list[Command] = []

    async def run(self, command, grant, progress=None) -> CommandResult:
        self.ran.append(command)
        return self.result


@pytest.mark.parametrize(
    ("timeout", "code", "taken", "said"),
    [
        (601, 0, 600, "[exit code 0] (timeout 601 was taken as 600, the most there is)"),
        (120_000, None, 600, "[timed out after 600 s (the most there is); the command and its children were ended]"),
        (7, None, 7, "[timed out after 7 s (pass timeout, at most 600); the command and its children were ended]"),
    ],
)
def test_a_timeout_is_at_most_ten_minutes(place, timeout, code, taken, said):
    processes = Ended(CommandResult(code, b"", b""))
    context = msgspec.structs.replace(place.context(), processes=processes)
    output = asyncio.run(BASH.run(BASH.params("true", timeout), context))
    assert output.parts[0].text == f"(no output)\n{said}"
    assert [command.timeout_s for command in processes.ran] == [taken]


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (bytes(range(256)), "[binary output, 256 bytes]"),
        (b"\0" * 5000, "[binary output, 5,000 bytes]"),
        (b"a.py\0b.py\0" * 50, "a.py\ufffdb.py\ufffd" * 50),
        ("\ufffd".encode() * 50, "\ufffd" * 50),
        (b"caf\xe9 au lait\n" * 50, "caf\ufffd au lait\n" * 49 + "caf\ufffd au lait"),
        (b"\xff\xfe\n", "\ufffd\ufffd"),
    ],
)
def test_binary_output_is_only_named(place, data, shown):
    context = msgspec.structs.replace(place.context(), processes=Ended(CommandResult(0, data, b"an error")))
    output = asyncio.run(BASH.run(BASH.params("cat it"), context))
    assert output.parts[0].text == f"{shown}\n[stderr]\nan error\n[exit code 0]"


def test_a_flood_that_shows_little_is_shown_whole(place):
    context = msgspec.structs.replace(place.context(), processes=Ended(CommandResult(0, b"1%\r2%\r3%", b"", 70_000)))
    output = asyncio.run(BASH.run(BASH.params("load"), context))
    assert output.parts[0].text == "3%\n[70,000 bytes in the middle of the output were not kept]\n[exit code 0]"
    assert output.full is not None


def test_a_timeout_shows_what_was_printed(place):
    output = place.call(BASH, command="echo begun; sleep 60", timeout=1)
    assert output.is_error
    assert output.parts[0].text == (
        "begun\n[timed out after 1 s (pass timeout, at most 600); the command and its children were ended]"
    )


def test_a_line_that_takes_its_time_says_how_long(place):
    assert place.text(BASH, command="sleep 1.05").startswith("(no output)\n[exit code 0] (1.")


def test_long_output_keeps_its_ends_and_says_what_is_missing(place):
    output = place.call(BASH, command="seq 1 100000")
    text = output.parts[0].text
    assert len(text) < 30_500
    head, rest = text.split("\n[... lines ")
    first, last = map(int, rest.split(" of ")[0].split("-"))
    tail = rest.split(" cut ...]\n")[1].removesuffix("\n[exit code 0]")
    assert head == "\n".join(map(str, range(1, first)))
    assert tail == "\n".join(map(str, range(last + 1, 100_001)))
    assert "of 100000 cut" in rest
    assert output.full == b"".join(b"%d\n" % n for n in range(1, 100_001))


def test_one_long_line_is_cut_by_characters(place):
    output = place.call(BASH, command="head -c 100000 /dev/zero | tr '\\0' x; echo err >&2")
    text = output.parts[0].text
    assert "x\n[... characters 15001-" in text
    assert text.endswith("x\n[stderr]\nerr\n[exit code 0]")
    assert output.full.endswith(b"x\n[stderr]\nerr\n")


def test_a_flood_says_how_much_was_not_kept(place):
    output = place.call(BASH, command="yes | head -c 30000000")
    assert "of at least" in output.parts[0].text
    assert "20,000,000 bytes that were not kept" in output.parts[0].text
    assert len(output.full) < 11_000_000


@pytest.mark.parametrize("arguments", [{"timeout": 0}, {"timeout": -5}, {"command": " "}])
def test_arguments_out_of_range_are_refused(place, arguments):
    with pytest.raises(ToolError):
        place.call(BASH, **{"command": "true", **arguments})


def test_progress_is_shown_and_the_effects_are_unknown(place):
    place.call(BASH, command="echo hello")
    assert "".join(place.progress) == "hello\n"
    assert BASH.effects(BASH.params("ls"), place.context()) == UNKNOWN
