"""The journal: the durable, append-only log file of one session, with its lock, group commit and torn-tail repair."""

import asyncio
import contextlib
import errno
import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import msgspec

from bradawl.core.errors import SessionBusy
from bradawl.core.events import FORMAT_VERSION, Cwd, Envelope, Event, SessionForked, SessionOpened, StateChanged
from bradawl.core.ports import Clock
from bradawl.safety.private_folders import make_private_folder
from bradawl.session.blobs import LocalBlobs, sync_folder
from bradawl.session.encoding import MAIN, Reader, encode

_READ_BUFFER = 1 << 20
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}

Sync = Callable[[int], None]
"""Syncs a file descriptor, as `os.fsync`; may block. Raises `OSError`."""


class LoadedSession(msgspec.Struct):
    """The contents of a session's file."""

    entries: tuple[Envelope, ...]
    reader: Reader
    whole_bytes: int
    """Size of the file up to the end of its last complete entry, in bytes."""
    torn: bytes = b""
    """The bytes after it: an incomplete entry."""
    lacks_newline: bool = False
    """True if only the newline of the last entry is missing."""


def load(path: Path) -> LoadedSession:
    """Read a session's file without changes to it. Raises `SessionDamaged` and `OSError`."""
    reader = Reader()
    entries: list[Envelope] = []
    whole_bytes = 0
    with path.open("rb", buffering=_READ_BUFFER) as file:
        for line in file:
            is_torn = not line.endswith(b"\n")
            if is_torn and not reader.can_read(line):
                return LoadedSession(tuple(entries), reader, whole_bytes, torn=line)
            entries.extend(reader.feed(line))
            whole_bytes += len(line)
            if is_torn:
                return LoadedSession(tuple(entries), reader, whole_bytes, lacks_newline=True)
    return LoadedSession(tuple(entries), reader, whole_bytes)


class Lock:
    """The lock for writing one session, held until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        """Acquire the lock. Raises `SessionBusy` if another process holds it, `OSError` if it can't be written."""
        self._path = path
        self.notice = ""
        """A message for the user if the file system has no locks; else empty."""
        self._fd: int | None = None
        while self._fd is None:
            self._fd = self._try()
        try:
            os.ftruncate(self._fd, 0)
            os.write(self._fd, f"{os.getpid()}\n".encode())
        except OSError:
            self.release(remove=False)
            raise

    def _try(self) -> int | None:
        """The descriptor of the locked file; None if it was removed between opening and locking."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self._flock(fd)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), self._path.stat()):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    def _flock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SessionBusy(_busy(self._path.stem, os.pread(fd, 32, 0))) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            self.notice = "This file system has no locks: do not open the session in two programs at once."

    def release(self, *, remove: bool) -> None:
        """Release the lock; with `remove` delete its file. Safe to call twice."""
        if self._fd is None:
            return
        if remove:
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._fd)
        self._fd = None


def _busy(session_id: str, content: bytes) -> str:
    digits = content.strip()
    holder = f"process {digits.decode()}" if digits.isdigit() else "another process"
    if digits == str(os.getpid()).encode():
        holder = f"this program (process {digits.decode()})"
    return f"Session {session_id} is open in {holder}. Go on there (also with /undo), close it, or start a new session."


class EntryNumbering:
    """Gives each entry its number and its parent."""

    def __init__(self, next_seq: int = 0, last: dict[str, int] | None = None) -> None:
        self.next_seq = next_seq
        self._last = dict(last or {})

    def envelope(self, event: Event, agent: str, at_ms: int) -> Envelope:
        """The event's envelope. A fork continues the numbers of its origin."""
        if isinstance(event, SessionForked) and not self._last:
            self.next_seq, parent = event.seq + 1, event.seq
        else:
            parent = self._last.get(agent, self._last.get(MAIN))
        envelope = Envelope(self.next_seq, parent, at_ms, agent, event)
        self._last[agent] = envelope.seq
        self.next_seq += 1
        return envelope

    def side_envelope(self, event: Event, at_ms: int) -> Envelope:
        """An envelope that is not the parent of later entries."""
        envelope = Envelope(self.next_seq, self._last.get(MAIN), at_ms, MAIN, event)
        self.next_seq += 1
        return envelope


class _LineFile:
    """A file to which only complete lines are written; lines that can't be written wait in memory."""

    def __init__(self, path: Path, fd: int | None, size: int, written: int) -> None:
        self._path = path
        self.fd = fd
        self._size = size
        self._is_ragged = False
        self._has_grown = False
        self._waiting: deque[tuple[int, bytes]] = deque()
        self.written = written
        """Seq of the last entry in the file."""
        self.is_closed = False

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def add(self, seq: int, line: bytes) -> None:
        self._waiting.append((seq, line))
        self.flush()

    def flush(self) -> bool:
        """Write the waiting lines in order; false if some could not be written."""
        if self.is_closed:
            return not self._waiting
        try:
            while self._waiting:
                self._write(*self._waiting[0])
                self._waiting.popleft()
        except OSError:
            return False
        return True

    def _write(self, seq: int, line: bytes) -> None:
        if self.fd is None:
            make_private_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self.fd = os.open(self._path, flags, 0o600)
        if self._is_ragged:
            os.ftruncate(self.fd, self._size)
            self._is_ragged = False
        try:
            done = os.write(self.fd, line)
            while done < len(line):
                done += os.write(self.fd, line[done:])
        except OSError:
            self._is_ragged = True
            with contextlib.suppress(OSError):
                os.ftruncate(self.fd, self._size)
                self._is_ragged = False
            raise
        self._size += len(line)
        self._has_grown = True
        self.written = seq

    def close(self) -> None:
        self.is_closed = True
        if self.fd is not None:
            if self._has_grown:
                # The kernel's timestamps have ticks of 4 ms, too coarse to order sessions by their last write.
                with contextlib.suppress(OSError):
                    os.utime(self.fd, ns=(time.time_ns(), time.time_ns()))
            os.close(self.fd)
            self.fd = None


class _SyncThread:
    """Runs syncs one after the other in a thread, which starts with the first."""

    def __init__(self, sync: Callable[[], bool]) -> None:
        self._sync = sync
        self._jobs: SimpleQueue[asyncio.Future[bool] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def request(self, future: "asyncio.Future[bool]") -> None:
        """Sync once, and set the outcome as the future's result, in its loop."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="bradawl-journal", daemon=True)
            self._thread.start()
        self._jobs.put(future)

    def _serve(self) -> None:
        while (future := self._jobs.get()) is not None:
            outcome = self._sync()
            with contextlib.suppress(RuntimeError):  # the loop has been closed: no task waits
                future.get_loop().call_soon_threadsafe(_settle, future, outcome)

    def stop(self) -> None:
        """Wait for the running sync and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


def _settle(future: "asyncio.Future[bool]", outcome: bool) -> None:
    if not future.done():
        future.set_result(outcome)


class Journal:
    """`SessionLog` in a file; made by `create` or `resume`."""

    def __init__(
        self, path: Path, clock: Clock, lock: Lock, lines: _LineFile, numbering: EntryNumbering, sync: Sync
    ) -> None:
        self._path = path
        self._clock = clock
        self._lock = lock
        self._lines = lines
        self._numbering = numbering
        self._sync_file = sync
        self._opening: Event | None = None
        self._synced = -1
        self._has_new_name = lines.fd is None
        self._is_lost = False
        self._flight: asyncio.Future[bool] | None = None
        self._thread = _SyncThread(self._sync)
        self._verdict: bool | None = None
        self.blobs: LocalBlobs | None = None
        """The blobs that its entries refer to; `is_saved` and `durable` include them."""

    @classmethod
    def create(cls, path: Path, clock: Clock, sync: Sync = os.fdatasync) -> "Journal":
        """A new log; its file is created with the first entry. Raises `OSError` if the folder is not writable."""
        make_private_folder(path.parent)
        lock = Lock(path.with_suffix(".lock"))
        return cls(path, clock, lock, _LineFile(path, None, 0, -1), EntryNumbering(), sync)

    @classmethod
    def resume(
        cls, path: Path, clock: Clock, sync: Sync = os.fdatasync
    ) -> tuple["Journal", LoadedSession, tuple[str, ...]]:
        """Open an existing file for appending; returns its contents and messages for the user.

        A torn last entry is moved to a `.torn` file beside it. Raises `SessionBusy`, `SessionDamaged`, `OSError`.
        """
        lock = Lock(path.with_suffix(".lock"))
        fd: int | None = None
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            loaded = load(path)
            size, mended = _mend(path, fd, loaded)
        except BaseException:
            if fd is not None:
                os.close(fd)
            lock.release(remove=False)
            raise
        reader = loaded.reader
        lines = _LineFile(path, fd, size, reader.next_seq - 1)
        journal = cls(path, clock, lock, lines, EntryNumbering(reader.next_seq, reader.last), sync)
        if reader.version not in (0, FORMAT_VERSION):
            journal._opening = _reopening(loaded.entries)
        notices = (*reader.notices(), *mended, *filter(None, (lock.notice,)))
        return journal, loaded, notices

    @property
    def session_id(self) -> str:
        """The session's ulid."""
        return self._path.stem

    @property
    def notice(self) -> str:
        """A message for the user about the file's location; usually empty."""
        return self._lock.notice

    @property
    def is_saved(self) -> bool:
        """False while an appended entry is not in the file, or after a failed sync."""
        return self._lines.is_empty and not self._is_lost and (self.blobs is None or self.blobs.is_saved)

    def append(self, event: Event, agent: str = MAIN) -> Envelope:
        """Write one entry at once; if that fails it is kept and written with the next."""
        opening, self._opening = self._opening, None
        if opening is not None:
            aside = self._numbering.side_envelope(opening, self._clock.now_ms())
            self._lines.add(aside.seq, encode(aside))
        envelope = self._numbering.envelope(event, agent, self._clock.now_ms())
        self._lines.add(envelope.seq, encode(envelope))
        return envelope

    def flush(self) -> bool:
        """Write the entries that could not be written yet; false if some still can't be."""
        return self._lines.flush()

    async def durable(self, entry: Envelope) -> bool:
        """Wait until the entry is durable; one sync serves all requests made before it began (group commit).

        Cancelling a waiting task does not stop the sync.
        """
        while entry.seq > self._synced:
            self._lines.flush()
            if entry.seq > self._lines.written or self._lines.fd is None:
                return False
            flight = self._flight
            # A finished future may not have been handled yet; awaiting it would not yield to the loop.
            if flight is None or flight.done() or flight.get_loop() is not asyncio.get_running_loop():
                flight = self._take_off()
            if not await asyncio.shield(flight):
                return False
        return not self._is_lost

    def _take_off(self) -> "asyncio.Future[bool]":
        flight: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        reach = self._lines.written

        def land(done: "asyncio.Future[bool]") -> None:
            if self._flight is done:
                self._flight = None
            if not done.cancelled() and done.result():
                self._synced = max(self._synced, reach)

        flight.add_done_callback(land)
        self._flight = flight
        self._thread.request(flight)
        return flight

    def _sync(self) -> bool:
        """Sync the file, and the first time also its folder."""
        fd = self._lines.fd
        if fd is None or self._is_lost:
            return False
        try:
            self._sync_file(fd)
            # A removed file still accepts writes, but its lines are lost.
            self._is_lost = os.fstat(fd).st_nlink == 0
            if self._has_new_name:
                self._has_new_name = False
                sync_folder(self._path.parent)
                for above in list(self._path.parents)[1:4]:
                    with contextlib.suppress(PermissionError):
                        sync_folder(above)
        except OSError:
            # After a failed sync the kernel may have dropped the pages, and a second sync would succeed.
            self._is_lost = True
        return not self._is_lost

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._verdict is not None

    def close(self) -> bool:
        """Write and sync everything, release file and lock; true if all entries are durable."""
        if self._verdict is None:
            self._thread.stop()
            self._lines.flush()
            if self.blobs is not None:
                self.blobs.save_waiting()
            wrote = self._lines.fd is not None and self._synced < self._lines.written
            self._verdict = (not wrote or self._sync()) and self.is_saved
            self._lines.close()
            self._lock.release(remove=not self._path.exists())
        return self._verdict and self.is_saved


def _mend(path: Path, fd: int, loaded: LoadedSession) -> tuple[int, tuple[str, ...]]:
    """Make the file end with a complete line; returns its size and a message for the user."""
    if loaded.lacks_newline:
        os.write(fd, b"\n")
        return loaded.whole_bytes + 1, ()
    if not loaded.torn:
        return loaded.whole_bytes, ()
    place = path.with_suffix(".torn")
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(place, flags, 0o600), "ab") as file:
        file.write(loaded.torn + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.ftruncate(fd, loaded.whole_bytes)
    notice = f"The last entry had not been written to its end; its {len(loaded.torn)} bytes were moved to {place}."
    return loaded.whole_bytes, (notice,)


def _reopening(entries: tuple[Envelope, ...]) -> Event:
    """The entry which states that the following entries are in this version's format."""
    project = cwd = ""
    for entry in entries:
        event = entry.event
        if isinstance(event, SessionOpened | SessionForked):
            project, cwd = event.project, event.cwd
        elif isinstance(event, StateChanged) and isinstance(event.state, Cwd) and entry.agent == MAIN:
            cwd = event.state.path
    return SessionOpened(FORMAT_VERSION, project, cwd)


class MemoryLog:
    """`SessionLog` in memory. `saved` is the value of its `is_saved`."""

    def __init__(
        self,
        session_id: str,
        clock: Clock,
        numbering: EntryNumbering | None = None,
        *,
        saved: bool = False,
        on_append: Callable[[str], None] | None = None,
    ) -> None:
        self._session_id = session_id
        self._clock = clock
        self._numbering = numbering or EntryNumbering()
        self._on_append = on_append
        self.entries: list[Envelope] = []
        """The appended entries, in order."""
        self.awaited: list[int] = []
        """Seq of each entry that `durable` was called for."""
        self.saved = saved
        self.is_closed = False

    @property
    def session_id(self) -> str:
        """The session's ulid."""
        return self._session_id

    @property
    def is_saved(self) -> bool:
        """The value of `saved`."""
        return self.saved

    def append(self, event: Event, agent: str = MAIN) -> Envelope:
        """Append one entry to `entries`."""
        envelope = self._numbering.envelope(event, agent, self._clock.now_ms())
        self.entries.append(envelope)
        if self._on_append is not None:
            self._on_append(self._session_id)
        return envelope

    async def durable(self, entry: Envelope) -> bool:
        """The value of `saved`, for an entry of this log."""
        self.awaited.append(entry.seq)
        return self.saved

    def close(self) -> bool:
        """The value of `saved`."""
        self.is_closed = True
        return self.saved
