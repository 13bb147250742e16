"""pytest fixtures for projects that build on bradawl: scripted models, wire servers, leak and network checks.

Opt in from a `conftest.py` with `pytest_plugins = ["bradawl.testing.pytest_plugin"]`.
"""

import contextlib
import ipaddress
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bradawl.core.ports import Clock
from bradawl.core.usage import Price
from bradawl.testing.script import ScriptSource
from bradawl.testing.scripted import ScriptedModel
from bradawl.testing.server import WireServer, serve_in_thread

GRACE_S = 0.3
"""Time limit for resources to be released after a test."""


# ------------------------------------------------------------------ models


@pytest.fixture
def scripted_model() -> Iterator[Callable[..., ScriptedModel]]:
    """A factory of `ScriptedModel`s. The test fails if one received a request that its script does not expect.

    A test that does so on purpose clears the model's `failures`.
    """
    models: list[ScriptedModel] = []

    def make(
        script: ScriptSource,
        *,
        clock: Clock | None = None,
        per_session: bool = False,
        context_window: int | None = None,
        price: Price | None = None,
    ) -> ScriptedModel:
        model = ScriptedModel(script, clock=clock, per_session=per_session, context_window=context_window, price=price)
        models.append(model)
        return model

    yield make
    _check_foreseen(failure for model in models for failure in model.failures)


@pytest.fixture
def wire_server() -> Iterator[Callable[[ScriptSource], WireServer]]:
    """Starts `WireServer`s in threads that end with the test. The test fails if one rejected a request.

    A test that does so on purpose clears the server's `failures`.
    """
    servers: list[WireServer] = []
    with contextlib.ExitStack() as stack:

        def start(script: ScriptSource) -> WireServer:
            servers.append(stack.enter_context(serve_in_thread(script)))
            return servers[-1]

        yield start
    _check_foreseen(failure for server in servers for failure in server.failures)


def _check_foreseen(failures: Iterator[str]) -> None:
    if texts := list(failures):
        pytest.fail("the script did not foresee: " + "; ".join(texts), pytrace=False)


# ------------------------------------------------------------------ leaks


@pytest.fixture(scope="session")
def private_temp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder for temporary files of this test process and of the programs it starts (`TMPDIR`)."""
    folder = tmp_path_factory.mktemp("temp")
    before, before_default = os.environ.get("TMPDIR"), tempfile.tempdir
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), str(folder)
    yield folder
    tempfile.tempdir = before_default
    if before is None:
        del os.environ["TMPDIR"]
    else:
        os.environ["TMPDIR"] = before


@pytest.fixture
def no_leaks(private_temp: Path) -> Iterator[None]:
    """The test fails if it leaves a child process, an open descriptor or a temporary file behind.

    Without `/proc` or `/dev/fd` the respective part is not checked.
    """
    before = _held(private_temp)
    yield
    deadline = time.monotonic() + GRACE_S
    while (left := _held(private_temp) - before) and time.monotonic() < deadline:
        time.sleep(0.01)  # wait only if the test would fail
    if left:
        pytest.fail("left behind: " + ", ".join(sorted(left)), pytrace=False)


def _held(temp: Path) -> frozenset[str]:
    with os.scandir(temp) as entries:
        return frozenset([*_children(), *_descriptors(), *(f"temporary file {entry.name}" for entry in entries)])


def _children() -> list[str]:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (ChildProcessError, AttributeError):
        return []  # the usual and cheap case: no children
    pids: list[str] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            pids += path.read_text().split()
    return [f"child process {pid}" for pid in pids]


def _descriptors() -> list[str]:
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    found: list[str] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = [f"descriptor {entry.name} {_target(entry.path)}".rstrip() for entry in entries]
    return [line for line in found if not line.endswith("/fd")]  # the descriptor that lists the folder


def _target(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


# ------------------------------------------------------------------ network


class NetworkRefused(RuntimeError):
    """A test tried to reach another machine. Not an `OSError`, so that code under test does not handle it."""


def _refuse_other_machines(event: str, args: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        if isinstance(address, tuple) and not _is_loopback(address[0]):
            raise NetworkRefused(f"tests may reach only this machine, not {address!r}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname") and not _is_loopback(args[0] or "localhost"):
        raise socket.gaierror(socket.EAI_NONAME, f"tests look up no names of other machines: {args[0]!r}")


def _is_loopback(host: object) -> bool:
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text == "localhost" or text.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


@pytest.fixture(scope="session")
def loopback_only() -> Iterator[None]:
    """Until the end of the test run this process can connect to nothing but loopback and Unix sockets.

    A connection elsewhere raises `NetworkRefused`; the name of another machine can't be looked
    up (`socket.gaierror`), as on a machine without a network. Programs that tests start are not guarded.
    """
    is_over = False

    def hook(event: str, args: tuple[object, ...]) -> None:
        # An audit hook can't be removed, only disabled.
        if not is_over and event.startswith("socket."):
            _refuse_other_machines(event, args)

    sys.addaudithook(hook)
    yield
    is_over = True
