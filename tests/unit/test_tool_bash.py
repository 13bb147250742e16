"""The tool `bash`: results, working directory, limits of output, and declared effects."""

import os
import sys
from pathlib import Path

import msgspec
import pytest

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import text_of
from bradawl.core.permissions import Sandbox
from bradawl.core.workspace import CommandResult
from bradawl.testing.fake_processes import ScriptedProcesses
from bradawl.tools.bash import Bash

BASH = Bash()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("true", "(no output)\n[exit code 0]"),
        ("echo a; echo b >&2; exit 3", "a\n[stderr]\nb\n[exit code 3]"),
        ("echo b >&2", "[stderr]\nb\n[exit code 0]"),
        ("echo a; false | cat", "a\n[exit code 0] (pipeline: 1 0)"),
        ("false | true; exit 7", "(no output)\n[exit code 7]"),
        ("true | true", "(no output)\n[exit code 0]"),
        (
            "kill -9 $$",
            "(no output)\n[exit code 137] (ended by SIGKILL)\n"
            "[it is unknown where this ended: the working directory is still {cwd}, and exports are as before]",
        ),
        ("printf '10%%\\r50%%\\r100%%\\nnext\\r\\n'", "100%\nnext\n[exit code 0]"),
        ("printf 'a\\xffb\\0\\n'", "a\ufffdb\ufffd\n[exit code 0]"),
        ("printf '\\033[1;31mred\\033[0m\\033]0;title\\007'", "red\n[exit code 0]"),
        ("pytest() { return 5; }; pytest", "(no output)\n[exit code 5]\nno tests were collected"),
        (
            "pytest() { return 5; }; pytest | tail -1",
            "(no output)\n[exit code 0] (pipeline: 5 0)\nno tests were collected",
        ),
        ("false | true; echo a", "a\n[exit code 0] (earlier pipeline: 1 0)"),
        ("(exit 3) | true; false | cat; true", "(no output)\n[exit code 0] (earlier pipelines: 3 0; 1 0)"),
        ("false | true; false | true", "(no output)\n[exit code 0] (pipeline: 1 0) (earlier pipeline: 1 0)"),
        ("false | true; bash -c 'exit 7'", "(no output)\n[exit code 7] (earlier pipeline: 1 0)"),
        ("yes | head -1; true", "y\n[exit code 0]"),
        ("false; true", "(no output)\n[exit code 0]"),
        (
            "pytest() { return 5; }; pytest | tail -1; true",
            "(no output)\n[exit code 0] (earlier pipeline: 5 0)\nno tests were collected",
        ),
        ("cat <<'E'\n  \"quoted\" $x\nE", '  "quoted" $x\n[exit code 0]'),
    ],
)
async def test_the_result_shows_output_stderr_and_exit_code(place, command, shown):
    output = await place.call(BASH, command=command)
    assert text_of(output.parts) == shown.replace("{cwd}", place.cwd)
    assert output.is_error == ("[exit code 0]" not in shown)
    assert output.full is None


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("false; true", "[exit code 0] (a command before it failed: 1)"),
        ("grep -q nothing /dev/null; true", "[exit code 0] (a command before it failed: 1)"),
        ("(exit 3); false; true", "[exit code 0] (a command before it failed: 3)"),
        ("false; exit 0", "[exit code 0] (a command before it failed: 1)"),
        ("false; (exit 3)", "[exit code 3]"),
        ("true; false", "[exit code 1]"),
        ("false | cat", "[exit code 0] (pipeline: 1 0)"),
        ("false | cat; true", "[exit code 0] (earlier pipeline: 1 0)"),
        ("false | cat; false; true", "[exit code 0] (earlier pipeline: 1 0) (a command before it failed: 1)"),
        ("false | cat; exit 0", "[exit code 0] (pipeline: 1 0)"),
    ],
)
async def test_a_check_with_a_failure_before_its_end_has_failed(place, command, shown):
    output = await place.call(BASH, command=command, answer_if_ok="All is well.")
    assert text_of(output.parts) == f"(no output)\n{shown}"
    assert output.is_error or output.has_failed_part


@pytest.mark.parametrize(
    "command",
    [
        "true; true",
        "false || true",
        "! false",
        "! true | false",
        "if grep -q x /dev/null; then :; fi",
        "if true | grep -q x; then :; fi",
        "while false; do :; done",
        "test -e /nowhere && echo there; true",
        "yes | head -0",
        "yes | head -0; true",
        "set -o pipefail; yes | head -0; true",
    ],
)
async def test_a_failure_in_a_condition_and_a_closed_pipe_are_no_failures_of_a_check(place, command):
    output = await place.call(BASH, command=command, answer_if_ok="All is well.")
    assert not output.is_error
    assert not output.has_failed_part
    assert text_of(output.parts).endswith("[exit code 0]") or "141 0)" in text_of(output.parts)


def test_an_answer_in_a_call_does_not_change_its_seal(place):
    seals = {BASH.effects(BASH.params("a | b; c", answer_if_ok=text), place.context()).seal for text in ("", "Done.")}
    assert len(seals) == 1


@pytest.mark.parametrize(("command", "hides"), [("true", False), ("false | cat", True), ("yes | head -1", False)])
async def test_a_success_that_hides_the_failure_of_a_part_says_so_to_the_log(place, command, hides):
    output = await place.call(BASH, command=command)
    assert (output.is_error, output.has_failed_part) == (False, hides)


async def test_the_last_folder_of_a_line_is_kept_for_the_next(place, tmp_path):
    (tmp_path / "sub").mkdir()
    assert (await place.text(BASH, command="cd sub && pwd")).endswith(
        "/sub\n[exit code 0]\n[working directory is now " + f"{tmp_path}/sub]"
    )
    assert await place.text(BASH, command="pwd") == f"{tmp_path}/sub\n[exit code 0]"
    await place.call(BASH, command="(cd ..); cd .. | cat; false && cd /; echo 'x && cd /'")
    assert place.cwd == f"{tmp_path}/sub"
    await place.call(BASH, command="cd -P ..; false")
    assert place.cwd == os.path.realpath(tmp_path)


async def test_a_removed_working_directory_is_reported(place, tmp_path):
    (tmp_path / "sub").mkdir()
    await place.call(BASH, command="cd sub")
    assert "[working directory" not in await place.text(BASH, command="rmdir ../sub")
    text = await place.text(BASH, command="pwd")
    assert text == f"{tmp_path}\n[exit code 0]\n[working directory {tmp_path}/sub is gone; this ran in {tmp_path}]"
    assert place.cwd == str(tmp_path)
    assert await place.text(BASH, command="pwd") == f"{tmp_path}\n[exit code 0]"


@pytest.mark.parametrize("command", ["true", "cd /usr"])
async def test_a_removed_nested_folder_is_replaced_by_its_nearest_parent(place, tmp_path, command):
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    await place.call(BASH, command="cd a/b/c")
    (tmp_path / "a" / "b" / "c").rmdir()
    (tmp_path / "a" / "b").rmdir()
    (tmp_path / "a" / "b").write_text("now a file")
    assert f"this ran in {tmp_path}/a]" in await place.text(BASH, command=command)
    assert place.cwd == ("/usr" if command == "cd /usr" else f"{tmp_path}/a")


async def test_other_start_errors_are_not_retried_in_another_folder(place):
    with pytest.raises(ToolError, match="too long"):
        await place.call(BASH, command="true " + "x" * 200_000)


async def test_ended_background_programs_are_reported_beside_the_exit_code(place):
    text = await place.text(BASH, command="setsid sleep 300 & echo up")
    assert text.startswith("up\n[exit code 0]\n[programs it had left running were ended; what is to go on belongs in")


async def run_with_result(place, command, result, **arguments):
    """The output of the tool for a command with this result, and the processes it ran on."""
    processes = ScriptedProcesses({command: result})
    context = msgspec.structs.replace(place.context(), processes=processes)
    output = await BASH.run(BASH.params(command, **arguments), context)
    return output, processes


async def test_the_command_gets_the_calls_judge_of_hosts(place):
    async def permit(effects: Effects) -> None:
        """Permit everything."""

    processes = ScriptedProcesses({"make": CommandResult(0, b"", b"", cwd=place.cwd)})
    context = msgspec.structs.replace(place.context(), processes=processes, permit=permit)
    await BASH.run(BASH.params("make"), context)
    assert processes.permits == [permit]


@pytest.mark.parametrize("timeout_s", [601, 120_000])
async def test_a_timeout_is_at_most_ten_minutes(place, timeout_s):
    output, _ = await run_with_result(place, "true", CommandResult(0, b"", b""), timeout=timeout_s)
    message = f"[exit code 0] (timeout {timeout_s} was taken as 600, the most there is)"
    assert text_of(output.parts) == f"(no output)\n{message}"


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
async def test_binary_output_is_only_described(place, data, shown):
    output, _ = await run_with_result(place, "cat it", CommandResult(0, data, b"an error"))
    assert text_of(output.parts) == f"{shown}\n[stderr]\nan error\n[exit code 0]"


async def test_output_with_few_visible_characters_is_shown_whole(place):
    output, _ = await run_with_result(place, "load", CommandResult(0, b"1%\r2%\r3%", b"", 70_000, cwd=place.cwd))
    assert text_of(output.parts) == (
        "3%\n[exit code 0]\n[70,000 of 70,008 bytes, in the middle of the output, are not shown]"
    )


async def test_a_timeout_shows_what_was_printed(place):
    output = await place.call(BASH, command="echo begun; sleep 60", timeout=1)
    assert output.is_error
    assert text_of(output.parts) == (
        "begun\n[timed out after 1 s (pass timeout, at most 600; run_in_background has no limit); "
        "the command and its children were ended]"
    )


async def test_a_slow_line_reports_its_duration(place):
    assert (await place.text(BASH, command="sleep 1.05")).startswith("(no output)\n[exit code 0] (1.")


async def test_long_output_has_a_limit_for_the_caller_and_is_whole(place):
    output = await place.call(BASH, command="seq 1 20000")
    assert text_of(output.parts) == "\n".join(map(str, range(1, 20_001))) + "\n[exit code 0]"
    assert (output.limit, output.full, output.full_file) == (16_000, None, "")


async def test_output_beyond_the_memory_limit_goes_to_a_file(place):
    output = await place.call(BASH, command="seq 1 1000000; echo to stderr >&2; exit 3")
    text = text_of(output.parts)
    assert len(text) < 16_000
    assert text.startswith("1\n2\n3\n")
    assert "\n999999\n1000000\n[stderr]\nto stderr\n[exit code 3]" in text
    first = int(text.split("[... cut from line ")[1].split(" on;")[0].replace(",", ""))
    assert text.split("\n")[first - 2] == str(first - 1)
    assert "[the output has 6,888,906 bytes; " in text
    saved = Path(output.full_file)
    assert saved.stat().st_mode & 0o777 == 0o600
    assert sorted(saved.read_bytes().split()) == sorted([*(b"%d" % n for n in range(1, 1_000_001)), b"to", b"stderr"])
    assert output.is_error


@pytest.mark.parametrize("lines", [3, 6])
async def test_long_lines_are_cut_so_that_other_lines_fit(place, lines):
    command = f"for n in {{1..{lines}}}; do head -c 100000 /dev/zero | tr '\\0' x; echo; echo line $n; done"
    output = await place.call(BASH, command=command)
    text = text_of(output.parts)
    longest = 14_000 // lines
    assert text.count(f"[... {100_000 - longest:,} characters of this line cut ...]") == lines
    assert all(f"\nline {n}\n" in text for n in range(1, lines + 1))
    assert len(text) < 16_000
    assert output.full == "\n".join(f"{'x' * 100_000}\nline {n}" for n in range(1, lines + 1)).encode()


def memory(kind: str) -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the memory")
async def test_too_much_output_is_not_kept_in_memory_and_its_size_is_reported(place):
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak of memory
    before = memory("VmRSS")
    output = await place.call(BASH, command="yes | head -c 300000000")
    assert memory("VmHWM") - before < 50_000_000
    assert len(place.progress) < 200
    assert "[the output has 300,000,000 bytes; shown are its first" in text_of(output.parts)
    assert "the file holds the first 100,000,000]" in text_of(output.parts)
    assert Path(output.full_file).stat().st_size == 100_000_000


@pytest.mark.parametrize("arguments", [{"timeout": -1}, {"timeout": -5}, {"command": " "}])
async def test_arguments_out_of_range_are_refused(place, arguments):
    with pytest.raises(ToolError):
        await place.call(BASH, **{"command": "true", **arguments})


async def test_progress_is_shown(place):
    await place.call(BASH, command="echo hello")
    assert "".join(place.progress) == "hello\n"


def test_the_effects_are_those_of_the_line(place, tmp_path):
    effects = BASH.effects(BASH.params("cat a.txt"), place.context())
    assert (effects.reads, effects.is_read_only) == ((f"{tmp_path}/a.txt",), True)
    unknown = BASH.effects(BASH.params("./anything"), place.context())
    assert unknown.unknown and unknown.commands == (("./anything",),)


@pytest.mark.parametrize(
    ("sandbox", "lifted", "shows"),
    [
        (Sandbox(), "", True),
        (Sandbox("bubblewrap"), "", False),
        (Sandbox("bubblewrap"), "off", True),
        (Sandbox("bubblewrap"), "network", False),
        (Sandbox("landlock", ("credentials",)), "", True),
        (Sandbox("landlock", ("tcp",)), "", False),
    ],
)
def test_a_search_of_a_folder_declares_reads_of_keys_that_no_sandbox_hides(place, tmp_path, sandbox, lifted, shows):
    for name in (".env", "deep/er/.env.local", "plain.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("KEY=1")
    bash = Bash(sandbox=lambda: sandbox)
    reads = bash.effects(bash.params("grep -r KEY .", sandbox=lifted), place.context()).reads
    assert {f"{tmp_path}/.env", f"{tmp_path}/deep/er/.env.local"}.issubset(reads) == shows
    assert f"{tmp_path}/plain.txt" not in reads


def test_a_background_command_is_never_read_only(place):
    for line in ("cat a.txt", "./anything"):
        effects = BASH.effects(BASH.params(line, run_in_background=True), place.context())
        assert effects.session == ("jobs",)
        assert not effects.is_read_only
        assert effects.unknown == (line == "./anything")


# ------------------------------------------------------------------ the approved command is the one that runs


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "command is empty"),
        (" \n\t ", "command is empty"),
        ("ls\0touch x", "control character U+0000"),
        ("ls \x1b[2K", "control character U+001B"),
        ("ls \x07", "control character U+0007"),
        ("echo \ud800", "half a character"),
    ],
)
def test_an_invalid_line_is_refused_before_its_analysis(place, command, message):
    with pytest.raises(ToolError, match=message.replace("+", r"\+")):
        BASH.effects(BASH.params(command), place.context())


@pytest.mark.parametrize("command", ["echo 'a\tb\n'", "echo a\r", "echo é", "echo '\u202e'", "echo \x7f"])
def test_unusual_characters_are_allowed_in_lines(place, command):
    BASH.effects(BASH.params(command), place.context())


@pytest.mark.parametrize("arguments", [{}, {"timeout": 5}, {"sandbox": "network"}])
async def test_the_analyzed_command_is_the_one_that_starts(place, arguments):
    processes = ScriptedProcesses({"make 'a b'": CommandResult(0, b"", b"", cwd=place.cwd)})
    context = msgspec.structs.replace(place.context(), processes=processes)
    params = BASH.params("make 'a b'", **arguments)
    seal = BASH.effects(params, context).seal
    await BASH.run(params, context)
    assert [processes.seal(command) for command in processes.commands] == [seal]


def test_in_a_removed_folder_analysis_and_run_use_the_nearest_parent(place, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    place.cwd = f"{tmp_path}/a/b"
    (tmp_path / "a" / "b").rmdir()
    effects = BASH.effects(BASH.params("cat x"), place.context())
    assert effects.reads == (f"{tmp_path}/a/x",)
    before = effects.seal
    place.cwd = f"{tmp_path}/a"
    assert BASH.effects(BASH.params("cat x"), place.context()).seal == before


@pytest.mark.parametrize(("asked", "lifts"), [("", ()), ("network", ("network",)), ("off", ("sandbox",))])
def test_a_request_to_lift_the_sandbox_is_declared_if_there_is_one(place, asked, lifts):
    params = BASH.params("make", sandbox=asked)
    for sandbox in (Sandbox("bubblewrap"), Sandbox("landlock", ("chmod outside",))):
        assert Bash(sandbox=lambda found=sandbox: found).effects(params, place.context()).lifts == lifts
    assert Bash(sandbox=Sandbox).effects(params, place.context()).lifts == ()
    assert BASH.effects(params, place.context()).lifts == ()


def test_forbidden_commands_are_declared_with_the_effects(place):
    bash = Bash(home="/home/u", workspace=place.cwd)
    effects = bash.effects(bash.params("sh -c 'rm -rf ~'"), place.context())
    assert "the home folder" in effects.danger
    assert ("rm", "-rf", "/home/u") in effects.inner
    assert effects.seal


def test_git_reads_are_known_if_a_sandbox_confines_git(place, tmp_path):
    (tmp_path / ".git").mkdir()
    confining, lacking = Sandbox("bubblewrap"), Sandbox("landlock", ("chmod outside",))
    params = BASH.params("git status")
    assert Bash(sandbox=lambda: confining).effects(params, place.context()).is_read_only
    assert Bash(sandbox=lambda: lacking).effects(params, place.context()).unknown
    assert Bash(git_is_safe=lambda folder: folder == place.cwd).effects(params, place.context()).is_read_only
    without = BASH.params("git status", sandbox="off")
    assert Bash(sandbox=lambda: confining).effects(without, place.context()).unknown
