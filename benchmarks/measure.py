"""Measures one run of a program: its project, the model server, and the figures from the server and the kernel."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import processes
import work

_TIMEOUT_S = 300
_HERE = Path(__file__).resolve().parent


class RunFailed(Exception):
    """A program did not complete the work. The message contains its output."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A program to measure."""

    name: str
    command: tuple[str, ...]
    """Arguments before the prompt."""


@dataclass(frozen=True, slots=True)
class Gap:
    """The time between two requests: seconds from the last byte of a reply to the first byte of the next request."""

    kind: str
    """Kind of the step, one of `work.KINDS`."""
    body_bytes: int
    """Size of the request after the gap."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Run:
    """Measurements of one run."""

    cold_start_s: float
    """Start of the process to the first byte of its first request."""
    wall_s: float
    """Start to end of the process."""
    cpu_s: float
    """Processor time of the process and the children it waited for."""
    connections: int
    requests: int
    server_s: float
    """Median time of the server from the last byte of a request to the end of its answer."""
    noise_cores: float | None
    """Processors that other programs kept busy meanwhile."""
    memory: processes.Memory | None
    gaps: list[Gap] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Ended:
    started_s: float
    wall_s: float
    cpu_s: float
    code: int
    shown: str
    memory: processes.Memory | None


@dataclass(slots=True)
class _Server:
    process: subprocess.Popen[str]
    url: str

    def exchanges(self) -> list[dict[str, float]]:
        """End the server and return its exchanges."""
        output, _ = self.process.communicate(timeout=30)
        return json.loads(output)


def subjects() -> list[Subject]:
    """bradawl as installed beside this interpreter, and the bare loop. Raises `RunFailed` without bradawl."""
    program = Path(sys.executable).parent / "bradawl"
    if not program.exists():
        raise RunFailed(f"{program} is missing; install bradawl into the environment of {sys.executable}.")
    return [
        # The launcher script does not work if its path contains a space and a `$`.
        Subject("bradawl", (sys.executable, str(program), "--yolo", "-m", "scripted-model", "-p")),
        Subject("bare loop", (sys.executable, str(_HERE / "bare_loop.py"))),
    ]


def measure(subject: Subject, count: int, home: Path, *, with_memory: bool = False, quiet_s: float = 0.0) -> Run:
    """Let a program work through `count` steps. Raises `RunFailed`.

    `with_memory` samples the processes 20 times a second, which takes time: don't use such runs for timings.
    `quiet_s` is the longest time to wait first until other programs are idle.
    """
    with tempfile.TemporaryDirectory() as name, _server(count) as server:
        folder = Path(name, "project")
        folder.mkdir()
        work.prepare(folder)
        if (git := shutil.which("git")) is not None:
            subprocess.run([git, "init", "-q", str(folder)], check=True)
        processes.wait_until_quiet(quiet_s)
        others = _OthersClock(server.process.pid)
        ended = _run_to_end(subject, folder, _environment(home, server.url), with_memory=with_memory)
        noise = others.cores(ended.cpu_s, ended.wall_s)
        seen = server.exchanges()
        asked = [exchange for exchange in seen if exchange["is_step"]]
        if ended.code or len(asked) != count + 1 or not work.is_done(folder, count):
            raise RunFailed(
                f"{subject.name} ended with code {ended.code} after {len(asked)} of {count + 1} requests; "
                f"the end of what it printed:\n{ended.shown[-2000:]}"
            )
    return Run(
        cold_start_s=asked[0]["first_byte_s"] - ended.started_s,
        wall_s=ended.wall_s,
        cpu_s=ended.cpu_s,
        connections=len({exchange["connection"] for exchange in seen}),
        requests=len(seen),
        server_s=median(exchange["answered_s"] - exchange["last_byte_s"] for exchange in asked),
        noise_cores=noise,
        memory=ended.memory,
        gaps=_gaps(asked),
    )


def _run_to_end(subject: Subject, folder: Path, environment: dict[str, str], *, with_memory: bool) -> _Ended:
    with tempfile.TemporaryFile() as output:
        started_s = time.monotonic()
        process = subprocess.Popen(
            [*subject.command, work.PROMPT],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        sampler = processes.MemorySampler(process.pid) if with_memory else None
        if sampler is not None:
            sampler.start()
        cpu_s = _waited_for(process)
        wall_s = time.monotonic() - started_s
        memory = None if sampler is None else sampler.finish()
        output.seek(0)
        shown = output.read().decode(errors="replace")
    return _Ended(started_s, wall_s, cpu_s, process.returncode, shown, memory)


def _gaps(asked: list[dict[str, float]]) -> list[Gap]:
    kinds = [step.kind for step in work.steps(len(asked) - 1)]
    pairs = zip(kinds, asked, asked[1:], strict=False)
    return [Gap(kind, int(b["body_bytes"]), b["first_byte_s"] - a["answered_s"]) for kind, a, b in pairs]


def _waited_for(process: subprocess.Popen[bytes]) -> float:
    """Wait for the process and return its processor seconds. After `_TIMEOUT_S` it is killed."""
    # `Popen.wait` with a timeout polls only every 50 ms.
    alarm = threading.Timer(_TIMEOUT_S, process.kill)
    alarm.start()
    _, status, used = os.wait4(process.pid, 0)
    alarm.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime


class _OthersClock:
    """Measures the processor time of unrelated programs since its creation."""

    def __init__(self, server: int) -> None:
        self._server = server
        self._began = self._now()

    def _now(self) -> tuple[float | None, float]:
        own = os.times()
        return processes.busy_s(), own.user + own.system + processes.cpu_s_of(self._server)

    def cores(self, cpu_s: float, wall_s: float) -> float | None:
        """Processors kept busy by neither the measured program, which took `cpu_s`, nor this one and its server."""
        (busy_before, own_before), (busy_after, own_after) = self._began, self._now()
        if busy_before is None or busy_after is None:
            return None
        return max(0.0, (busy_after - busy_before - (own_after - own_before) - cpu_s) / wall_s)


def _environment(home: Path, url: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "NO_PROXY": "127.0.0.1"}


@contextmanager
def _server(count: int) -> Iterator[_Server]:
    command = [sys.executable, str(_HERE / "model_server.py"), str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        port = "" if process.stdout is None else process.stdout.readline().strip()
        if not port:
            raise RunFailed("the scripted model did not start; what it printed is above.")
        yield _Server(process, f"http://127.0.0.1:{port}/v1")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
