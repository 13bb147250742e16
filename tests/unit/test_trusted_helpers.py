"""Programs that bradawl itself starts are never taken from folders that a project or a command can write to."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bradawl.app.build.agent import build_agent
from bradawl.app.build.workspace import folders_of
from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.program_paths import find_ripgrep, programs_for
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError, ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.safety.shell.allow.analyzer import shell_effects
from bradawl.safety.shell.allow.program_lookup import ProgramLookup
from bradawl.safety.trusted_programs import TrustedPrograms
from bradawl.workspace.processes import LocalProcesses

SYSTEM = "/usr/local/bin:/usr/bin:/bin"
PLANTED = ("git", "rg", "bash", "sh", "bwrap", "python3", "ps", "grep", "tr", "sleep", "kill", "env", "ls", "cat")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder outside all temporary ones, which are untrusted."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="bradawl-test-") as made:
        yield Path(made).resolve()


def plant(folder: Path, canary: Path, names: tuple[str, ...] = PLANTED) -> Path:
    """Creates programs that write to the file `canary` when they are started."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >>'{canary}'\n")
        program.chmod(0o755)
    return folder


def joined(path: str, cwd: str) -> str:
    return str(Path(cwd, path))


def settings(ws: Path, home: Path, path: str, **changes: Any) -> Settings:
    values: dict[str, Any] = {
        "model": ModelSettings("demo", "no-model", "http://127.0.0.1:9/v1"),
        "cwd": str(ws),
        "home": str(home / "data"),
        "user_home": str(home),
        "environment": {"PATH": path, "HOME": str(home)},
    }
    return Settings(**{**values, **changes})


def paths(ws: Path, home: Path) -> dict[str, str]:
    """Search paths that lead to the planted programs in `ws/bin`, each in another way."""
    (home / "link").symlink_to(ws / "bin")
    (ws / "to-home").symlink_to(home / "own")
    (home / "own").symlink_to(ws / "bin")
    return {
        "absolute": f"{ws}/bin",
        "relative": "bin",
        "dot": ".",
        "empty first": "",
        "dotted": f"{ws}/src/../bin",
        "linked from outside": f"{home}/link",
        "linked through the workspace": f"{ws}/to-home",
        "trailing slash": f"{ws}/bin/",
        "double slash": f"/{ws}/bin",
        "tilde": "~/link",
    }


WAYS = (
    "absolute",
    "relative",
    "dot",
    "empty first",
    "dotted",
    "linked from outside",
    "linked through the workspace",
    "trailing slash",
    "double slash",
    "tilde",
)


@pytest.mark.parametrize("way", WAYS)
async def test_no_search_path_makes_the_agent_start_a_program_of_the_workspace(place, way, monkeypatch):
    ws, home, canary = place / "ws", place / "home", place / "ran"
    for folder in (ws / "src", home):
        folder.mkdir(parents=True)
    plant(ws / "bin", canary)
    plant(ws, canary)
    monkeypatch.chdir(ws)
    made = settings(ws, home, f"{paths(ws, home)[way]}:{SYSTEM}")

    agent = build_agent(made)
    try:
        await agent.system_prompt()
        assert agent.policy().sandbox is not None
        assert agent.processes.seal(Command(("true",), str(ws), is_shell=True))
        # The line names no program: only those that bradawl starts are tested here.
        result = await agent.processes.run(
            Command((":",), str(ws), is_shell=True), Grant(outside_sandbox=True, writable=(str(ws),))
        )
        assert result.exit_code == 0
        for name in ("git", "rg", "grep"):
            await agent.processes.run(Command((name, "--version"), str(ws)), Grant())
    except ToolError:
        pass
    finally:
        await agent.aclose()
    assert not canary.exists(), canary.read_text()


def test_programs_of_additional_and_temporary_folders_are_not_trusted(place):
    ws, home, other, temporary = (place / name for name in ("ws", "home", "other", "temporary"))
    for folder in (ws, home):
        folder.mkdir()
    for folder in (other, temporary):
        plant(folder / "bin", place / "ran")
    made = settings(ws, home, f"{other}/bin:{temporary}/bin:{SYSTEM}", add_dirs=(str(other),))
    made.environment["TMPDIR"] = str(temporary)
    programs = programs_for(made.environment, folders_of(made).untrusted)
    for name in PLANTED:
        found = programs.find(name)
        assert found is None or not found.startswith(str(place)), name
    assert "where commands can write" in programs.rejected("git")[0].reason


async def test_a_program_without_a_path_is_started_only_from_a_trusted_folder(place):
    canary = place / "ran"
    plant(place / "bin", canary, ("only-here", "env"))
    processes = LocalProcesses(
        {"PATH": f"bin:.::{place}/bin:{SYSTEM}"}, programs=TrustedPrograms(f"bin:{place}/bin", (str(place),))
    )
    try:
        result = await processes.run(Command(("env",), str(place)), Grant())
        assert result.exit_code == 0
        with pytest.raises(ToolError, match="only-here is not installed here"):
            await processes.run(Command(("only-here",), str(place)), Grant())
    finally:
        processes.close()
    assert not canary.exists()


def test_the_watchdog_of_a_killed_agent_starts_no_programs_of_the_workspace(place):
    canary = place / "ran"
    plant(place / "bin", canary)
    program = f"""
import asyncio, os, signal
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.safety.trusted_programs import TrustedPrograms
from bradawl.workspace.processes import LocalProcesses
path = {f"{place}/bin:{SYSTEM}"!r}
processes = LocalProcesses({{"PATH": path}}, programs=TrustedPrograms(path, ({str(place)!r},)))
async def run():
    line = Command(("/bin/sleep 60 & echo $! >" + {str(place / "id")!r} + "; wait",), {str(place)!r}, is_shell=True)
    await processes.start(line, Grant(outside_sandbox=True))
    while not os.path.exists({str(place / "id")!r}) or not os.path.getsize({str(place / "id")!r}):
        await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(run())
"""
    subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    running = int((place / "id").read_text())
    for _ in range(500):
        if not Path(f"/proc/{running}/stat").exists() or " Z " in Path(f"/proc/{running}/stat").read_text():
            break
        subprocess.run(["/bin/sleep", "0.01"], check=True)
    else:
        pytest.fail("the watchdog did not end it")
    assert not canary.exists(), canary.read_text()


def test_ripgrep_is_not_taken_from_the_working_directory(place, monkeypatch):
    plant(place / "bin", place / "ran")
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f"{place}/bin:bin:.:{SYSTEM}")
    found = find_ripgrep()
    assert found is None or not found.startswith(str(place))


# ------------------------------------------------------------------ lines that run without a question


@pytest.mark.parametrize("way", WAYS)
def test_programs_found_in_the_workspace_make_a_line_unknown(place, way):
    ws, home = place / "ws", place / "home"
    for folder in (ws / "src", home):
        folder.mkdir(parents=True)
    plant(ws / "bin", place / "ran")
    search = ProgramLookup(f"{paths(ws, home)[way]}:{SYSTEM}", (str(ws),))
    for line in ("ls", "cat README.md", "rg x", "git status", "grep x README.md", "python3 --version"):
        effects = shell_effects(line, cwd=str(ws), home=str(home), resolve=joined, programs=search)
        assert effects.unknown, line


def test_an_exported_search_path_makes_later_lines_unknown(place):
    search = ProgramLookup(SYSTEM, (str(place),))
    for name in ("PATH", "BASH_ENV", "BASH_FUNC_ls%%", "LD_PRELOAD", "EXECIGNORE"):
        effects = shell_effects(
            "ls",
            cwd=str(place),
            home="",
            resolve=joined,
            env={name: "x"},
            programs=search,
        )
        assert effects.unknown, name


@pytest.mark.parametrize(
    "line",
    [
        "hash -p ./ls ls; ls",
        "ls() { ./evil; }; ls",
        "alias ls=./ls; ls",
        "PATH=. ls",
        "PATH=.:$PATH; ls",
        "export PATH=.:$PATH; ls",
        "enable -f ./ls.so ls; ls",
        "command -p ls; . ./x",
        "builtin cd .; ./ls",
    ],
)
def test_a_line_that_redefines_a_command_is_not_understood(place, line):
    effects = shell_effects(
        line,
        cwd=str(place),
        home="/nowhere",
        resolve=joined,
        programs=ProgramLookup(SYSTEM, (str(place),)),
    )
    assert effects.unknown or not effects.understood


@pytest.mark.parametrize("path", [None, ""])
async def test_without_a_search_path_commands_get_the_trusted_one(place, path):
    """With an empty PATH, bash would search its working directory."""
    ws, home = place / "ws", place / "home"
    home.mkdir()
    plant(ws, place / "ran")
    made = settings(ws, home, "", sandbox="off")
    made.environment.pop("PATH")
    if path is not None:
        made.environment["PATH"] = path
    agent = build_agent(made)
    try:
        line = Command(("ls; cat /dev/null; echo $PATH",), str(ws), is_shell=True)
        result = await agent.processes.run(line, Grant(outside_sandbox=True))
    finally:
        await agent.aclose()
    assert b"/usr/bin" in result.stdout
    assert not (place / "ran").exists()


# ------------------------------------------------------------------ commands that print a key, libraries


@pytest.mark.parametrize("way", ["absolute", "relative", "dot", "empty first", "linked from outside"])
@pytest.mark.parametrize("command", ["print-my-token", "./print-my-token", "python3 -m keyring"])
async def test_a_key_command_is_not_taken_from_the_project(place, monkeypatch, way, command):
    ws, home, canary = place / "ws", place / "home", place / "ran"
    for folder in (ws / "src", home):
        folder.mkdir(parents=True)
    plant(ws / "bin", canary, ("print-my-token",))
    plant(ws, canary, ("print-my-token",))
    (ws / "keyring.py").write_text(f"open({str(canary)!r}, 'w')\n")
    monkeypatch.chdir(ws)
    model = ModelSettings("demo", "x", "http://127.0.0.1:9/v1", key_command=command)
    line = model_endpoint(model, {"PATH": f"{paths(ws, home)[way]}:{SYSTEM}", "HOME": str(home)})
    with pytest.raises(SettingsError, match="api_key_command"):
        await line.keys.key()
    assert not canary.exists()


async def test_a_key_command_of_the_user_is_found(place, monkeypatch):
    if TrustedPrograms("").why_untrusted(str(place)):
        pytest.skip("the home folder lies where others can write, so that no program in it is used")
    program = plant(place / "bin", place / "ran", ("print-my-token",)) / "print-my-token"
    program.write_text("#!/bin/sh\necho secret-of-the-user\n")
    (place / "ws").mkdir()
    for folder in (place / "ws", place):
        monkeypatch.chdir(folder)
        model = ModelSettings("demo", "x", "http://127.0.0.1:9/v1", key_command="print-my-token")
        line = model_endpoint(model, {"PATH": f"{place}/bin:{SYSTEM}", "HOME": str(place)})
        assert (await line.keys.key()) == "secret-of-the-user"


@pytest.mark.parametrize("name", ["LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"])
async def test_an_unconfined_program_gets_no_libraries_of_the_workspace(place, name):
    programs = TrustedPrograms(SYSTEM, (str(place),))
    given = {"PATH": SYSTEM, name: f":lib:./lib:{place}/lib:/usr/lib:{place}/../{place.name}/lib"}
    processes = LocalProcesses(given, programs=programs)
    try:
        result = await processes.run(Command(("env",), str(place)), Grant())
    finally:
        processes.close()
    (line,) = [each for each in result.stdout.decode().splitlines() if each.startswith(name)]
    assert line == f"{name}=/usr/lib"


async def test_a_line_gets_no_libraries_of_its_working_directory(place):
    processes = LocalProcesses({"PATH": SYSTEM, "LD_LIBRARY_PATH": ":/usr/lib::lib"})
    try:
        line = Command(("echo $LD_LIBRARY_PATH",), str(place), is_shell=True)
        result = await processes.run(line, Grant(outside_sandbox=True))
    finally:
        processes.close()
    assert result.stdout == b"/usr/lib\n"
