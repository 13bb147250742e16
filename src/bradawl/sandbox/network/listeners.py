"""Opens listening sockets inside the network namespaces of sandboxed programs, with the help of a small program."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bradawl.sandbox.namespace_helper import NamespaceHelper

PORT: Final = 19_080
"""Port of the listener inside the sandbox; free in each new network namespace."""
_PROGRAM: Final = Path(__file__).with_name("listener_helper.py")
_ANSWER_LIMIT_S: Final = 3.0
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
        self._helper = NamespaceHelper(_PROGRAM, (str(PORT),))

    def start(self) -> None:
        """Start the program unless it runs. Raises `OSError`."""
        self._helper.start()

    def request(self, pid: int, on_answer: Answer) -> ListenerRequest:
        """Ask for a listener in the network namespace of a process. Needs a running event loop. Raises `OSError`."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._helper.send(b"%d" % pid, [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ListenerRequest(ours, on_answer)

    def close(self) -> None:
        """End the program. Safe to call twice."""
        self._helper.close()
