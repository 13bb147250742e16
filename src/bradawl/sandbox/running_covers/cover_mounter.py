"""Has a small program of its own mount covers in the mount namespaces of running programs."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bradawl.safety.git.tracked_files import HIDDEN_TEXT
from bradawl.sandbox.mounts.plan import Mount

ON: Final = "on"
"""State of a cover whose mount was there."""
COVERED: Final = "covered"
"""State of a cover that has been mounted again."""
ABSENT: Final = "absent"
"""State of a cover whose path does not exist."""
LINK: Final = "link"
"""State of a path that is a link, or below one."""

_PROGRAM: Final = "cover_helper.py"
_ANSWER_LIMIT_S: Final = 5.0
_END_LIMIT_S: Final = 1.0
_PIECE: Final = 65_536


class CoverMounter:
    """Owns the program that mounts covers, and starts it for the first request. Its owner calls `close()`."""

    def __init__(self, answer_limit_s: float = _ANSWER_LIMIT_S, python: str = "") -> None:
        """`python` is the interpreter of the program; by default the one that runs."""
        self._python = python or os.path.realpath(sys.executable)
        self._answer_limit_s = answer_limit_s
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def mount(self, pid: int, covers: Iterable[Mount]) -> dict[str, str]:
        """Mount covers, outermost first, where they are gone in the mount namespace of a process; its programs have to
        be stopped.

        Returns the state of each path: `ON`, `COVERED`, `ABSENT`, `LINK`, or the text of an error. Blocks until the
        answer is complete. Raises `OSError` if there is none.
        """
        words = [HIDDEN_TEXT, *(word for cover in covers for word in (cover.kind, cover.path))]
        ours, theirs = socket.socketpair()
        with ours, theirs, contextlib.ExitStack() as opened:
            namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            opened.callback(os.close, namespace)
            given = _file_with(b"".join(os.fsencode(word) + b"\0" for word in words))
            opened.callback(os.close, given)
            self._send([namespace, given, theirs.fileno()])
            theirs.close()
            said = _read_all(ours, time.monotonic() + self._answer_limit_s)
        answer = [os.fsdecode(word) for word in said.split(b"\0")[:-1]]
        if not answer:
            raise OSError("the program that mounts covers did not answer")
        return dict(zip(answer[::2], answer[1::2], strict=False))

    def _send(self, descriptors: list[int]) -> None:
        """Send a request, to a new program if the old one has ended. Raises `OSError`."""
        for is_last in (False, True):
            try:
                socket.send_fds(self._running_control(), [b"1"], descriptors)
            except OSError:
                self.close()
                if is_last:
                    raise
            else:
                return

    def _running_control(self) -> socket.socket:
        if self._control is None or self._program is None or self._program.poll() is not None:
            self.close()
            self._control = self._start()
        return self._control

    def _start(self) -> socket.socket:
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._program = subprocess.Popen(  # noqa: S603 - this Python with a text of our own
                (self._python, "-I", "-S", "-c", _text(), str(theirs.fileno())),
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
        control.settimeout(self._answer_limit_s)
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


def _read_all(connection: socket.socket, deadline: float) -> bytes:
    """Everything until the other end is closed. Raises `OSError` after the deadline."""
    said = b""
    while True:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        if not (piece := connection.recv(_PIECE)):
            return said
        said += piece


def _file_with(data: bytes) -> int:
    made = os.memfd_create("covers", os.MFD_CLOEXEC)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(made, left) :]
        os.lseek(made, 0, os.SEEK_SET)
    except OSError:
        os.close(made)
        raise
    return made


def _text() -> str:
    return Path(__file__).with_name(_PROGRAM).read_text("utf-8")
