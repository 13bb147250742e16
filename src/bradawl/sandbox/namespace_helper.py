"""Runs a small program of its own that works in the namespaces of sandboxed programs."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_END_LIMIT_S: Final = 1.0


class NamespaceHelper:
    """Owns a program that takes requests from a socket; starts it for the first one. Its owner calls `close()`.

    Such a program runs stand-alone, as `python -I -S -c TEXT CONTROL ARGUMENTS`. A request is one message on descriptor
    CONTROL, with descriptors; one of them takes the answer. The program ends when CONTROL is closed at the other end.
    """

    def __init__(
        self, program: Path, arguments: Sequence[str] = (), *, send_limit_s: float = 0, python: str = ""
    ) -> None:
        """`program` is the file with its text. A request waits at most `send_limit_s` until the program takes it.

        `python` is the interpreter; by default the one that runs.
        """
        self._file = program
        self._arguments = arguments
        self._send_limit_s = send_limit_s
        self._python = python or os.path.realpath(sys.executable)
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start the program unless it runs. Raises `OSError`."""
        self._running_control()

    def send(self, request: bytes, descriptors: list[int]) -> None:
        """Send a request, to a new program if the old one has ended or takes none. Raises `OSError`."""
        for is_last in (False, True):
            try:
                socket.send_fds(self._running_control(), [request], descriptors)
            except BlockingIOError:  # it is busy with requests whose answers are awaited
                raise
            except OSError:
                self.close()
                if is_last:
                    raise
            else:
                return

    def _running_control(self) -> socket.socket:
        if self._control is None or self._program is None or self._program.poll() is not None:
            self.close()
            self._control = self._started()
        return self._control

    def _started(self) -> socket.socket:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            text = self._file.read_text("utf-8")
            self._program = subprocess.Popen(  # noqa: S603 - this Python with a text of our own
                (self._python, "-I", "-S", "-c", text, str(theirs.fileno()), *self._arguments),
                cwd="/",
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError:
            control.close()
            raise
        finally:
            theirs.close()
        control.settimeout(self._send_limit_s)
        return control

    def close(self) -> None:
        """End the program. Safe to call twice."""
        control, self._control = self._control, None
        if control is not None:
            control.close()
        program, self._program = self._program, None
        if program is None:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(_END_LIMIT_S)
        if program.returncode is None:
            program.kill()
            program.wait()
