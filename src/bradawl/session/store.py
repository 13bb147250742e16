"""The store of one project's sessions: lists, opens, resumes and forks them.

<data>/projects/<slug>-<8 hex of sha256 of the folder>/sessions/<ulid>.jsonl, .lock, .torn
                                                      /blobs/<sha256>
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from bradawl.core.errors import SessionDamaged, SessionError, SessionNotFound
from bradawl.core.events import Envelope, Event, NameSet, SessionForked, SessionOpened, StateChanged
from bradawl.core.ports import Blobs, Clock, Ids, OpenSession
from bradawl.safety.name_lists import first_of
from bradawl.session.blobs import LocalBlobs, MemoryBlobs
from bradawl.session.encoding import Reader
from bradawl.session.journal import EntryNumbering, Journal, LoadedSession, MemoryLog, load
from bradawl.session.summaries import (
    HEAD_BYTES,
    PROMPT,
    SessionSummary,
    can_be_opened,
    head_of,
    newest_first,
    preview_of,
    project_folder,
    summaries_of,
)

_PIECE_BYTES = 1024 * 1024
_LONGEST_MATCH = 64
_SHORTEST_PREFIX = 6
_MOST_NAMED = 3
_OWN_PROMPT = b'"agent":"main","event":{"type":"PromptSubmitted"'
_NAME = b'"state":{"type":"NameSet"'
_STARTED = b'"type":"ToolStarted"'
_FINISHED = b'"type":"TurnFinished"'
_CLOSED = b'"type":"TurnFinished","reason":"interrupted"'
"""The end of a turn that a resume has closed."""
_TAKEN = b'"type":"CheckpointTaken"'
_FORK = b'"type":"SessionForked"'


class SessionDetails(msgspec.Struct, frozen=True):
    """What is found in a session's file only by reading all of it."""

    prompts: int
    """Prompts of the user, without those of the session it was forked from."""
    name: str
    """The user's name for it; empty for none."""
    forked_from: str
    """Id of the session that it continues; empty for none."""


class LocalStore:
    """`SessionStore` in the user's data folder, for one project. It accesses the disk only when used."""

    def __init__(
        self,
        data_dir: str | Path,
        project_path: str | Path,
        clock: Clock,
        ids: Ids,
        *,
        opened: Callable[[str], None] | None = None,
    ) -> None:
        """`opened` is called with the id of each saved session that is opened while no other one of the store is."""
        self._opened = opened
        self._open_journals: list[Journal] = []
        self._projects = Path(data_dir) / "projects"
        folder = project_folder(Path(data_dir), os.path.realpath(project_path))
        self._sessions = folder / "sessions"
        self._blobs_folder, self._records = folder / "blobs", folder / "records"
        self._clock = clock
        self._ids = ids

    def of(self, project_path: str | Path) -> "LocalStore":
        """The store of another project in the same data folder."""
        return LocalStore(self._projects.parent, project_path, self._clock, self._ids)

    def create(self) -> OpenSession:
        """A new, empty session. If it can't be written it is kept in memory, with a notice."""
        session_id = self._ids.ulid()
        try:
            journal = Journal.create(self.path(session_id), self._clock)
        except OSError as error:
            log = MemoryLog(session_id, self._clock)
            return OpenSession(log, MemoryBlobs(), (), (_not_saved(error),), lambda: tuple(log.entries))
        notices = (journal.notice,) if journal.notice else ()
        self._has_opened(journal)
        read, records = partial(self._read_open, journal), self._records_of(session_id)
        return OpenSession(journal, self._blobs_of(journal), (), notices, read, records)

    def _has_opened(self, journal: Journal) -> None:
        self._open_journals = [each for each in self._open_journals if not each.is_closed]
        if self._opened is not None and not self._open_journals:
            self._opened(journal.session_id)
        self._open_journals.append(journal)

    def open(self, session_id: str) -> OpenSession:
        """Resume a session, by its id or a unique prefix of it.

        If the file can be read but not written, new entries are kept in memory, with a notice.
        Raises `SessionNotFound`, `SessionBusy`, `SessionDamaged`.
        """
        path = self.path(self._find(session_id))
        try:
            journal, loaded, notices = Journal.resume(path, self._clock)
        except OSError as error:
            return self._open_unwritable(path, error)
        except SessionDamaged as error:
            raise SessionDamaged(f"{error} The file is {path}.") from error
        base, more = self._base_of(loaded, {path.stem})
        entries = (*base, *loaded.entries)
        read = partial(self._read_open, journal)
        self._has_opened(journal)
        records = self._records_of(journal.session_id)
        return OpenSession(journal, self._blobs_of(journal), entries, (*notices, *more), read, records)

    def latest(self) -> str | None:
        """Id of the session written last, among the readable ones with a prompt."""
        return next((path.stem for path, _ in self._newest_first() if _has_prompt(path)), None)

    def list(self) -> tuple[SessionSummary, ...]:
        """All readable sessions, the last written first; reads only the beginning of each file."""
        return tuple(summaries_of(self._newest_first()))

    def containing(self, text: re.Pattern[bytes], most_bytes: int, since_s: float = 0.0) -> Iterator[SessionSummary]:
        """Readable sessions written since a Unix time with a match in their file, the last written first.

        Ends when so many bytes of files are read. A match must be shorter than 64 bytes.
        """
        for path, stat in self._newest_first():
            if most_bytes <= 0 or stat.st_mtime < since_s:
                return
            with suppress(OSError):
                most_bytes -= stat.st_size
                if _contains(path, text) and can_be_opened(head := head_of(path)):
                    yield SessionSummary(path.stem, stat.st_mtime, stat.st_size, preview_of(head))

    def interrupted(self) -> Iterator[SessionSummary]:
        """Readable sessions in which a call was started and its turn has not ended, the last written first.

        The program was killed then, or still runs; or it was killed again before it knew what the call had changed.
        Reads the beginning and the end of each file.
        """
        for path, stat in self._newest_first():
            with suppress(OSError):
                end = _tail(path, stat.st_size)
                if _is_interrupted(end) and can_be_opened(head := head_of(path)):
                    yield SessionSummary(path.stem, stat.st_mtime, stat.st_size, preview_of(head))

    def details(self, session_id: str) -> SessionDetails:
        """What a list of sessions shows beside the summary; reads the whole file. Raises `OSError`."""
        prompts, name, forked_from = 0, "", ""
        with self.path(session_id).open("rb") as file:
            for line in file:
                if _OWN_PROMPT in line:
                    prompts += 1
                elif _NAME in line or (not prompts and _FORK in line):
                    event = _event_in(line)
                    if isinstance(event, StateChanged) and isinstance(event.state, NameSet):
                        name = event.state.name
                    elif isinstance(event, SessionForked):
                        forked_from = event.session
        return SessionDetails(prompts, name, forked_from)

    def path(self, session_id: str) -> Path:
        """The file of a session, by its whole id; it need not exist."""
        return self._sessions / f"{session_id}.jsonl"

    def entries(self, session_id: str) -> tuple[Envelope, ...]:
        """All entries of a session, also of one that is open in another program. Raises `SessionError`."""
        return self._read(session_id)

    def _blobs_of(self, journal: Journal) -> Blobs:
        blobs = LocalBlobs(self._blobs_folder)
        journal.blobs = blobs
        return blobs

    def _records_of(self, session_id: str) -> Blobs:
        return LocalBlobs(self._records / session_id)

    def _open_unwritable(self, path: Path, error: OSError) -> OpenSession:
        try:
            loaded = load(path)
        except OSError as unreadable:
            raise SessionError(f"Session {path.stem} can't be read: {unreadable.strerror}: {path}") from unreadable
        base, more = self._base_of(loaded, {path.stem})
        reader = loaded.reader
        log = MemoryLog(path.stem, self._clock, EntryNumbering(reader.next_seq, reader.last))
        blobs = FallbackBlobs(LocalBlobs(self._blobs_folder))
        notices = (*reader.notices(), *more, _not_saved(error))
        entries = (*base, *loaded.entries)
        return OpenSession(log, blobs, entries, notices, lambda: (*entries, *log.entries))

    def _read_open(self, journal: Journal) -> tuple[Envelope, ...]:
        """All entries of the journal's session that are in its file, or can be written now. Raises `SessionError`."""
        journal.flush()
        return self._read(journal.session_id)

    def _read(self, session_id: str) -> tuple[Envelope, ...]:
        """All entries of a session in its file. Raises `SessionError`."""
        path = self.path(session_id)
        try:
            loaded = load(path)
        except OSError as error:
            raise SessionError(f"Session {session_id} can't be read: {error.strerror}: {path}") from error
        base, _ = self._base_of(loaded, {session_id})
        return (*base, *loaded.entries)

    def _base_of(self, loaded: LoadedSession, seen: set[str]) -> tuple[tuple[Envelope, ...], tuple[str, ...]]:
        """The entries that a fork continues, which may be a fork's too, and notices."""
        opening = loaded.entries[0] if loaded.entries else None
        if opening is None or not isinstance(opening.event, SessionForked):
            return (), ()
        origin, seq = opening.event.session, opening.event.seq
        missing = f"The session this one was forked from, {origin[:40]!r}, can't be read: its history is missing."
        if origin in seen or not origin.isalnum():
            return (), (missing,)
        try:
            base = load(self.path(origin))
        except (OSError, SessionDamaged):
            return (), (missing,)
        parent = base.reader.nearest(seq)
        if parent != opening.parent:
            loaded.entries = (msgspec.structs.replace(opening, parent=parent), *loaded.entries[1:])
        older, notices = self._base_of(base, {*seen, origin})
        kept = tuple(entry for entry in base.entries if entry.seq <= seq)
        return (*older, *kept), (*notices, *base.reader.notices())

    def _find(self, wanted: str) -> str:
        """The one id that `wanted` stands for. Raises `SessionNotFound`, with similar ids."""
        wanted = wanted.strip()
        self._check_readable()
        ids = [path.stem for path, _ in self._newest_first()]
        is_name = wanted.isascii() and wanted.isalnum() and len(wanted) >= _SHORTEST_PREFIX
        matches = [name for name in ids if name.upper().startswith(wanted.upper())] if is_name else []
        exact = [name for name in matches if len(name) == len(wanted)]
        if len(exact or matches) == 1:
            return (exact or matches)[0]
        if matches:
            raise SessionNotFound(
                f"{wanted} is the beginning of several sessions: {first_of(matches, _MOST_NAMED)}. Give more of it."
            )
        if not is_name:
            what = f"{wanted[:60]!r} is not a session id (at least {_SHORTEST_PREFIX} of its letters and digits)."
        else:
            what = self._elsewhere(wanted) or f"There is no session {wanted} in this folder."
        near = sorted(ids, key=lambda name: _common_prefix_length(name.upper(), wanted.upper()), reverse=True)
        hint = f"The nearest here: {first_of(near, _MOST_NAMED)}." if near else "This folder has no sessions yet."
        raise SessionNotFound(f"{what} {hint}")

    def _check_readable(self) -> None:
        """Raises `SessionError` if the folder can't be read, instead of reporting no sessions."""
        try:
            os.scandir(self._sessions).close()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise SessionError(f"The sessions can't be read: {error.strerror}: {self._sessions}") from error

    def _elsewhere(self, wanted: str) -> str:
        """A hint if the id belongs to a session of another project; else empty."""
        with suppress(OSError, SessionError, StopIteration):
            path = next(self._projects.glob(f"*/sessions/{wanted.upper()}*.jsonl"))
            first = head_of(path).partition(b"\n")[0]
            event = Reader().feed(first)[0].event
            if isinstance(event, SessionOpened | SessionForked) and event.project:
                there = f"Session {path.stem} belongs to the folder {event.project}"
                if Path(event.project).is_dir():
                    return f"{there}: go on with it there."
                return (
                    f"{there}, which does not exist any more. If that folder was renamed or moved, move it back first: "
                    "a session and its undo belong to the path of their folder."
                )
        return ""

    def _newest_first(self) -> Iterator[tuple[Path, os.stat_result]]:
        return newest_first(self._sessions)


def _common_prefix_length(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))


def _not_saved(error: OSError) -> str:
    where = f": {error.filename}" if error.filename else ""
    return f"history is not saved: {error.strerror or error}{where}"


def _tail(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, size - HEAD_BYTES))
        return file.read(HEAD_BYTES)


def _contains(path: Path, text: re.Pattern[bytes]) -> bool:
    """Whether a file has a match. Raises `OSError`."""
    last = b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            if text.search(last + piece):
                return True
            last = piece[-_LONGEST_MATCH:]
    return False


def _event_in(line: bytes) -> Event | None:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(line, type=Envelope).event
    return None


def _is_interrupted(end: bytes) -> bool:
    finished = end.rfind(_FINISHED)
    is_closed_later = finished >= 0 and end.rfind(_CLOSED) == finished > end.rfind(_TAKEN)
    return is_closed_later or end.rfind(_STARTED) > finished


def _has_prompt(path: Path) -> bool:
    """True if the file is a session with a prompt; reads up to the first one."""
    try:
        head = head_of(path)
        if not can_be_opened(head):
            return False
        if PROMPT in head or _FORK in head.partition(b"\n")[0]:
            return True
        with path.open("rb") as file:
            return any(PROMPT in line for line in file)
    except OSError:
        return False


class FallbackBlobs(MemoryBlobs):
    """Reads existing blobs from the disk and keeps new ones in memory, for a session that can't be written."""

    def __init__(self, saved: Blobs) -> None:
        super().__init__()
        self._saved = saved

    def get(self, ref: str) -> bytes:
        """The data, from memory or else from the disk. Raises `SessionError`."""
        try:
            return super().get(ref)
        except SessionError:
            return self._saved.get(ref)

    def path(self, ref: str) -> str:
        """The path of a blob on the disk. Raises `SessionError`."""
        return self._saved.path(ref)
