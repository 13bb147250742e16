"""Restores files for undo so that a restore which is killed can be finished or taken back: see `restore_intent`."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from bradawl.app.undo_armed import with_armed_conflicts
from bradawl.app.undo_attribution import (
    Restores,
    records_of,
    unnamed_changes,
    with_unnamed_conflicts,
    without_mapped_conflicts,
)
from bradawl.app.undo_completed import with_completing_conflicts
from bradawl.app.undo_jobs import changes_in_doubt, with_conflicts_in_doubt
from bradawl.app.undo_line import UndoLine
from bradawl.app.undo_plan import UndoPlan, UndoRefused, UndoStopped
from bradawl.app.undo_text import not_written_text, stopped_text
from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.core.errors import BradawlError
from bradawl.folds.undo_history import CallChange, UndoHistory, Undone

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import RestorePlan
    from bradawl.checkpoints.restore_intent import RestoreIntent
    from bradawl.checkpoints.store import ContentStore


class FilePlans:
    """Plans what restoring files would do. Each method changes nothing, and raises `UndoRefused` and `StoreError`."""

    def __init__(
        self,
        store: "ContentStore",
        roots: Sequence[bytes],
        restores: Restores,
        abandoned: Callable[[], Sequence[ChangeRecord]],
    ) -> None:
        """`restores` finds what undos of other sessions restored, `abandoned` what those of this one that stopped did.

        The store belongs to the caller.
        """
        self._store = store
        self._roots = roots
        self._restores = restores
        self._abandoned = abandoned

    def of_records(self, refs: Sequence[str]) -> "RestorePlan | None":
        """The plan for change records, the newest first."""
        if not any(refs):
            return None
        with refusing_for_the_store(self._store):
            files = self._plan([self._store.record(ref) for ref in refs if ref], None)
            return with_completing_conflicts(files, self._store)

    def of_calls(
        self,
        calls: Sequence[CallChange],
        rest: ChangeRecord | None = None,
        undone: Sequence[CallChange] = (),
    ) -> "RestorePlan | None":
        """The plan for calls, the oldest first, without what others may have changed while they ran.

        `rest` is what the last undo could not restore of the calls `undone`. The user is asked about it as if it were
        not undone yet: a file in a folder that was not added then was not asked about.
        """
        if rest is None and not any(call.ref for call in calls):
            return None
        with refusing_for_the_store(self._store):
            records = records_of(calls, self._store, self._restores)
            files = without_mapped_conflicts(self._plan(records, rest), records)
            files = self._with_doubts(files, calls, records)
            if rest is not None:
                left = {change.path for change in rest.changes}
                kept = [call for call in undone if changes_of([call], self._store) is not None]
                files = self._with_doubts(files, kept, records_of(kept, self._store, self._restores), left)
            return with_completing_conflicts(with_armed_conflicts(files, self._store), self._store)

    def _with_doubts(
        self,
        files: "RestorePlan",
        calls: Sequence[CallChange],
        records: Sequence[ChangeRecord],
        among: set[bytes] | None = None,
    ) -> "RestorePlan":
        """The plan in which the user is asked about what others may have changed; with `among` about these alone."""
        unnamed, jobs = unnamed_changes(calls, records), changes_in_doubt(calls, records, self._store)
        if among is not None:
            unnamed, jobs = unnamed & among, {path: job for path, job in jobs.items() if path in among}
        return with_conflicts_in_doubt(with_unnamed_conflicts(files, unnamed), jobs)

    def _plan(self, records: Sequence[ChangeRecord], rest: ChangeRecord | None) -> "RestorePlan":
        from bradawl.checkpoints import restore

        every = [*([] if rest is None else [rest]), *records]
        return restore.plan(self._store, every, self._roots, abandoned=self._abandoned())


class SessionRestores:
    """The restores of one session, of which at most one is unfinished. `close` leaves it for later."""

    def __init__(self, store: "ContentStore", roots: Sequence[bytes], session: str, line: UndoLine) -> None:
        """`session` is an id; texts that name commands repeat `line`. The store belongs to the caller."""
        from bradawl.checkpoints.restore_intent import RestoreIntents

        self._store = store
        self._roots = roots
        self._session = session
        self._line = line
        self._intents = RestoreIntents(store.folder)

    def unfinished(self) -> "RestoreIntent | None":
        """The restore that began last, unless `finished` was called. Raises `UndoRefused`."""
        with refusing_for_the_store(self._store):
            return self._intents.read(self._session)

    def unfinished_elsewhere(self) -> "tuple[RestoreIntent, ...]":
        """Those of other sessions of the project that do not run. Raises `UndoRefused`."""
        with refusing_for_the_store(self._store):
            return tuple(each for each in self._intents.left_over() if each.session != self._session)

    def unrestored(self, history: UndoHistory) -> tuple[Undone | None, ChangeRecord | None]:
        """The last undo of files and a record of what it could not restore; None for each if there is none."""
        last = next((each for each in reversed(history.undone) if each.part != "talk" and each.ref), None)
        if last is not None:
            with contextlib.suppress(StoreError):  # dropped to keep the quota
                record = self._store.record(last.ref)
                if record.unrestored:
                    return last, ChangeRecord("", record.at, record.unrestored)
        return None, None

    def abandoned(self) -> tuple[ChangeRecord, ...]:
        """Records of the restores that stopped and were neither finished nor taken back. Raises `UndoRefused`."""
        found: list[ChangeRecord] = []
        with refusing_for_the_store(self._store):
            for ref in self._intents.abandoned(self._session):
                with contextlib.suppress(StoreError):  # dropped to keep the quota
                    found.append(self._store.record(ref))
        return tuple(found)

    def restore(
        self, plan: UndoPlan, files: "RestorePlan", overwrite: Collection[bytes], should_stop: Callable[[], bool]
    ) -> tuple[ChangeRecord, str]:
        """Restore files; returns what changed, and the name of the record of the whole undo.

        Raises `UndoRefused` with nothing changed, `UndoStopped`, `RestoreRefused` and `StoreError`.
        """
        from bradawl.checkpoints import restore, restore_intent
        from bradawl.checkpoints.disk_sync import sync_changes
        from bradawl.checkpoints.errors import RestoreStopped

        earlier, temporary = self.unfinished(), restore_intent.new_temporary_name()
        begun = None if plan.resumes is None else self._store.record(plan.resumes.ref)
        self._remove_temporary_files(earlier)
        ref = ""

        def begin(intended: ChangeRecord, opened: tuple[tuple[bytes, int], ...]) -> None:
            nonlocal ref
            ref = self._store.save_record(begun if begun is not None and plan.takes_back else _as_one(begun, intended))
            self._store.flush()
            if plan.resumes is None:
                self._intents.abandon(self._session)
            self._intents.write(self._intent_of(plan, ref, temporary, opened))

        with refusing_for_the_store(self._store):
            try:
                record = restore.apply(
                    files,
                    self._store,
                    overwrite=overwrite,
                    begin=begin,
                    temporary=temporary,
                    should_stop=should_stop,
                )
            except RestoreStopped as error:
                raise UndoStopped(stopped_text(plan, error.done, error.total, self._line)) from error
        whole = _as_one(begun, record)
        try:
            sync_changes(whole.changes, self._store.folder, self._roots)
        except OSError as error:
            raise UndoStopped(not_written_text(plan, error)) from error
        if earlier is not None:
            restore_intent.close_opened_folders(earlier, self._roots)
        with contextlib.suppress(OSError):  # the intended record says nearly the same
            ref = self._store.save_record(whole)
            self._store.flush()
        return record, ref

    def _intent_of(
        self, plan: UndoPlan, ref: str, temporary: bytes, opened: tuple[tuple[bytes, int], ...]
    ) -> "RestoreIntent":
        from bradawl.checkpoints.restore_intent import RestoreIntent

        if plan.resumes is not None:
            both = dict((*opened, *plan.resumes.opened))
            return structs.replace(plan.resumes, ref=ref, temporary=temporary, opened=tuple(both.items()))
        part = "code" if plan.part == "code" else "both"
        step = "" if plan.step is None else plan.step.name
        return RestoreIntent(self._session, plan.kind, part, plan.to, plan.head, step, ref, temporary, opened)

    def _remove_temporary_files(self, earlier: "RestoreIntent | None") -> None:
        """Remove what a restore that was killed left between its files."""
        from bradawl.checkpoints.restore_intent import remove_temporary_files

        if earlier is not None:
            with contextlib.suppress(BradawlError):
                changes = self._store.record(earlier.ref).changes
                remove_temporary_files(earlier, [each.path for each in changes], self._roots)

    def finished(self) -> None:
        """The log has the restore."""
        with contextlib.suppress(OSError):  # the log shows that it is over
            self._intents.remove(self._session)

    def close(self) -> None:
        """Let others finish a restore that stopped; safe to call twice."""
        self._intents.close()


@contextlib.contextmanager
def refusing_for_the_store(store: "ContentStore") -> Iterator[None]:
    """Raises `UndoRefused` for an `OSError` of the store's folder."""
    try:
        yield
    except OSError as error:
        why = error.strerror or str(error)
        raise UndoRefused(
            f"Nothing was restored: {store.folder.path}, where undo keeps what it saves, can't be used ({why}). "
            "Free some space there or make it writable, then try again."
        ) from error


def _as_one(begun: ChangeRecord | None, record: ChangeRecord) -> ChangeRecord:
    """What one undo does in all its runs. What it could not restore is no gap for a redo, so that is left out."""
    changes = merged([record] if begun is None else [begun, record])
    began_at = (begun or record).began_at
    return ChangeRecord("", record.at, changes, unrestored=record.unrestored, began_at=began_at)


def merged(records: Sequence[ChangeRecord]) -> tuple[Change, ...]:
    """The changes of records, the oldest first, as one: the first state before and the last after. Sorted by path."""
    states: dict[bytes, tuple[FileState | None, FileState | None]] = {}
    for record in records:
        for change in record.changes:
            before = states[change.path][0] if change.path in states else change.before
            states[change.path] = before, change.after
    return tuple(Change(path, before, after) for path, (before, after) in sorted(states.items()) if before != after)


def changes_of(calls: Sequence[CallChange], store: "ContentStore") -> tuple[Change, ...] | None:
    """The changes of calls, as one; None if their records are not kept any more."""
    try:
        return merged([store.record(call.ref) for call in calls if call.ref])
    except BradawlError:
        return None
