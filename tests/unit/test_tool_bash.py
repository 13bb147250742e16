import os

import pytest
from tool_calls import workspace

from bradawl.core.effects import UNKNOWN
from bradawl.core.errors import ToolError
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
    with pytest.raises(ToolError, match="does not exist any more"):
        place.call(BASH, command="true")


def test_a_timeout_shows_what_was_printed(place):
    output = place.call(BASH, command="echo begun; sleep 60", timeout=1)
    assert output.is_error
    assert output.parts[0].text == "begun\n[timed out after 1 s; the command and its children were ended]"


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


@pytest.mark.parametrize("arguments", [{"timeout": 0}, {"timeout": 601}, {"command": " "}])
def test_arguments_out_of_range_are_refused(place, arguments):
    with pytest.raises(ToolError):
        place.call(BASH, **{"command": "true", **arguments})


def test_progress_is_shown_and_the_effects_are_unknown(place):
    place.call(BASH, command="echo hello")
    assert "".join(place.progress) == "hello\n"
    assert BASH.effects(BASH.params("ls"), place.context()) == UNKNOWN
