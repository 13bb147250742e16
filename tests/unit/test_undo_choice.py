"""Which jobs an undo names, and how it names calls."""

from msgspec import structs

from bradawl.app.undo_choice import jobs_from
from bradawl.app.undo_text import label_of
from bradawl.folds.undo_history import CallChange, UndoHistory, Undone, UndoStep

STEPS = tuple(UndoStep(turn, 1, "prompt", 0, 10 * turn, jobs=(f"job of {turn}",)) for turn in (1, 2, 3))
CALLS = tuple(CallChange(place, f"c{place}", "bash", "{}", f"ref{place}", "") for place in range(3))


def test_the_jobs_of_a_step_and_of_all_later_ones_are_named():
    history = UndoHistory(STEPS, CALLS)
    assert jobs_from(history, STEPS[1]) == ("job of 2", "job of 3")


def test_a_job_that_was_undone_is_not_named_again():
    for part in ("both", "code"):
        undone = Undone(99, part, "ref", CALLS, STEPS[2].start)
        assert jobs_from(UndoHistory(STEPS, CALLS[:2], (undone,)), STEPS[0]) == ("job of 1", "job of 2")


def test_a_job_whose_conversation_alone_was_taken_back_is_named():
    steps = (*STEPS[:2], structs.replace(STEPS[2], is_in_conversation=False))
    undone = Undone(99, "talk", "", CALLS, STEPS[2].start)
    assert jobs_from(UndoHistory(steps, CALLS, (undone,)), STEPS[2]) == ("job of 3",)
    assert jobs_from(UndoHistory(steps, CALLS[:2]), STEPS[0]) == ("job of 1", "job of 2")


def test_a_call_of_several_edits_is_named_by_its_files():
    arguments = '{"edits": [{"file_path": "a.py", "old_string": "x"}, {"file_path": "b.py"}, {"file_path": "a.py"}]}'
    assert label_of(CallChange(0, "c", "multi_edit", arguments, "ref", "")) == "multi_edit(a.py, b.py)"
    assert label_of(CallChange(0, "c", "bash", '{"command": "rm a"}', "ref", "")) == "bash(rm a)"
