"""Changes that another session's undo or the user made while a command ran are not taken for the command's."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs

from bradawl.app.undo_attribution import long_calls_text, no_restores, records_of, unnamed_changes
from bradawl.app.undo_plan import UndoRefused
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.store import ContentStore
from bradawl.folds.undo_history import CallChange

ONE, TWO, THREE = (FileState("file", 0o644, name * 64, 1) for name in "123")
LINK = FileState("link", 0o777, target=b"a")
FOLDER = FileState("folder", 0o755)


@pytest.fixture
def store(tmp_path: Path):
    with ContentStore(tmp_path / "store") as store:
        yield store


def call(store: ContentStore, *changes: Change, at: int = 5_000, **more) -> CallChange:
    """A call that started at 1 s and whose changes were found at 5 s."""
    ref = store.save_record(ChangeRecord("c", at, changes))
    return CallChange(0, "c", "bash", "{}", ref, "", **{"started_ms": 1_000, **more})


def own(store: ContentStore, change: Change, *restored: ChangeRecord) -> tuple[Change, ...]:
    (record,) = records_of([call(store, change)], store, lambda _: restored)
    return record.changes


def restore(at: int, before: FileState | None, after: FileState | None, path: bytes = b"/ws/f") -> ChangeRecord:
    return ChangeRecord("", at, (Change(path, before, after),))


def change(before: FileState | None, after: FileState | None, path: bytes = b"/ws/f") -> Change:
    return Change(path, before, after)


def test_what_an_undo_of_another_session_restored_meanwhile_is_not_the_call_s(store):
    assert own(store, change(None, ONE), restore(3_000, None, ONE)) == ()
    assert own(store, change(ONE, None), restore(3_000, None, ONE), restore(4_000, ONE, None)) == (change(ONE, None),)


def test_what_the_call_changed_before_and_after_a_restore_is_its_own(store):
    assert own(store, change(None, TWO), restore(3_000, None, ONE)) == (change(ONE, TWO),)
    assert own(store, change(ONE, THREE), restore(3_000, TWO, THREE)) == (change(ONE, TWO),)


@pytest.mark.parametrize("at", [999, 15_001])
def test_a_restore_at_another_time_is_not_considered(store, at):
    assert own(store, change(None, ONE), restore(at, None, ONE)) == (change(None, ONE),)


@pytest.mark.parametrize(("began_at", "expected"), [(5_000, ()), (5_001, (change(None, ONE),))])
def test_a_restore_is_considered_if_it_began_before_the_end_of_the_call(store, began_at, expected):
    late = structs.replace(restore(6_000, None, ONE), began_at=began_at)
    assert own(store, change(None, ONE), late) == expected


def test_another_path_or_state_is_not_considered(store):
    assert own(store, change(None, ONE), restore(3_000, None, ONE, b"/ws/g")) == (change(None, ONE),)
    assert own(store, change(None, ONE), restore(3_000, TWO, THREE)) == (change(None, ONE),)
    assert own(store, change(ONE, TWO), restore(3_000, ONE, THREE)) == (change(THREE, TWO),)


def test_random_orders_of_one_write_and_restores_leave_the_write(store):
    """The own part always leads from the state before the call's write to the state after it."""
    draw = random.Random(5)  # noqa: S311 - no secrets
    for _ in range(300):
        states = draw.sample((None, *(FileState("file", 0o644, name * 64, 1) for name in "123456")), 5)
        place = draw.randrange(4)
        steps = list(pairwise(states))
        restored = [restore(2_000 + at, *step) for at, step in enumerate(steps) if at != place]
        assert own(store, change(states[0], states[-1]), *restored) == (change(*steps[place]),)
        everything = [restore(2_000 + at, *step) for at, step in enumerate(steps)]
        assert own(store, change(states[0], states[-1]), *everything) == ()


def test_the_time_of_calls_from_older_logs_is_not_known(store):
    old = call(store, change(None, ONE), started_ms=0)
    (record,) = records_of([old], store, lambda _: pytest.fail("asked for restores"))
    assert record.changes == (change(None, ONE),)


def test_a_record_that_is_not_kept_is_named_by_its_call(store):
    gone = CallChange(0, "c", "bash", '{"command": "rm a"}', "ab" * 32, "")
    with pytest.raises(UndoRefused, match=r"What bash\(rm a\) changed is not kept any more: undo no longer"):
        records_of([gone], store, no_restores)


def test_records_come_the_newest_first_and_calls_without_one_are_left_out(store):
    calls = [call(store, change(None, each)) for each in (ONE, TWO)]
    unsaved = CallChange(0, "c", "bash", "{}", "", "not saved")
    records = records_of([calls[0], unsaved, calls[1]], store, no_restores)
    assert [record.changes[0].after for record in records] == [TWO, ONE]


def unnamed(store: ContentStore, writes: tuple[str, ...] | None, *changes: Change) -> set[bytes]:
    made = call(store, *changes, writes=writes)
    return unnamed_changes([made], records_of([made], store, no_restores))


def test_a_path_that_a_command_does_not_name_is_asked_about(store):
    changes = (change(ONE, TWO), change(ONE, THREE, b"/ws/g"), change(None, FOLDER, b"/ws/d"))
    assert unnamed(store, ("/ws/f", "/ws/d/new"), *changes) == {b"/ws/g"}
    assert unnamed(store, ("/ws",), *changes) == set()
    assert unnamed(store, None, *changes) == set(), "what it writes is not known"


def test_the_files_of_a_new_link_and_of_hard_links_are_the_command_s(store):
    assert unnamed(store, ("/ws/l",), change(None, LINK, b"/ws/l"), change(ONE, TWO)) == set()
    assert unnamed(store, ("/ws/g",), change(ONE, TWO, b"/ws/g"), change(ONE, TWO)) == set()
    assert unnamed(store, ("/ws/g",), change(ONE, TWO, b"/ws/g"), change(ONE, THREE)) == {b"/ws/f"}


def test_a_named_file_behind_a_link_of_the_workspace_is_named(store, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    path = bytes(tmp_path / "real" / "f")
    assert unnamed(store, (str(tmp_path / "link" / "f"),), change(ONE, TWO, path)) == set()


@pytest.mark.parametrize("target", ["f", "nowhere", "/etc/passwd", "."])
def test_a_link_that_a_command_makes_is_named_by_its_own_path(store, tmp_path, target):
    link = tmp_path / "made"
    link.symlink_to(target)
    assert unnamed(store, (str(link),), change(None, LINK, bytes(link))) == set()


@pytest.mark.parametrize(
    ("seconds", "writes", "is_said"), [(4, None, False), (90, None, True), (90, ("/ws/f",), False)]
)
def test_changes_during_a_long_command_may_be_the_user_s(store, seconds, writes, is_said):
    made = call(store, change(ONE, TWO), seconds=seconds, writes=writes)
    said = long_calls_text([made])
    expected = "bash() ran for 90 s: you or another program may have made some of these changes."
    assert said == ((expected,) if is_said else ())
