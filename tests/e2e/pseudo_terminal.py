"""The program at a pseudo-terminal of its own, whose output an emulator draws."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emulator import Emulator
from terminal import START

PATIENCE_S = float(os.environ.get("PATIENCE_S", 60))
"""Seconds; less is for a person who waits for a test that fails."""
KEYS = {
    "enter": "\r",
    "esc": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "alt+enter": "\x1b\r",
    "shift+enter": "\r",
    "backspace": "\x7f",
    "delete": "\x1b[3~",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f5": "\x1b[15~",
}
_KITTY_KEYS = {"esc": "\x1b[27u", "shift+tab": "\x1b[9;2u", "alt+enter": "\x1b[13;3u", "shift+enter": "\x1b[13;2u"}


def keys(names: str, *, as_kitty: bool = False) -> str:
    """What a terminal sends for keys such as `ctrl+r`, `shift+tab` or `esc esc`."""
    return "".join(_key(name, as_kitty=as_kitty) for name in names.split())


def _key(name: str, *, as_kitty: bool) -> str:
    if as_kitty and name in _KITTY_KEYS:
        return _KITTY_KEYS[name]
    if name in KEYS:
        return KEYS[name]
    if len(name) == 1:
        return name
    modifier, _, letter = name.partition("+")
    assert modifier == "ctrl", name
    return f"\x1b[{ord(letter)};5u" if as_kitty else chr(ord(letter.upper()) ^ 0x40)


class PseudoTerminal:
    """A program at a terminal of its own, in a project in its home folder. The caller calls `close()`."""

    def __init__(
        self,
        folder: Path,
        argv: Sequence[str] = (),
        *,
        script: Sequence[Mapping[str, Any]] = (),
        size: tuple[int, int] = (24, 80),
        answers: bool = True,
        background: str = "",
        has_kitty: bool = False,
        program: Sequence[str] = START,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """`size` in rows and columns. `answers`: the terminal answers the questions of programs."""
        (folder / "script.json").write_text(json.dumps(script))
        self.folder, self.home = folder, folder.parent
        self.raw = b""
        self.emulator = Emulator(*size, answers=answers, background=background, has_kitty=has_kitty)
        self.fd, child = pty.openpty()
        self._resize(*size)
        self.termios = termios.tcgetattr(self.fd)
        """The settings of the terminal before the program began."""
        given = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "BRADAWL_MODEL": "scripted/script.json",
        }
        self.process = subprocess.Popen(
            [*program, *argv],
            cwd=folder,
            env={**given, **(environ or {})},
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(child)

    def type(self, text: str) -> None:
        """Write as a user types or pastes, all at once; reads meanwhile, because the terminal holds little."""
        data = text.encode()
        while data:
            reads, writes, _ = select.select([self.fd], [self.fd], [], PATIENCE_S)
            assert reads or writes, "the terminal takes no more keys"
            if reads:
                self.read(0)
            if writes:
                data = data[os.write(self.fd, data[:1024]) :]

    def press(self, names: str) -> None:
        """Press keys by their names, as fast as a machine."""
        self.type(keys(names, as_kitty=self.emulator.kitty_depth > 0))

    def paste(self, text: str) -> None:
        """Paste as a terminal does that marks pastes."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the terminal, and tell the program."""
        self.emulator.screen.resize(rows, columns)
        self._resize(rows, columns)

    def _resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bool:
        """Read and draw what the program has written; false if nothing came, or it has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65_536)
        except OSError:
            return False
        self.raw += data
        if answer := self.emulator.feed(data):
            with contextlib.suppress(OSError):
                os.write(self.fd, answer.encode())
        return bool(data)

    def end(self) -> int:
        """Read all output until the program has ended, and return its exit code."""
        while self.read(PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """Kill the program, if it runs, and close the terminal."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE_S)
        os.close(self.fd)
