"""Finds the sessions of a folder that changed files, to undo one that is not the last."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple, Protocol

import msgspec

from bradawl.agent.changes import files_it_may_change
from bradawl.app.rendering import cut
from bradawl.app.undo_line import LAST_SESSION, UndoLine
from bradawl.app.undo_text import changes_text, time_text
from bradawl.checkpoints.record import Change
from bradawl.core.errors import SessionError
from bradawl.core.events import Envelope, HeadMoved
from bradawl.folds.undo_history import CallChange, undo_history
from bradawl.folds.unknown_changes import calls_by_agent

_RECORD: Final = re.compile(rb'"checkpoint_ref":"[0-9A-Za-z]')
"""In a line of a session's log: a call whose changes were saved, or an undo."""
_MOVE: Final = re.compile(rb'"type":"HeadMoved"')
_MOST_BYTES: Final = 500_000_000
"""Of logs that a search for a hint reads: about a second."""
_MOST_LISTED_BYTES: Final = 5_000_000_000
_MOST_LISTED: Final = 40
_MOST_NAMED: Final = 2
_WIDTH: Final = 100


class Summary(Protocol):
    """A session as a store of sessions lists it."""

    @property
    def id(self) -> str:
        """Its ULID."""
        ...

    @property
    def modified_s(self) -> float:
        """Unix time of its last entry, in seconds."""
        ...

    @property
    def preview(self) -> str:
        """The beginning of its first prompt, on one line; may be empty."""
        ...


class SessionLogs(NamedTuple):
    """How the logs of a folder's sessions are read."""

    containing: Callable[[re.Pattern[bytes], int, float], Iterable[Summary]]
    """The sessions with a match and written since a Unix time, the last first; ends when so many bytes are read."""
    entries: Callable[[str], tuple[Envelope, ...]]
    """All entries of a session. Raises `SessionError`."""
    interrupted: Callable[[], Iterable[Summary]] = tuple
    """The sessions in which a call was started and its turn has not ended, the last first."""


class ChangedSession(msgspec.Struct, frozen=True):
    """A session with changes that are not undone."""

    id: str
    modified_s: float
    """Unix time of its last entry, in seconds."""
    prompt: str
    """The beginning of its first prompt, on one line; may be empty."""
    changes: tuple[Change, ...] | None
    """What they are together; None if they are not kept any more."""
    is_interrupted: bool = False
    """Whether calls did not end, and nothing else is known to have changed: undo searches for what they changed."""


class ChangedSessions:
    """The sessions of a folder with changes that are not undone, the last written first."""

    def __init__(
        self, logs: SessionLogs, changes_of: Callable[[Sequence[CallChange]], tuple[Change, ...] | None]
    ) -> None:
        """`changes_of` reads the changes of calls as one; None if they are not kept any more."""
        self._logs = logs
        self._changes_of = changes_of

    def find(self, most_bytes: int = _MOST_BYTES) -> Iterator[ChangedSession]:
        """Read one log after the other, at most so many bytes. A log that can't be read is passed over."""
        interrupted = {each.id: each for each in self._logs.interrupted()}
        changed = self._logs.containing(_RECORD, most_bytes, 0.0)
        seen: set[str] = set()
        for found in merge(changed, interrupted.values(), key=lambda each: each.modified_s, reverse=True):
            if found.id in seen:
                continue
            seen.add(found.id)
            try:
                entries = self._logs.entries(found.id)
            except SessionError:
                continue
            calls = [call for call in undo_history(entries).applied if call.ref]
            if calls and (changes := self._changes_of(calls)) != ():
                yield ChangedSession(found.id, found.modified_s, found.preview, changes)
            elif found.id in interrupted and _may_have_changed(entries):
                yield ChangedSession(found.id, found.modified_s, found.preview, None, is_interrupted=True)

    def listed(self, line: UndoLine = LAST_SESSION) -> str:
        """A line for each of the last 40 sessions, and how to undo one in the folders of `line`."""
        found = [_line(each) for each in islice(self.find(_MOST_LISTED_BYTES), _MOST_LISTED)]
        if not found:
            return "No session of this folder has changed files that undo can restore."
        one = UndoLine(session="SESSION", places=line.places)
        how = f"`{one.command()}` undoes the last step of a session, `{one.command('--list')}` lists its steps."
        return "\n".join((*found, how))

    def others_text(self, session_id: str, line: UndoLine = LAST_SESSION) -> str:
        """A sentence that names the last sessions but this one, and the command that undoes one; empty if none."""
        others = islice((each for each in self.find() if each.id != session_id), _MOST_NAMED)
        named = {each.id: f"{each.id} ({_details(each)})" for each in others}
        if not named:
            return ""
        first, all_of = UndoLine(session=next(iter(named)), places=line.places), UndoLine(places=line.places)
        return (
            f"Other sessions of this folder changed files: {', '.join(named.values())}. "
            f"`{first.command()}` undoes the last step of that one, `{all_of.command('--sessions')}` lists all."
        )


def undo_refs(logs: SessionLogs, session_id: str, since_ms: int) -> Iterator[str]:
    """Names of the change records of undos and redos of other sessions since then. A damaged log is passed over."""
    for found in logs.containing(_MOVE, _MOST_BYTES, since_ms / 1000):
        if found.id == session_id:
            continue
        with suppress(SessionError):
            for entry in logs.entries(found.id):
                if isinstance(entry.event, HeadMoved) and entry.event.checkpoint_ref and entry.at >= since_ms:
                    yield entry.event.checkpoint_ref


def _may_have_changed(entries: Iterable[Envelope]) -> bool:
    calls = calls_by_agent(entries).values()
    return any(files_it_may_change(effects) != () for each in calls for effects in each.values())


def _line(session: ChangedSession) -> str:
    return cut(f"{session.id}  {_time(session)}  {_changes(session)}  {session.prompt}", _WIDTH)


def _changes(session: ChangedSession) -> str:
    return "a call did not end" if session.is_interrupted else changes_text(session.changes)


def _details(session: ChangedSession) -> str:
    prompt = f', "{cut(session.prompt, 40)}"' if session.prompt else ""
    return f"{_time(session)}{prompt}, {_changes(session)}"


def _time(session: ChangedSession) -> str:
    return time_text(int(session.modified_s * 1000))
