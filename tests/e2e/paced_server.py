"""A model server whose answers the test writes piece by piece, in the format of Chat Completions."""

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATIENCE_S = 60.0


class Exchange:
    """A request, and the answer that the test writes."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        self.pieces: queue.Queue[bytes | None] = queue.Queue()

    def text(self, text: str) -> None:
        """Send a piece of the answer's text."""
        self._send({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})

    def call(self, name: str, **arguments: object) -> None:
        """Send a tool call."""
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        self._send({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]})

    def end(self, reason: str = "stop") -> None:
        """End the answer."""
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        self.pieces.put(b"data: [DONE]\n\n")
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection."""
        self.pieces.put(None)

    def _send(self, document: dict[str, object]) -> None:
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", **document}
        self.pieces.put(f"data: {json.dumps(chunk)}\n\n".encode())


class PacedServer:
    """Requests in their order."""

    def __init__(self, url: str, waiting: "queue.Queue[Exchange]") -> None:
        self.environ = {
            "BRADAWL_MODEL": "openai/m",
            "BRADAWL_CONTEXT_WINDOW": "32000",
            "OPENAI_BASE_URL": f"{url}/v1",
            "OPENAI_API_KEY": "key",
        }
        """Environment variables that lead the program here."""
        self._waiting = waiting

    def request(self) -> Exchange:
        """The next request."""
        return self._waiting.get(timeout=PATIENCE_S)


@contextmanager
def paced_server() -> Iterator[PacedServer]:
    """A server on loopback; at the end all its connections are closed."""
    waiting: queue.Queue[Exchange] = queue.Queue()
    exchanges: list[Exchange] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if not self.path.endswith("/chat/completions"):
                self.send_error(404)
                return
            exchange = Exchange(json.loads(body))
            exchanges.append(exchange)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            waiting.put(exchange)
            while (piece := exchange.pieces.get()) is not None:
                try:
                    self.wfile.write(piece)
                except OSError:
                    return  # the program has closed the connection

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield PacedServer(f"http://127.0.0.1:{server.server_address[1]}", waiting)
    finally:
        for exchange in exchanges:
            exchange.hang_up()
        server.shutdown()
        server.server_close()
        thread.join()
