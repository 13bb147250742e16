"""Programs on bradawl's own account get nothing a project could have prepared; all others are held."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant, Sandbox
from bradawl.core.workspace import Command
from bradawl.safety.trusted_programs import TrustedPrograms
from bradawl.sandbox.backend import Launch
from bradawl.workspace.processes import LocalProcesses

PRINT = (sys.executable, "-I", "-S", "-c", "import os, json; print(json.dumps(dict(os.environ)))")


class Recorder:
    """A backend that confines nothing and remembers what it was asked to."""

    sandbox = Sandbox("recorder")

    def __init__(self) -> None:
        self.held: list[tuple[str, ...]] = []

    def launch(self, program, grant):
        self.held.append(program.argv)
        return Launch(program.argv, program.cwd, program.environment, program.inherited)

    def host_path(self, path):
        return path

    def close(self):
        pass


def run(processes: LocalProcesses, command: Command, grant: Grant | None = None):
    try:
        return asyncio.run(processes.run(command, grant or Grant()))
    finally:
        processes.close()


def test_a_helper_sees_none_of_the_users_variables(tmp_path: Path):
    evil = {name: str(tmp_path) for name in ("PYTHONPATH", "RIPGREP_CONFIG_PATH", "GIT_DIR", "LD_PRELOAD", "BASH_ENV")}
    processes = LocalProcesses({**evil, "PATH": f"{tmp_path}:.:", "HOME": "/home/u", "LC_ALL": "C", "SECRET": "x"})
    result = run(processes, Command(PRINT, "/", is_helper=True, env={"OWN": "1"}))
    seen = json.loads(result.stdout)
    seen.pop("LC_CTYPE", None)
    assert seen.pop("BRADAWL_CALL")
    assert seen == {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/u", "PWD": "/", "OWN": "1"}


def test_a_helper_finds_shared_libraries_only_where_no_project_can_put_any(tmp_path: Path):
    named = f"{tmp_path}:.::relative:/usr/lib"
    programs = TrustedPrograms("", (str(tmp_path),))
    processes = LocalProcesses({"LD_LIBRARY_PATH": named}, programs=programs)
    result = run(processes, Command(PRINT, "/", is_helper=True))
    assert b'"LD_LIBRARY_PATH": "/usr/lib"' in result.stdout


@pytest.mark.parametrize("name", ["tool", "./tool", "bin/tool", ""])
def test_a_helper_is_never_looked_for(tmp_path: Path, name: str):
    (tmp_path / "bin").mkdir()
    for place in (tmp_path / "tool", tmp_path / "bin" / "tool"):
        place.write_text("#!/bin/sh\necho ran\n")
        place.chmod(0o755)
    processes = LocalProcesses({"PATH": str(tmp_path)})
    with pytest.raises(ToolError, match="not installed"):
        run(processes, Command((name,), str(tmp_path), is_helper=True))


@pytest.mark.parametrize("path", ["{}", ".", "", ":", "{}/link", "bin"])
def test_a_program_that_only_the_workspace_has_is_not_found(tmp_path: Path, path: str):
    ws = tmp_path / "ws"
    (ws / "bin").mkdir(parents=True)
    (ws / "link").symlink_to(ws / "bin")
    for place in (ws / "tool", ws / "bin" / "tool"):
        place.write_text("#!/bin/sh\necho ran\n")
        place.chmod(0o755)
    programs = TrustedPrograms(path.format(ws), (str(ws),))
    with pytest.raises(ToolError, match="not installed"):
        run(LocalProcesses({"PATH": path.format(ws)}, programs=programs), Command(("tool",), str(ws)))


def test_only_helpers_and_what_is_granted_are_not_held():
    held = Recorder()
    commands = [
        (Command(("true",), "/"), Grant(), True),
        (Command(("/bin/true",), "/"), Grant(), True),
        (Command(("/bin/true",), "/"), Grant(outside_sandbox=True), False),
        (Command(("/bin/true",), "/", is_helper=True), Grant(), False),
        (Command(("true",), "/", is_shell=True), Grant(), True),
        (Command(("true",), "/", is_shell=True, is_helper=True), Grant(), True),
    ]
    for command, grant, is_held in commands:
        held.held.clear()
        result = run(LocalProcesses(os.environ, sandbox_backend=lambda: held), command, grant)
        assert (result.exit_code, bool(held.held)) == (0, is_held), command
        assert (result.sandbox == "recorder") is is_held


def test_a_program_of_a_tool_is_held_by_its_absolute_path():
    held = Recorder()
    run(LocalProcesses({"PATH": "/usr/bin:/bin"}, sandbox_backend=lambda: held), Command(("true",), "/"))
    assert held.held in ([("/usr/bin/true",)], [("/bin/true",)])
