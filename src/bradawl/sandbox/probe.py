"""Tests a sandbox before it is used: a program inside tries to break each guarantee."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import Launch, Program, SandboxBackend, SandboxLayout
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.sandbox.guarantees import GUARANTEES

_PROGRAM: Final = "probe_inside.py"
_GRACE_S: Final = 0.3
_MUCH: Final = 65_536


class ProbeResult(msgspec.Struct, frozen=True):
    """What a probe found about a sandbox."""

    lacks: tuple[str, ...] = ()
    """Guarantees that do not hold."""
    problem: str = ""
    """Why the sandbox can't be used at all; empty if it can."""


def probe(make: Callable[[SandboxLayout], SandboxBackend], folder: str, within_s: float) -> ProbeResult:
    """Test a sandbox in a small temporary workspace below `folder`. Blocks for at most `within_s` seconds.

    A sandbox that takes longer can't be used. Raises `OSError`, `ToolError`.
    """
    deadline = time.monotonic() + within_s
    place = f"{folder}/probe-{os.urandom(6).hex()}"
    with _workspace(place) as (layout, secret), _Listeners() as listeners:
        backend = make(layout)
        try:
            arguments = (place, *_of_us(), secret, str(listeners.port), listeners.name)
            said, has_escaped = _run(backend, _program(layout, arguments), Grant(writable=layout.roots), deadline)
            is_kept = Path(layout.scratch, "probe").exists()
        finally:
            backend.close()
        return _judge(said, has_escaped, listeners.have_received(), is_kept)


def _judge(said: bytes, has_escaped: bool, has_received: bool, is_kept: bool) -> ProbeResult:
    words = said.decode("utf-8", "replace").split()
    if "tried" not in words:
        return ProbeResult(problem=" ".join(words)[:300] or "it started nothing in time")
    if "works" in words:
        return ProbeResult(problem="programs in it can't write to their workspace")
    found = {*words[words.index("tried") + 1 :]}
    found |= {line for line, open_ in (("escapees", has_escaped), ("udp", has_received)) if open_}
    if not is_kept:
        found.add("private_tmp")
    return ProbeResult(tuple(line for line in GUARANTEES if line in found))


def _of_us() -> tuple[str, str]:
    import binascii

    return str(os.getpid()), str(binascii.crc32(Path("/proc/self/environ").read_bytes()))


# ------------------------------------------------------------------ the run


def output_of(
    backend: SandboxBackend, program: Program, deadline: float, *, network: bool = False
) -> tuple[bytes, bool]:
    """Output of a program that may write nothing, up to its end or the deadline, and whether a process of it survived.

    `network` grants the network. Raises `OSError`, `ToolError`.
    """
    return _run(backend, program, Grant(network=network), deadline)


def _program(layout: SandboxLayout, arguments: tuple[str, ...]) -> Program:
    text = Path(__file__).with_name(_PROGRAM).read_text("utf-8")
    argv = (os.path.realpath(sys.executable), "-I", "-S", "-c", text, *arguments)
    return Program(argv, layout.roots[0], {"PATH": os.defpath})


def _run(backend: SandboxBackend, program: Program, grant: Grant, deadline: float) -> tuple[bytes, bool]:
    """The program's output, and whether a process of it survived its end. Kills all survivors."""
    launch = backend.launch(program, grant)
    try:
        try:
            process = subprocess.Popen(
                launch.argv,
                cwd=launch.cwd,
                env=launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=launch.inherited,
                start_new_session=True,
            )
        finally:
            for descriptor in launch.close_after_start:
                os.close(descriptor)
        with process:
            try:
                return _listen(process, launch, deadline)
            finally:
                _end(process, launch)
    finally:
        if launch.info_fd >= 0:
            os.close(launch.info_fd)
        if launch.network is not None:
            launch.network.close()
        if launch.on_end is not None:
            launch.on_end()


def _listen(process: "subprocess.Popen[bytes]", launch: Launch, deadline: float) -> tuple[bytes, bool]:
    said = b""
    stream = process.stdout.fileno() if process.stdout else -1
    while b"\n" not in said and len(said) < _MUCH and (piece := _read(stream, deadline - time.monotonic())):
        said += piece
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
    _end(process, launch)
    piece, last = b"", time.monotonic() + _GRACE_S
    while time.monotonic() < last and (piece := _read(stream, last - time.monotonic())):
        said = (said + piece)[:_MUCH]
    return said, piece != b""


def _read(stream: int, within_s: float) -> bytes | None:
    """The next piece; empty at end of file, None if nothing arrived in time."""
    ready, _, _ = select.select([stream], [], [], max(0.0, within_s))
    return os.read(stream, _MUCH) if ready else None


def _end(process: "subprocess.Popen[bytes]", launch: Launch) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if launch.info_fd >= 0:
        with contextlib.suppress(BlockingIOError, BrokenPipeError, msgspec.DecodeError, KeyError, ProcessLookupError):
            if launch.is_supervised:
                os.write(launch.info_fd, b"k")
                return
            os.set_blocking(launch.info_fd, False)
            said = os.read(launch.info_fd, _MUCH)
            os.kill(msgspec.json.decode(said, type=dict[str, int])["child-pid"], signal.SIGKILL)


# ------------------------------------------------------------------ what it is tried on


@contextlib.contextmanager
def _workspace(place: str) -> Iterator[tuple[SandboxLayout, str]]:
    """A workspace with every kind of protected file, and a secret that no program inside may read."""
    secret = os.urandom(12).hex()
    files = {
        "ws/.git/config": "",
        "ws/.git/HEAD": "",
        "ws/.env": secret,
        "home/.ssh/key": secret,
        "own/key": secret,
        "outside/file": "",
        "linked/data/config": "",
    }
    try:
        for name, text in files.items():
            path = Path(place, name)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_text(text)
        Path(place, "ws/out").symlink_to("../outside")
        Path(place, "linked/.git").symlink_to("data")
        yield (
            SandboxLayout(
                roots=(f"{place}/ws", f"{place}/linked"),
                home=f"{place}/home",
                own=(f"{place}/own",),
                scratch=f"{place}/own/tmp",
                state=f"{place}/own/state",
            ),
            secret,
        )
    finally:
        remove_folder(place)


class _Listeners:
    """Sockets of the agent that programs must not reach."""

    def __init__(self) -> None:
        self.name = f"bradawl-{os.urandom(6).hex()}"
        self._stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._abstract = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.port = 0

    def __enter__(self) -> "_Listeners":
        self._stream.bind(("127.0.0.1", 0))
        self.port = self._stream.getsockname()[1]
        self._datagrams.bind(("127.0.0.1", self.port))
        self._datagrams.setblocking(False)
        self._abstract.bind("\0" + self.name)
        self._stream.listen()
        self._abstract.listen()
        return self

    def have_received(self) -> bool:
        """Whether a datagram arrived."""
        try:
            return bool(self._datagrams.recv(64))
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        for each in (self._stream, self._datagrams, self._abstract):
            each.close()
