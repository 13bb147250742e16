"""Undo of a session's steps: lists them, plans what goes back, restores files and moves the conversation.

    with build_undo(session, settings) as undo:     # of bradawl.app.build.undo
        plan = await undo.plan()                    # a dry run: nothing has changed yet
        outcome = await undo.carry_out(plan)

All front ends and embedding programs use this module. The texts for users are in `undo_text`.
"""

import asyncio
import contextlib
import os
import shlex
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import TYPE_CHECKING, Final, Literal, Self, get_args

from msgspec import structs

from bradawl.app.rendering import cut, one_line
from bradawl.app.undo_attribution import Restores, long_calls_text, no_restores
from bradawl.app.undo_choice import (
    chosen_step,
    jobs_from,
    named_step,
    possible_part,
    prompts_from,
    redone_calls,
    uncovered_texts,
    undone_calls,
)
from bradawl.app.undo_diff import Compare, diff_text, shown_path
from bradawl.app.undo_line import LAST_SESSION, UndoLine
from bradawl.app.undo_plan import (
    UndoOutcome,
    UndoPlan,
    UndoRefused,
    UndoStopped,
    conflicts_of,
    restores_nothing,
    with_agreement,
    without_kept,
)
from bradawl.app.undo_restore import FilePlans, SessionRestores, changes_of, merged, refusing_for_the_store
from bradawl.app.undo_text import note_for_model, refusal_text
from bradawl.checkpoints.errors import StoreError
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.core.errors import BradawlError
from bradawl.folds.undo_history import CallChange, Part, UndoHistory, Undone, undo_history
from bradawl.safety.name_lists import first_of

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.checkpoints.restore import RestorePlan
    from bradawl.checkpoints.restore_intent import RestoreIntent
    from bradawl.checkpoints.store import ContentStore

_MOST_NAMED: Final = 12
_OWNER: Final = "undo"
_CALL: Final = f"{_OWNER}/restore"
"""Names the restoring to the scanner, as if it were a call."""


class Undo:
    """Undoes and redoes steps of an open session, one operation at a time. A context manager: it closes the store."""

    def __init__(
        self,
        session: "Session",
        store: "Callable[[], ContentStore]",
        roots: Sequence[str],
        compare: Compare,
        restores: Restores = no_restores,
        line: UndoLine = LAST_SESSION,
    ) -> None:
        """`store` opens the store of the session's project, and is called when needed; `roots` are the folders of the
        workspace, first the project: nothing outside of them is restored. `compare` is for `diff`; `restores` finds
        what undos of other sessions restored while calls of this one ran. Texts that name commands repeat `line`.
        """
        self._session = session
        self._open_store = store
        self._store: ContentStore | None = None
        self._opened_restores: SessionRestores | None = None
        self._roots = tuple(roots)
        self.compare = compare
        self._restores_elsewhere = restores
        self._line = line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; safe to call twice."""
        if self._opened_restores is not None:
            self._opened_restores.close()
        if self._store is not None:
            self._store.close()
        self._store = self._opened_restores = None

    async def history(self) -> UndoHistory:
        """The steps of the session. Waits for the searches of ended calls. Raises `SessionError`."""
        await self._session.log_changes()
        return undo_history(self._session.conversation.entries())

    async def plan(self, step: str = "", part: Part = "both") -> UndoPlan:
        """What going back to before a step would do.

        `step` is a name such as `3` or `3.2`. Without one it is the last step whose changes are in the files, or the
        last prompt if only the conversation goes back; but if the last undo could not restore everything, the plan is
        to restore the rest. Raises `UndoRefused`, `SessionError` and `StoreError`.
        """
        _check_arguments(step, part)
        line = self._line.of(step, part)
        _check_is_possible(self._session, line, self.root)
        history = await self.history()
        if (intent := self.unfinished(history)) is not None:
            _check_is_of(intent, "undo", line)
            return self._plan_unfinished("undo", intent, history)
        last, rest = self._restores.unrestored(history) if part != "talk" else (None, None)
        if last is not None and rest is not None and not step:
            files = self._plans.of_calls((), rest, undone_calls(history))
            if files is not None and (files.changes or files.git or files.impossible):
                return self._plan_rest(last, files, history)
        changes = self._session.calls.changes
        chosen = chosen_step(history, line, is_late=changes is not None and changes.is_late)
        calls = history.changes_since(chosen.start) if part != "talk" else ()
        if last is None or chosen.start > last.to:
            rest = None
        part = possible_part(history, chosen, part, calls, has_rest=rest is not None)
        files = self._plans.of_calls(calls, rest, undone_calls(history))
        prompts = prompts_from(history, chosen) if part != "code" else ()
        return UndoPlan(
            kind="undo",
            part=part,
            to=chosen.start,
            step=chosen,
            calls=calls,
            prompts=prompts,
            files=files,
            uncovered=uncovered_texts(calls, jobs_from(history, chosen) if part != "talk" else ()),
            doubts=long_calls_text(calls),
            head=self._head(),
            completes=last.part if last is not None and rest is not None and not calls else None,
            lock=_lock(files, self.store),
        )

    def _plan_rest(self, last: Undone, files: "RestorePlan", history: UndoHistory) -> UndoPlan:
        """Restore what the last undo could not."""
        step = next((each for each in history.steps if each.start == last.to), None)
        return UndoPlan(
            kind="undo",
            part="code",
            to=last.to,
            step=step,
            files=files,
            head=self._head(),
            completes=last.part,
            lock=_lock(files, self.store),
        )

    def unrestored(self, history: UndoHistory) -> tuple[Change, ...]:
        """What the last undo could not restore and `plan` would try again: `before` is the state to restore."""
        rest = self._restores.unrestored(history)[1]
        return () if rest is None else rest.changes

    async def plan_redo(self) -> UndoPlan:
        """What taking back the last step back would do. Raises `UndoRefused`, `SessionError` and `StoreError`."""
        _check_is_possible(self._session, self._line.redo(), self.root)
        history = await self.history()
        if (intent := self.unfinished(history)) is not None:
            return self._plan_unfinished("redo", intent, history)
        if not history.undone:
            raise UndoRefused("There is nothing to redo: nothing was undone since the last prompt.")
        last = history.undone[-1]
        files = self._plans.of_records([last.ref]) if last.part != "talk" else None
        return UndoPlan(
            kind="redo",
            part=last.part,
            to=last.head,
            calls=redone_calls(history, last),
            files=files,
            head=self._head(),
            lock=_lock(files, self.store),
        )

    def unfinished(self, history: UndoHistory) -> "RestoreIntent | None":
        """The undo or redo of this session that stopped in the middle; None if there is none.

        None also if the session went on since. Raises `UndoRefused` if the store can't be read.
        """
        intent = self._restores.unfinished()
        if intent is None or history.moved_at > intent.head:
            return None
        with contextlib.suppress(StoreError):
            self.store.record(intent.ref)
            return intent
        return None  # dropped to keep the quota

    def unfinished_elsewhere(self) -> "tuple[RestoreIntent, ...]":
        """The undos and redos of other sessions that stopped in the middle. Raises `UndoRefused` like `unfinished`."""
        return self._restores.unfinished_elsewhere()

    def _plan_unfinished(
        self, kind: Literal["undo", "redo"], intent: "RestoreIntent", history: UndoHistory
    ) -> UndoPlan:
        """Go on with an undo or redo that stopped in the middle, or go back to the state before it."""
        from bradawl.checkpoints import restore

        record = self.store.record(intent.ref)
        step = history.named(intent.step) if intent.step else None
        calls = history.changes_since(step.start) if step is not None else ()
        goes_on = kind == intent.kind
        with refusing_for_the_store(self.store):
            rest = inverse(record) if goes_on else record
            files = restore.plan(
                self.store, [rest], self._roots_as_bytes, is_interrupted=True, temporary=intent.temporary
            )
            if goes_on and kind == "undo":
                with contextlib.suppress(BradawlError):
                    files = _with_paths_outside(files, self._plans.of_records([call.ref for call in reversed(calls)]))
        return UndoPlan(
            kind=kind,
            part=intent.part if goes_on else "code",
            to=intent.to,
            step=step,
            calls=calls,
            prompts=prompts_from(history, step) if goes_on and intent.part == "both" and step is not None else (),
            files=files,
            uncovered=uncovered_texts(calls, ()),
            head=self._head(),
            resumes=intent,
            lock=_lock(files, self.store),
        )

    async def carry_out(
        self,
        plan: UndoPlan,
        *,
        overwrite: Collection[bytes] = (),
        keep_conflicts: bool = False,
        should_stop: Callable[[], bool] = bool,
    ) -> UndoOutcome:
        """Restore the files and move the conversation.

        A file that the user changed since is a conflict. With `overwrite` the named files are restored all the same;
        their paths are absolute or relative to the project. With `keep_conflicts` the others are left alone. Any other
        conflict, and a name in `overwrite` that is none, refuses the whole plan, with nothing done. What could not be
        restored for a cause such as a full disk is in `unrestored` of the outcome's record: the next `plan` tries it
        again.
        `should_stop` is called between two files; true stops. A restore that is stopped or killed can be finished by
        `plan` and `carry_out`, or taken back by `plan_redo`, also by another program. Cancelling the caller stops
        nothing: `CancelledError` is raised when all is done.
        Raises `UndoRefused`, `UndoStopped`, `SessionError` and `StoreError`.
        """
        line = self._line if plan.kind == "undo" else self._line.redo()
        _check_is_possible(self._session, structs.replace(line, part=plan.part), self.root)
        if plan.head != self._head():
            raise UndoRefused("The session went on since this was planned. Plan it again.")
        overwrite = _conflicts_named(plan, overwrite, self.root)
        kept = tuple(path for path in conflicts_of(plan) if path not in overwrite)
        if kept and not keep_conflicts:
            raise UndoRefused(_kept_text(kept, self.root))
        if restores_nothing(plan):
            raise UndoRefused(refusal_text(plan, self.root, line))
        was_late = f"The {plan.kind} was done before it could be interrupted."
        work = self._carry_out(plan, overwrite, kept, should_stop)
        return await _to_its_end(work, was_late, self._session.conversation.warn)

    async def _carry_out(
        self, plan: UndoPlan, overwrite: Collection[bytes], kept: tuple[bytes, ...], should_stop: Callable[[], bool]
    ) -> UndoOutcome:
        record, ref = None, ""
        try:
            if plan.files is not None:
                record, ref = await self._restore(plan, plan.files, overwrite, should_stop)
            if not plan.takes_back and not await self._session.rewind(plan.to, plan.part, ref):
                raise UndoStopped(_NOT_LOGGED)
        finally:
            self._restores.close()
        if plan.files is not None:
            self._restores.finished()
        self._tell_model(plan, record, kept)
        return UndoOutcome(plan, record, kept)

    async def changes(self, step: str = "") -> tuple[Change, ...]:
        """The files that differ from the session's start, or that one step changed, sorted by path; git's data last.

        Only changes that are not undone. Raises `UndoRefused`, `SessionError` and `StoreError`.
        """
        history = await self.history()
        calls = history.changes_of(named_step(history, step, self._line)) if step else history.applied
        from bradawl.checkpoints.restore_plan import is_git_data

        changed = merged([self.store.record(call.ref) for call in calls if call.ref])
        return tuple(sorted(changed, key=lambda each: is_git_data(each.path, os.fsencode(self.root))))

    def diff(self, changes: Sequence[Change]) -> str:
        """Changes as unified diffs, long ones cut; empty for none. Raises `OSError` if the store can't be read."""
        return diff_text(changes, self.store, self.root, self.compare)

    def preview(self, plan: UndoPlan) -> tuple[Change, ...]:
        """The changes that a plan would make to files, without conflicts and git's data."""
        changes = () if plan.files is None else plan.files.changes
        return tuple(Change(each.path, each.now, each.wanted) for each in changes if not each.conflict)

    def changes_of(self, calls: Sequence[CallChange]) -> tuple[Change, ...] | None:
        """The changes of calls, as one; None if their records are not kept any more."""
        return changes_of(calls, self.store)

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

    @property
    def _roots_as_bytes(self) -> list[bytes]:
        return [os.fsencode(root) for root in self._roots]

    @property
    def _restores(self) -> SessionRestores:
        if self._opened_restores is None:
            self._opened_restores = SessionRestores(self.store, self._roots_as_bytes, self._session.id, self._line)
        return self._opened_restores

    @property
    def _plans(self) -> FilePlans:
        return FilePlans(self.store, self._roots_as_bytes, self._restores_elsewhere, self._restores.abandoned)

    def _head(self) -> int:
        entries = self._session.conversation.entries()
        return entries[-1].seq if entries else -1

    async def _restore(
        self, plan: UndoPlan, files: "RestorePlan", overwrite: Collection[bytes], should_stop: Callable[[], bool]
    ) -> tuple[ChangeRecord, str]:
        """Restore files; returns what changed and the name of the record of the whole undo."""
        # A scanner that runs must not take the restoring for a change of the next call.
        changes = self._session.agent.changes if self._session.prefix.is_open else None
        if changes is not None:
            await changes.begin(_CALL, None)
        try:
            return self._restores.restore(plan, files, overwrite, should_stop)
        finally:
            if changes is not None:
                changes.end(_CALL)
                await changes.settle(_OWNER)

    def _tell_model(self, plan: UndoPlan, record: ChangeRecord | None, kept: Sequence[bytes]) -> None:
        """Queue a note for the model where files and conversation do not agree any more."""
        if note := note_for_model(plan, record, kept, self._session.agent.project):
            self._session.conversation.note(note)


async def _to_its_end(
    work: Coroutine[object, object, UndoOutcome], was_late: str, say: Callable[[str], None]
) -> UndoOutcome:
    """Await work to its end although the caller is cancelled, which is raised then, after a word on its end."""

    async def attempt() -> UndoOutcome | Exception:
        try:
            return await work
        except (BradawlError, OSError) as error:
            return error

    async with asyncio.TaskGroup() as group:
        doing = group.create_task(attempt())
        try:
            done = await asyncio.shield(doing)
        except asyncio.CancelledError:
            await asyncio.wait([doing])
            if not doing.cancelled() and doing.exception() is None:
                done = doing.result()
                say(was_late if isinstance(done, UndoOutcome) else str(done))
            raise
    if isinstance(done, Exception):
        raise done
    return done


def with_answers(
    plan: UndoPlan, overwrite: Collection[bytes], store: "ContentStore", *, keep_conflicts: bool
) -> UndoPlan:
    """The plan as `carry_out` does it with these answers; for a dry run. `overwrite` are absolute paths."""
    plan = with_agreement(plan, overwrite)
    plan = without_kept(plan) if keep_conflicts else plan
    return structs.replace(plan, lock=_lock(plan.files, store))


def inverse(record: ChangeRecord) -> ChangeRecord:
    """The record of going back."""
    changes = tuple(Change(each.path, each.after, each.before) for each in record.changes)
    return structs.replace(record, changes=changes)


def _check_is_possible(session: "Session", line: UndoLine, root: str) -> None:
    """Raises `UndoRefused` without `root`, and while a turn or a job may change files: what it did is not known yet."""
    if session.is_running:
        raise UndoRefused("A turn is running, which may change files. Wait for its end, or cancel it.")
    if running := session.jobs.running:
        job, command = next(iter(running.items()))
        raise UndoRefused(
            f"A background job is running, which may change files: {job}, {cut(one_line(command), 80)}. "
            f"`/jobs end {job}` ends it; or leave with /exit, which ends all jobs, and run `{line.command()}`."
        )
    if line.part != "talk" and not os.path.lexists(root):
        raise UndoRefused(
            f"{one_line(root)} does not exist any more. Make it again (`mkdir {shlex.quote(root)}`), then undo: what "
            "was in it comes back as far as it was saved."
        )


def _check_is_of(intent: "RestoreIntent", kind: str, line: UndoLine) -> None:
    """Raises `UndoRefused` if what is asked for is another undo than the one that stopped in the middle."""
    step, part = line.step, line.part
    is_same_step = not step or (kind == intent.kind and step.removesuffix(".1") == intent.step)
    if not is_same_step or part == "talk" or (part == "code" and intent.part == "both" and kind == intent.kind):
        from bradawl.checkpoints.restore_intent import unfinished_text

        raise UndoRefused(unfinished_text(intent, "" if line.is_slash else line.session, line.places))


def _with_paths_outside(files: "RestorePlan", whole: "RestorePlan | None") -> "RestorePlan":
    """The plan of finishing an undo, with the changes of the plan of the whole undo that are outside of the roots."""
    if whole is None or not whole.outside:
        return files
    paths = {change.path for change in whole.outside}
    impossible = {*files.impossible, *(each for each in whole.impossible if each[0] in paths)}
    return structs.replace(files, outside=whole.outside, impossible=tuple(sorted(impossible)))


def _conflicts_named(plan: UndoPlan, named: Collection[bytes], root: str) -> frozenset[bytes]:
    """Absolute paths of the named conflicts. Raises `UndoRefused` for other names."""
    conflicts = set(conflicts_of(plan))
    paths = frozenset(os.path.join(os.fsencode(root), path) for path in named)  # noqa: PTH118 names are bytes
    if unknown := paths - conflicts:
        raise UndoRefused(f"Nothing was restored: {shown_path(min(unknown), root)} is no conflict of this plan.")
    return paths


def _kept_text(kept: Sequence[bytes], root: str) -> str:
    names = first_of(kept, _MOST_NAMED, lambda path: shown_path(path, root))
    how = "Restore them too with `overwrite`, or leave them alone with `keep_conflicts`."
    return f"Nothing was restored: {len(kept)} files were changed since: {names}. {how}"


def _lock(files: "RestorePlan | None", store: "ContentStore") -> str:
    from bradawl.checkpoints import restore

    return "" if files is None else restore.held_lock(files, store)


def _check_arguments(step: object, part: object) -> None:
    """Raises `UndoRefused` for values of other types or names, which an embedding program may pass."""
    if not isinstance(step, str):
        raise UndoRefused(f"A step is a name such as '3' or '3.2', not {cut(repr(step), 40)}.")
    if part not in get_args(Part):
        raise UndoRefused(f"A part is 'code', 'talk' or 'both', not {cut(repr(part), 40)}.")


_NOT_LOGGED: Final = (
    "The files were restored, but the session's log can't be written, so the undo is not finished. Make the data "
    "folder writable or free some space there, then run the same command again."
)
