"""Programs that a shell starts can't forge the report that the shell writes at its end."""

import os
import sys
from pathlib import Path

import pytest

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.workspace.processes import LocalProcesses

FORGE = Path(__file__).with_name("forge_report.py")
LINES = (
    "{forge}",
    "exec {forge}",
    "({forge})",
    "{forge} & wait",
    "( ( {forge} & ) ; sleep 0.3 )",
    "env -i {forge}",
    "setsid -w {forge}",
    "coproc C {{ {forge}; }}; wait",
    "echo $({forge})",
    "cat <({forge})",
    "{forge} | cat",
    "bash -c '{forge}; true'",
    "trap '{forge}' EXIT",
    "trap '{forge}' DEBUG; true",
    "set -a; {forge}",
    "{forge} 200>&200",
    "{forge} $(trap -p)",
    "bash -c 'cat /proc/$PPID/environ' | {forge} -",
    "f() {{ {forge}; }}; export -f f; bash -c f",
    "xargs -n1 {forge} <<< x",
    "{{ {forge}; }} 2>&1",
    "while read -r l; do {forge}; done <<< x",
    "exec 3>&1; {forge}",
    "declare -p | {forge} -",
    "set | {forge} -",
)


@pytest.fixture
def forge():
    return '"$PYTHON" -I -S "$FORGE" $$'  # double quotes: some of the lines put it between single ones


@pytest.fixture
def processes():
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR")}
    made = LocalProcesses({**kept, "BASE": "there", "PYTHON": sys.executable, "FORGE": str(FORGE)})
    yield made
    made.close()


async def run(processes: LocalProcesses, line: str, **env: str) -> CommandResult:
    return await processes.run(Command((line,), "/", env=env, is_shell=True, timeout_s=30), Grant())


@pytest.mark.parametrize("line", LINES)
async def test_no_program_can_forge_the_report_of_its_shell(processes, forge, line):
    result = await run(processes, line.format(forge=forge))
    assert result.exit_code == 0, result.stderr
    assert result.cwd in ("/", None)
    assert result.exports == {}


@pytest.mark.parametrize("line", ["{see}", "({see})", "{see} & wait", "f() {{ {see}; }}; f", "bash -c '{see}; true'"])
async def test_no_program_inherits_the_descriptor_of_the_report(processes, tmp_path, line):
    (tmp_path / "see.py").write_text(
        "import os\nprint('ran')\nfor n in range(3, 4096):\n try: os.fstat(n); print(n)\n except OSError: pass\n"
    )
    line = line.format(see='"$PYTHON" -I -S "$SEE"')
    assert (await run(processes, line, SEE=str(tmp_path / "see.py"))).stdout == b"ran\n"


async def test_the_shell_itself_still_reports(processes):
    result = await run(processes, "cd /usr; export A=1; (exit 3) | true; exit 4")
    assert (result.cwd, result.exports["A"], result.exit_code) == ("/usr", "1", 4)


async def test_the_environment_does_not_contain_the_key_of_the_report(processes):
    names = (await run(processes, "cat /proc/$$/environ | tr '\\0' '\\n' | sed 's/=.*//'")).stdout.split()
    assert set(names) <= {
        b"PATH",
        b"TMPDIR",
        b"BASE",
        b"BASH_ENV",
        b"BRADAWL_CALL",
        b"BRADAWL_REPORT",
        b"BRADAWL_TRAPS",
        b"PWD",
    } | {each for each in names if not each.startswith((b"BRADAWL", b"BASH"))}
