"""`bradawl permissions check` prints the decision that a run makes, for the attack list and for ordinary commands."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from bradawl import build_agent, load_settings
from bradawl.app.console import Console
from bradawl.app.permissions_check import run_check
from bradawl.app.settings.settings import Settings
from bradawl.core.permissions import Answer, Question

TESTS = Path(__file__).parents[1]


def _attacks() -> list[str]:
    cases = map(json.loads, (TESTS / "attacks" / "attacks.jsonl").read_text().splitlines())
    lines = [case["input"] for case in cases if case["kind"] == "shell" and isinstance(case["input"], str)]
    return [line for line in lines if len(line) < 2_000]


def _ordinary() -> list[str]:
    lines = (TESTS / "sandbox" / "commands.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


class No:
    """An approver that refuses every call and records the questions."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Answer:
        self.questions.append(question)
        return Answer(False, "user")

    async def choose(self, choice: object) -> None:
        return None


class Place:
    """A project, with settings in the user's file, in its own file and in environment variables."""

    def __init__(self, root: Path) -> None:
        self.root, self.work = root, root / "work"
        (self.work / "src").mkdir(parents=True)
        (self.work / "src" / "main.py").write_text("print(1)\n")
        (self.work / ".bradawl").mkdir()
        (self.work / ".bradawl" / "config.toml").write_text(
            '[permissions]\nask = ["Bash(wc *)"]\nallow = ["Bash(make *)"]\n'
        )
        config = root / "config" / "bradawl"
        config.mkdir(parents=True)
        (root / "more").mkdir()
        (config / "config.toml").write_text(
            f'add_dirs = ["{root}/more"]\n[permissions]\nallow = ["Bash(mkdir *)"]\n'
            'deny = ["Bash(head *)", "Read(secrets/**)"]\n'
        )
        self.environ = {
            "HOME": str(root / "home"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_DATA_HOME": str(root / "data"),
            "PATH": "/usr/bin:/bin",
            "TMPDIR": os.environ["TMPDIR"],
            "BRADAWL_SANDBOX": "off",
            "BRADAWL_MODEL": f"scripted/{root}/script.json",
        }

    def checked(self, line: str, mode: str | None) -> str:
        out = io.StringIO()
        options = {"workspace": str(self.work), "shell_line": line, "mode": mode}
        run_check(options, self.environ, Console(io.StringIO(), out, out, self.environ), str(self.work), build_agent)
        return json.loads(out.getvalue())["decision"]

    def ran(self, line: str, mode: str | None) -> str:
        calls = [{"id": "c", "name": "bash", "arguments": {"command": line}}]
        (self.root / "script.json").write_text(json.dumps([{"tool_calls": calls}, {"text": "done"}]))
        settings: Settings = load_settings({"permission_mode": mode}, self.environ, str(self.work))
        approver = No()
        agent = build_agent(settings, approver)
        agent.run_sync("go")
        if approver.questions:
            return "ask"
        message: Any = agent.model.requests[1][-1]  # type: ignore[attr-defined]  # it is the scripted model
        said = message.results[0].parts[0].text
        if "bash was not run" in said:
            return "deny"
        is_no_line = "so it was not run" in said or "give a line of bash" in said
        return "error" if message.results[0].is_error and is_no_line else "allow"


@pytest.mark.parametrize("mode", [None, "plan"])
@pytest.mark.parametrize("part", range(4))
def test_the_printed_decision_is_the_decision_of_a_run(tmp_path: Path, mode: str | None, part: int) -> None:
    place = Place(tmp_path)
    own = [
        "mkdir x",
        "make",
        "wc -l src/main.py",
        "head src/main.py",
        "cat secrets/k",
        f"ls {tmp_path}/more",
        "cat /etc/hosts",
    ]
    lines = [*own, *_ordinary(), *_attacks()[::3]][part::4]
    differ = []
    for line in lines:
        printed, decided = place.checked(line, mode), place.ran(line, mode)
        if printed != decided and not (printed == "error" and decided in ("deny", "error")):
            differ.append((line[:100], printed, decided))
    assert not differ
    assert len(lines) > 45
