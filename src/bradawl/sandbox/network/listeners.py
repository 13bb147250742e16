"""Opens listening sockets inside the network namespaces of sandboxed programs, with the help of a small program."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

PORT: Final = 19_080
"""Port of the listener inside the sandbox; free in each new network namespace."""
_PROGRAM: Final = "listener_helper.py"
_ANSWER_LIMIT_S: Final = 3.0
_END_LIMIT_S: Final = 1.0
_LONGEST_ANSWER: Final = 512

Answer = Callable[[socket.socket | None, str], None]
"""Receives the listening socket and then owns it; or None and the reason why there is none."""


class ListenerRequest:
    """A request for one listening socket; its callback is called once, or never after `cancel`."""

    def __init__(self, reply: socket.socket, on_answer: Answer) -> None:
        """`reply` is the socket from which the answer can be read; it is closed here. Needs a running event loop."""
        self._reply = reply
        self._on_answer = on_answer
        self._loop = asyncio.get_running_loop()
        reply.setblocking(False)
        self._loop.add_reader(reply.fileno(), self._read)
        self._timer = self._loop.call_later(_ANSWER_LIMIT_S, self._finish, None, "it did not answer in time")

    def _read(self) -> None:
        try:
            said, descriptors, _, _ = socket.recv_fds(self._reply, _LONGEST_ANSWER, 1)
        except BlockingIOError:
            return
        except OSError as error:
            self._finish(None, error.strerror or str(error))
            return
        if descriptors:
            self._finish(socket.socket(fileno=descriptors[0]), "")
        else:
            self._finish(None, said.decode("utf-8", "replace") or "it ended without an answer")

    def _finish(self, listener: socket.socket | None, problem: str) -> None:
        self.cancel()
        self._on_answer(listener, problem)

    def cancel(self) -> None:
        """Wait for the answer no longer. Safe to call twice."""
        self._timer.cancel()
        if self._reply.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._reply.fileno())
            self._reply.close()


class ListenerOpener:
    """Owns the program that opens listeners, and starts it for the first request. Its owner calls `close()`."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def start(self) -> None:
        """Start the program unless it runs. Raises `OSError`."""
        if self._program is not None and self._program.poll() is None:
            return
        self.close()
        control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._program = subprocess.Popen(  # noqa: S603 - this Python with a text of our own
                (os.path.realpath(sys.executable), "-I", "-S", "-c", _text(), str(theirs.fileno()), str(PORT)),
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
        control.setblocking(False)
        self._control = control

    def request(self, pid: int, on_answer: Answer) -> ListenerRequest:
        """Ask for a listener in the network namespace of a process. Needs a running event loop. Raises `OSError`."""
        self.start()
        if self._control is None:
            raise OSError("the program that opens listeners has ended")
        ours, theirs = socket.socketpair()
        try:
            socket.send_fds(self._control, [b"%d" % pid], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return ListenerRequest(ours, on_answer)

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


def _text() -> str:
    return Path(__file__).with_name(_PROGRAM).read_text("utf-8")
