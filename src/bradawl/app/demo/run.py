"""`bradawl demo`: the real agent repairs a broken program, and the files on disk prove it."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

import msgspec

from bradawl.app.build.agent import build_agent
from bradawl.app.demo.approver import ScriptApprover
from bradawl.app.modes import sandbox_text
from bradawl.app.progress import Progress
from bradawl.app.rendering import one_line, usage_text
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.settings import Settings
from bradawl.core.deltas import TextDelta
from bradawl.core.errors import SettingsError
from bradawl.core.events import CallPrepared, Envelope, Live, ToolFinished
from bradawl.core.messages import text_of
from bradawl.core.ports import Tool
from bradawl.safety.control_characters import clean
from bradawl.testing.script import Script, ScriptSource, script_from
from bradawl.testing.server import WireServer

if TYPE_CHECKING:
    from bradawl.agent.session import TurnResult
    from bradawl.core.permissions import Sandbox

PROMPT: Final = "main.py does not run. Find out why, fix it, and show that it works."
WANTED: Final = "Hello, bradawl!"
"""Output of the repaired program."""
BUG: Final = "halper"
"""The misspelled name in the program."""
TIMEOUT_S: Final = 60
_DATA: Final = Path(__file__).parent
_SUFFIX: Final = ".txt"
"""Hides the broken program from tools that look for Python in the package."""


class _Run(NamedTuple):
    exit_code: int
    stdout: str
    last_error: str


class _Screen:
    """Shows the events as a user sees them."""

    def __init__(self, out: TextIO) -> None:
        self._progress = Progress(out, is_watched=True)
        self._text: list[str] = []
        self._names: dict[str, str] = {}

    def learn(self, tools: Iterable[Tool[Any]]) -> None:
        self._progress.learn(tools)

    def line(self, text: str = "") -> None:
        self._progress.line(text)

    def emit(self, item: Envelope | Live) -> None:
        if isinstance(item, Live) and isinstance(item.item, TextDelta):
            self._text.append(item.item.text)
            return
        self._end_text()
        self._progress.emit(item)
        if isinstance(item, Envelope):
            self._show_result(item)

    def _end_text(self) -> None:
        if text := one_line("".join(self._text)):
            self.line(f"\n{text}")
        self._text.clear()

    def _shows_result(self, call_id: str) -> bool:
        return self._progress.spec_of(self._names.get(call_id, "")).result in ("diff", "output")

    def _show_result(self, envelope: Envelope) -> None:
        match envelope.event:
            case CallPrepared(call_id, _, name):
                self._names[call_id] = name
            case ToolFinished(call_id, _, shown) if self._shows_result(call_id):
                for line in clean(text_of(shown)).rstrip().splitlines():
                    self.line(f"    {line}")
            case _:
                pass


async def run_demo(out: TextIO, script: ScriptSource | None = None) -> int:
    """Run the demo and remove its files; returns 0 only if the program failed before and runs afterwards.

    It uses a temporary folder and loopback only. `script` replaces the built-in one.
    Raises `SettingsError` if no temporary folder can be created.
    """
    with _temporary_folder() as folder:
        return await _show(folder, script, _Screen(out))


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="bradawl-demo-")
    except OSError as error:
        raise SettingsError(f"The demo needs a temporary folder ({error}); name one that works in TMPDIR.") from error
    with folder as name:
        yield Path(name).resolve()


async def _show(folder: Path, script: ScriptSource | None, screen: _Screen) -> int:
    project = folder / "project"
    files = _copy_project(project)
    screen.line("bradawl demo: a real agent with real tools; only the model is played by a script. No key, no network.")
    screen.line(f"\nA small program that is broken: {', '.join(files)}")
    command, before = await asyncio.to_thread(_first_run, project)
    screen.line(f"$ {command}\n    {before.last_error or before.stdout.strip()}")
    if before.exit_code == 0 or BUG not in before.last_error:
        return _failed(screen, ["the program did not fail as it should before the repair"])
    screen.line(f"\n$ bradawl -p {shlex.quote(PROMPT)}")
    played = _own_script(command) if script is None else script_from(script)
    async with WireServer(played) as server:
        turn = await _run_agent(_settings(folder, project, server.base_url), played, screen)
    after = await asyncio.to_thread(_run_program, project, command)
    screen.line(f"\n{usage_text(turn.steps, turn.usage, turn.cost)}")
    wrong = [*_problems(turn, server, played), *_problems_on_disk(project, files, after)]
    return _failed(screen, wrong) if wrong else _proved(screen, command, after)


def _settings(folder: Path, project: Path, base_url: str) -> Settings:
    return Settings(
        model=ModelSettings("demo", "scripted", base_url),
        cwd=str(project),
        home=str(folder / "home"),
        user_home=str(folder),
        headless=True,
        user_tools=False,
        max_steps=20,
        environment=_environment() | {"TMPDIR": str(folder.parent)},
    )


async def _run_agent(settings: Settings, script: Script, screen: _Screen) -> "TurnResult":
    agent = build_agent(settings, ScriptApprover(script))
    screen.learn(agent.tools)
    try:
        # Waits for the sandbox. Not in a thread: an interrupt would close the sandbox during the search.
        screen.line(_sandbox_line(agent.policy().sandbox))
        async with agent.open() as session:
            return await session.run(PROMPT, screen.emit)
    finally:
        await agent.aclose()


def _sandbox_line(sandbox: "Sandbox") -> str:
    if not sandbox.name:
        return "Sandbox: none. What would be asked about is allowed if it is a call of the script."
    return f"Sandbox: {sandbox_text(sandbox)}"


def _copy_project(project: Path) -> dict[str, str]:
    """Copy the broken program; returns its files by name."""
    project.mkdir()
    files: dict[str, str] = {}
    for source in sorted((_DATA / "project").iterdir()):
        if source.is_file():
            files[source.name.removesuffix(_SUFFIX)] = source.read_text(encoding="utf-8")
    for name, text in files.items():
        (project / name).write_text(text, encoding="utf-8")
    return files


def _own_script(command: str) -> Script:
    script = (_DATA / "script.json").read_text(encoding="utf-8")
    return script_from(script.replace('"python3 main.py"', msgspec.json.encode(command).decode()).encode())


def _first_run(project: Path) -> tuple[str, _Run]:
    """Run the broken program; returns the command too, which names bradawl's own Python if `python3` does not work."""
    command = "python3 main.py"
    try:
        run = _run_program(project, command)
        if BUG in run.last_error:
            return command, run
    except OSError:
        pass  # not on PATH, or not executable
    command = f"{shlex.quote(sys.executable)} main.py"
    return command, _run_program(project, command)


def _run_program(project: Path, command: str) -> _Run:
    program, *arguments = shlex.split(command)
    ran = subprocess.run(  # noqa: S603 - the demo's own program
        [shutil.which(program, path=_environment()["PATH"]) or program, *arguments],
        cwd=project,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=TIMEOUT_S,
        check=False,
    )
    errors = [line for line in ran.stderr.splitlines() if line.strip()]
    return _Run(ran.returncode, ran.stdout, errors[-1] if errors else "")


def _environment() -> dict[str, str]:
    """The environment without PYTHON variables, some of which decide whether main.py finds utils.py.

    bradawl's own Python comes first on PATH: it is the one that every sandbox contains.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if not kept.get("HOME", "/").startswith("/"):
        del kept["HOME"]  # settings refuse it; the demo has its own home
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH') or os.defpath}"}


def _problems(turn: "TurnResult", server: WireServer, script: Script) -> list[str]:
    problems = [f"the model's script did not foresee this: {failure}" for failure in server.failures]
    if problems:
        # The turn's failure would give advice about the base URL, which is not the cause.
        problems.append(f"the turn ended with {turn.reason}")
    elif turn.reason != "completed":
        problems.append(f"the turn ended with {turn.reason}: {turn.failure or 'no reason given'}")
    if len(server.requests) != len(script.entries):
        problems.append(f"{len(server.requests)} requests were made instead of {len(script.entries)}")
    if not turn.saved:
        problems.append("the session was not saved")
    return problems


def _problems_on_disk(project: Path, files: dict[str, str], after: _Run) -> list[str]:
    wanted = files | {"main.py": files["main.py"].replace("halper", "helper")}
    problems = [
        f"{name} does not hold what it should"
        for name, text in wanted.items()
        if (project / name).read_text(encoding="utf-8") != text
    ]
    if after.exit_code != 0 or after.stdout.strip() != WANTED:
        problems.append(f"the program still fails: {after.last_error or after.stdout.strip() or 'it says nothing'}")
    return problems


def _proved(screen: _Screen, command: str, after: _Run) -> int:
    screen.line("\nProved, not claimed:")
    screen.line(f"  - before, the program failed; now `{command}` exits with 0 and prints {after.stdout.strip()}")
    screen.line("  - main.py on the disk holds the fix, and no other file was changed")
    screen.line("  - every request went over HTTP, and the whole session was saved")
    screen.line("The temporary folder is removed. To work on your own project: bradawl --help")
    return 0


def _failed(screen: _Screen, reasons: list[str]) -> int:
    screen.line("\nThe demo failed:")
    for reason in reasons:
        screen.line(f"  - {one_line(reason)}")
    return 1
