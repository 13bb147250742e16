"""Exported variables are parsed from bash's own listing, with all of its quoting."""

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.workspace.exported_variables import export_changes, parse_exports
from bradawl.workspace.processes import LocalProcesses
from bradawl.workspace.shell_prelude import parse_report


@pytest.fixture
def processes():
    made = LocalProcesses({"PATH": os.environ["PATH"], "TMPDIR": os.environ["TMPDIR"], "BASE": "there"})
    yield made
    made.close()


async def run(processes, line: str, cwd: object = "/", **env: str | None) -> CommandResult:
    command = Command((line,), str(cwd), is_shell=True, timeout_s=20, env=env)
    return await processes.run(command, Grant())


@pytest.mark.parametrize(
    ("output", "variables"),
    [
        (b"", {}),
        (b'declare -x A="1"\n', {"A": "1"}),
        (b'declare -rx A=""\ndeclare -x B\n', {"A": ""}),
        (b'declare -x A="two\nlines=\\"\\$\\`\\\\\ndeclare -x B=1"\ndeclare -x C="c"\n', {"C": "c"}),
        (
            b"declare -x A=$'tab\\tquote\\'\\\\nul\\001\\E\\302\\240\\377\\x41\\?'\n",
            {"A": "tab\tquote'\\nul\1\x1b\xa0\udcffA?"},
        ),
        (b'declare -ax A=([0]="x)" [1]=$\'\\n\')\ndeclare -Ax M=(["k)\\""]="v" )\ndeclare -ix N="3"\n', {"N": "3"}),
        (b'declare -nx R="A"\ndeclare -lx L="x"\n', {"L": "x"}),
        (b'export A="posix"\nexport B\n', {"A": "posix"}),
    ],
)
def test_each_form_of_bash_output_is_parsed(output, variables):
    found = parse_exports(output)
    assert found is not None
    assert {
        name: value for name, value in found.items() if name in variables or len(found) == len(variables)
    } == variables


@pytest.mark.parametrize(
    "output",
    [
        b"A=1\n",
        b'declare -x A="1',
        b'declare -x A="1"',
        b'declare -x A="1"junk\n',
        b"declare -x A=1\n",
        b"\0",
        b"declare -x A=(\n",
    ],
)
def test_output_that_bash_never_prints_is_rejected(output):
    assert parse_exports(output) is None
    assert export_changes(b"", output) == {}
    assert export_changes(output, b"") == {}


NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True).map("V_".__add__)
VALUES = st.binary(max_size=40).map(lambda data: data.replace(b"\0", b""))


@given(st.dictionaries(NAMES, VALUES, max_size=5), st.sampled_from(["C", "C.UTF-8"]), st.booleans())
def test_parsed_exports_equal_the_environment_of_programs(variables, locale, posix):
    environment = {os.fsencode(name): value for name, value in variables.items()}
    argv = ["bash", *(["--posix"] if posix else []), "-c", "export -p"]
    output = subprocess.run(
        argv, env={b"LC_ALL": locale.encode(), **environment}, capture_output=True, check=True
    ).stdout
    found = parse_exports(output)
    assert found is not None
    assert {name: os.fsencode(found[name]) for name in variables} == variables


@given(st.binary(max_size=200))
def test_no_bytes_make_the_parser_fail(data):
    parse_exports(data)
    parse_exports(b"declare -x A=" + data + b"\n")
    parse_report(b"\0m\0" + data + b"\0\0m\0000\0" + data + b"\0\0000 \0/\n\0" + data + b"\0m\0", "m", 0)


@pytest.mark.parametrize(
    ("line", "exports"),
    [
        ("true", {}),
        ("export A=1 B='two words'", {"A": "1", "B": "two words"}),
        ("A=1; export A; A=2", {"A": "2"}),
        ("declare -x A=$'a\\nb\\t\\'\"$`\\\\'", {"A": "a\nb\t'\"$`\\"}),
        ("set -a; A=1", {"A": "1"}),
        ("unset BASE", {"BASE": None}),
        ("export -n BASE", {"BASE": None}),
        ("BASE=other", {"BASE": "other"}),
        ("export BASE", {}),
        ("export A; B=1", {}),
        ("A=1 true; (export B=1); export C=1 | cat; bash -c 'export D=1'", {}),
        ("f() { export A=1; local -x B=2; }; f", {"A": "1"}),
        ("f() { :; }; export -f f; declare -ax X=(1 2)", {}),
        ("eval 'export A=1'; printf -v B 2; export B; read -r C <<<3; export C", {"A": "1", "B": "2", "C": "3"}),
        ("export A=1; cd /usr; false", {"A": "1", "OLDPWD": "/"}),
        ("export A=1; set -e; false; export B=1", {"A": "1"}),
        ("export A=1; exit 3", {"A": "1"}),
        ("export A=1; set -u; echo $NOTHING", {"A": "1"}),
        ("set -o posix; export A='p\"q'", {"A": 'p"q'}),
        ("export IFS=: A=1; set -f; shopt -s expand_aliases; alias export=false builtin=false", {"A": "1", "IFS": ":"}),
        ("export() { :; }; declare -x A=1", {"A": "1"}),
        ("SHLVL=7; PWD=/nowhere; export _=3", {}),
    ],
)
async def test_the_exports_of_a_line_are_reported(processes, line, exports):
    assert (await run(processes, line)).exports == exports


@pytest.mark.parametrize(
    "line",
    [
        "export A=1; exec true",
        "export A=1; kill -9 $$",
        "export A=1; trap 'echo mine' EXIT",
        "export A=1; trap - EXIT",
        "export A=1; exec 200>&-",
        "export A=1; f() { local -x B=2; exit; }; f",
        "export A=1; printf '\\0junk' >&200; declare -x B=\"",
        "export A=1; { printf '\\0%s\\0' $BRADAWL_CALL; } >&200; exec true",
    ],
)
async def test_a_line_that_ends_without_its_report_has_no_exports(processes, line):
    assert (await run(processes, line)).exports == {}


async def test_the_exports_of_a_terminated_line_are_ignored(processes):
    command = Command(("trap 'exit 0' TERM; export A=1; cd /usr; while :; do sleep 0.01; done",), "/", is_shell=True)
    process = await processes.start(command, Grant())
    assert not await process.wait(0.3)
    await process.end()
    result = process.result()
    assert (result.exit_code, result.exports, result.cwd) == (0, {}, None)


async def test_variables_of_the_call_are_set_and_are_no_exports(processes):
    line = 'echo "[$A][$BASE][${BASE-unset}][$PAGER]"'
    result = await run(processes, line, A="a b\n", BASE=None, PAGER="mine")
    assert result.stdout == b"[a b\n][][unset][mine]\n"
    assert result.exports == {}
    assert (await run(processes, "unset A; export BASE=back", A="1", BASE=None)).exports == {"A": None, "BASE": "back"}


async def test_bash_env_of_the_call_is_set_but_not_run_by_its_own_shell(processes, tmp_path):
    (tmp_path / "evil").write_text("echo evil\n")
    result = await run(processes, "echo $BASH_ENV; bash -c 'echo nested'", BASH_ENV=str(tmp_path / "evil"))
    assert result.stdout.decode() == f"{tmp_path}/evil\nevil\nnested\n"
    assert result.exports == {}


async def test_the_previous_folder_is_that_of_the_call(processes):
    assert (await run(processes, "cd -", OLDPWD="/usr")).stdout == b"/usr\n"


async def test_an_environment_of_a_megabyte_is_parsed(processes):
    many = {f"V{n}": "x'\"\n" * 2_500 for n in range(100)}
    result = await run(processes, "export V1=changed A=1", **many)
    assert result.exports == {"V1": "changed", "A": "1"}


async def test_exported_functions_of_the_user_do_not_replace_programs():
    made = LocalProcesses({**os.environ, "BASH_FUNC_ls%%": "() { echo mine; }"})
    assert (await run(made, "type -t ls")).stdout == b"file\n"
    made.close()


async def test_a_report_larger_than_the_socket_buffer_arrives_whole(processes):
    """The report is read at intervals, so bash waits for its reader in between."""
    line = 'for ((i = 0; i < 3000; i++)); do export "VARIABLE_$i=$i"; done; cd /tmp'
    result = await run(processes, line)
    assert result.cwd == "/tmp"
    exports = {name: value for name, value in (result.exports or {}).items() if name != "OLDPWD"}
    assert exports == {f"VARIABLE_{i}": str(i) for i in range(3000)}
