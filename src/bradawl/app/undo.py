"""Undo of a session's steps: lists them, plans what goes back, restores files and moves the conversation.

    with build_undo(session, settings) as undo:     # of bradawl.app.build.undo
        plan = await undo.plan()                    # a dry run: nothing has changed yet
        outcome = await undo.carry_out(plan)

All front ends and embedding programs use this module. The texts for users are in `undo_text`.
"""

import os
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, Self

from bradawl.app.undo_diff import Compare, diff_text
from bradawl.app.undo_plan import UndoOutcome, UndoPlan, conflicts_of
from bradawl.app.undo_text import note_for_model
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.core.errors import BradawlError
from bradawl.folds.undo_history import CallChange, Part, UndoHistory, Undone, UndoStep, undo_history

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.checkpoints.restore import RestorePlan
    from bradawl.checkpoints.store import ContentStore

_OWNER: Final = "undo"
_CALL: Final = f"{_OWNER}/restore"
"""Names the restoring to the scanner, as if it were a call."""


class UndoRefused(BradawlError):
    """Undo can't do this now, or not at all; the text says what to do instead."""


class Undo:
    """Undoes and redoes steps of an open session, one operation at a time. A context manager: it closes the store."""

    def __init__(
        self, session: "Session", store: "Callable[[], ContentStore]", roots: Sequence[str], compare: Compare
    ) -> None:
        """`store` opens the store of the session's project, and is called when needed; `roots` are the folders of the
        workspace, first the project: nothing outside of them is restored. `compare` is for `diff`.
        """
        self._session = session
        self._open_store = store
        self._store: ContentStore | None = None
        self._roots = tuple(roots)
        self._compare = compare

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; safe to call twice."""
        if self._store is not None:
            self._store.close()
        self._store = None

    async def history(self) -> UndoHistory:
        """The steps of the session. Waits for the searches of ended calls. Raises `SessionError`."""
        await self._session.log_changes()
        return undo_history(self._session.conversation.entries())

    async def plan(self, step: str = "", part: Part = "both") -> UndoPlan:
        """What going back to before a step would do.

        `step` is a name such as `3` or `3.2`. Without one it is the last step whose changes are in the files, or the
        last prompt if only the conversation goes back. Raises `UndoRefused`, `SessionError` and `StoreError`.
        """
        self._check_is_quiet()
        history = await self.history()
        chosen = _chosen(history, step, part)
        calls = history.changes_since(chosen.start) if part != "talk" else ()
        part = _possible_part(chosen, part, calls)
        gone = [each for each in history.steps if each.is_in_conversation and each.start >= chosen.start]
        prompts = tuple(each.prompt for each in gone if each.number == 1) if part != "code" else ()
        jobs = tuple(command for each in history.steps if each.start >= chosen.start for command in each.jobs)
        return UndoPlan(
            kind="undo",
            part=part,
            to=chosen.start,
            step=chosen,
            calls=calls,
            prompts=prompts,
            files=self._file_plan([call.ref for call in reversed(calls)]),
            uncovered=_uncovered(calls, jobs if part != "talk" else ()),
            head=self._head(),
        )

    async def plan_redo(self) -> UndoPlan:
        """What taking back the last step back would do. Raises `UndoRefused`, `SessionError` and `StoreError`."""
        self._check_is_quiet()
        history = await self.history()
        if not history.undone:
            raise UndoRefused("There is nothing to redo: nothing was undone since the last prompt.")
        last = history.undone[-1]
        return UndoPlan(
            kind="redo",
            part=last.part,
            to=last.head,
            calls=_redone(history, last),
            files=self._file_plan([last.ref]) if last.part != "talk" else None,
            head=self._head(),
        )

    async def carry_out(
        self, plan: UndoPlan, *, overwrite: Collection[bytes] = (), keep_conflicts: bool = False
    ) -> UndoOutcome:
        """Restore the files and move the conversation.

        A file that the user changed since is a conflict. With `overwrite` the named files are restored all the same;
        with `keep_conflicts` the others are left alone. Any other conflict refuses the whole plan, with nothing done.
        Raises `UndoRefused`, `SessionError`, `StoreError`, and `OSError` if the store can't be written.
        """
        self._check_is_quiet()
        if plan.head != self._head():
            raise UndoRefused("The session went on since this was planned. Plan it again.")
        kept = tuple(path for path in conflicts_of(plan) if path not in overwrite)
        if kept and not keep_conflicts:
            raise UndoRefused(f"{len(kept)} files were changed since: nothing was restored.")
        record = ref = None
        if plan.files is not None:
            record, ref = await self._restore(plan.files, overwrite)
        await self._session.rewind(plan.to, plan.part, ref or "")
        self._tell_model(plan, record, kept)
        return UndoOutcome(plan, record, kept)

    async def changes(self, step: str = "") -> tuple[Change, ...]:
        """The files that differ from the session's start, or that one step changed, sorted by path.

        Only changes that are not undone. Raises `UndoRefused`, `SessionError` and `StoreError`.
        """
        history = await self.history()
        calls = history.changes_of(_named(history, step)) if step else history.applied
        return merged([self.store.record(call.ref) for call in calls if call.ref])

    def diff(self, changes: Sequence[Change]) -> str:
        """Changes as unified diffs, long ones cut; empty for none. Raises `OSError` if the store can't be read."""
        return diff_text(changes, self.store, self.root, self._compare)

    def preview(self, plan: UndoPlan) -> tuple[Change, ...]:
        """The changes that a plan would make to files, without conflicts and git's data."""
        changes = () if plan.files is None else plan.files.changes
        return tuple(Change(each.path, each.now, each.wanted) for each in changes if not each.conflict)

    def changes_of(self, calls: Sequence[CallChange]) -> tuple[Change, ...] | None:
        """The changes of calls, as one; None if their records are not kept any more."""
        try:
            return merged([self.store.record(call.ref) for call in calls if call.ref])
        except BradawlError:
            return None

    @property
    def root(self) -> str:
        """The project's folder."""
        return self._roots[0]

    @property
    def store(self) -> "ContentStore":
        """The store with contents and change records."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def _head(self) -> int:
        entries = self._session.conversation.entries()
        return entries[-1].seq if entries else -1

    def _check_is_quiet(self) -> None:
        """Raises `UndoRefused` while a turn or a job may change files: what it has changed is not known yet."""
        session = self._session
        if session.is_running:
            raise UndoRefused("A turn is running, which may change files. Wait for its end, or cancel it.")
        if running := session.jobs.running:
            raise UndoRefused(f"A background job is running, which may change files: {running[0][:80]}. End it first.")

    def _file_plan(self, refs: Sequence[str]) -> "RestorePlan | None":
        """The plan for records, the newest first."""
        if not any(refs):
            return None
        from bradawl.checkpoints import restore

        records = [self.store.record(ref) for ref in refs if ref]
        return restore.plan(self.store, records, [os.fsencode(root) for root in self._roots])

    async def _restore(self, files: "RestorePlan", overwrite: Collection[bytes]) -> tuple[ChangeRecord, str]:
        """Restore files; returns what changed and the name of the record of it."""
        from bradawl.checkpoints import restore

        # A scanner that runs must not take the restoring for a change of the next call.
        changes = self._session.agent.changes if self._session.prefix.is_open else None
        if changes is not None:
            await changes.begin(_CALL, None)
        try:
            record = restore.apply(files, self.store, overwrite=overwrite)
            ref = self.store.save_record(record)
            self.store.flush()
        finally:
            if changes is not None:
                changes.end(_CALL)
                await changes.settle(_OWNER)
        return record, ref

    def _tell_model(self, plan: UndoPlan, record: ChangeRecord | None, kept: Sequence[bytes]) -> None:
        """Queue a note for the model where files and conversation do not agree any more."""
        if note := note_for_model(plan, record, kept, self._session.agent.project):
            self._session.conversation.note(note)


def merged(records: Sequence[ChangeRecord]) -> tuple[Change, ...]:
    """The changes of records, the oldest first, as one: the first state before and the last after. Sorted by path."""
    states: dict[bytes, tuple[FileState | None, FileState | None]] = {}
    for record in records:
        for change in record.changes:
            before = states[change.path][0] if change.path in states else change.before
            states[change.path] = before, change.after
    return tuple(Change(path, before, after) for path, (before, after) in sorted(states.items()) if before != after)


def _named(history: UndoHistory, name: str) -> UndoStep:
    step = history.named(name)
    if step is None:
        listed = "/rewind and `bradawl undo --list` list them"
        raise UndoRefused(f"There is no step {name[:20]}; {listed}." if history.steps else _EMPTY)
    return step


_EMPTY: Final = "There is nothing to undo: the session has no steps."


def _chosen(history: UndoHistory, name: str, part: Part) -> UndoStep:
    if name:
        return _named(history, name)
    if not history.steps:
        raise UndoRefused(_EMPTY)
    if part == "talk":
        if (last := history.last_prompt()) is None:
            raise UndoRefused("There is no prompt left in the conversation.")
        return last
    if (last := history.last_changed()) is None:
        missed = next((f" Not covered: {each.uncovered}" for each in reversed(history.applied) if each.uncovered), "")
        raise UndoRefused(f"There is nothing to undo: no step has changed a file that was saved.{missed}")
    return last


def _possible_part(step: UndoStep, part: Part, calls: Sequence[CallChange]) -> Part:
    """What can go back of what was asked for. Raises `UndoRefused` for nothing."""
    has_files = any(call.ref for call in calls)
    wants_files, wants_talk = part != "talk" and has_files, part != "code" and step.is_in_conversation
    if wants_files and wants_talk:
        return "both"
    if wants_files:
        return "code"
    if wants_talk:
        return "talk"
    if part == "code":
        raise UndoRefused(f"No file has changed since step {step.name} that undo can restore.")
    raise UndoRefused(f"Step {step.name} is not in the conversation any more.")


def _redone(history: UndoHistory, last: Undone) -> tuple[CallChange, ...]:
    present = set(history.applied)
    return tuple(call for call in last.applied if call not in present)


def _uncovered(calls: Sequence[CallChange], jobs: Sequence[str]) -> tuple[str, ...]:
    # The records of the other calls, and so the plan of the files, have the same sentences.
    said = dict.fromkeys(call.uncovered for call in calls if call.uncovered and not call.ref)
    said |= dict.fromkeys(f"A background job ran: {job}" for job in jobs)
    return tuple(said)
