"""Ordinary development commands succeed in the sandbox."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bwrap import needs_bwrap
from sandboxed_session import SYSTEM_PATH, sandboxed_session

pytestmark = [
    needs_bwrap,
    pytest.mark.timeout(300),
]

COMMANDS = Path(__file__).with_name("commands.txt").read_text().splitlines()
MORE = Path(__file__).with_name("more_commands.txt").read_text().splitlines()
FILES = {
    "pyproject.toml": '[project]\nname = "acme"\nversion = "1"\n[tool.pytest.ini_options]\npythonpath = ["src"]\n',
    "src/acme/__init__.py": "",
    "src/acme/core.py": "def add(a, b):\n    return a + b\n",
    "src/acme/cli.py": "import argparse\n\nif __name__ == '__main__':\n    argparse.ArgumentParser().parse_args()\n",
    "tests/test_core.py": "from acme.core import add\n\n\ndef test_add(tmp_path):\n    assert add(1, 2) == 3\n",
    "Makefile": (
        "all: build/made\nbuild/made: src/acme/core.py\n\tmkdir -p build && cp $< $@\ntest:\n\tpython -m pytest -q\n"
        "lint:\n\tpython -m compileall -q src\nclean:\n\trm -rf build\n"
    ),
    "README.md": "# Acme\n\nAdds.\n",
    "docs/guide.md": "# Guide\n",
    "package.json": (
        '{"name": "acme", "version": "1.0.0", "scripts": {"test": "node --test", "build": "node build.js"}}\n'
    ),
    "build.js": "require('fs').mkdirSync('build', {recursive: true});\n",
    "test/add.test.js": "const test = require('node:test');\ntest('adds', () => {});\n",
    "src/native/add.c": "int main(void) { return 0; }\n",
    "data/users.csv": "name,town\nann,ulm\nbob,bonn\n",
    "data/log.txt": "one\ntwo\nthree\n",
    "data/events.json": '{"a": [1, 2]}\n',
    "scripts/setup.sh": "#!/bin/sh\necho set up\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
    ".env.example": "KEY=\n",
}


NOT_EVERYWHERE = {
    "node",
    "npm",
    "gcc",
    "cc",
    "curl",
    "zip",
    "unzip",
    "xz",
    "ps",
    "pgrep",
    "less",
    "more",
    "make",
    "free",
    "uptime",
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> str:
    """A folder with `python` (with pytest and the project installed) and `rg`."""
    folder = tmp_path_factory.mktemp("programs") / "bin"
    folder.mkdir()
    for name in ("python", "python3", "rg"):
        target = Path(sys.executable).with_name(name)
        (folder / name).write_text(f'#!/bin/sh\nPYTHONPATH=src exec {shlex.quote(str(target))} "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.fixture
def day(tmp_path, programs):
    with sandboxed_session(tmp_path, {"PATH": f"{programs}:{SYSTEM_PATH}", "LANG": "C.UTF-8"}) as made:
        for name, text in FILES.items():
            made.write(name, text, 0o755 if name.endswith(".sh") else 0o644)
        _commit(made.root)
        yield made


def _commit(root: Path) -> None:
    lines = (
        "git init -q -b main; git config user.name A; git config user.email a@b.c; git add -A; git commit -qm one",
        "echo more >> README.md; git commit -qam two; git checkout -qb feature; echo new > docs/new.md; git add -A",
        "git commit -qm feature; git checkout -q main; echo again >> docs/guide.md; git commit -qam three",
    )
    for line in lines:
        subprocess.run(["bash", "-ec", line], cwd=root, check=True, env={"PATH": os.environ["PATH"], "HOME": str(root)})


_DOWNLOADED = "nothing-at-all"
"""A package that does not exist, in lines that try to download it."""


def _needed(line: str) -> str:
    """A program that the line needs and this machine lacks; empty if none."""
    words = re.split(r"[\s;&|]+", line)
    return next((word for word in words if word in NOT_EVERYWHERE and not shutil.which(word)), "")


@pytest.mark.parametrize("commands", [COMMANDS, MORE], ids=["hundred", "more"])
def test_every_command_succeeds(day, commands):
    failed = []
    for line in commands:
        if not line or line.startswith("#") or _needed(line):
            continue
        result = day.run(line, timeout_s=60)
        assert result.sandbox == "bubblewrap"
        if result.exit_code != 0:
            failed.append((line, result.exit_code, (result.stdout + result.stderr)[-400:].decode("utf-8", "replace")))
    assert not failed, "\n".join(map(str, failed))


def calls_of(commands: list[str]) -> list[dict]:
    """A script that runs each line in a step of its own."""
    steps = [{"tool_calls": [{"id": f"c{n}", "name": "bash", "arguments": {"command": line}}]} for n, line in commands]
    return [*steps, {"text": "That was the day."}]


def _work_through(day, own: Path, lines: list[str]) -> dict[str, str]:
    """Result of each line. Checks that bradawl asked no question."""
    (own / "script.json").write_text(json.dumps(calls_of(list(enumerate(lines)))))
    environment = {**day.environment, "HOME": str(own / "home"), "BRADAWL_HOME": str(own / "data")}
    run = subprocess.run(
        [sys.executable, "-m", "bradawl", "-m", f"scripted/{own}/script.json", "-p", "work"],
        cwd=day.root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (run.returncode, run.stdout) == (0, "That was the day.\n"), run.stderr
    (journal,) = (own / "data").glob("projects/*/sessions/*.jsonl")
    events = [json.loads(entry)["event"] for entry in journal.read_text().splitlines()]
    assert not [event for event in events if event["type"] == "PermissionAsked"]
    answers = {event["call_id"]: event["shown"] for event in events if event["type"] == "ToolFinished"}
    return {line: str(answers[f"c{n}"]) for n, line in enumerate(lines)}


@pytest.mark.parametrize("commands", [COMMANDS, MORE], ids=["hundred", "more"])
def test_bradawl_asks_about_none_of_the_commands(day, commands, tmp_path_factory):
    lines = [line for line in commands if line and not line.startswith("#") and not _needed(line)]
    lines = [line for line in lines if _DOWNLOADED not in line]  # the user is asked about its host
    answers = _work_through(day, tmp_path_factory.mktemp("own"), lines)
    assert not {line: answer for line, answer in answers.items() if "[exit code 0" not in answer}


def test_commands_do_not_see_the_machines_temporary_folder(day, tmp_path_factory):
    with tempfile.NamedTemporaryFile("w", prefix="bradawl-own-", suffix=".txt", dir="/tmp") as file:
        file.write("of the machine")
        file.flush()
        lines = [f"echo held > {file.name}", f"cat {file.name}", f"rm {file.name}"]
        answers = _work_through(day, tmp_path_factory.mktemp("own"), lines)
        assert "held" in answers[lines[1]] and "of the machine" not in answers[lines[1]]
        assert Path(file.name).read_text() == "of the machine"
