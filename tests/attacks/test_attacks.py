"""Every case of the attack list gets the expected decision."""

import json
import subprocess
import sys

import config_cases
import path_cases
import pytest
import scoring
import shell_cases
from test_text import text_cases, violations
from wire_cases import outcome

from bradawl.app.cli import parse
from bradawl.app.permissions_check import case_workspace
from bradawl.testing.permission_cases import CaseJudge, answer_line

JUDGED = ("shell", "path", "config")


def _judge(**options: str) -> CaseJudge:
    return CaseJudge(case_workspace(options, "/"))


def _decisions(judge: CaseJudge, *kinds: str) -> dict[str, str]:
    answers = [json.loads(answer_line(judge, line)) for line in scoring.lines(*kinds)]
    return {answer["id"]: answer["decision"] for answer in answers}


def _shown() -> dict[str, str]:
    """Case id to decision, for the kind `text`."""
    return {case["id"]: "error" if violations(case) else case["expect"] for case in text_cases()}


async def _wired() -> dict[str, str]:
    """Case id to decision, for the kind `wire`."""
    return {case["id"]: await outcome(case) for case in scoring.cases("wire") if not scoring.is_waiting(case)}


async def test_every_case_of_the_attack_list_gets_the_expected_decision(capsys):
    table, failures = scoring.table(_decisions(_judge(), *JUDGED) | _shown() | await _wired())
    with capsys.disabled():
        print(f"\n{table}")
    assert failures == []


@pytest.mark.parametrize("kind", JUDGED)
def test_permissions_check_makes_the_expected_decisions(kind):
    lines = scoring.lines(kind)
    command = (
        sys.executable,
        "-m",
        "bradawl",
        "permissions",
        "check",
        "--stdin",
        "--workspace",
        "/ws",
        "--home",
        "/home/u",
    )
    done = subprocess.run(
        command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(answer) for answer in answers] == [{"id", "decision", "reason"}] * len(lines)
    wanted = {json.loads(line)["id"]: json.loads(line)["expect"].replace("sanitize", "allow") for line in lines}
    assert {answer["id"]: answer["decision"] for answer in answers} == wanted


@pytest.mark.parametrize("mode", ["default", "accept-edits", "plan", "auto", "bypass"])
def test_dangerous_calls_are_denied_in_every_mode(mode):
    decided = _decisions(_judge(mode=mode), "shell", "path")
    denied = [case["id"] for case in scoring.cases("shell", "path") if case["expect"] == "deny"]
    of_the_system = {"pa-007", "pa-008"} if mode == "bypass" else set()
    assert [name for name in denied if decided[name] != "deny" and name not in of_the_system] == []


def test_plan_mode_allows_nothing_that_other_modes_ask_about():
    decided = _decisions(_judge(mode="plan"), "shell")
    asked = [case["id"] for case in scoring.cases("shell") if case["expect"] in ("ask", "error")]
    assert [name for name in asked if decided[name] == "allow"] == []


def _all(cases: dict[str, tuple]) -> list[tuple]:
    return [pytest.param(wanted, case, id=ascii(case)[:50]) for wanted, ones in cases.items() for case in ones]


def _answer(kind: str, case: object) -> dict[str, str]:
    return json.loads(answer_line(_judge(), json.dumps({"id": 1, "kind": kind, "input": case})))


@pytest.mark.parametrize(("wanted", "case"), _all(path_cases.CASES))
def test_a_path_is_decided_by_its_resolved_target(wanted, case):
    operation, path, *setup = case
    answer = _answer("path", {"op": operation, "path": path, "setup": "".join(setup)})
    assert answer["decision"] == wanted, answer["reason"]


@pytest.mark.parametrize(("wanted", "line"), _all(shell_cases.CASES))
def test_a_line_of_bash_gets_the_expected_decision(wanted, line):
    answer = _answer("shell", line)
    assert answer["decision"] == wanted, answer["reason"]


@pytest.mark.parametrize(("wanted", "case"), _all(config_cases.CASES))
def test_a_project_file_gets_the_expected_decision(wanted, case):
    file, content = case
    answer = _answer("config", {"file": file, "content": content})
    assert answer["decision"] == wanted, answer["reason"]


# ------------------------------------------------------------------ the protocol of `permissions check --stdin`

GARBAGE = (
    "",
    " ",
    "null",
    "7",
    "[]",
    '"shell"',
    "{",
    "\0",
    "{}",
    '{"id":1}',
    '{"id":1,"kind":"shell"}',
    '{"id":1,"kind":"shell","input":7}',
    '{"id":1,"kind":"shell","input":{"command":"ls"}}',
    '{"id":1,"kind":"path","input":"src"}',
    '{"id":1,"kind":"path","input":{"op":"read"}}',
    '{"id":1,"kind":"path","input":{"op":"read","path":7}}',
    '{"id":1,"kind":"path","input":{"op":["read"],"path":"src/a.py"}}',
    '{"id":1,"kind":"path","input":{"op":"read","path":"src/a.py","setup":{}}}',
    '{"id":1,"kind":"config","input":{"file":7,"content":""}}',
    '{"id":1,"kind":"wire","input":{}}',
    '{"id":1,"kind":"nothing","input":"ls"}',
    '{"id":1,"kind":["shell"],"input":"ls"}',
    '{"id":1,"kind":"shell","input":{"$repeat":["ls",-1]}}',
    '{"id":1,"kind":"shell","input":{"$repeat":["ls",1e9]}}',
    '{"id":1,"kind":"shell","input":{"$repeat":["ls",1000000000000]}}',
    '{"id":1,"kind":"shell","input":{"$repeat":["ls"]}}',
    '{"id":1,"kind":"shell","input":"l\\u0000s"}',
    '{"id":1,"kind":"shell","input":"\\ud800"}',
    '{"id":{"a":1},"kind":"shell","input":"\\u001b[2J"}',
    '{"id":1,"kind":"shell","input":NaN}',
    '{"id":1,"kind":"config","input":' + '{"file":".mcp.json","content":' + "[" * 900 + "]" * 900 + "}}",
    "[" * 100_000,
    '{"a":' * 50_000,
    '{"id":1,"kind":"path","input":' + "[" * 5_000 + "]" * 5_000 + "}",
)


@pytest.mark.parametrize("line", GARBAGE, ids=lambda line: ascii(line)[:40])
def test_invalid_input_gets_an_error(line):
    answer = answer_line(_judge(), line)
    assert json.loads(answer)["decision"] == "error"
    assert answer.isascii()
    assert answer.count("\n") == 1


def test_every_input_line_gets_an_answer_even_after_invalid_ones():
    lines = [
        '{"id":"first","kind":"shell","input":"true"}',
        "garbage",
        "",
        '{"id":"last","kind":"shell","input":"true"}',
    ]
    done = subprocess.run(
        (sys.executable, "-m", "bradawl", "permissions", "check", "--stdin"),
        input="\n".join(lines).encode() + b"\n\xff\xfe\n",
        capture_output=True,
        timeout=50,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["first", None, None, "last", None]
    assert (done.returncode, done.stderr) == (0, b"")


def test_each_answer_is_written_before_the_next_line_is_read():
    with subprocess.Popen(
        (sys.executable, "-m", "bradawl", "permissions", "check", "--stdin"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"id": number, "kind": "shell", "input": "true"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(20) == 0


def test_the_folder_name_used_in_the_list_means_bradawls_folder():
    def decided(path: str) -> str:
        line = json.dumps({"id": 1, "kind": "path", "input": {"op": "write", "path": path}})
        return json.loads(answer_line(_judge(), line))["decision"]

    assert (decided(".agent/x"), decided("my.agent/x"), decided("x.agent"), decided(".agents/x")) == (
        "deny",
        "allow",
        "allow",
        "allow",
    )


def test_the_given_mode_applies_to_every_kind():
    line = json.dumps({"id": 1, "kind": "path", "input": {"op": "write", "path": "src/a.py"}})
    judged = {
        mode: json.loads(answer_line(_judge(**({"mode": mode} if mode else {})), line))["decision"]
        for mode in ("", "default", "plan", "bypass")
    }
    assert judged == {"": "allow", "default": "ask", "plan": "deny", "bypass": "allow"}


def test_the_text_of_a_prompt_is_not_treated_as_a_command():
    assert parse(["permissions", "of", "my", "files"])["prompt"] == "permissions of my files"
    assert parse(["permissions", "check", "ls -la"])["shell_line"] == "ls -la"
    assert parse(["permissions"])["help"] is True
