"""Helper programs run outside the sandbox with a clean environment; all other programs run in the sandbox."""

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
    """A sandbox backend that confines nothing and records the programs it launches."""

    sandbox = Sandbox("recorder")

    def __init__(self) -> None:
        self.launched: list[tuple[str, ...]] = []

    def launch(self, program, grant):
        self.launched.append(program.argv)
        return Launch(program.argv, program.cwd, program.environment, program.inherited)

    def host_path(self, path):
        return path

    def close(self):
        pass


async def run(processes: LocalProcesses, command: Command, grant: Grant | None = None):
    try:
        return await processes.run(command, grant or Grant())
    finally:
        processes.close()


async def test_a_helper_sees_none_of_the_users_variables(tmp_path: Path):
    evil = {name: str(tmp_path) for name in ("PYTHONPATH", "RIPGREP_CONFIG_PATH", "GIT_DIR", "LD_PRELOAD", "BASH_ENV")}
    processes = LocalProcesses({**evil, "PATH": f"{tmp_path}:.:", "HOME": "/home/u", "LC_ALL": "C", "SECRET": "x"})
    result = await run(processes, Command(PRINT, "/", is_helper=True, env={"OWN": "1"}))
    seen = json.loads(result.stdout)
    seen.pop("LC_CTYPE", None)
    assert seen.pop("BRADAWL_CALL")
    assert seen == {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/u", "PWD": "/", "OWN": "1"}


async def test_the_library_path_of_a_helper_keeps_only_absolute_folders_outside_the_workspace(tmp_path: Path):
    named = f"{tmp_path}:.::relative:/usr/lib"
    programs = TrustedPrograms("", (str(tmp_path),))
    processes = LocalProcesses({"LD_LIBRARY_PATH": named}, programs=programs)
    result = await run(processes, Command(PRINT, "/", is_helper=True))
    assert b'"LD_LIBRARY_PATH": "/usr/lib"' in result.stdout


@pytest.mark.parametrize("name", ["tool", "./tool", "bin/tool", ""])
async def test_a_helper_without_an_absolute_path_is_not_found(tmp_path: Path, name: str):
    (tmp_path / "bin").mkdir()
    for place in (tmp_path / "tool", tmp_path / "bin" / "tool"):
        place.write_text("#!/bin/sh\necho ran\n")
        place.chmod(0o755)
    processes = LocalProcesses({"PATH": str(tmp_path)})
    with pytest.raises(ToolError, match="not installed"):
        await run(processes, Command((name,), str(tmp_path), is_helper=True))


@pytest.mark.parametrize("path", ["{}", ".", "", ":", "{}/link", "bin"])
async def test_a_program_that_is_only_in_the_workspace_is_not_found(tmp_path: Path, path: str):
    ws = tmp_path / "ws"
    (ws / "bin").mkdir(parents=True)
    (ws / "link").symlink_to(ws / "bin")
    for place in (ws / "tool", ws / "bin" / "tool"):
        place.write_text("#!/bin/sh\necho ran\n")
        place.chmod(0o755)
    programs = TrustedPrograms(path.format(ws), (str(ws),))
    with pytest.raises(ToolError, match="not installed"):
        await run(LocalProcesses({"PATH": path.format(ws)}, programs=programs), Command(("tool",), str(ws)))


async def test_only_helpers_and_programs_with_a_grant_run_outside_the_sandbox():
    backend = Recorder()
    commands = [
        (Command(("true",), "/"), Grant(), True),
        (Command(("/bin/true",), "/"), Grant(), True),
        (Command(("/bin/true",), "/"), Grant(outside_sandbox=True), False),
        (Command(("/bin/true",), "/", is_helper=True), Grant(), False),
        (Command(("true",), "/", is_shell=True), Grant(), True),
        (Command(("true",), "/", is_shell=True, is_helper=True), Grant(), True),
    ]
    for command, grant, is_confined in commands:
        backend.launched.clear()
        result = await run(LocalProcesses(os.environ, sandbox_backend=lambda: backend), command, grant)
        assert (result.exit_code, bool(backend.launched)) == (0, is_confined), command
        assert (result.sandbox == "recorder") is is_confined


async def test_the_sandbox_gets_the_absolute_path_of_a_program():
    backend = Recorder()
    await run(LocalProcesses({"PATH": "/usr/bin:/bin"}, sandbox_backend=lambda: backend), Command(("true",), "/"))
    assert backend.launched in ([("/usr/bin/true",)], [("/bin/true",)])
