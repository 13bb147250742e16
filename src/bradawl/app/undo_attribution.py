"""Tells the changes of a call from what other sessions and the user may have changed while it ran."""

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec import structs

from bradawl.app.undo_plan import UndoRefused
from bradawl.app.undo_text import label_of
from bradawl.checkpoints.errors import ContentGone
from bradawl.checkpoints.file_states import is_same
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.core.effects import is_within
from bradawl.folds.undo_history import CallChange

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import PlannedChange, RestorePlan
    from bradawl.checkpoints.store import ContentStore

Restores = Callable[[int], Sequence[ChangeRecord]]
"""The records of what undos and redos of other sessions restored since a Unix time in milliseconds."""
_LONG_S: Final = 5.0
"""A shorter command leaves a user no time for an edit."""
_RESTORE_MS: Final = 10_000
"""How long a restore may have taken whose record does not say when it began."""
_CLOCK_STEP_NS: Final = 20_000_000
"""Kernels count time in steps of up to 10 ms."""
_NOT_NAMED: Final = "it changed while a command ran that does not name it: maybe you or another program changed it"


def no_restores(_since_ms: int) -> Sequence[ChangeRecord]:
    """No other session restores files."""
    return ()


def records_of(calls: Sequence[CallChange], store: "ContentStore", restores: Restores) -> list[ChangeRecord]:
    """The change records of calls, the newest first, without what other sessions restored meanwhile.

    Raises `UndoRefused` for a call whose record is not kept, `StoreError` and `OSError`.
    """
    saved = [(call, _record_of(call, store)) for call in reversed(calls) if call.ref]
    started = [call.started_ms for call, _ in saved if call.started_ms]
    restored = sorted(restores(min(started)), key=lambda record: record.at) if started else []
    return [_without(record, call, restored) for call, record in saved]


def _record_of(call: CallChange, store: "ContentStore") -> ChangeRecord:
    try:
        return store.record(call.ref)
    except ContentGone as error:
        text = f"What {label_of(call)} changed is not kept any more: undo no longer reaches so far back."
        raise UndoRefused(text) from error


def _without(record: ChangeRecord, call: CallChange, restored: Sequence[ChangeRecord]) -> ChangeRecord:
    """The record without the parts of its changes that restores made while the call ran."""
    meanwhile = [
        each for each in restored if call.started_ms and call.started_ms <= each.at and _began(each) <= record.at
    ]
    if not meanwhile:
        return record
    by_path: dict[bytes, list[Change]] = {}
    for each in meanwhile:
        for change in each.changes:
            by_path.setdefault(change.path, []).append(change)
    changes = (_own_part(change, by_path.get(change.path, ())) for change in record.changes)
    return structs.replace(record, changes=tuple(change for change in changes if change is not None))


def _began(restored: ChangeRecord) -> int:
    return restored.began_at or restored.at - _RESTORE_MS


def _own_part(change: Change, restored: Sequence[Change]) -> Change | None:
    """What the call itself changed before, between or after the restores of this path; None for nothing.

    The whole change if the states do not show where.
    """
    for place in range(len(restored), -1, -1):
        before, after = change.before, change.after
        if place > 0:
            before = restored[place - 1].after
        if place < len(restored):
            after = restored[place].before
        first, last = _is_chain(change.before, restored[:place]), _is_chain(change.after, restored[place:], at_end=True)
        if first and last:
            return None if is_same(before, after) else Change(change.path, before, after)
    return change


def _is_chain(outer: FileState | None, restored: Sequence[Change], *, at_end: bool = False) -> bool:
    """Whether each restore begins in the state in which the one before ends, and the first or last one in `outer`."""
    if not restored:
        return True
    joins = all(is_same(one.after, two.before) for one, two in pairwise(restored))
    return joins and is_same(restored[-1].after if at_end else restored[0].before, outer)


def unnamed_changes(calls: Sequence[CallChange], records: Sequence[ChangeRecord]) -> set[bytes]:
    """Paths that changed during calls that are known to write only others. `records` are the newest first."""
    found: set[bytes] = set()
    saved = [call for call in reversed(calls) if call.ref]
    for call, record in zip(saved, records, strict=True):
        if call.writes is not None:
            # A name may be a link now, which the command made.
            found |= _unnamed(record.changes, (*call.writes, *map(os.path.realpath, call.writes)))
    return found


def _unnamed(changes: Iterable[Change], writes: Sequence[str]) -> set[bytes]:
    named: list[Change] = []
    others: list[Change] = []
    for change in changes:
        path = os.fsdecode(change.path)
        is_named = any(is_within(path, each) or is_within(each, path) for each in writes)
        (named if is_named else others).append(change)
    if any(change.after is not None and change.after.kind == "link" for change in named):
        return set()  # a new link may have led the command elsewhere
    contents = {_contents(change) for change in named}  # another hard link of a file that is named
    return {change.path for change in others if _contents(change) not in contents}


def _contents(change: Change) -> tuple[str, str]:
    before, after = change.before, change.after
    return "" if before is None else before.content, "" if after is None else after.content


def with_unnamed_conflicts(files: "RestorePlan", unnamed: set[bytes]) -> "RestorePlan":
    """The plan in which the user is asked about these paths. Git's data and renames stay as they are."""

    def asked(change: "PlannedChange") -> "PlannedChange":
        is_free = change.conflict or change.source or change.path not in unnamed
        return change if is_free else structs.replace(change, conflict=_NOT_NAMED)

    return structs.replace(files, changes=tuple(map(asked, files.changes))) if unnamed else files


def without_mapped_conflicts(files: "RestorePlan", records: Sequence[ChangeRecord]) -> "RestorePlan":
    """The plan without conflicts at files that changed only through a memory mapping, whose time stays as it was.

    Such a file, like the `-shm` of a SQLite database, was mapped when its last change was recorded: its status has not
    changed since. `records` are the newest first. Git's data and renames stay as they are.
    """
    suspects = [each for each in files.changes if each.conflict and not each.source and each.now is not None]
    if not suspects:
        return files
    last: dict[bytes, tuple[int, FileState | None]] = {}
    for record in records:
        for change in record.changes:
            last.setdefault(change.path, (record.at, change.after))
    from bradawl.checkpoints.kept_copies import present_status
    from bradawl.checkpoints.opened_folders import FolderWalk

    with FolderWalk(files.roots) as walk:
        mapped = {
            each.path
            for each in suspects
            if each.path in last
            and _differ_in_content(each.now, last[each.path][1])
            and (found := present_status(walk, each.path)) is not None
            and found.st_ctime_ns < last[each.path][0] * 1_000_000 - _CLOCK_STEP_NS
        }
    changes = (structs.replace(each, conflict="") if each.path in mapped else each for each in files.changes)
    return structs.replace(files, changes=tuple(changes))


def _differ_in_content(now: FileState | None, recorded: FileState | None) -> bool:
    """Whether two states of a file differ in their saved contents and in nothing else."""
    if now is None or recorded is None or not now.content or not recorded.content:
        return False
    return now.content != recorded.content and structs.replace(now, content=recorded.content) == recorded


def long_calls_text(calls: Sequence[CallChange]) -> tuple[str, ...]:
    """A sentence for each call with changes during which the user may have changed files."""
    long = [call for call in calls if call.ref and call.writes is None and call.seconds >= _LONG_S]
    return tuple(
        f"{label_of(call)} ran for {call.seconds:,.0f} s: you or another program may have made some of these changes."
        for call in long
    )
