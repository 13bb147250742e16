"""The fakes and the real adapters pass the same conformance suites."""

import os
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bradawl.core.workspace import CommandResult
from bradawl.providers.http_httpx2 import Httpx2Http
from bradawl.session.blobs import LocalBlobs
from bradawl.session.journal import Journal
from bradawl.session.store import LocalStore
from bradawl.testing import conformance as suite
from bradawl.testing.fakes import (
    Cut,
    FakeClock,
    FakeIds,
    MemoryBlobs,
    MemoryFiles,
    MemoryLog,
    MemoryStore,
    Reply,
    ScriptedHttp,
    ScriptedProcesses,
)
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.machine import SystemClock, SystemIds
from bradawl.workspace.processes import LocalProcesses


@pytest.mark.parametrize("check", suite.FILES_CASES)
@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_files_conform(check, kind, tmp_path):
    root = str(tmp_path.resolve())
    make = {"fake": lambda: (MemoryFiles(), "/work"), "real": lambda: (LocalFiles(root), root)}[kind]
    await check(make)


def _scripted(answers):
    known = {line: result or CommandResult(0, b"", b"") for line, result in answers.items()}
    processes = ScriptedProcesses(known)
    for line, result in answers.items():
        if result is None:
            processes.hold(line)
    return processes


@pytest.mark.parametrize("check", suite.PROCESSES_CASES)
@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_processes_conform(check, kind, tmp_path):
    real = LocalProcesses({"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)})
    await check(_scripted if kind == "fake" else lambda answers: real)
    real.close()


@pytest.mark.parametrize("check", suite.LOG_CASES)
@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_logs_conform(check, kind, tmp_path):
    make = {
        "fake": lambda: MemoryLog("S", FakeClock(), saved=True),
        "real": lambda: Journal.create(tmp_path / "sessions" / "S.jsonl", FakeClock()),
    }[kind]
    await check(make)


@pytest.mark.parametrize("check", suite.BLOBS_CASES)
@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_blobs_conform(check, kind, tmp_path):
    await check(MemoryBlobs if kind == "fake" else lambda: LocalBlobs(tmp_path / "blobs"))


@pytest.mark.parametrize("check", suite.STORE_CASES)
@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_stores_conform(check, kind, tmp_path):
    real = LocalStore(tmp_path / "data", tmp_path, FakeClock(), FakeIds())
    await check(MemoryStore if kind == "fake" else lambda: real)


@pytest.mark.parametrize("check", suite.CLOCK_CASES)
@pytest.mark.parametrize("make", [lambda: FakeClock(is_eager=True), SystemClock], ids=["fake", "real"])
async def test_clocks_conform(check, make):
    await check(make)


@pytest.mark.parametrize("check", suite.IDS_CASES)
@pytest.mark.parametrize("make", [FakeIds, SystemIds], ids=["fake", "real"])
async def test_ids_conform(check, make):
    await check(make)


class EchoHandler(BaseHTTPRequestHandler):
    """The server that the conformance suite for HTTP expects."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/silent":
            self.server.is_over.wait(10)
            self.close_connection = True
        elif self.path == "/cut":
            self._begin(200, 100)
            self.wfile.write(b"begun")
            self.close_connection = True
        elif self.path == "/redirect":
            self._begin(302, 0)
        else:
            self._begin(200, len(body))
            self.wfile.write(body)

    def _begin(self, status, length):
        self.send_response(status)
        self.send_header("X-Echo", "yes")
        self.send_header("Location", "/echo")
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *args):
        """Write no log."""


@contextmanager
def echo_server():
    with ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler) as server:
        server.is_over = threading.Event()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.is_over.set()
        server.shutdown()
        thread.join()


def _scripted_server(request):
    headers = (("X-Echo", "yes"),)
    path = request.url.rpartition("/")[2]
    if path == "echo":
        return Reply(200, (b"".join(request.body),), headers)
    if path == "redirect":
        return Reply(302, (), (("Location", "/echo"),))
    return Reply(200, (b"begun", Cut())) if path == "cut" else Cut("timeout")


@pytest.mark.parametrize("check", suite.HTTP_CASES)
@pytest.mark.parametrize("kind", ["fake", "real"])
async def test_http_conforms(check, kind):
    if kind == "fake":
        await check(lambda: (ScriptedHttp(_scripted_server), "http://fake"))
    else:
        with echo_server() as base_url:
            await check(lambda: (Httpx2Http(), base_url))
