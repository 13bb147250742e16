"""Finds what calls changed that ran, or were not searched, when an earlier agent ended."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bradawl.checkpoints import index_files
from bradawl.checkpoints.call_journal import LeftJournal, left_journal
from bradawl.checkpoints.errors import LOST, StoreError
from bradawl.checkpoints.file_states import is_same
from bradawl.checkpoints.index_files import Answer, InterruptedIndex, Paths
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore
from bradawl.checkpoints.store_folder import wait_for_end
from bradawl.checkpoints.tree import WorkspaceTree

_ENDING_S: Final = 5.0
"""Seconds that a search process may take to its end after its agent was killed."""


class _Doubts(NamedTuple):
    """Sentences about the changes of a call that was interrupted."""

    found: str
    """If its changes are found."""
    unknown: str
    """If there is nothing to compare with."""


_AGENT_ENDED: Final = _Doubts(
    "The agent ended while it ran: some of these changes may have been made by the user since.",
    "The agent ended while it ran: what it changed is not known.",
)
_PROCESS_ENDED: Final = _Doubts(
    "The process that finds changes ended while it ran: some of these changes may have been made by the user.", LOST
)


class _Question(NamedTuple):
    call_id: str
    since: tuple[Answer, ...]
    """What the asking process found itself, which is left out."""
    doubts: _Doubts

    def unknown(self) -> Answer:
        """The answer if there is nothing to compare with."""
        return Answer(self.call_id, "", self.doubts.unknown, True, is_known=False)


class InterruptedCalls:
    """Calls that an earlier process has begun, and that no checkpoint is logged for."""

    def __init__(self, folder: Path, store: ContentStore, new_tree: Callable[[bytes], WorkspaceTree]) -> None:
        """`folder` is that of the store, `new_tree` makes a tree for an index."""
        self._folder = folder
        self._store = store
        self._new_tree = new_tree
        self._taken_over: set[str] = set()
        """Records of earlier processes, which may be older than their index."""

    def find(self, call_id: str, since: Iterable[Answer] = (), *, was_lost: bool = False) -> tuple[Answer, ...]:
        """What the call changed; the last part has `answers_end`. Raises `OSError` if the store can't be written.

        What its process has not found is late: see `ChangeRecord`. If that process still searches, it is waited for.
        What this process found `since` is left out. `was_lost`: its process ended, and not its agent.
        """
        own = tuple(each for each in since if each.ref not in self._taken_over)
        found = self._find(_Question(call_id, own, _PROCESS_ENDED if was_lost else _AGENT_ENDED))
        self._taken_over.update(each.ref for each in found)
        return found

    def _find(self, asked: _Question) -> tuple[Answer, ...]:
        call_id = asked.call_id
        if (journal := left_journal(self._folder, call_id)) is not None:
            wait_for_end(self._folder, journal.process, _ENDING_S)
            journal = left_journal(self._folder, call_id)
        answers, saved_ns = index_files.saved_answers(self._folder, call_id)
        before = index_files.interrupted_index(self._folder, call_id)
        journal_ns = 0 if journal is None else journal.written_ns
        before_ns = 0 if before is None else before.saved_ns
        if any(each.answers_end for each in answers) and saved_ns > max(before_ns, journal_ns):
            return answers
        if before is not None and before_ns > journal_ns:
            return self._find_by_index(asked, before)
        if journal is not None:
            return self._find_by_journal(asked, journal)
        return (*answers, asked.unknown())

    def _find_by_index(self, asked: _Question, before: InterruptedIndex) -> tuple[Answer, ...]:
        answers = before.answers(asked.call_id)
        found = self._searched(asked, before.index, before.calls[asked.call_id], before.found)
        self._store.flush()
        index_files.save_answers(self._folder, before.process, (found,))  # the agent may be killed before it logs it
        before.add(found)
        return (*answers, found)

    def _find_by_journal(self, asked: _Question, journal: LeftJournal) -> tuple[Answer, ...]:
        name = asked.call_id
        answers = tuple(each for each in journal.answers(name) if not each.ref or self._record(each.ref) is not None)
        if any(each.answers_end for each in answers):
            return answers
        found = self._searched(asked, journal.index(), journal.paths_of(name), journal.found())
        journal.add(found)
        return (*answers, found)

    def _searched(self, asked: _Question, known: bytes | None, paths: Paths, found: Sequence[Answer]) -> Answer:
        """Compare the workspace with an index, without what was found since."""
        tree = self._new_tree(known or b"")
        try:
            if not tree.is_listed:
                return asked.unknown()
            changes, gaps = tree.changes(paths)
            refs = dict.fromkeys(each.ref for each in (*found, *asked.since) if each.ref)
            records = [record for each in refs if (record := self._record(each)) is not None]
            changes = later_changes(changes, records, paths)
        finally:
            tree.close()
        sentences = (*((asked.doubts.found,) if changes else ()), *gaps)
        ref = self._save(asked.call_id, changes, sentences) if changes else ""
        return Answer(asked.call_id, ref, " ".join(sentences), True)

    def _save(self, call_id: str, changes: tuple[Change, ...], sentences: tuple[str, ...]) -> str:
        bare_id = call_id.partition("/")[2] or call_id
        return self._store.save_record(ChangeRecord(bare_id, int(time.time() * 1000), changes, sentences, is_late=True))

    def _record(self, ref: str) -> ChangeRecord | None:
        """A record; None if it did not reach the disk."""
        with contextlib.suppress(StoreError):
            return self._store.record(ref)
        return None


def later_changes(
    changes: Sequence[Change], records: Sequence[ChangeRecord], paths: Paths = None
) -> tuple[Change, ...]:
    """What changed after the records, sorted by path, given what changed since before them.

    The oldest record comes first. With `paths`, `changes` are those of these files and folders alone.
    """
    found = {change.path: change for change in changes}
    recorded: dict[bytes, tuple[FileState | None, FileState | None]] = {}
    for change in (change for record in records for change in record.changes):
        if _is_in(change.path, paths):
            first = recorded[change.path][0] if change.path in recorded else change.before
            recorded[change.path] = first, change.after
    later = {path: change for path, change in found.items() if path not in recorded}
    for path, (first, last) in recorded.items():
        now = found[path].after if path in found else first
        if not is_same(last, now):
            later[path] = Change(path, last, now)
    return tuple(later[path] for path in sorted(later))


def _is_in(path: bytes, paths: Paths) -> bool:
    above = None if paths is None else [os.fsencode(each) for each in paths]
    return above is None or any(path == each or path.startswith(each + b"/") for each in above)
