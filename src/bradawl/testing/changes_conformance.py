"""Conformance suite for adapters of the `WorkspaceChanges` port.

Each case takes a factory of fresh adapters, and raises `AssertionError` if the adapter breaks the port's contract:

    @pytest.mark.parametrize("check", changes_conformance.CASES)
    def test_my_changes(check, tmp_path):
        asyncio.run(check(lambda: make_setup(tmp_path)))
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import msgspec

from bradawl.core.ports import WorkspaceChanges
from bradawl.core.workspace import Checkpoint

_PATIENCE_S = 20.0


class ChangesSetup(msgspec.Struct, frozen=True):
    """A fresh adapter, and a workspace that it saves."""

    changes: WorkspaceChanges
    root: str
    """The workspace's folder: an absolute path without symlinks. It holds no files."""
    write: Callable[[str, bytes | None], None]
    """Writes a file by its absolute path, as a program would; None removes it."""
    before: Callable[[str, str], bytes | None]
    """The saved content of a file, given the `ref` of a checkpoint and an absolute path; None if it did not exist.

    Only asked for files that the call changed."""


MakeChanges = Callable[[], ChangesSetup]


def _require(claim: bool, promise: str) -> None:
    if not claim:
        raise AssertionError(promise)


async def _begin(setup: ChangesSetup, call_id: str, *names: str) -> tuple[Checkpoint, ...]:
    """Begin a call that may change the named files, or any file without names."""
    async with asyncio.timeout(_PATIENCE_S):
        return await setup.changes.begin(call_id, tuple(_path(setup, name) for name in names) or None)


async def _settle(setup: ChangesSetup, owner: str = "") -> tuple[Checkpoint, ...]:
    async with asyncio.timeout(_PATIENCE_S):
        return await setup.changes.settle(owner)


def _path(setup: ChangesSetup, name: str) -> str:
    return f"{setup.root}/{name}"


def _write(setup: ChangesSetup, **contents: bytes | None) -> None:
    for name, content in contents.items():
        setup.write(_path(setup, name), content)


def _ref(found: Sequence[Checkpoint], call_id: str) -> str:
    """The only reference of a call."""
    refs = [each.ref for each in found if each.call_id == call_id and each.ref]
    _require(len(refs) == 1, f"call {call_id} has one checkpoint with a reference")
    return refs[0]


async def check_changes_save_the_state_before_a_call(make: MakeChanges) -> None:
    """Changed, removed and new files are known as they were before the call."""
    setup = make()
    _write(setup, kept=b"kept", changed=b"old\r\n\xff", removed=b"")
    _require(await _begin(setup, "s.main/c1") == (), "no call has ended before the first one")
    _write(setup, changed=b"new", removed=None, made=b"made")
    setup.changes.end("s.main/c1")
    ref = _ref(await _settle(setup, "s.main"), "c1")
    for name, content in (("changed", b"old\r\n\xff"), ("removed", b""), ("made", None)):
        _require(setup.before(ref, _path(setup, name)) == content, f"{name} is saved as before the call")


async def check_changes_save_the_files_that_a_call_names(make: MakeChanges) -> None:
    """A call that names its files is credited with them."""
    setup = make()
    _write(setup, one=b"1")
    await _begin(setup, "s.main/c1", "one", "two")
    _write(setup, one=b"2", two=b"2")
    setup.changes.end("s.main/c1")
    ref = _ref(await _settle(setup, "s.main"), "c1")
    _require(setup.before(ref, _path(setup, "one")) == b"1", "a named file is saved")
    _require(setup.before(ref, _path(setup, "two")) is None, "a new file is known to be new")


async def check_changes_answer_for_each_ended_call_once(make: MakeChanges) -> None:
    """Each ended call has a checkpoint, also if it changed nothing; none is returned twice."""
    setup = make()
    found: list[Checkpoint] = []
    for number in range(20):
        found += await _begin(setup, f"s.main/c{number}")
        if number % 3:
            _write(setup, file=b"%d" % number)
        setup.changes.end(f"s.main/c{number}")
    found += await _settle(setup, "s.main")
    ended = dict.fromkeys(each.call_id for each in found)
    _require(
        list(ended) == [f"c{number}" for number in range(20)], "the calls are answered in order, by their bare ids"
    )
    refs = [each.ref for each in found if each.ref]
    _require(len(refs) == len(set(refs)) >= 13, "each call that changed a file has a reference of its own")
    _require(await _settle(setup, "s.main") == (), "nothing is returned twice")


async def check_changes_between_calls_belong_to_none(make: MakeChanges) -> None:
    """What the user changes between two calls is in the state before the second one."""
    setup = make()
    for number in range(2):
        _write(setup, file=b"by the user, %d" % number)
        await _begin(setup, f"s.main/c{number}")
        _write(setup, file=b"by call %d" % number)
        setup.changes.end(f"s.main/c{number}")
        ref = _ref(await _settle(setup, "s.main"), f"c{number}")
        content = setup.before(ref, _path(setup, "file"))
        _require(content == b"by the user, %d" % number, "a call begins with what the user has written")


async def check_changes_are_returned_to_their_owner(make: MakeChanges) -> None:
    """`begin` and `settle` return the checkpoints of one owner; without an owner those of calls without one."""
    setup = make()
    for call_id in ("s.main/c1", "s.agent/c2", "c3"):
        await _begin(setup, call_id)
        _write(setup, file=call_id.encode())
        setup.changes.end(call_id)
    _require({each.call_id for each in await _settle(setup)} == {"c3"}, "calls without an owner are apart")
    found = [*await _begin(setup, "s.agent/c4"), *await _settle(setup, "s.agent")]
    _require({each.call_id for each in found} == {"c2"}, "an owner gets its own checkpoints")
    setup.changes.end("s.agent/c4")
    _require({each.call_id for each in await _settle(setup, "s.main")} == {"c1"}, "the others wait for their owner")


async def check_changes_of_calls_that_overlap(make: MakeChanges) -> None:
    """Calls that name different files may run at the same time, and end in any order."""
    setup = make()
    _write(setup, one=b"1", two=b"2")
    for name in ("one", "two"):
        await _begin(setup, f"s.main/{name}", name)
    _write(setup, two=b"after", one=b"after")
    for name in ("two", "one"):
        setup.changes.end(f"s.main/{name}")
    found = await _settle(setup, "s.main")
    _require({each.call_id for each in found} == {"one", "two"}, "each of them is answered")
    saved = {setup.before(each.ref, _path(setup, each.call_id)) for each in found if each.ref}
    _require(saved <= {b"1", b"2"} and bool(saved), "a reference has the state before its call")


async def check_changes_of_a_lost_call_are_not_taken_for_none(make: MakeChanges) -> None:
    """A call that was never begun here ran when an earlier program ended: what it changed is not known."""
    setup = make()
    setup.changes.end("s.main/lost")
    found = await _settle(setup, "s.main")
    _require({each.call_id for each in found} == {"lost"}, "it is answered")
    _require(any(each.uncovered for each in found), "the answer says that something may be missing")


async def check_changes_outlive_a_cancelled_wait(make: MakeChanges) -> None:
    """A wait that is cancelled loses no checkpoint, and the call can be ended."""
    setup = make()
    await _begin(setup, "s.main/c1")
    _write(setup, file=b"1")
    setup.changes.end("s.main/c1")
    waits = (lambda: _settle(setup, "s.main"), lambda: _begin(setup, "s.main/c2"))
    found: list[Checkpoint] = []
    for wait in waits:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            found += await task
    setup.changes.end("s.main/c2")
    found += await _settle(setup, "s.main")
    _require({"c1", "c2"} == {each.call_id for each in found}, "both calls are answered")


async def check_changes_say_whether_they_cover_everything(make: MakeChanges) -> None:
    """`covers` is a truth value, before and after calls."""
    setup = make()
    _write(setup, file=b"1")
    async with asyncio.timeout(_PATIENCE_S):
        first = await setup.changes.covers()
        await _begin(setup, "s.main/c1")
        setup.changes.end("s.main/c1")
        second = await setup.changes.covers()
    _require({first, second} <= {True, False}, "covers returns a truth value")


CASES = (
    check_changes_save_the_state_before_a_call,
    check_changes_save_the_files_that_a_call_names,
    check_changes_answer_for_each_ended_call_once,
    check_changes_between_calls_belong_to_none,
    check_changes_are_returned_to_their_owner,
    check_changes_of_calls_that_overlap,
    check_changes_of_a_lost_call_are_not_taken_for_none,
    check_changes_outlive_a_cancelled_wait,
    check_changes_say_whether_they_cover_everything,
)
