"""A model server on loopback that answers from a script, faults included, in the wire format of each request.

python -m bradawl.testing.server SCRIPT [--port N] [--with-parent]
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import msgspec

from bradawl.testing.http1 import Answer, RequestHead
from bradawl.testing.loopback import LoopbackServer, answering
from bradawl.testing.script import Cursor, Entry, Faults, Script, ScriptSource, script_from
from bradawl.testing.wire_chat import error_body, models_body
from bradawl.testing.wire_format import WireFormat, WireRequest
from bradawl.testing.wire_formats import format_at


class WireServer(LoopbackServer):
    """Answers `POST` on `.../chat/completions`, `.../responses` and `.../messages` from a script; use as `async with`.

    `GET .../models` lists one model. `find_format` gives the wire format for a path.

    All connections share one position in the script. A request that the script does not expect, or
    that a real server would reject, gets a 400 with the reason, which is also kept in
    `failures`. Leaving the context ends every exchange at once. Raises `ScriptError`; on
    entering `OSError` if the port is taken.
    """

    def __init__(
        self,
        script: ScriptSource,
        *,
        port: int = 0,
        on_failure: Callable[[str], None] | None = None,
        find_format: Callable[[str], WireFormat | None] = format_at,
    ) -> None:
        super().__init__(answering(self._answer, _refuse), port=port)
        self.script: Script = script_from(script)
        self._cursor = Cursor(self.script)
        self._on_failure = on_failure
        self._find_format = find_format
        self.requests: list[dict[str, object]] = []
        """The decoded body of each request for a reply, in the order they came."""
        self.headers: list[dict[str, str]] = []
        """Their headers, names in lower case."""
        self.failures: list[str] = []
        """The reasons of requests answered with a 400."""

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:<port>/v1`, once entered."""
        return self.url and f"{self.url}/v1"

    async def _answer(self, head: RequestHead, body: bytes, writer: asyncio.StreamWriter) -> bool:
        plain = Answer(writer, Faults())
        path = head.path.partition("?")[0].rstrip("/")
        if path.endswith("/models") and head.method == "GET":
            return await plain.whole(200, models_body("scripted"))
        wire = self._find_format(path)
        if wire is None:
            return await plain.whole(404, error_body(404, f"there is no {head.method} {path} here"))
        if head.method != "POST":
            return await plain.whole(405, wire.error(405, f"{path} takes POST"))
        self._record(head, body)
        request = wire.read(body)
        entry = request if isinstance(request, str) else self._cursor.take(request.last_text)
        if isinstance(request, str) or isinstance(entry, str):
            return await plain.whole(400, wire.error(400, self._note(str(entry))))
        return await self._reply(entry, request, wire, writer)

    def _record(self, head: RequestHead, body: bytes) -> None:
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self.requests.append(msgspec.json.decode(body, type=dict[str, object]))
            self.headers.append(head.headers)

    def _note(self, failure: str) -> str:
        self.failures.append(failure)
        if self._on_failure is not None:
            self._on_failure(failure)
        return failure

    async def _reply(self, entry: Entry, request: WireRequest, wire: WireFormat, writer: asyncio.StreamWriter) -> bool:
        number = self._cursor.position
        answer = Answer(writer, entry.faults)
        if entry.faults.delay_ms:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), entry.faults.delay_ms / 1000)
                return False
        if entry.faults.is_refusal:
            status = entry.faults.status or 500
            return await answer.whole(status, wire.error(status, entry.text))
        if request.is_stream:
            return await answer.stream(wire.events(entry, number, request))
        return await answer.whole(200, wire.whole(entry, number, request))


async def _refuse(reason: str, writer: asyncio.StreamWriter) -> bool:
    return await Answer(writer, Faults()).whole(400, error_body(400, reason))


# ------------------------------------------------------------------ outside of asyncio


@contextlib.contextmanager
def serve_in_thread(script: ScriptSource) -> Iterator[WireServer]:
    """A `WireServer` in a thread, for tests that are not async or that start programs.

    Read its records only after the requests were answered. Raises `ScriptError`, `OSError`.
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
    """Serve a script until SIGINT, SIGTERM or, with `--with-parent`, the end of stdin; returns the exit code.

    Prints the base URL as the first line of stdout, and unexpected requests on stderr. The exit code is 1 after
    an unexpected request, and 2 for bad usage and bad scripts.
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
        asyncio.run(_serve_until_signal(server, with_parent=options.with_parent))
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, OverflowError) as error:
        print(f"error: cannot serve on port {options.port}: {error}", file=sys.stderr)
        return 2
    return 1 if server.failures else 0


async def _serve_until_signal(server: WireServer, *, with_parent: bool) -> None:
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
        # Reads the descriptor: a thread in `sys.stdin.read` would hold its lock when the interpreter ends.
        with contextlib.suppress(OSError, RuntimeError):
            while os.read(0, 65536):
                pass
            loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, name="stdin", daemon=True).start()


if __name__ == "__main__":
    raise SystemExit(main())
