"""The shell reports failures that its exit code does not show, and the line does the same as in a plain bash."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.workspace.processes import LocalProcesses
from bradawl.workspace.shell_prelude import TRAPS, parse_report, traps_for


async def run(processes: LocalProcesses, line: str, *, strict: bool = False, **env: str) -> CommandResult:
    command = Command((line,), "/", is_shell=True, timeout_s=20, env=env, reports_failed_commands=strict)
    return await processes.run(command, Grant())


@pytest.mark.parametrize(
    ("line", "earlier"),
    [
        ("false | true; true", [(1, 0)]),
        ("false | true && true", [(1, 0)]),
        ("false | true\ntrue", [(1, 0)]),
        ("false |& true; true", [(1, 0)]),
        ("! false | true; true", [(1, 0)]),
        ("false | true; false | true", [(1, 0)]),
        ("false | true; x=1", [(1, 0)]),
        ("false | true; [[ a ]]", [(1, 0)]),
        ("false | true; if true; then :; fi", [(1, 0)]),
        ("{ false | true; }; true", [(1, 0)]),
        ("if true; then (exit 7) | true; fi; true", [(7, 0)]),
        ("if (exit 7) | true; then true; fi", [(7, 0)]),
        ("while false | true; do break; done", [(1, 0)]),
        ("for i in 1 2 3; do false | true; done; true", [(1, 0)]),
        ("for i in 1 2 3; do (exit $i) | true; true; done", [(1, 0), (2, 0)]),
        ("(exit 3) | true | true; (exit 2) | true; (exit 1) | true; true", [(3, 0, 0), (2, 0)]),
        ("eval 'false | true; true'; true", [(1, 0)]),
        ("(exit 2) | { read x; true; }; true", [(2, 0)]),
        ("false | true; cat <<'E' | cat\na|b\nE\ntrue", [(1, 0)]),
        ("false | true; sleep 0.01 & wait", [(1, 0)]),
        ("set -m; false | true; sleep 0.01 & wait %1", [(1, 0)]),
        ("set -e; false | true; true", [(1, 0)]),
        ("set -o pipefail; false | true; true", [(1, 0)]),
        ("set -u; false | true; true", [(1, 0)]),
        ("set -a; false | true; true", [(1, 0)]),
        ("set -o posix; false | true; true", [(1, 0)]),
        ("IFS=0; false | true; IFS=1; (exit 10) | true; true", [(1, 0), (10, 0)]),
        ("IFS=; false | true; true", [(1, 0)]),
        ("alias true=false; printf() { :; }; false | true; true", [(1, 0)]),
        ("false | true; exit 7", []),
        ("false | true; exit", []),
        ("false | true; exit 0 | cat", [(1, 0)]),
        ("die() { exit 5; }; false | true; die", [(1, 0)]),
        ("false | true\ntrue\necho )", [(1, 0)]),
        ("true | true; true", []),
        ("true | false; true", []),
        ("false; true", []),
        ("yes | head -1; true", []),
        ("yes | false | true; true", [(141, 1, 0)]),
        ("cd /; false | true", []),
        ("cd /; false | (true)", []),
        ("false | true || true", []),
        ("x=$(false | true); true", []),
        ("echo 'a | b'; true", []),
        # Not known: the trap would have to be inherited.
        ("(false | true; true); true", []),
        ("f() { false | true; true; }; f; true", []),
        ("bash -c 'false | true; true'; true", []),
        # Not asked for: the trap would be visible, or replaced.
        ("set -x; false | true; true", []),
        ("trap : USR1; false | true; true", []),
        # No report at all.
        ("false | true; exec true", []),
        ("false | true; kill -9 $$", []),
    ],
)
async def test_pipelines_before_the_last_are_reported_if_an_inner_part_failed(processes, line, earlier):
    assert (await run(processes, line)).earlier_failures == tuple(earlier)


async def test_a_pipeline_that_is_the_last_is_not_reported_twice(processes):
    for line in ("cd /; false | true", "true; false | (true)", "true; false | true; exit 0", "true\nfalse | true"):
        result = await run(processes, line)
        assert (result.pipe_status, result.earlier_failures) == ((1, 0), ()), line


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("false; true", 1),
        ("(exit 3); (exit 4); true", 3),
        ("grep -q nothing /dev/null; true", 1),
        ("no-such-program; true", 127),
        ("cd /no/such/folder; true", 1),
        ("true | false; true", 1),
        ("for i in 1 2; do false; done; true", 1),
        ("{ false; true; }", 1),
        ("f() { return 4; }; f; true", 4),
        ("x=$(false); true", 1),
        ("[[ a == b ]]; true", 1),
        ("eval 'false; true'", 1),
        ("false & wait $!; true", 1),
        ("false; exit 0", 1),
        ("set -x; false; true", 1),
        ("set -a; false; true", 1),
        ("set -o pipefail; false | true; true", 1),
        ("set -o pipefail; yes | head -1; false; true", 1),
        ("set -e; false; true", 1),
        ("false || true", 0),
        ("false && true; true", 0),
        ("! false", 0),
        ("! true; true", 0),
        ("if grep -q x /dev/null; then :; fi", 0),
        ("while false; do :; done; until true; do :; done", 0),
        ("test -e /nowhere && echo there; true", 0),
        ("set -o pipefail; yes | head -1; true", 0),
        ("false | true; true", 0),
        # Not known: the trap would have to be inherited.
        ("(false; true)", 0),
        ("f() { false; true; }; f", 0),
        # It has its own traps.
        ("trap 'echo failed' ERR; false; true", 0),
        ("trap : DEBUG; false; true", 0),
    ],
)
async def test_a_command_that_failed_outside_of_conditions_is_reported(processes, line, code):
    codes = [each[0] for each in (await run(processes, line, strict=True)).earlier_failures if len(each) == 1]
    assert codes == ([code] if code else [])
    assert not [each for each in (await run(processes, line)).earlier_failures if len(each) == 1]


TRANSPARENT = [
    "mkdir -p a/b; cd $_; pwd; false | true; echo x $_; echo $_; false a b; echo $? $_ ${PIPESTATUS[*]}",
    ": a; false | (exit 3) | true; echo $? ${PIPESTATUS[*]} $_; ! true | false; echo $? ${PIPESTATUS[*]}",
    ": a; true a | false b; echo $? ${PIPESTATUS[*]} $_",
    "[[ abc =~ (b) ]]; false | true; false; echo ${BASH_REMATCH[*]} $LINENO $- $#\necho $LINENO; nothing | cat\n$x(",
    "echo one | cat\nno-such-program\necho two",
    "set -e; false | true; echo on; true | false; echo never",
    "set -u; false | true; echo on; echo $NOTHING; echo never",
    "set -euo pipefail; echo a | cat; false | true; echo never",
    "set -v; false | true",
    "set -x; false | true; false; true",
    "set -ex\nfalse | true\ntrue",
    "set -o xtrace; false | true; true",
    "shopt -s extdebug; false | true; echo on",
    ": a; false | true; f() { echo $FUNCNAME $? $_; return 3; }; f x; echo $? $_; (false | true; echo $BASH_SUBSHELL)",
    "false | true; trap 'echo bye' EXIT; echo on",
    "trap 'echo $?' ERR; false | true; false; (exit 4)",
    "false | true; exec echo replaced",
    "set -a; false | true; false; true; env | grep -c __bradawl; A=1",
    "false | true; IFS=; a=(x y); echo ${a[*]}; shopt -s lastpipe; echo v | read v; echo $v",
    "false | true; enable -n printf; true | cat; builtin echo on",
    "false | true; readonly x=1; x=2; echo never",
    "false | true; case a in a) echo $?;; esac; for i in 1 2; do (exit $i) | true; done; echo $? ${PIPESTATUS[*]}",
    "false | true; select x in a; do break; done; echo $?",
    "while read -r l; do false | true; echo $l; done <<< $'1\\n2\\n3' | tail -1; echo ${PIPESTATUS[*]}",
    "coproc cat; false | true; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x",
]


@pytest.mark.parametrize("line", TRANSPARENT)
@pytest.mark.parametrize("strict", [False, True])
async def test_a_line_does_the_same_as_in_a_plain_bash(processes, tmp_path, line, strict):
    plain, folder = in_plain_bash(line, tmp_path / "plain"), tmp_path / "observed"
    folder.mkdir()
    command = Command((line,), str(folder), is_shell=True, timeout_s=20, reports_failed_commands=strict)
    found = await processes.run(command, Grant())
    assert found.stdout.replace(b"/observed", b"/plain") == plain.stdout
    if "set -v" not in line:  # shows the trap for the end of the line
        assert sorted(found.stderr.splitlines()) == sorted(
            plain.stderr.splitlines()
        )  # parts of a pipeline have no order
    assert found.exit_code == plain.returncode


def in_plain_bash(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line in the same bash, without the prelude."""
    folder.mkdir()
    bash = shutil.which("bash")
    assert bash
    environment = {**os.environ, "TERM": "dumb"}
    return subprocess.run(
        [bash, "-c", line], cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )


@pytest.mark.parametrize(
    ("line", "traps"),
    [
        ("pytest -q | tail -5; python check.py", "pipelines"),
        ("make test 2>&1 | tail; git status", "pipelines"),
        ("a | b && c", "pipelines"),
        ("a | b || c", "pipelines"),
        ("a | b\nc", "pipelines"),
        ("a | b & c", "pipelines"),
        ("a |& b; c", "pipelines"),
        ("a || b | c; d", "pipelines"),
        ("set -euo pipefail; a | b; c", "pipelines"),
        ("a | b", ""),
        ("a |\n b", ""),
        ("a | \\\n b \\\n | c", ""),
        ("cd x && a | b", ""),
        ("a | b 2>&1\n", ""),
        ("a | b >&2", ""),
        ("a || b; c", ""),
        ("a >| b; c", ""),
        ("a; b && c", ""),
        ("set -x; a | b; c", ""),
        ("set -euxo pipefail; a | b; c", ""),
        ("set -e -o xtrace; a | b; c", ""),
        ("set -T; a | b; c", ""),
        ("shopt -s extdebug; a | b; c", ""),
        ("trap 'rm -f x' EXIT; a | b; c", ""),
    ],
)
def test_the_trap_for_pipelines_is_set_only_where_something_can_follow_one(line, traps):
    assert traps_for(Command((line,), "/")) == traps
    has_own = "trap" in line or "extdebug" in line
    assert traps_for(Command((line,), "/", reports_failed_commands=True)).split() == (
        [] if has_own else [*traps.split(), "failures"]
    )


@pytest.mark.parametrize("text", ["a|" * 200_000, "\n" * 400_000 + "|", "set " * 200_000 + "|;", "|" * 400_000])
def test_the_traps_for_a_long_line_are_decided_at_once(text):
    traps_for(Command((text,), "/"))


async def test_variables_of_the_session_do_not_set_the_traps(processes):
    line = f"false; true; echo ${{{TRAPS}-unset}}; (exit 2) | true"
    result = await run(processes, line, **{TRAPS: "pipelines failures"})
    assert (result.stdout, result.earlier_failures) == (b"unset\n", ())
    result = await run(
        processes, f"false | true; echo ${{{TRAPS}-unset}}; bash -c 'echo ${TRAPS}; trap -p'", strict=True
    )
    assert (result.stdout, result.exports) == (b"unset\n\n", {})


@pytest.mark.parametrize("line", ["unset ${!__bradawl_e*}; true", "__bradawl_earlier='x y,1 0 0,2 0,3 0,'; true"])
async def test_malformed_codes_are_left_out(processes, line):
    result = await run(processes, f"false | true; {line}", strict=True)
    assert result.earlier_failures in ((), ((1, 0, 0), (2, 0)))


def test_a_report_has_at_most_two_pipelines():
    report = b"\0m\0\0\0m\0000\0001 0,2 0,x,3 0,\0005\0000 \0/\n\0\0m\0"
    parsed = parse_report(report, "m", 0)
    assert (parsed.earlier_failures, parsed.pipe_status) == (((1, 0), (2, 0), (5,)), (0,))
