"""What an undo would do, and what it has done."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import structs

from bradawl.checkpoints.record import ChangeRecord
from bradawl.core.errors import BradawlError
from bradawl.folds.undo_history import CallChange, Part, UndoStep

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import PlannedChange, RestorePlan
    from bradawl.checkpoints.restore_intent import RestoreIntent


class UndoRefused(BradawlError):
    """Undo can't do this now, or not at all; the text says what to do instead."""


class NothingToUndo(UndoRefused):
    """The session has no changes to undo; another one of the folder may have some."""


class UndoStopped(BradawlError):
    """An undo or redo stopped before its end; the text says what was restored and how to go on."""


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What an undo or a redo would do. Making it changed nothing."""

    kind: Literal["undo", "redo"]
    part: Part
    """What it moves; less than was asked for if there is nothing else to move."""
    to: int
    """The entry of the log to return to."""
    step: UndoStep | None = None
    """The first step that is undone; None for a redo."""
    calls: tuple[CallChange, ...] = ()
    """The calls whose changes go, oldest first."""
    prompts: tuple[str, ...] = ()
    """Prompts that leave the conversation, oldest first."""
    files: "RestorePlan | None" = None
    """None if no file is restored."""
    uncovered: tuple[str, ...] = ()
    """Sentences about what may have changed and is not restored."""
    doubts: tuple[str, ...] = ()
    """Sentences about changes that may have been made by the user or by another program."""
    head: int = -1
    """The last entry of the log when the plan was made."""
    resumes: "RestoreIntent | None" = None
    """The undo or redo that stopped in the middle, and that is finished or taken back; None for a new one."""
    completes: Part | None = None
    """What the last undo moved, if this one only restores what that could not; None for any other."""
    lock: str = ""
    """A sentence about the lock of git that makes `carry_out` refuse; empty without one."""

    @property
    def is_partial(self) -> bool:
        """Whether something that may have changed can't be restored, apart from conflicts and folders not covered."""
        if self.files is not None and self.files.is_partial:
            return True
        missed = (call for call in self.calls if call.uncovered and not call.ref)
        return self.kind == "undo" and any(self.part == "talk" or not call.is_known for call in missed)

    @property
    def takes_back(self) -> bool:
        """Whether it restores the state before an undo or redo that stopped in the middle; the log stays as it is."""
        return self.resumes is not None and self.resumes.kind != self.kind


class UndoOutcome(msgspec.Struct, frozen=True):
    """What an undo or a redo has done."""

    plan: UndoPlan
    record: ChangeRecord | None
    """The files that were restored, with their states before and after; None if there were none to restore."""
    kept: tuple[bytes, ...] = ()
    """Files with later changes of the user, which were left alone."""

    @property
    def is_complete(self) -> bool:
        """False if something of the plan could not be restored."""
        return not self.plan.is_partial and not (self.record is not None and self.record.uncovered)


def refused_whole(plan: UndoPlan, overwrite: Collection[bytes] = (), *, keep_conflicts: bool = False) -> bool:
    """Whether conflicts that the user has not decided about refuse the plan, or none of its files can be restored."""
    undecided = set(conflicts_of(plan)) - set(overwrite)
    return (bool(undecided) and not keep_conflicts) or restores_nothing(plan)


def restores_nothing(plan: UndoPlan) -> bool:
    """Whether files should be restored, and none of them can be."""
    files = plan.files
    return files is not None and bool(files.impossible) and not (files.changes or files.git) and plan.resumes is None


def has_only_conflicts(plan: UndoPlan) -> bool:
    """Whether each file that can be restored has later changes of the user."""
    files = plan.files
    return files is not None and all(change.conflict for change in (*files.changes, *files.git))


def with_agreement(plan: UndoPlan, overwrite: Collection[bytes]) -> UndoPlan:
    """The plan in which these files are no conflicts any more."""
    files = plan.files
    if files is None or not overwrite:
        return plan

    def agreed(change: "PlannedChange") -> "PlannedChange":
        return structs.replace(change, conflict="") if change.path in overwrite else change

    return structs.replace(plan, files=files.with_each(agreed))


def without_kept(plan: UndoPlan) -> UndoPlan:
    """The plan if its conflicts are left alone: the folders above them can't be removed."""
    files = plan.files
    above = {folder for path in conflicts_of(plan) for folder in _folders_above(path)}
    if files is None or not above:
        return plan
    staying = {each.path for each in (*files.changes, *files.git) if each.path in above and _is_removed_folder(each)}
    changes, git = (tuple(each for each in part if each.path not in staying) for part in (files.changes, files.git))
    stay = tuple(sorted({*files.staying, *staying}))
    return structs.replace(plan, files=structs.replace(files, changes=changes, git=git, staying=stay))


def _folders_above(path: bytes) -> Iterator[bytes]:
    while path := path.rpartition(b"/")[0]:
        yield path


def _is_removed_folder(change: "PlannedChange") -> bool:
    is_folder = change.now is not None and change.now.kind == "folder"
    return is_folder and not change.conflict and (change.wanted is None or change.wanted.kind != "folder")


def conflicts_of(plan: UndoPlan) -> tuple[bytes, ...]:
    """The files of a plan that the user changed since, sorted."""
    return () if plan.files is None else tuple(sorted(each.path for each in plan.files.conflicts))
