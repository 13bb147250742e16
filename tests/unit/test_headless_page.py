"""docs/headless.md agrees with the program: command lines, exit codes, fields of the JSON, ends of refused calls."""

import io
import json
import re
from pathlib import Path

import msgspec
import pytest

from bradawl.app import exit_code as codes
from bradawl.app.cli import parse, run
from bradawl.app.console import STDIN_LIMIT, STDIN_PATIENCE_S, Console
from bradawl.app.exit_code import Denial, ModelUsage, Result, TokenCounts, exit_code, result_of_failure
from bradawl.core.errors import Failure

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "headless.md").read_text()
CODES = {
    int(code): set(re.findall(r"`(\w+)`", reasons))
    for row, reasons in re.findall(r"^\| ([\d, ]+) \| (.*?) \|", PAGE, re.MULTILINE)
    for code in row.split(",")
}
CASES = dict(re.findall(r"^\| ([^|`].*?) \| (\d.*?) \|$", PAGE.partition("| in the turn | code |")[2], re.MULTILINE))
OPTIONS = ("--sandbox", "off", "--permission-mode", "accept-edits", "--allowed-tools", "Bash(python3 *.py)")


def test_the_exit_codes_are_those_of_the_program_with_their_reasons():
    named = (
        codes.OK,
        codes.ERROR,
        codes.USAGE,
        codes.NO_SANDBOX,
        codes.LIMIT,
        codes.REFUSED,
        codes.NOT_WRITTEN,
        codes.NOT_SAVED,
    )
    assert set(CODES) == {*named, codes.TRY_AGAIN, codes.CANCELLED, codes.CLOSED, codes.TERMINATED}
    later = Failure("server", "x", retryable=True)
    reasons = ("completed", "error", "steps", "budget", "time", "limit", "refused", "cancelled")
    for reason in reasons:
        for failure in (None, later):
            for saved in (True, False):
                assert reason in CODES[exit_code(reason, failure, saved=saved)]
    assert {reason for each in CODES.values() for reason in each} == set(reasons)
    assert result_of_failure("x", 1).reason in CODES[1] & CODES[2] & CODES[3] & CODES[75]


def test_the_fields_of_the_json_are_those_of_the_program():
    table = PAGE.partition("| field | |")[2]
    named = {
        name for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)
    }
    assert named == {field.encode_name for field in msgspec.structs.fields(Result)}
    for kind in (Denial, TokenCounts):
        assert all(f"`{field.encode_name}`" in table for field in msgspec.structs.fields(kind)), kind
    assert {"inputTokens", "costUSD"} <= {field.encode_name for field in msgspec.structs.fields(ModelUsage)}
    for subtype in ("success", "error_max_turns", "error_max_budget_usd", "error_during_execution"):
        assert f"`{subtype}`" in table


def test_the_limits_are_those_of_the_program():
    assert f"silent for {STDIN_PATIENCE_S:g} s" in PAGE and f"{STDIN_LIMIT:,} characters" in PAGE


def test_the_command_lines_are_understood():
    lines = re.findall(r"^\$ (?:git diff \| )?bradawl (.*?)(?: [<>#].*)?$", PAGE, re.MULTILINE)
    assert len(lines) == 10
    for line in lines:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
        assert parse(words)["headless"]


# ------------------------------------------------------------------ refused calls


def bash(command):
    return {"tool_calls": [{"id": command, "name": "bash", "arguments": {"command": command}}]}


EDIT = {"tool_calls": [{"id": "e", "name": "write_file", "arguments": {"file_path": "new.py", "content": "x = 1\n"}}]}
READ = {"tool_calls": [{"id": "r", "name": "read_file", "arguments": {"file_path": "passes.py"}}]}
REFUSED = bash("curl https://files.example/a -o a")
RUN = {
    "the only call is refused; or the model only reads afterwards": [[REFUSED], [REFUSED, READ]],
    "a download is refused, and the model writes the file itself": [[REFUSED, EDIT]],
    "a file is edited, the tests pass, and `git commit` is refused, or `git push` fails because its host is": [
        [EDIT, bash("python3 passes.py"), bash("git commit -m x")]
    ],
    "a file is edited, and the command that would test it is refused": [[EDIT, bash("pytest")]],
    "a file is edited, the tests fail, and the next call is refused": [
        [EDIT, bash("python3 fails.py"), bash("git commit -m x")]
    ],
    "a file is edited, the tests fail behind a pipe that succeeds, as to `tail`, and the next call is refused": [
        [EDIT, bash("python3 fails.py 2>&1 | tail -3"), bash("git commit -m x")]
    ],
    "a rule that denies, the mode (also `plan`), a hook, or what no mode allows refuses a call": [
        [bash("rm -rf ~")],
        [bash("rm -rf /etc")],
    ],
}
ELSEWHERE = {
    "a command is refused a host and exits with 0 all the same": 'connections.py::(CommandTool, "completed")',
    "a command is refused a host and fails, and nothing acts afterwards": "connections.py::(FailingCommandTool,",
    "a sub-agent gives up on a refused call": "refusals.py::it gave up, and the caller found another way",
    "a sub-agent has a call refused and finds another way": "refusals.py::it found another way",
}


def test_each_case_of_the_page_is_tested():
    assert set(CASES) == {*RUN, *ELSEWHERE}
    for place in ELSEWHERE.values():
        file, _, text = place.partition("::")
        assert text in (ROOT / "tests" / "scenario" / f"test_{file}").read_text()


@pytest.mark.parametrize(("case", "calls"), [(case, calls) for case, each in RUN.items() for calls in each])
def test_a_run_ends_as_the_page_says(tmp_path, monkeypatch, case, calls):
    project = tmp_path / "project"
    project.mkdir()
    (project / "passes.py").write_text("")
    (project / "fails.py").write_text("raise SystemExit(1)\n")
    (tmp_path / "script.json").write_text(json.dumps([*calls, {"text": "The end."}]))
    monkeypatch.chdir(project)
    out, err = io.StringIO(), io.StringIO()
    environ = {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}
    console = Console(io.StringIO(), out, err, environ)
    argv = ["-m", f"scripted/{tmp_path}/script.json", "-p", "go", "--output-format", "json", *OPTIONS]
    code = run(argv, environ, console)
    assert code == int(CASES[case].partition(":")[0]), err.getvalue()
    assert json.loads(out.getvalue())["exit_code"] == code
    if any("git commit -m x" in json.dumps(call) for call in calls) and code == 0:
        (line,) = re.findall(r"^(bradawl: done without.*--allowed-tools) ", PAGE, re.MULTILINE)
        assert line in err.getvalue()  # `test_safety_proposals` tests which rule follows
