"""Makes the pictures in `docs/screens`: runs the real program at a pseudo-terminal, with a model that is scripted here.

    .venv/bin/python scripts/screens.py [NAME ...]

Each picture is an SVG of one scene, in 80x24 on a dark and in 120x40 on a light background.
"""

import contextlib
import fcntl
import html
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pyte
from wcwidth import wcwidth

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "screens"
SIZES: Final = (("dark", 80, 24), ("light", 120, 40))
_PATIENCE_S: Final = 30.0
_QUIET_S: Final = 0.6

APP: Final = "def total(xs):\n    return sum(xs) - 1\n\n\ndef mean(xs):\n    return total(xs) / len(xs)\n"
TEST: Final = "from app import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
ANSWER: Final = """\
## What was wrong

`total` subtracts **one too many**, so `mean` is wrong as well:

```python
def total(xs):
    return sum(xs)
```

| function | before | after |
|---|---|---|
| `total([1, 2])` | 2 | 3 |
| `mean([1, 2])` | 1.0 | 1.5 |

1. `app.py` is mended.
2. The test passes now.
"""


# ------------------------------------------------------------------ the model


def call(name: str, **arguments: object) -> dict[str, Any]:
    """A call of a tool."""
    return {"name": name, "arguments": arguments}


class Model:
    """Answers the requests one after the other; a reply can stop in the middle until the scene ends."""

    def __init__(self, replies: list[dict[str, Any]]) -> None:
        self._replies = iter(replies)
        self.may_end = threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                body = b'{"object": "list", "data": [{"id": "gpt-5.5", "object": "model"}]}'
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                if not self.path.endswith("/chat/completions"):
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                with contextlib.suppress(OSError):  # the scene is over
                    model.answer(self.wfile.write)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def answer(self, write: Callable[[bytes], object]) -> None:
        reply = next(self._replies, {"text": "Done."})

        def send(delta: dict[str, Any], finish_reason: str | None = None) -> None:
            data = {
                "id": "r",
                "object": "chat.completion.chunk",
                "model": "gpt-5.5",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
            }
            write(b"data: " + json.dumps(data).encode() + b"\n\n")

        if thinking := reply.get("thinking"):
            send({"reasoning_content": thinking})
        text = reply.get("text", "")
        for place in range(0, len(text), 12):
            send({"content": text[place : place + 12]})
            time.sleep(0.002)
        if reply.get("stops"):
            self.may_end.wait(_PATIENCE_S)
        for number, each in enumerate(reply.get("calls", ())):
            function = {"name": each["name"], "arguments": json.dumps(each["arguments"])}
            send({"tool_calls": [{"index": number, "id": f"c{number}", "type": "function", "function": function}]})
        send({}, finish_reason="tool_calls" if reply.get("calls") else "stop")
        usage = {
            "prompt_tokens": 18_400,
            "completion_tokens": 1_210,
            "total_tokens": 19_610,
            "prompt_tokens_details": {"cached_tokens": 16_900},
        }
        write(
            b"data: "
            + json.dumps({"id": "r", "object": "chat.completion.chunk", "choices": [], "usage": usage}).encode()
        )
        write(b"\n\ndata: [DONE]\n\n")

    def close(self) -> None:
        self.may_end.set()
        self.server.shutdown()
        self.server.server_close()


# ------------------------------------------------------------------ the terminal


class Terminal:
    """The program at a pseudo-terminal."""

    def __init__(self, argv: list[str], folder: Path, environment: dict[str, str], columns: int, rows: int) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process = subprocess.Popen(  # noqa: S603 - bradawl itself
            argv, cwd=folder, env=environment, stdin=child, stdout=child, stderr=child, start_new_session=True
        )
        os.close(child)

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def keys(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + _PATIENCE_S
        while text not in self.text:
            if not self._read(end - time.monotonic()):
                raise SystemExit(f"never saw {text!r} in:\n{self.text}")

    def settle(self) -> None:
        """Read until the screen stays as it is, or for a while where a spinner turns."""
        end = time.monotonic() + 2 * _QUIET_S
        while time.monotonic() < end and self._read(_QUIET_S):
            pass

    def _read(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65_536)
        except OSError:
            return False
        self._stream.feed(data)
        return bool(data)

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self.fd)


# ------------------------------------------------------------------ the picture

_BASIC: Final = {
    "dark": {
        "black": "#1c1c1c",
        "red": "#d75f5f",
        "green": "#87af5f",
        "brown": "#d7af5f",
        "blue": "#5f87d7",
        "magenta": "#af87d7",
        "cyan": "#5fafaf",
        "white": "#d0d0d0",
    },
    "light": {
        "black": "#1c1c1c",
        "red": "#af0000",
        "green": "#3f7f00",
        "brown": "#875f00",
        "blue": "#005faf",
        "magenta": "#8700af",
        "cyan": "#007f7f",
        "white": "#f0f0f0",
    },
}
_PAPER: Final = {"dark": ("#16181d", "#d6d8dc"), "light": ("#fdfdfb", "#24262b")}
_CELL_W, _CELL_H = 8.4, 18


def svg(screen: pyte.Screen, theme: str, title: str) -> str:
    """A picture of the screen."""
    paper, ink = _PAPER[theme]
    width, height = screen.columns * _CELL_W + 24, screen.lines * _CELL_H + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" '
        f'font-size="14" role="img"><title>{html.escape(title)}</title>',
        f'<rect width="100%" height="100%" rx="8" fill="{paper}"/>',
    ]
    for row in range(screen.lines):
        parts += _row(screen, row, theme, paper, ink)
    if not screen.cursor.hidden:
        x, y = 12 + screen.cursor.x * _CELL_W, 12 + screen.cursor.y * _CELL_H
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{_CELL_W}" height="{_CELL_H}" fill="{ink}" opacity="0.55"/>')
    return "\n".join([*parts, "</svg>", ""])


def _row(screen: pyte.Screen, row: int, theme: str, paper: str, ink: str) -> list[str]:
    """Runs of cells of one look, each with its background and its text."""
    cells = [screen.buffer[row][column] for column in range(screen.columns)]
    parts, start = [], 0
    while start < len(cells):
        look = cells[start]._replace(data="")
        end = start
        while end < len(cells) and cells[end]._replace(data="") == look:
            end += 1
        text = "".join(cell.data for cell in cells[start:end])
        fore, back = _colour(look.fg, theme, ink), _colour(look.bg, theme, paper)
        if look.reverse:
            fore, back = back, fore
        x, y = 12 + start * _CELL_W, 12 + row * _CELL_H
        if back != paper:
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{(end - start) * _CELL_W:.1f}" height="{_CELL_H}" fill="{back}"/>'
            )
        if text.strip():
            style = ' font-weight="bold"' * look.bold + ' font-style="italic"' * look.italics
            style += ' text-decoration="underline"' * look.underscore
            cells_of_text = sum(max(0, wcwidth(character)) for character in text)
            parts.append(
                f'<text x="{x:.1f}" y="{y + 13}" fill="{fore}"{style} xml:space="preserve" '
                f'textLength="{cells_of_text * _CELL_W:.1f}" lengthAdjust="spacingAndGlyphs">'
                f"{html.escape(text)}</text>"
            )
        start = end
    return parts


def _colour(name: str, theme: str, default: str) -> str:
    if name == "default":
        return default
    plain = name.removeprefix("bright")
    return _BASIC[theme].get(plain, f"#{name}" if len(name) == 6 else default)


# ------------------------------------------------------------------ the scenes


def _start(t: Terminal, _: Model) -> None:
    t.settle()


def _prompt(text: str, until: str) -> Callable[[Terminal, Model], None]:
    def play(t: Terminal, _: Model) -> None:
        t.settle()
        t.keys(f"{text}\r")
        t.wait_for(until)

    return play


def _typing(t: Terminal, _: Model) -> None:
    t.settle()
    t.keys("explain what app.py does\r")
    t.wait_for("average")
    t.keys("check the README too\r")
    t.wait_for("check the README too")
    t.keys("wait, use the other file")


def _completion(t: Terminal, _: Model) -> None:
    t.settle()
    t.keys("/re")
    t.wait_for("/rewind")


def _files(t: Terminal, _: Model) -> None:
    t.settle()
    t.keys("what does @ap")
    t.wait_for("app.py")


def _pager(t: Terminal, _: Model) -> None:
    t.settle()
    t.keys("fix the failing test\r")
    t.wait_for("The test passes now.")
    t.keys("\x0f")
    t.wait_for("in full")


def _context(t: Terminal, _: Model) -> None:
    t.settle()
    t.keys("fix the failing test\r")
    t.wait_for("The test passes now.")
    t.keys("/context\r")
    t.wait_for("free")


def _models(t: Terminal, _: Model) -> None:
    t.settle()
    t.keys("/model\r")
    t.wait_for("search")


_FIX: Final = [
    {
        "text": "I'll look at both files first.",
        "calls": [call("read_file", file_paths=["app.py", "test_app.py"]), call("bash", command="ls -la")],
    },
    {
        "text": "`total` subtracts one too many.",
        "calls": [
            call(
                "edit_file",
                file_path="app.py",
                old_string="    return sum(xs) - 1\n",
                new_string="    return sum(xs)\n",
            )
        ],
    },
    {
        "text": "",
        "calls": [
            call("bash", command="python3 -c 'from app import total; assert total([1, 2]) == 3; print(\"1 passed\")'")
        ],
    },
    {"text": ANSWER},
]
_LONG: Final = (
    "The module has two functions. `total` adds numbers; `mean` divides the total by their count, which is their "
    "average.\n\nThe quick brown fox jumps over the lazy dog while the model keeps writing, and what you type "
    "meanwhile stays in its own place below"
)
_TODOS: Final = [
    {"content": "Read the module", "status": "completed"},
    {"content": "Fix total", "status": "in_progress"},
    {"content": "Run the tests", "status": "pending"},
]

Scene = tuple[list[dict[str, Any]], Callable[[Terminal, Model], None], list[str]]
SCENES: Final[dict[str, Scene]] = {
    "start": ([], _start, []),
    "working": (
        [*_FIX[:2], {"calls": [call("bash", command="for i in 1 2 3 4; do echo test $i passed; done; sleep 60")]}],
        _prompt("fix the failing test", "test 4 passed"),
        [],
    ),
    "answer": (_FIX, _prompt("fix the failing test", "The test passes now."), []),
    "asking-command": (
        [
            {
                "text": "I need the schema first.",
                "calls": [call("bash", command="curl -fsSL https://example.org/schema.json -o schema.json")],
            }
        ],
        _prompt("update the schema", "No, and say why"),
        [],
    ),
    "asking-edit": (
        [
            {"text": "`total` subtracts one too many.", "calls": [call("read_file", file_path="app.py")]},
            {
                "calls": [
                    call(
                        "edit_file",
                        file_path="app.py",
                        old_string="    return sum(xs) - 1\n",
                        new_string="    return sum(xs)\n",
                    )
                ]
            },
        ],
        _prompt("fix the failing test", "No, and say why"),
        ["--permission-mode", "default"],
    ),
    "typing": ([{"text": _LONG, "stops": True}], _typing, []),
    "commands": ([], _completion, []),
    "files": ([], _files, []),
    "todos": (
        [
            {"text": "Three things to do.", "calls": [call("todo_write", todos=_TODOS)]},
            {"calls": [call("bash", command="sleep 60")]},
        ],
        _prompt("fix it", "Run the tests"),
        [],
    ),
    "in-full": (_FIX, _pager, []),
    "context": (_FIX, _context, []),
    "models": ([], _models, []),
}


def picture(name: str, theme: str, columns: int, rows: int) -> str:
    """Play a scene, and return its picture."""
    replies, play, flags = SCENES[name]
    model = Model(replies)
    folder = Path(tempfile.mkdtemp(prefix="bradawl-screens-"))
    project, home = folder / "shop", folder / "home"
    project.mkdir()
    home.mkdir()
    (project / "app.py").write_text(APP)
    (project / "test_app.py").write_text(TEST)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": model.url,
    }
    argv = [
        sys.executable,
        "-m",
        "bradawl",
        "-m",
        "openai/gpt-5.5",
        "--theme",
        theme,
        "--context-window",
        "128000",
        *flags,
    ]
    terminal = Terminal(argv, project, environment, columns, rows)
    try:
        terminal.wait_for("gpt-5.5")
        play(terminal, model)
        terminal.settle()
        return svg(terminal.screen, theme, f"bradawl: {name}").replace(str(folder), "")
    finally:
        terminal.close()
        model.close()
        shutil.rmtree(folder, ignore_errors=True)


def main(names: list[str]) -> None:
    """Make all pictures, or those named."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or SCENES:
        for theme, columns, rows in SIZES:
            path = FOLDER / f"{name}-{theme}-{columns}x{rows}.svg"
            path.write_text(picture(name, theme, columns, rows), encoding="utf-8")
            sys.stdout.write(f"{path.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
