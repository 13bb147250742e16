"""A conversation by plain lines at a real pseudo-terminal, whose screen is read through a terminal emulator."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pyte
from terminal import START

PATIENCE_S = float(os.environ.get("PATIENCE_S", 60))


class PlainTerminal:
    """The program with `--plain`, or at a dumb terminal, by default with 50 lines and 100 columns."""

    def __init__(self, folder, script, *argv, size=(50, 100), **environ):
        (folder / "script.json").write_text(json.dumps(script))
        self.raw = b""
        self.screen = pyte.Screen(size[1], size[0])
        self._stream = pyte.ByteStream(self.screen)
        self.fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        given = {"HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "xterm", **environ}
        plain = () if given["TERM"] == "dumb" else ("--plain",)
        given["BRADAWL_MODEL"] = "scripted/script.json"
        self.process = subprocess.Popen(
            [*START, *plain, *argv],
            cwd=folder,
            env=given,
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(child)

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def type(self, text):
        os.write(self.fd, text.encode())

    def _read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65_536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)

    def wait_for(self, text):
        """Read until the screen shows the text."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.text:
            if not self._read(max(0.0, end - time.monotonic())):
                raise AssertionError(f"never saw {text!r} in:\n{self.text}")

    def wait_for_output(self, data):
        """Read until the program has written the bytes."""
        end = time.monotonic() + PATIENCE_S
        while data not in self.raw:
            if not self._read(max(0.0, end - time.monotonic())):
                raise AssertionError(f"never saw {data!r} in {self.raw!r}")

    def wait_for_prompt(self, typed=""):
        """Read until the last line is a prompt with what was typed."""
        end = time.monotonic() + PATIENCE_S
        while not self.text.endswith(f"\n> {typed}".rstrip()):
            if not self._read(max(0.0, end - time.monotonic())):
                raise AssertionError(f"never saw a prompt in:\n{self.text}")

    def end(self):
        """Read all output and return the exit code."""
        while self._read(PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)

    def close(self):
        """Kill the program and close the terminal."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)


def bash(command):
    return {"tool_calls": [{"id": "a", "name": "bash", "arguments": {"command": command}}]}
