"""A stand-in for the internet: names, public addresses and servers that are really on loopback."""

import asyncio
import contextlib
import http.server
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import trustme
from bwrap import BWRAP
from sandboxed_session import SandboxedSession, sandboxed_session

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.network.dialing import Dialer
from bradawl.sandbox.network.proxy import Proxy, ProxyLimits
from bradawl.sandbox.network.session_network import SessionNetwork

ADDRESS = "93.184.215.14"
"""A public address; `Internet` maps it to loopback."""


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves files, records requests, and answers what `Internet.answers` says."""

    server: "_Server"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def handle_one_request(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle_one_request()

    def do_GET(self) -> None:
        self.server.requests.append((self.headers["Host"], self.path))
        location = self.server.redirects.get(self.path)
        if location is None:
            super().do_GET()
            return
        self.send_response(302)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers["Host"], self.path))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 1_024

    def __init__(self, folder: Path, context: ssl.SSLContext | None) -> None:
        self.requests: list[tuple[str, str]] = []
        self.redirects: dict[str, str] = {}
        self._context = context
        super().__init__(("127.0.0.1", 0), lambda *given: _Files(*given, directory=str(folder)))

    def get_request(self) -> tuple[socket.socket, object]:
        accepted, address = super().get_request()
        accepted.settimeout(20)
        return accepted, address

    def finish_request(self, request: socket.socket, client_address: object) -> None:
        if self._context is not None:
            try:
                request = self._context.wrap_socket(request, server_side=True)
            except OSError:
                return
        with contextlib.suppress(OSError):
            super().finish_request(request, client_address)
        if self._context is not None:
            request.close()


class Internet:
    """Files of a folder on port 80 and, with a certificate of its own authority for each name, on port 443."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(*names).configure_cert(context)
        self.plain, self.encrypted = _Server(folder, None), _Server(folder, context)
        self.addresses: dict[str, list[tuple[str, ...]]] = {}
        """Answers of the resolver, one after another; the last one stays. Other names are at `ADDRESS`."""
        self.resolved: list[str] = []
        self.dialed: list[tuple[str, int]] = []
        self.extra_ports: dict[int, int] = {}

    async def resolve(self, host: str, _: int) -> tuple[str, ...]:
        self.resolved.append(host)
        answers = self.addresses.get(host, [(ADDRESS,)])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, address: str, port: int) -> socket.socket:
        self.dialed.append((address, port))
        ports = {80: self.plain.server_port, 443: self.encrypted.server_port, **self.extra_ports}
        if port not in ports:
            raise ConnectionRefusedError(111, "Connection refused")
        made = socket.socket()
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", ports[port]))
        return made

    @property
    def requests(self) -> list[tuple[str, str]]:
        """Host and path of each request, to both servers."""
        return [*self.plain.requests, *self.encrypted.requests]

    def dialer(self, **options) -> Dialer:
        return Dialer(resolve=self.resolve, connect=self.connect, **options)


@contextlib.contextmanager
def internet(folder: Path, *names: str) -> Iterator[Internet]:
    made = Internet(folder, names or ("granted.example", "refused.example", "other.example"))
    servers = (made.plain, made.encrypted)
    threads = [threading.Thread(target=each.serve_forever, args=(0.01,), daemon=True) for each in servers]
    for each in threads:
        each.start()
    try:
        yield made
    finally:
        for each in servers:
            each.shutdown()
            each.server_close()
        for each in threads:
            each.join(5)


class ConnectedSession:
    """Shell lines in a sandbox whose network is a stand-in; `granted` are the hosts that `permit` permits."""

    def __init__(
        self, here: SandboxedSession, outside: Internet, proxy: Callable[[], Proxy], *granted: str, kind: str
    ) -> None:
        self.here = here
        self.outside = outside
        self.granted = set(granted)
        self.asked: list[str] = []
        here.backend.close()
        network = SessionNetwork(proxy)
        if kind == "landlock":
            Path(here.layout.scratch).mkdir(exist_ok=True)
            here.backend = LandlockBackend(here.layout, network=network)
        else:
            here.backend = BubblewrapBackend(here.layout, BubblewrapFeatures(BWRAP), network=network)
        self.root_certificate = here.write("ca.pem")
        outside.authority.cert_pem.write_to_path(str(self.root_certificate))

    async def permit(self, effects: Effects) -> None:
        self.asked += effects.hosts
        if not self.granted.issuperset(effects.hosts):
            raise ToolError(f"{effects.hosts[0]} is not in `network`")

    async def arun(self, line: str, *, network: bool = False, permit: object = ..., **options) -> CommandResult:
        variables: Mapping[str, str | None] = {"CURL_CA_BUNDLE": str(self.root_certificate), **options.pop("env", {})}
        command = Command((line,), self.here.cwd, is_shell=True, env=variables, **options)
        grant = Grant(writable=self.here.layout.roots, network=network)
        judge = self.permit if permit is ... else permit
        return await self.here.processes.run(command, grant, None, judge)

    def run(self, line: str, **options) -> CommandResult:
        return asyncio.run(self.arun(line, **options))

    def out(self, line: str, **options) -> str:
        result = self.run(line, **options)
        return (result.stdout + result.stderr).decode("utf-8", "replace")


@contextlib.contextmanager
def connected_session(
    place: Path,
    *granted: str,
    names: tuple[str, ...] = (),
    limits: ProxyLimits | None = None,
    kind: str = "bubblewrap",
    **dialing,
) -> Iterator[ConnectedSession]:
    with internet(place / "internet", *names) as outside, sandboxed_session(place) as here:
        yield ConnectedSession(here, outside, lambda: Proxy(outside.dialer(**dialing), limits), *granted, kind=kind)
