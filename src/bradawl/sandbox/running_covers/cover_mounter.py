"""Has a small program of its own mount covers in the mount namespaces of running programs."""

import contextlib
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bradawl.safety.git.tracked_files import HIDDEN_TEXT
from bradawl.sandbox.filesystem.memory_file import file_in_memory
from bradawl.sandbox.mounts.plan import Mount
from bradawl.sandbox.namespace_helper import NamespaceHelper

ON: Final = "on"
"""State of a cover whose mount was there."""
COVERED: Final = "covered"
"""State of a cover that has been mounted again."""
ABSENT: Final = "absent"
"""State of a cover whose path does not exist."""
LINK: Final = "link"
"""State of a path that is a link, or below one."""

_PROGRAM: Final = Path(__file__).with_name("cover_helper.py")
_ANSWER_LIMIT_S: Final = 5.0
_PIECE: Final = 65_536


class CoverMounter:
    """Owns the program that mounts covers, and starts it for the first request. Its owner calls `close()`."""

    def __init__(self, answer_limit_s: float = _ANSWER_LIMIT_S, python: str = "") -> None:
        """`python` is the interpreter of the program; by default the one that runs."""
        self._answer_limit_s = answer_limit_s
        self._helper = NamespaceHelper(_PROGRAM, send_limit_s=answer_limit_s, python=python)

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
            given = file_in_memory("covers", b"".join(os.fsencode(word) + b"\0" for word in words))
            opened.callback(os.close, given)
            self._helper.send(b"1", [namespace, given, theirs.fileno()])
            theirs.close()
            said = _read_all(ours, time.monotonic() + self._answer_limit_s)
        answer = [os.fsdecode(word) for word in said.split(b"\0")[:-1]]
        if not answer:
            raise OSError("the program that mounts covers did not answer")
        return dict(zip(answer[::2], answer[1::2], strict=False))

    def close(self) -> None:
        """End the program. Safe to call twice."""
        self._helper.close()


def _read_all(connection: socket.socket, deadline: float) -> bytes:
    """Everything until the other end is closed. Raises `OSError` after the deadline."""
    said = b""
    while True:
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        if not (piece := connection.recv(_PIECE)):
            return said
        said += piece
