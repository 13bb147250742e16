"""Which plans of an undo are refused, and what the user's agreement changes in one."""

from typing import Any

import pytest

from bradawl.app.undo_plan import (
    UndoPlan,
    conflicts_of,
    has_only_conflicts,
    refused_whole,
    restores_nothing,
    with_agreement,
)
from bradawl.checkpoints.restore import RestorePlan
from bradawl.checkpoints.restore_intent import RestoreIntent
from bradawl.checkpoints.restore_plan import PlannedChange

A, B, C, INDEX = b"/w/a", b"/w/b", b"/w/c", b"/w/.git/index"
LOST = ((C, "its content was not saved"),)


def change(path: bytes, conflict: str = "") -> PlannedChange:
    return PlannedChange(path, None, None, conflict)


def undo(*changes: PlannedChange, git: tuple[PlannedChange, ...] = (), impossible: Any = (), **more: Any) -> UndoPlan:
    files = RestorePlan((b"/w",), changes, git, impossible, ())
    return UndoPlan(kind="undo", part="both", to=3, files=files, **more)


def stopped_one(kind: Any) -> RestoreIntent:
    return RestoreIntent("s", kind, "both", 3, 9, "1", "record", b".bradawl-x")


WITHOUT_FILES = UndoPlan(kind="undo", part="talk", to=3)
MIXED = undo(change(B, "changed"), change(A), git=(change(INDEX, "staged"),))


def test_conflicts_are_those_of_files_and_of_gits_data_sorted():
    assert conflicts_of(MIXED) == (INDEX, B)
    assert conflicts_of(undo(change(A))) == conflicts_of(WITHOUT_FILES) == ()


def test_a_conflict_refuses_the_whole_plan_until_each_is_decided():
    assert refused_whole(MIXED)
    assert refused_whole(MIXED, [B])
    assert refused_whole(MIXED, [A, B])
    assert not refused_whole(MIXED, [B, INDEX])
    assert not refused_whole(MIXED, keep_conflicts=True)
    assert not refused_whole(MIXED, [B], keep_conflicts=True)
    assert not refused_whole(undo(change(A)))
    assert not refused_whole(WITHOUT_FILES)


def test_a_plan_that_can_restore_no_file_is_refused_whatever_is_decided():
    nothing = undo(impossible=LOST)
    assert restores_nothing(nothing)
    assert refused_whole(nothing) and refused_whole(nothing, [C], keep_conflicts=True)


@pytest.mark.parametrize(
    "plan",
    [
        WITHOUT_FILES,
        undo(),
        undo(change(A), impossible=LOST),
        undo(git=(change(INDEX),), impossible=LOST),
        undo(impossible=LOST, resumes=stopped_one("undo")),
    ],
)
def test_a_plan_that_restores_something_or_has_nothing_to_restore_is_not_refused(plan: UndoPlan):
    assert not restores_nothing(plan)
    assert not refused_whole(plan)


def test_only_conflicts():
    assert has_only_conflicts(undo(change(A, "x"), git=(change(INDEX, "x"),)))
    assert not has_only_conflicts(undo(change(A, "x"), git=(change(INDEX),)))
    assert not has_only_conflicts(undo(change(A), git=(change(INDEX, "x"),)))
    assert has_only_conflicts(undo())
    assert not has_only_conflicts(WITHOUT_FILES)


def test_agreement_removes_the_conflicts_of_the_named_files_alone():
    found = with_agreement(MIXED, {B})
    assert found == undo(change(B), change(A), git=(change(INDEX, "staged"),))
    assert with_agreement(MIXED, {INDEX, C}) == undo(change(B, "changed"), change(A), git=(change(INDEX),))
    assert conflicts_of(with_agreement(MIXED, [B, INDEX])) == ()
    assert with_agreement(MIXED, ()) == MIXED
    assert with_agreement(WITHOUT_FILES, {B}) == WITHOUT_FILES
    assert conflicts_of(MIXED) == (INDEX, B)


@pytest.mark.parametrize(
    ("kind", "stopped", "takes_back"), [("undo", "undo", False), ("undo", "redo", True), ("redo", "undo", True)]
)
def test_a_plan_of_the_other_kind_takes_back_what_stopped(kind: Any, stopped: Any, takes_back: bool):
    plan = UndoPlan(kind=kind, part="code", to=1, resumes=stopped_one(stopped))
    assert plan.takes_back == takes_back
    assert not UndoPlan(kind=kind, part="code", to=1).takes_back
