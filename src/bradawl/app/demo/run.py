"""`bradawl demo`: a broken program, the real agent, and a proof on the disk that it was repaired."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from bradawl.app.build import build_agent
from bradawl.app.headless import NobodyApprover
from bradawl.app.model_settings import ModelSettings
from bradawl.app.progress import Progress
from bradawl.app.settings import Settings
from bradawl.app.tui.render import one_line, usage_text
from bradawl.core.deltas import TextDelta
from bradawl.core.errors import SettingsError
from bradawl.core.events import CallPrepared, Envelope, Live, ToolFinished
from bradawl.core.messages import text_of
from bradawl.safety.terminal import clean
from bradawl.testing.script import Script, ScriptSource, script_from
from bradawl.testing.server import WireServer

if TYPE_CHECKING:
    from bradawl.agent.session import TurnResult

PROMPT: Final = "main.py does not run. Find out why, fix it, and show that it works."
WANTED: Final = "Hello, bradawl!"
"""What the program says once it is repaired."""
TIMEOUT_S: Final = 60
_DATA: Final = Path(__file__).parent
_SUFFIX: Final = ".txt"
"""Hides the broken program from tools that look for Python in the package."""
_SHOWN: Final = ("edit_file", "bash")
"""Tools whose results are worth a look."""


class _Run(NamedTuple):
    exit_code: int
    stdout: str
    last_error: str


class _Screen:
    """Shows what happens as a user would see it."""

    def __init__(self, out: TextIO) -> None:
        self._progress = Progress(out, is_watched=True)
        self._text: list[str] = []
        self._names: dict[str, str] = {}

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

    def _show_result(self, envelope: Envelope) -> None:
        match envelope.event:
            case CallPrepared(call_id, _, name):
                self._names[call_id] = name
            case ToolFinished(call_id, _, shown) if self._names.get(call_id) in _SHOWN:
                for line in clean(text_of(shown)).rstrip().splitlines():
                    self.line(f"    {line}")
            case _:
                pass


async def run_demo(out: TextIO, script: ScriptSource | None = None) -> int:
    """Show it, prove it, clean up; gives back 0 only if the program failed before and runs afterwards.

    Everything happens in a temporary folder and on loopback. `script` is played instead of
    the one that comes along. Raises `SettingsError` when there is no place for temporary files.
    """
    played = _own_script() if script is None else script_from(script)
    with _temporary_folder() as folder:
        return await _show(folder, played, _Screen(out))


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="bradawl-demo-")
    except OSError as error:
        raise SettingsError(f"The demo needs a temporary folder ({error}); name one that works in TMPDIR.") from error
    with folder as name:
        yield Path(name).resolve()


async def _show(folder: Path, script: Script, screen: _Screen) -> int:
    project = folder / "project"
    files = _copy_project(project)
    screen.line("bradawl demo: a real agent with real tools; only the model is played by a script. No key, no network.")
    screen.line(f"\nA small program that is broken: {', '.join(files)}")
    before = await asyncio.to_thread(_run_program, project)
    screen.line(f"$ python3 main.py\n    {before.last_error or before.stdout.strip()}")
    if before.exit_code == 0 or "halper" not in before.last_error:
        return _failed(screen, ["the program did not fail as it should before the repair"])
    screen.line(f"\n$ bradawl -p {shlex.quote(PROMPT)}")
    async with WireServer(script) as server:
        turn = await _run_agent(folder, project, server.base_url, screen)
    after = await asyncio.to_thread(_run_program, project)
    screen.line(f"\n{usage_text(turn.steps, turn.usage, turn.cost)}")
    wrong = [*_doubts(turn, server, script), *_doubts_on_disk(project, files, after)]
    return _failed(screen, wrong) if wrong else _proved(screen, after)


async def _run_agent(folder: Path, project: Path, base_url: str, screen: _Screen) -> "TurnResult":
    settings = Settings(
        model=ModelSettings("demo", "scripted", base_url),
        cwd=str(project),
        home=str(folder / "home"),
        user_home=str(folder),
        yolo=True,
        headless=True,
        max_steps=20,
        environment=_environment(),
    )
    agent = build_agent(settings, NobodyApprover())
    try:
        async with agent.open() as session:
            return await session.run(PROMPT, screen.emit)
    finally:
        await agent.aclose()


def _copy_project(project: Path) -> dict[str, str]:
    """Lay the broken program out; gives back its files by name."""
    project.mkdir()
    files: dict[str, str] = {}
    for source in sorted((_DATA / "project").iterdir()):
        if source.is_file():
            files[source.name.removesuffix(_SUFFIX)] = source.read_text(encoding="utf-8")
    for name, text in files.items():
        (project / name).write_text(text, encoding="utf-8")
    return files


def _own_script() -> Script:
    script = (_DATA / "script.json").read_text(encoding="utf-8")
    if shutil.which("python3") is None:
        script = script.replace("python3 main.py", f"{shlex.quote(sys.executable)} main.py")
    return script_from(script.encode())


def _run_program(project: Path) -> _Run:
    ran = subprocess.run(
        [sys.executable, "-B", "main.py"],
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
    """Without the user's switches for Python, some of which decide whether main.py finds utils.py."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _doubts(turn: "TurnResult", server: WireServer, script: Script) -> list[str]:
    doubts = [f"the model's script did not foresee this: {failure}" for failure in server.failures]
    if turn.reason != "completed":
        doubts.append(f"the turn ended with {turn.reason}: {turn.failure or 'no reason given'}")
    if len(server.requests) != len(script.entries):
        doubts.append(f"{len(server.requests)} requests were made instead of {len(script.entries)}")
    if not turn.saved:
        doubts.append("the session was not saved")
    return doubts


def _doubts_on_disk(project: Path, files: dict[str, str], after: _Run) -> list[str]:
    wanted = files | {"main.py": files["main.py"].replace("halper", "helper")}
    doubts = [
        f"{name} does not hold what it should"
        for name, text in wanted.items()
        if (project / name).read_text(encoding="utf-8") != text
    ]
    if after.exit_code != 0 or after.stdout.strip() != WANTED:
        doubts.append(f"the program still fails: {after.last_error or after.stdout.strip() or 'it says nothing'}")
    return doubts


def _proved(screen: _Screen, after: _Run) -> int:
    screen.line("\nProved, not claimed:")
    screen.line("  - before, the program failed; now `python3 main.py` exits with 0 and prints " + after.stdout.strip())
    screen.line("  - main.py on the disk holds the fix, and no other file was changed")
    screen.line("  - every request went over HTTP, and the whole session was saved")
    screen.line("The temporary folder is removed. To work on your own project: bradawl --help")
    return 0


def _failed(screen: _Screen, reasons: list[str]) -> int:
    screen.line("\nThe demo failed:")
    for reason in reasons:
        screen.line(f"  - {one_line(reason)}")
    return 1
