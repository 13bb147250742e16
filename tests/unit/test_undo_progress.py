"""An undo that takes time says so once, and can be stopped between two files."""

from msgspec import structs

from bradawl.app.undo_line import LAST_SESSION, UndoLine
from bradawl.app.undo_plan import UndoPlan
from bradawl.app.undo_progress import RestoreWatch
from bradawl.app.undo_text import stopped_text
from bradawl.checkpoints.record import FileState
from bradawl.checkpoints.restore_plan import PlannedChange, RestorePlan

ONE, TWO = (FileState("file", 0o644, name * 64, 1) for name in "12")
CHANGES = tuple(PlannedChange(b"/w/%d" % number, ONE, TWO) for number in range(2_000))
KEPT = PlannedChange(b"/w/kept", ONE, TWO, "it was changed since")
UNDO = UndoPlan(kind="undo", part="both", to=3, files=RestorePlan((b"/w",), (*CHANGES, KEPT), (), (), ()))


def watched(plan: UndoPlan, *times: float, stops: tuple[bool, ...] = ()) -> tuple[list[str], list[bool]]:
    """What was said, and the answers at these times; the first one is that of the beginning."""
    said: list[str] = []
    clock, signals = iter(times), iter(stops)
    watch = RestoreWatch(plan, said.append, lambda: next(signals, False), now=lambda: next(clock))
    return said, [watch() for _ in times[1:]]


def test_a_short_undo_says_nothing():
    assert watched(UNDO, 10.0, 10.0, 10.1, 10.25) == ([], [False, False, False])


def test_a_long_undo_says_once_what_it_does_and_how_to_stop_it():
    said, answers = watched(UNDO, 10.0, 10.1, 10.35, 10.4, 99.0)
    assert said == ["Restoring 2,000 files; Ctrl+C stops after the present one."] and not any(answers)
    assert watched(structs.replace(UNDO, kind="redo"), 1.0, 9.0)[0] == said


def test_conflicts_that_are_restored_too_are_counted():
    said: list[str] = []
    clock = iter((10.0, 10.5))
    RestoreWatch(UNDO, said.append, lambda: False, (KEPT.path,), now=lambda: next(clock))()
    assert said == ["Restoring 2,001 files; Ctrl+C stops after the present one."]


def test_a_signal_stops_it():
    assert watched(UNDO, 10.0, 10.1, 10.2, stops=(False, True)) == ([], [False, True])


def test_where_it_stopped_is_said_in_the_words_of_the_place_where_it_was_asked_for():
    outside = stopped_text(UNDO, 3, 2_000, LAST_SESSION)
    assert outside == (
        "Stopped: 3 of 2,000 files were restored. Run `bradawl undo` again to finish, or `bradawl undo --redo` to go "
        "back to the state before it."
    )
    inside = UndoLine(session="01X", is_slash=True)
    assert stopped_text(UNDO, 3, 2_000, inside) == (
        "Stopped: 3 of 2,000 files were restored. Run `/undo` again to finish, or `/redo` to go back to the state "
        "before it."
    )
    assert "Run `/redo` again to finish" in stopped_text(structs.replace(UNDO, kind="redo"), 3, 9, inside)
