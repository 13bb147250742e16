"""A Chat Completions server on loopback that answers from a script, faults included.

python -m bradawl.testing.server SCRIPT [--port N] [--with-parent]
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from types import TracebackType

import msgspec

from bradawl.testing.http1 import Answer, BadRequest, RequestHead, read_body, read_head
from bradawl.testing.script import Cursor, Entry, Faults, Script, ScriptSource, script_from
from bradawl.testing.wire import ChatRequest, error_body, models_body, read_request, sse_events, whole_reply


class WireServer:
    """Answers `POST .../chat/completions` from a script and `GET .../models`; use as `async with`.

    One place in the script for all connections. A request the script does not foresee, or
    that a real server would refuse, gets a 400 that says why, and the reason is kept in
    `failures`. Leaving the context ends every exchange at once. Raises `ScriptError`; on
    entering `OSError` if the port is taken.
    """

    def __init__(self, script: ScriptSource, *, port: int = 0, on_failure: Callable[[str], None] | None = None) -> None:
        self.script: Script = script_from(script)
        self._cursor = Cursor(self.script)
        self._port = port
        self._on_failure = on_failure
        self._server: asyncio.Server | None = None
        self._closing = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self._ended = asyncio.Event()
        self.base_url = ""
        """`http://127.0.0.1:<port>/v1`, once entered."""
        self.requests: list[dict[str, object]] = []
        """The decoded body of each request for a reply, in the order they came."""
        self.headers: list[dict[str, str]] = []
        """Their headers, names in lower case."""
        self.connections = 0
        """Connections accepted so far."""
        self.failures: list[str] = []
        """Why requests were refused with a 400."""

    async def __aenter__(self) -> "WireServer":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=1 << 20, backlog=1024)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        self._closing.set()
        for listener in server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        for _ in range(4):
            # A connection that was just accepted needs a few rounds of the loop until it is one of ours;
            # one that is not when the server closes would be lost with its socket open.
            await asyncio.sleep(0)
        server.close()
        for writer in self._open:
            writer.transport.abort()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until_idle(), 5)
        await server.wait_closed()

    async def _until_idle(self) -> None:
        while self._open:
            self._ended.clear()
            await self._ended.wait()

    # -------------------------------------------------------------- connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        # With no buffer of ours every drained byte is the kernel's, so a cut falls where it should.
        writer.transport.set_write_buffer_limits(0)
        try:
            if self._closing.is_set():
                return
            with contextlib.suppress(OSError, EOFError, BadRequest):
                while await self._exchange(reader, writer):
                    pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
            self._open.discard(writer)
            self._ended.set()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; false when the connection is to end."""
        try:
            head = await read_head(reader)
            if head is None:
                return False
            if head.headers.get("expect", "").lower() == "100-continue":
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = await read_body(reader, head.headers)
        except BadRequest as error:
            await Answer(writer, Faults()).whole(400, error_body(400, str(error)))
            return False
        is_whole = await self._answer(head, body, writer)
        return is_whole and head.keeps_alive

    async def _answer(self, head: RequestHead, body: bytes, writer: asyncio.StreamWriter) -> bool:
        plain = Answer(writer, Faults())
        path = head.path.partition("?")[0].rstrip("/")
        if path.endswith("/models") and head.method == "GET":
            return await plain.whole(200, models_body("scripted"))
        if not path.endswith("/chat/completions"):
            return await plain.whole(404, error_body(404, f"there is no {head.method} {path} here"))
        if head.method != "POST":
            return await plain.whole(405, error_body(405, f"{path} takes POST"))
        request = self._accept(head, body)
        entry = request if isinstance(request, str) else self._cursor.take(request.last_text())
        if isinstance(request, str) or isinstance(entry, str):
            return await plain.whole(400, error_body(400, self._note(str(entry))))
        return await self._reply(entry, request, writer)

    def _accept(self, head: RequestHead, body: bytes) -> ChatRequest | str:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.requests.append(msgspec.json.decode(body, type=dict[str, object]))
            self.headers.append(head.headers)
        return read_request(body)

    def _note(self, failure: str) -> str:
        self.failures.append(failure)
        if self._on_failure is not None:
            self._on_failure(failure)
        return failure

    async def _reply(self, entry: Entry, request: ChatRequest, writer: asyncio.StreamWriter) -> bool:
        number = self._cursor.position
        answer = Answer(writer, entry.faults)
        if entry.faults.delay_ms:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), entry.faults.delay_ms / 1000)
                return False
        if entry.faults.is_refusal:
            status = entry.faults.status or 500
            return await answer.whole(status, error_body(status, entry.text))
        if request.stream:
            return await answer.stream(sse_events(entry, number, request.model, with_usage=request.wants_usage))
        return await answer.whole(200, whole_reply(entry, number, request.model))


# ------------------------------------------------------------------ outside of asyncio


@contextlib.contextmanager
def serve_in_thread(script: ScriptSource) -> Iterator[WireServer]:
    """A server in a thread of its own, for tests that are not async or that start programs.

    Read what it recorded once the requests were answered. Raises `ScriptError`, `OSError`.
    """
    import threading
    from concurrent.futures import Future

    server = WireServer(script)
    ready: Future[asyncio.AbstractEventLoop] = Future()
    stop = asyncio.Event()

    async def serve() -> None:
        try:
            async with server:
                ready.set_result(asyncio.get_running_loop())
                await stop.wait()
        except OSError as error:
            ready.set_exception(error)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="wire-server", daemon=True)
    thread.start()
    loop = ready.result()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def main(arguments: list[str] | None = None) -> int:
    """Serve a script until SIGINT, SIGTERM or, with `--with-parent`, the end of stdin; gives the exit code.

    The base URL is the first line of stdout. Refused requests are told on stderr; after any
    the exit code is 1. Bad usage and bad scripts are 2.
    """
    import argparse
    import sys

    from bradawl.testing.script import ScriptError

    parser = argparse.ArgumentParser(prog="python -m bradawl.testing.server", description="Serve a scripted model.")
    parser.add_argument("script", help="a JSON array, one entry per request")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--with-parent", action="store_true", help="end when stdin does")
    options = parser.parse_args(arguments)
    try:
        server = WireServer(options.script, port=options.port, on_failure=lambda text: print(text, file=sys.stderr))
        asyncio.run(_until_told(server, with_parent=options.with_parent))
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, OverflowError) as error:
        print(f"error: cannot serve on port {options.port}: {error}", file=sys.stderr)
        return 2
    return 1 if server.failures else 0


async def _until_told(server: WireServer, *, with_parent: bool) -> None:
    import signal

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with server:
        print(server.base_url, flush=True)
        if with_parent:
            _watch_stdin(loop, stop)
        await stop.wait()


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    import os
    import threading

    def wait() -> None:
        # The raw descriptor: a thread inside sys.stdin would hold its lock when the interpreter ends.
        with contextlib.suppress(OSError, RuntimeError):
            while os.read(0, 65536):
                pass
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, name="stdin", daemon=True).start()


if __name__ == "__main__":
    raise SystemExit(main())
