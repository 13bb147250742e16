"""The network proxy of a session: serves the listeners of sandboxed commands in a thread with its own event loop.

It speaks CONNECT, and plain HTTP with one request per connection. Encryption stays end to end.
"""

import asyncio
import contextlib
import os
import resource
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from bradawl.sandbox.network.connection_limit import ConnectionLimit
from bradawl.sandbox.network.destinations import BadDestination, Destination, Refusal
from bradawl.sandbox.network.dialing import Dialer, RefusedDestination, Unreachable, Upstream
from bradawl.sandbox.network.host_permissions import HostPermissions
from bradawl.sandbox.network.listeners import PORT
from bradawl.sandbox.network.relay import IDLE_LIMIT_S, PIECE, Relay, Stream
from bradawl.sandbox.network.requests import (
    LONGEST_HEAD,
    BadMessage,
    ChunkedBody,
    Request,
    forwarded_head,
    parse_request,
    response_head,
)

MOST_CONNECTIONS: Final = 1_000
"""Connections that the commands of a session may have open together; further ones wait to be accepted."""
_FEWEST_CONNECTIONS: Final = 16
_OWN_FILES: Final = 300
_HEAD_LIMIT_S: Final = 30.0
_HEAD_END: Final = b"\r\n\r\n"
_OTHER_PROTOCOLS: Final = {b"\x04": "SOCKS", b"\x05": "SOCKS", b"\x16": "TLS", b"\x80": "TLS"}
"""Protocols by their first byte."""
_HOW_NAMED: Final = f"name it as http://127.0.0.1:{PORT}"
_ESTABLISHED: Final = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REASONS: Final = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 502: "Bad Gateway"}
_END_LIMIT_S: Final = 2.0
_FINAL: Final = 200
_WRONG_PASSWORD: Final = 407


def most_connections(open_files: int) -> int:
    """Connections of all commands, each of which takes two of the files that this process may have open.

    Some remain for bradawl itself: a program must not be able to use them up.
    """
    if open_files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(_FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, (open_files - _OWN_FILES) // 2))


class ProxyLimits:
    """Time limits and sizes of a proxy; tests shorten them."""

    def __init__(
        self, *, head_s: float = _HEAD_LIMIT_S, idle_s: float = IDLE_LIMIT_S, connections: int | None = None
    ) -> None:
        """`connections` is by default `most_connections` of this process."""
        self.head_s = head_s
        """Seconds for the whole head of a request."""
        self.idle_s = idle_s
        self.connections = connections or most_connections(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


class _Answered(Exception):
    """The client has to get an error; the connection then ends."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Proxy:
    """Serves listeners in a thread of its own, which the first one starts. Its owner calls `close()`."""

    def __init__(self, dialer: Dialer, limits: ProxyLimits | None = None) -> None:
        self._dialer = dialer
        self._limits = limits or ProxyLimits()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ready = threading.Event()
        self._problem = ""
        self._stop: asyncio.Event | None = None
        self._group: asyncio.TaskGroup | None = None
        self._limit = ConnectionLimit(0)

    def serve(self, listener: socket.socket, permissions: HostPermissions) -> "ServedListener":
        """Accept connections on a listening socket, which is owned here from now on.

        Instead of it, a Unix stream socket may send connected sockets, each with one byte.
        """
        problem = "" if self._thread is not None and self._thread.is_alive() else self._start()
        served = ServedListener(listener, self._loop)
        if self._loop is None or not _call(self._loop, self._begin, served, permissions):
            listener.close()
            permissions.refuse(Refusal("every host", 0, f"it could not be started ({problem or 'it was closed'})"))
        return served

    def _start(self) -> str:
        """Start the thread. Returns why that failed, for lack of threads or files; empty if it succeeded."""
        self._loop, self._problem = None, ""
        self._is_ready.clear()
        thread = threading.Thread(target=self._run, name="network proxy", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            return str(error)
        self._thread = thread
        self._is_ready.wait()
        return self._problem

    def close(self) -> None:
        """End all connections and the thread. Safe to call twice."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_ready.wait()
        if self._loop is not None and self._stop is not None:
            _call(self._loop, self._stop.set)
        thread.join(_END_LIMIT_S)
        self._is_ready.clear()

    def _run(self) -> None:
        try:
            _check_files()
            loop = asyncio.new_event_loop()
        except OSError as error:
            self._problem = error.strerror or str(error)
            self._is_ready.set()
            return
        try:
            loop.run_until_complete(self._main())
        finally:
            self._is_ready.set()
            loop.close()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._limit = ConnectionLimit(self._limits.connections)
        async with asyncio.TaskGroup() as self._group:
            self._is_ready.set()
            await self._stop.wait()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    def _begin(self, served: "ServedListener", permissions: HostPermissions) -> None:
        if self._group is None or self._stop is None or self._stop.is_set():
            served.listener.close()
            return
        served.task = self._group.create_task(self._serve_listener(served.listener, permissions))
        served.task.add_done_callback(lambda _: served.listener.close())  # it may be cancelled before it begins

    async def _serve_listener(self, listener: socket.socket, permissions: HostPermissions) -> None:
        """Accept until cancelled. A defect ends the network of this command alone."""
        loop, open_ones = asyncio.get_running_loop(), self._limit.command()
        listener.setblocking(False)
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await open_ones.wait_until_free()
                    accepted = await _accept(loop, listener)
                    open_ones.begin()
                    connection = _Connection(accepted, permissions, self._dialer, self._limits)
                    task = group.create_task(connection.run())
                    task.add_done_callback(lambda _: open_ones.end())
        except ExceptionGroup as error:
            permissions.refuse(Refusal("every host", 0, f"the proxy failed: {error.exceptions[0]!r}"))
        finally:
            listener.close()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """The head of a request. Raises `BadMessage` at the first byte of another protocol, and at a line without CR LF."""
    first = await reader.readexactly(1)
    if protocol := _OTHER_PROTOCOLS.get(first):
        raise BadMessage(f"the program sent {protocol}, and the proxy speaks HTTP; {_HOW_NAMED}")
    head = bytearray(first)
    while not head.endswith(_HEAD_END):
        head += await reader.readuntil(b"\n")
        if not head.endswith(b"\r\n"):
            raise BadMessage("a line does not end in CR LF")
        if len(head) > LONGEST_HEAD:
            raise BadMessage("its head is too long")
    return bytes(head)


async def _accept(loop: asyncio.AbstractEventLoop, listener: socket.socket) -> socket.socket:
    while True:
        try:
            if listener.family == socket.AF_UNIX:
                return await _receive(loop, listener)
            return (await loop.sock_accept(listener))[0]
        except OSError:  # the peer has left already, or no descriptor is free
            await asyncio.sleep(0.05)


async def _receive(loop: asyncio.AbstractEventLoop, connections: socket.socket) -> socket.socket:
    """The next connection that a supervisor sends, each with one byte. Waits for ever once the supervisor has ended."""
    while True:
        ready = loop.create_future()
        loop.add_reader(connections, lambda ready=ready: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(connections)
        said, descriptors, _, _ = socket.recv_fds(connections, 1, 1)
        if descriptors:
            return socket.socket(fileno=descriptors[0])
        if not said:
            await loop.create_future()


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> bool:
    """Call a function in another thread's event loop; false if that has been closed."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return False
    return True


def _check_files() -> None:
    """Raise `OSError` unless the files of an event loop can be opened: one that is half made would leave some open."""
    held: list[int] = []
    try:
        for _ in range(2):
            held += os.pipe()
    finally:
        for each in held:
            os.close(each)


class ServedListener:
    """A listener that a proxy serves."""

    def __init__(self, listener: socket.socket, loop: asyncio.AbstractEventLoop | None) -> None:
        self.listener = listener
        self.task: asyncio.Task[None] | None = None
        self._loop = loop

    def close(self) -> None:
        """End the listener and its connections, soon. Safe to call twice."""
        if self._loop is not None:
            _call(self._loop, self._cancel)

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class _Connection:
    """One connection of a program."""

    def __init__(
        self, accepted: socket.socket, permissions: HostPermissions, dialer: Dialer, limits: ProxyLimits
    ) -> None:
        self._accepted = accepted
        self._permissions = permissions
        self._dialer = dialer
        self._limits = limits
        self._limit: asyncio.Timeout | None = None
        """For the head of the answer."""

    async def run(self) -> None:
        """Serve the connection to its end."""
        with contextlib.suppress(OSError):  # the program has gone
            async with _stream(self._accepted, self._limits.idle_s) as client:
                try:
                    await self._serve(client)
                except _Answered as error:
                    await _send_error(client, error)

    async def _serve(self, client: Stream) -> None:
        request = await self._request(client)
        destination = request.destination
        await self._check(destination)
        try:
            upstream = self._dialer.upstream_for(destination)
            dialed = await (
                self._dialer.dial(destination) if upstream is None else self._dialer.dial_upstream(upstream)
            )
        except RefusedDestination as error:
            raise self._refused(destination.host, destination.port, str(error)) from error
        except Unreachable as error:
            raise self._unreachable(destination, str(error)) from error
        async with contextlib.AsyncExitStack() as stack:
            try:
                server = await stack.enter_async_context(_stream(dialed, self._limits.idle_s, upstream))
            except OSError as error:
                raise self._unreachable(destination, f"the user's own proxy: {error.strerror or error}") from error
            if request.is_tunnel:
                await self._tunnel(client, server, destination, upstream)
            else:
                await self._exchange(client, server, request, upstream)

    async def _request(self, client: Stream) -> Request:
        try:
            async with asyncio.timeout(self._limits.head_s):
                return parse_request(await _read_head(client.reader))
        except BadDestination as error:
            raise self._refused(error.named, 0, str(error)) from error
        except BadMessage as error:
            raise self._not_accepted(str(error)) from error
        except asyncio.LimitOverrunError as error:
            raise self._not_accepted("its head is too long") from error
        except asyncio.IncompleteReadError as error:
            raise ConnectionAbortedError from error
        except TimeoutError as error:
            raise _Answered(408, "the head of the request did not arrive in time") from error

    async def _check(self, destination: Destination) -> None:
        try:
            self._dialer.check_name(destination)
        except RefusedDestination as error:
            raise self._refused(destination.host, destination.port, str(error)) from error
        if reason := await self._permissions.check(destination):
            raise self._refused(destination.host, destination.port, reason)

    def _not_accepted(self, reason: str) -> _Answered:
        self._permissions.refuse(Refusal("", 0, reason))
        return _Answered(400, f"the network proxy does not accept this request: {reason}")

    def _unreachable(self, destination: Destination, reason: str) -> _Answered:
        failure = Refusal(destination.host, destination.port, reason, is_failure=True)
        self._permissions.refuse(failure)
        return _Answered(502, str(failure))

    def _refused(self, host: str, port: int, reason: str) -> _Answered:
        refusal = Refusal(host, port, reason)
        self._permissions.refuse(refusal)
        return _Answered(403, str(refusal))

    # ------------------------------------------------------------------ tunnels

    async def _tunnel(
        self, client: Stream, server: Stream, destination: Destination, upstream: Upstream | None
    ) -> None:
        if upstream is not None:
            await self._connect_through(server, destination, upstream)
        await client.write(_ESTABLISHED)
        if not await Relay(client, server, self._limits.idle_s).run():
            client.abort()
            server.abort()

    async def _connect_through(self, server: Stream, destination: Destination, upstream: Upstream) -> None:
        """Ask the user's proxy for a tunnel."""
        place = f"{destination.host}:{destination.port}"
        sent = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
        sent += f"Proxy-Authorization: {upstream.authorization}\r\n" if upstream.authorization else ""
        try:
            await server.write(f"{sent}\r\n".encode("latin-1"))
            _, status = await self._response_head(server)
        except (_Answered, OSError) as error:
            raise self._unreachable(destination, "the user's own proxy sent no complete answer") from error
        if not _FINAL <= status < 300:
            raise self._refused_by_proxy(destination, status)

    def _refused_by_proxy(self, destination: Destination, status: int) -> _Answered:
        why = ": the user name or password for it is missing or wrong" if status == _WRONG_PASSWORD else ""
        return self._unreachable(destination, f"the user's own proxy answered {status}{why}")

    # ------------------------------------------------------------------ plain HTTP

    async def _exchange(self, client: Stream, server: Stream, request: Request, upstream: Upstream | None) -> None:
        """Send one request, and the answer to the end of the connection."""
        authorization = upstream.authorization if upstream else ""
        await server.write(forwarded_head(request, through_proxy=upstream is not None, authorization=authorization))
        problem: _Answered | None = None
        async with asyncio.TaskGroup() as group:
            body = group.create_task(self._send_body(client, server, request))
            try:
                await self._send_answer(client, server, request.destination, upstream)
            except _Answered as error:
                problem = error
            except OSError:
                client.abort()
            body.cancel()
        server.discard()  # of what is left of the request it takes nothing any more
        if problem is not None:
            raise problem

    async def _send_body(self, client: Stream, server: Stream, request: Request) -> None:
        """Send the body and nothing behind it. One that is malformed or incomplete ends the connection."""
        left, chunks = request.length, ChunkedBody()
        while not chunks.has_ended if request.is_chunked else left:
            try:
                data = await client.read()
                taken = chunks.feed(data) if request.is_chunked else min(left, len(data))
                await server.write(data[:taken])
                self._extend_limit()
            except (BadMessage, OSError):
                taken, data = 0, b""
            if not data:
                server.abort()
                return
            left -= taken

    async def _send_answer(
        self, client: Stream, server: Stream, destination: Destination, upstream: Upstream | None
    ) -> None:
        status = 0
        while status < _FINAL:
            head, status = await self._response_head(server)
            if upstream is not None and status == _WRONG_PASSWORD:  # the program would be asked for it
                raise self._refused_by_proxy(destination, status)
            await client.write(head)
        async with asyncio.timeout(None) as limit:
            while True:
                limit.reschedule(asyncio.get_running_loop().time() + self._limits.idle_s)
                if not (data := await server.read()):
                    return
                await client.write(data)

    def _extend_limit(self) -> None:
        """Wait as long as after the last byte of the body for the head of the answer."""
        with contextlib.suppress(RuntimeError):  # it has just been exceeded, or the head is there
            if self._limit is not None:
                self._limit.reschedule(asyncio.get_running_loop().time() + self._limits.idle_s)

    async def _response_head(self, server: Stream) -> tuple[bytes, int]:
        try:
            async with asyncio.timeout(self._limits.idle_s) as self._limit:
                return response_head(await server.reader.readuntil(_HEAD_END))
        except (BadMessage, asyncio.LimitOverrunError, asyncio.IncompleteReadError, OSError) as error:
            raise _Answered(502, "the server's answer is incomplete or malformed") from error


@contextlib.asynccontextmanager
async def _stream(connected: socket.socket, limit_s: float, upstream: Upstream | None = None):  # noqa: ANN202 - see below
    """The stream of a connected socket, which is closed at the end, when all is sent or `limit_s` seconds later."""
    try:
        options = _encryption(upstream) if upstream is not None and upstream.is_tls else {}
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader, writer = await asyncio.open_connection(sock=connected, limit=LONGEST_HEAD, **options)
    except BaseException:
        connected.close()
        raise
    stream = Stream(reader, writer)
    try:
        yield stream
        await stream.finish(limit_s)
    except BaseException:
        stream.abort()
        raise


def _encryption(upstream: Upstream) -> "dict[str, Any]":
    """Options of a connection for TLS to the user's proxy. Raises `OSError` for unusable certificates."""
    import ssl  # rarely needed

    return {"ssl": ssl.create_default_context(cafile=upstream.ca_file or None), "server_hostname": upstream.host}


async def _send_error(client: Stream, error: _Answered) -> None:
    body = f"{error}\n".encode("utf-8", "replace")  # it may quote what the user typed
    head = (
        f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    await client.write(head.encode() + body)
    client.end_writing()
    with contextlib.suppress(TimeoutError):  # a reset would discard the answer if the program still sends
        async with asyncio.timeout(1.0):
            while await client.reader.read(PIECE):
                pass
