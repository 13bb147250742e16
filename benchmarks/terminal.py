"""Measures the terminal: the time to the first prompt, processor time of frames, the delay of typed keys, memory.

    python benchmarks/terminal.py prompt [--peers FOLDER]     # beside a bare prompt_toolkit, Codex and pi
    python benchmarks/terminal.py frames                      # 500 updates of an answer on 80x24
    python benchmarks/terminal.py typing [--messages 10000]   # with a long conversation in memory
    python benchmarks/terminal.py memory [--steps 1000]

All of it runs at a pseudo-terminal of this process; no model and no network but loopback is used.
"""

import argparse
import asyncio
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bradawl.app.tui.live.screen import Screen

_PATIENCE_S: Final = 60.0
_ROWS, _COLUMNS = 24, 80
_ECHOING: Final = ("bare prompt_toolkit", "bradawl")
_MARK: Final = "\u276f"
"""Begins the prompt of bradawl and of the bare one."""


@contextmanager
def at_terminal(argv: Sequence[str], folder: Path, environment: dict[str, str]) -> Iterator["Program"]:
    """Run a program at a terminal, and kill it at the end."""
    program = Program(argv, folder, environment)
    try:
        yield program
    finally:
        program.end()


class Program:
    """A program at a pseudo-terminal of 80x24."""

    def __init__(self, argv: Sequence[str], folder: Path, environment: dict[str, str]) -> None:
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self.output = b""
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(child)

    def wait_for(self, mark: bytes, start: int = 0) -> float:
        """Seconds since the start when the output had the mark."""
        while mark not in self.output[start:]:
            if not select.select([self.fd], [], [], _PATIENCE_S)[0]:
                raise SystemExit(f"never saw {mark!r} in {self.output[-500:]!r}")
            data = os.read(self.fd, 65_536)
            if b"\x1b[6n" in data:
                os.write(self.fd, b"\x1b[1;1R")  # some programs wait for the place of the cursor
            self.output += data
        return time.perf_counter() - self.began

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def delay_of(self, key: bytes) -> float:
        """Seconds from a key to the output that it causes."""
        start, began = len(self.output), time.perf_counter()
        self.type(key)
        while key not in self.output[start:]:
            if not select.select([self.fd], [], [], _PATIENCE_S)[0]:
                raise SystemExit(f"the key {key!r} has no effect")
            self.output += os.read(self.fd, 65_536)
        return time.perf_counter() - began

    def memory_mb(self) -> float:
        """Resident memory of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


def environment_in(home: Path, **more: str) -> dict[str, str]:
    """Variables of a run with a home folder of its own."""
    return {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


# ------------------------------------------------------------------ the first prompt


def prompt(runs: int, peers: Path | None) -> None:
    """Print the time to the prompt, and to the echo of a first key, of each program in turn."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "script.json").write_text('[{"text": "Done."}]')
        programs = programs_of(peers)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for number in range(runs + 1):
            for name, (argv, mark, more) in programs.items():
                with at_terminal(argv, home, environment_in(home, **more)) as program:
                    shown = program.wait_for(mark)
                    # Peers begin with a screen of their own, where a letter may mean nothing.
                    echoed = shown + program.delay_of(b"Q") if name in _ECHOING else float("nan")
                if number:  # the first run fills caches
                    times[name].append((shown * 1000, echoed * 1000))
    bare = median(shown for shown, _ in times["bare prompt_toolkit"])
    for name, each in times.items():
        shown, echoed = (median(column) for column in zip(*each, strict=True))
        print(f"{name:20} prompt {shown:6.0f} ms  first key {echoed:6.0f} ms  {shown / bare:5.2f} x bare")


def programs_of(peers: Path | None) -> dict[str, tuple[list[str], bytes, dict[str, str]]]:
    """The programs to compare: what starts each, and what its prompt begins with."""
    code = "from prompt_toolkit import PromptSession; PromptSession().prompt('\u276f ')"
    found = {
        "bare prompt_toolkit": ([sys.executable, "-c", code], _MARK.encode(), {}),
        "bradawl": (
            [sys.executable, "-m", "bradawl"],
            _MARK.encode(),
            {"BRADAWL_MODEL": "scripted/script.json"},
        ),
    }
    key = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    for name, place, mark in (
        ("codex (sign-in)", "codex/node_modules/.bin/codex", "Sign in"),
        ("pi", "pi/node_modules/.bin/pi", "─"),
    ):
        if peers is not None and (peers / place).exists():
            found[name] = ([str(peers / place)], mark.encode(), key)
    return found


# ------------------------------------------------------------------ frames


def answer(updates: int) -> list[str]:
    """The pieces of an answer of 360 lines: headings, lists, tables, quotes and code."""
    part = (
        "## Part {n}\n\nThe function `scale_{n}` multiplies by **{n}**, which _every_ caller expects; see [the page]"
        "(https://example.org/{n}) for more about it and about what it does with wide text such as 漢字.\n\n"
        "- first point of {n}\n- second point\n  - nested point\n\n"
        "| name | value |\n|---|---|\n| a | {n} |\n| b | twice {n} |\n\n"
        "```python\ndef scale_{n}(x):\n    total = 0\n    for each in x:\n        total += each * {n}\n"
        "    return total\n```\n\n> A quote that is longer than one line of the terminal, so that it wraps, {n}.\n\n"
    )
    text = "".join(part.format(n=number) for number in range(16))
    size = -(-len(text) // updates)
    return [text[place : place + size] for place in range(0, len(text), size)]


def frames(updates: int, per_second: float) -> None:
    """Print the processor time of a streamed answer, by update and by frame."""
    asyncio.run(_frames(updates, per_second))


async def _frames(updates: int, per_second: float) -> None:
    from bradawl.app.console import Console
    from bradawl.app.settings.model_settings import ModelSettings
    from bradawl.app.settings.settings import Settings
    from bradawl.app.tui.live.terminal import LiveTerminal
    from bradawl.app.tui.terminal import Terminal
    from bradawl.core.deltas import TextDelta
    from bradawl.core.events import Live

    with tempfile.TemporaryDirectory() as folder, _own_terminal() as (stream, drained):
        environment = environment_in(Path(folder), COLORTERM="truecolor")
        settings = Settings(model=ModelSettings("scripted", "x"), cwd=folder, home=folder, environment=environment)
        console = Console(stream, stream, sys.stderr, environment)
        live = LiveTerminal(console, settings)
        measured: list[float] = []
        _measure_draws(live.screen, measured)

        async def work(terminal: Terminal) -> int:
            live.begin_turn()
            terminal.emit(Live("main", 0, TextDelta(0, "Warm up: `code`, **bold**.\n\n```python\nx = 1\n```\n\n")))
            await asyncio.sleep(0.5)
            measured.clear()
            before = time.thread_time()
            for piece in answer(updates):
                terminal.emit(Live("main", 0, TextDelta(0, piece)))
                await asyncio.sleep(1 / per_second)
            await asyncio.sleep(0.2)
            spent = time.thread_time() - before
            print(
                f"{updates} updates at {per_second:.0f}/s: {spent / updates * 1000:.2f} ms CPU per update, "
                f"{len(measured)} frames, p50 {median(measured) * 1000:.2f}, p95 "
                f"{quantiles(measured, n=20)[-1] * 1000:.2f} ms CPU, {drained()[0] / 1000:.0f} kB written"
            )
            return 0

        await live.run(work)


def _measure_draws(screen: "Screen", measured: list[float]) -> None:
    draw = screen.app._redraw

    def measuring(render_as_done: bool = False) -> None:
        before = time.thread_time()
        draw(render_as_done)
        measured.append(time.thread_time() - before)

    screen.app._redraw = measuring


@contextmanager
def _own_terminal() -> Iterator[tuple[Any, Callable[[], list[int]]]]:
    """A terminal whose output a thread reads; a function that returns the number of bytes."""
    master, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    count = [0]

    def drain() -> None:
        while True:
            try:
                data = os.read(master, 65_536)
            except OSError:
                return
            count[0] += len(data)

    threading.Thread(target=drain, daemon=True).start()
    with os.fdopen(child, "r+b", buffering=0) as raw:
        import io

        yield io.TextIOWrapper(raw, encoding="utf-8", write_through=True), lambda: count
    os.close(master)


# ------------------------------------------------------------------ a long conversation


def typing(messages: int, keys: int) -> None:
    """Print the delay of typed keys in a session with many messages."""
    with tempfile.TemporaryDirectory() as folder, _long_session(Path(folder), messages // 2) as program:
        delays = []
        for number in range(keys):
            delays.append(program.delay_of(b"abcdefghij"[number % 10 : number % 10 + 1]) * 1000)
            if number % 60 == 59:
                program.type(b"\x15")
                time.sleep(0.05)
        bounds = quantiles(delays, n=100)
        print(
            f"{messages:,} messages: a key is shown after {median(delays):.1f} ms, p99 {bounds[98]:.1f} ms, at most "
            f"{max(delays):.1f} ms; {program.memory_mb():.0f} MB"
        )


def memory(steps: int) -> None:
    """Print the memory after a session of many steps."""
    with tempfile.TemporaryDirectory() as folder, _long_session(Path(folder), steps) as program:
        print(f"{steps:,} steps: {program.memory_mb():.0f} MB")


@contextmanager
def _long_session(folder: Path, steps: int) -> Iterator[Program]:
    """A program that has made so many steps in one turn, at its prompt."""
    (folder / "main.py").write_text("x = 1\n" * 40)
    script = [
        {
            "text": f"Step {number}: I read the file again.",
            "tool_calls": [
                {
                    "id": f"c{number}",
                    "name": "read_file",
                    "arguments": {"file_path": "main.py", "offset": number % 30 + 1, "limit": 5},
                }
            ],
        }
        for number in range(steps)
    ]
    (folder / "script.json").write_text(json.dumps([*script, {"text": "All steps are done."}]))
    more = {"BRADAWL_MODEL": "scripted/script.json", "BRADAWL_CONTEXT_WINDOW": "100000000"}
    with at_terminal([sys.executable, "-m", "bradawl", "-y"], folder, environment_in(folder, **more)) as program:
        program.wait_for(_MARK.encode())
        program.type(b"go\r")
        program.wait_for(b"All steps are done.")
        time.sleep(1.0)
        while select.select([program.fd], [], [], 0.3)[0]:
            program.output += os.read(program.fd, 65_536)
        yield program


def main() -> None:
    """Run one measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prompt", "frames", "typing", "memory"))
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--peers", type=Path, help="folder with the installed peers")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--rate", type=float, default=100.0, help="updates a second")
    given = parser.parse_args()
    match given.what:
        case "prompt":
            prompt(given.runs, given.peers)
        case "frames":
            frames(500, given.rate)
        case "typing":
            typing(given.messages, 600)
        case _:
            memory(given.steps)


if __name__ == "__main__":
    main()
