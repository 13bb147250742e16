"""Runs of the program: to its end without input, or at a pseudo-terminal for tests that type and wait for a text."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE_S = float(os.environ.get("PATIENCE_S", 60))
START = (sys.executable, "-c", "import sys; from bradawl.app.cli import main; sys.exit(main())")


def run_program(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run bradawl to its end, with nothing on its standard input."""
    return subprocess.run(
        [*START, *argv],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )


class Terminal:
    """Keeps the program's output with all escape sequences. The caller calls `end()`."""

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.raw = b""
        self.fd, child = pty.openpty()
        self.process = subprocess.Popen(
            argv, cwd=folder, env=environment, stdin=child, stdout=child, stderr=child, start_new_session=True
        )
        os.close(child)

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str) -> None:
        """Read until the text was printed."""
        end = time.monotonic() + PATIENCE_S
        while text.encode() not in self.raw:
            if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"never saw {text!r} in:\n{self.raw.decode('utf-8', 'replace')}")
            self.raw += os.read(self.fd, 65_536)

    def end(self) -> None:
        """End the program and wait for it."""
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65_536)
                except OSError:
                    break
        self.process.kill()
        self.process.wait()
        os.close(self.fd)
