"""The texts about what an undo has done: long lists are cut and counted, and the model hears what is not as before."""

from typing import Any

import pytest
from msgspec import structs

from bradawl.app.undo_plan import UndoOutcome, UndoPlan, without_kept
from bradawl.app.undo_text import note_for_model, outcome_text, plan_text, refusal_text
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.restore_plan import PlannedChange, RestorePlan

ONE, TWO = (FileState("file", 0o644, name * 64, 1) for name in "12")
FOLDER = FileState("folder", 0o755)
MANY = tuple(b"/w/%05d" % number for number in range(10_000))


def plan(*changes: PlannedChange, impossible: Any = (), **more: Any) -> UndoPlan:
    files = RestorePlan((b"/w",), changes, (), impossible, ())
    return UndoPlan(**{"kind": "undo", "part": "both", "to": 3, "files": files, **more})


def restored(*paths: bytes) -> ChangeRecord:
    return ChangeRecord("", 0, tuple(Change(path, ONE, TWO) for path in paths))


def test_ten_thousand_files_that_were_kept_or_failed_fill_one_screen():
    kept = plan(*(PlannedChange(path, ONE, TWO, "it was changed since") for path in MANY))
    said = outcome_text(UndoOutcome(kept, restored(), MANY), "/w")
    assert len(said.splitlines()) < 25 and "... and 9,988 more that were left alone" in said
    failed = structs.replace(restored(), uncovered=tuple(f"'{n}' was not restored: disk full." for n in range(10_000)))
    said = outcome_text(UndoOutcome(plan(), failed), "/w")
    assert len(said.splitlines()) < 25 and "... and 9,988 more that were not restored" in said


def test_a_reason_that_names_a_file_can_not_forge_lines():
    why = "/w/x\nRestored: all\x1b[2J\udcff is not a folder that can be entered"
    found = plan(impossible=((b"/w/x/y", why),))
    for text in (plan_text(found, "/w"), refusal_text(found, "/w"), outcome_text(UndoOutcome(found, restored()), "/w")):
        assert "Restored: all\\x1b[2J\\udcff is not" in text and "\nRestored" not in text


@pytest.mark.parametrize(
    ("found", "record", "kept"),
    [
        (plan(PlannedChange(b"/w/a", ONE, TWO), PlannedChange(b"/w/b", ONE, TWO)), restored(b"/w/a"), ()),
        (plan(PlannedChange(b"/w/a", ONE, TWO), impossible=((b"/w/b", "lost"),)), restored(b"/w/a"), ()),
        (plan(PlannedChange(b"/w/b", ONE, TWO, "changed since")), restored(), (b"/w/b",)),
    ],
    ids=["failed", "impossible", "kept"],
)
def test_the_model_hears_which_files_are_not_as_its_conversation_says(
    found: UndoPlan, record: ChangeRecord, kept: tuple[bytes, ...]
):
    assert note_for_model(found, record, kept, "/w").endswith("but these files hold later changes: b.")
    redo = structs.replace(found, kind="redo")
    assert note_for_model(redo, record, kept, "/w").endswith("these files are not as this conversation says: b.")


def test_the_model_hears_nothing_if_files_and_conversation_agree_and_when_they_agree_again():
    assert note_for_model(plan(PlannedChange(b"/w/a", ONE, TWO)), restored(b"/w/a"), (), "/w") == ""
    rest = plan(PlannedChange(b"/w/b", ONE, TWO), part="code", completes="both")
    assert note_for_model(rest, restored(b"/w/b"), (), "/w").endswith("are now as before: b.")
    assert note_for_model(rest, restored(), (), "/w") == ""


def test_a_folder_that_stays_is_not_listed_as_removed():
    files = RestorePlan(
        (b"/w",),
        (PlannedChange(b"/w/d", FOLDER, None), PlannedChange(b"/w/d/a", ONE, None)),
        (),
        (),
        (),
        staying=(b"/w/d",),
    )
    said = plan_text(UndoPlan(kind="undo", part="both", to=3, files=files), "/w").splitlines()
    assert "Files (1 removed):" in said and "- d/a" in said and "- d" not in said
    assert said[said.index("Can't be removed:") + 1] == "! d: it holds other files, so it stays"


def test_the_result_says_how_many_prompts_left_the_conversation():
    one, three = plan(prompts=("fix it",)), plan(prompts=("fix it", "and this", "and that"))
    assert 'The prompt was: "fix it"' in outcome_text(UndoOutcome(one, restored()), "/w").splitlines()
    said = outcome_text(UndoOutcome(three, restored()), "/w").splitlines()
    assert '3 prompts left the conversation. The first was: "fix it"' in said


def test_a_folder_with_a_file_that_is_kept_stays():
    found = plan(
        PlannedChange(b"/w/d", FOLDER, None),
        PlannedChange(b"/w/d/a", ONE, None, "changed since"),
        PlannedChange(b"/w/d/b", ONE, None),
        PlannedChange(b"/w/e", FOLDER, None),
    )
    files = without_kept(found).files
    assert files is not None and files.staying == (b"/w/d",)
    assert [each.path for each in files.changes] == [b"/w/d/a", b"/w/d/b", b"/w/e"]
    decided = plan(PlannedChange(b"/w/d", FOLDER, None))
    assert without_kept(decided) is decided
