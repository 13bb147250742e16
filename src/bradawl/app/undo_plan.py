"""What an undo would do, and what it has done."""

from typing import TYPE_CHECKING, Literal

import msgspec

from bradawl.checkpoints.record import ChangeRecord
from bradawl.folds.undo_history import CallChange, Part, UndoStep

if TYPE_CHECKING:
    from bradawl.checkpoints.restore import RestorePlan


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
    head: int = -1
    """The last entry of the log when the plan was made."""


class UndoOutcome(msgspec.Struct, frozen=True):
    """What an undo or a redo has done."""

    plan: UndoPlan
    record: ChangeRecord | None
    """The files that were restored, with their states before and after; None if there were none to restore."""
    kept: tuple[bytes, ...] = ()
    """Files with later changes of the user, which were left alone."""


def conflicts_of(plan: UndoPlan) -> tuple[bytes, ...]:
    """The files of a plan that the user changed since, sorted."""
    return () if plan.files is None else tuple(sorted(each.path for each in plan.files.conflicts))
