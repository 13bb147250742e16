"""Opens and writes the file of `--debug`, one per session; `exchange_log` keeps keys and contents out of its lines.

`exchange_log` makes its lines and keeps keys and contents out; this module writes them and never fails a run.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

LIMIT_BYTES = 10 * 1024 * 1024
_ROOM_FOR_THE_END = 200
_PLAIN_ID = r"[A-Za-z0-9_-]{1,64}"


class DebugLog:
    """Log files below `folder`, which is created with the first line, readable by the user alone.

    `on_problem` gets one sentence when a line can't be written; runs go on without the log.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        limit_bytes: int = LIMIT_BYTES,
        on_problem: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._limit = limit_bytes
        self._on_problem = on_problem
        self.problem = ""
        """Why a line could not be written; empty if all were."""

    def session(self, session_id: str) -> "SessionDebugLog":
        """The log of one session; an existing file is continued."""
        return SessionDebugLog(self, self.path(session_id))

    def path(self, session_id: str) -> Path:
        """The file of a session."""
        if re.fullmatch(_PLAIN_ID, session_id):
            return self._folder / f"{session_id}.jsonl"
        if not session_id:
            return self._folder / "no-session.jsonl"
        from hashlib import sha256

        return self._folder / f"{sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:32]}.jsonl"

    def append(self, path: Path, line: bytes) -> bool:
        """Add one line; false when the file is full or can't be written: then the caller stops."""
        if self.problem:
            return False
        try:
            return self._append(path, line)
        except OSError as error:
            self.problem = f"The debug log {path} can't be written: {error.strerror or error}. It is given up."
            if self._on_problem is not None:
                self._on_problem(self.problem)
            return False

    def _append(self, path: Path, line: bytes) -> bool:
        # Opened for each line: conversations are never closed, so an open descriptor would leak.
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
        descriptor = os.open(path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            has_room = size + len(line) <= self._limit - _ROOM_FOR_THE_END
            if not has_room:
                line = msgspec.json.encode({"event": "full", "limit_bytes": self._limit}) + b"\n"
                if size + len(line) > self._limit:
                    return False
            os.write(descriptor, line)
            return has_room
        finally:
            os.close(descriptor)


class SessionDebugLog:
    """The lines of one session."""

    def __init__(self, log: DebugLog, path: Path) -> None:
        self._log = log
        self._path = path
        self._is_over = False

    def write(self, fields: Mapping[str, object]) -> None:
        """Add one line of JSON; write errors are ignored."""
        if not self._is_over:
            self._is_over = not self._log.append(self._path, msgspec.json.encode(fields) + b"\n")
