"""Undo over calls of which it is not known, or not saved, what they changed: it says so, and does not guess."""

import asyncio
import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_agent import only
from undo_world import UndoWorld, WalkingChanges

from bradawl.agent.changes import UnsavedChanges
from bradawl.app.undo import Undo, UndoRefused
from bradawl.app.undo_text import outcome_text, plan_text, refusal_text, steps_text
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.core.events import CheckpointTaken
from bradawl.core.messages import User
from bradawl.core.workspace import Checkpoint
from bradawl.testing.fakes import RecordingEmit
from bradawl.tools.editing.diffs import describe_change

DONE = {"text": "done"}
WHY = "its changes are not saved and stay, because undo was switched off."
LATE = "The search for its changes did not end in time: what it changed is not known."


class SlowChanges(WalkingChanges):
    """`WorkspaceChanges` whose searches do not end in time while `is_slow`."""

    is_slow = False

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """Nothing while it is slow."""
        return () if self.is_slow else await super().settle(owner)


class DatedChanges(WalkingChanges):
    """`WorkspaceChanges` whose records are made 40 ms after the search, so that no file has changed just before."""

    def end(self, call_id: str) -> None:
        """Read all files and save what differs."""
        before, after = self._before, self.read()
        paths = sorted(path for path in {**before, **after} if before.get(path) != after.get(path))
        owner, _, name = call_id.rpartition("/")
        at = int(time.time() * 1000) + 40
        changes = tuple(Change(path, before.get(path), after.get(path)) for path in paths)
        self._found.append((owner, Checkpoint(name, self.store.save_record(ChangeRecord(name, at, changes)))))
        self.store.flush()


class GapChanges(WalkingChanges):
    """`WorkspaceChanges` that finds changes outside of what it covers in each call without other changes."""

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """The checkpoints of an owner."""
        found = await super().settle(owner)
        return tuple(
            each if each.ref else Checkpoint(each.call_id, "", "Changes in x are not covered.") for each in found
        )


@pytest.fixture
def world(tmp_path: Path) -> Iterator[UndoWorld]:
    world = UndoWorld(tmp_path)
    world.write("a", "1")
    yield world
    world.close()


@pytest.mark.parametrize("part", ["both", "code"])
async def test_the_step_before_one_with_unknown_changes_is_not_undone_unasked(world: UndoWorld, part) -> None:
    slow = SlowChanges(world.root, world.store)
    script = [world.writing("first", "a", "2"), DONE, world.writing("second", "b", "new"), DONE]
    agent, _ = world.agent(script, changes=slow)
    async with agent.open() as session:
        await session.run("one")
        slow.is_slow = True
        await session.run("two")
        undo = world.undo(session)
        with pytest.raises(UndoRefused) as refused:
            await undo.plan("", part)
        assert f"not known what step 2 changed, change(second). {LATE} Try again in a moment" in str(refused.value)
        words, options = ("", "") if part == "both" else (" code", " --code-only")
        said = f"`/undo 1{words}` (outside of a conversation: `bradawl undo --to 1{options}`)"
        assert said in str(refused.value)
        assert world.tree()["a"][1] == b"2"
        slow.is_slow = False
        plan = await undo.plan("", part)
        assert plan.step is not None and plan.step.name == "2" and not plan.is_partial
        await undo.carry_out(plan)
        assert "b" not in world.tree() and world.tree()["a"][1] == b"2"
        assert LATE not in plan_text(plan, str(world.root))


async def test_a_step_with_unknown_changes_is_named_by_an_undo_over_it(world: UndoWorld) -> None:
    slow = SlowChanges(world.root, world.store)
    script = [world.writing("first", "a", "2"), DONE, world.writing("second", "b", "new"), DONE]
    agent, _ = world.agent(script, changes=slow)
    async with agent.open() as session:
        await session.run("one")
        slow.is_slow = True
        await session.run("two")
        plan = await world.undo(session).plan("1")
        outcome = await world.undo(session).carry_out(plan)
        assert world.tree()["a"][1] == b"1" and not outcome.is_complete
        assert f"Not covered: change(second): {LATE}" in outcome_text(outcome, str(world.root))


async def test_what_a_search_finds_late_replaces_the_entry_that_it_is_not_known(world: UndoWorld) -> None:
    slow = SlowChanges(world.root, world.store)
    slow.is_slow = True
    agent, _ = world.agent([world.writing("first", "a", "2"), DONE, DONE], changes=slow)
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("one", emit)
        assert [each.is_known for each in only(emit.events, CheckpointTaken)] == [False]
        slow.is_slow = False
        await session.log_changes()
        history = await world.undo(session).history()
        (found,) = history.applied
        assert found.ref and found.is_known and not found.uncovered


@pytest.mark.parametrize("step", ["1", "2"])
async def test_taking_back_only_the_conversation_says_which_steps_are_not_saved(world: UndoWorld, step: str) -> None:
    script = [world.writing("first", "a", "2"), DONE, world.writing("second", "b", "new"), DONE]
    agent, _ = world.agent(script, changes=UnsavedChanges(WHY))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        plan = await undo.plan(step)
        assert plan.part == "talk" and plan.is_partial
        outcome = await undo.carry_out(plan)
        for text in (plan_text(plan, str(world.root)), outcome_text(outcome, str(world.root))):
            assert f"Not covered: change(second): {WHY}" in text and "No file is restored." in text
            assert (f"Not covered: change(first): {WHY}" in text) == (step == "1")
        assert not outcome.is_complete


async def test_taking_back_the_conversation_alone_as_asked_misses_nothing(world: UndoWorld) -> None:
    agent, _ = world.agent([world.writing("first", "a", "2"), DONE], changes=UnsavedChanges(WHY))
    async with agent.open() as session:
        await session.run("one")
        plan = await world.undo(session).plan("1", "talk")
        assert not plan.is_partial and WHY not in plan_text(plan, str(world.root))


async def test_restoring_files_alone_says_which_steps_are_not_saved(world: UndoWorld) -> None:
    agent, _ = world.agent([world.writing("first", "a", "2"), DONE], changes=UnsavedChanges(WHY))
    async with agent.open() as session:
        await session.run("one")
        with pytest.raises(UndoRefused, match=r"No file has changed since step 1 .* Not covered: change\(first\): its"):
            await world.undo(session).plan("1", "code")


async def test_changes_that_are_not_covered_do_not_stop_an_undo_of_the_step_before(world: UndoWorld) -> None:
    changes = GapChanges(world.root, world.store)
    script = [world.writing("first", "a", "2"), DONE, world.doing("test", asyncio.current_task), DONE]
    agent, _ = world.agent(script, changes=changes)
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        plan = await world.undo(session).plan()
        assert plan.step is not None and plan.step.name == "1" and not plan.is_partial
        await world.undo(session).carry_out(plan)
        assert world.tree()["a"][1] == b"1"


async def test_the_notes_of_an_undo_and_its_redo_do_not_contradict_each_other(world: UndoWorld) -> None:
    agent, model = world.agent([world.writing("first", "a", "2"), DONE, DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan("", "code"))
        await undo.carry_out(await undo.plan_redo())
        await session.run("two")
    (message,) = [each for each in model.requests[-1] if isinstance(each, User) and each.notes]
    undone, redone = [note.text for note in message.notes]
    assert "These are again as before: a. That was on purpose" in undone
    assert "these files hold the changes again: a. What an earlier note says about undoing them" in redone


async def test_a_call_with_several_records_is_listed_once(world: UndoWorld) -> None:
    agent, _ = world.agent([world.writing("first", "a", "2"), DONE])
    async with agent.open() as session:
        emit = RecordingEmit()
        await session.run("one", emit)
        (taken,) = only(emit.events, CheckpointTaken)
        session.conversation.record(taken)
        undo = world.undo(session)
        plan = await undo.plan()
        history = await undo.history()
        assert len(history.applied) == 2
        for text in (plan_text(plan, str(world.root)), steps_text(history, undo.changes_of)):
            assert text.count("change(first)") == 1


async def test_a_redo_that_can_restore_nothing_does_not_offer_what_is_for_an_undo(world: UndoWorld) -> None:
    agent, _ = world.agent([world.writing("first", "a", "2"), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan())
        (world.root / "other").mkdir()
        elsewhere = Undo(session, lambda: world.store, [str(world.root / "other")], describe_change)
        plan = await elsewhere.plan_redo()
        assert "--talk-only" not in refusal_text(plan, str(world.root))
        assert "none of the files can be" in refusal_text(plan, str(world.root))


async def test_a_file_that_changed_only_through_a_mapping_is_no_conflict(world: UndoWorld) -> None:
    """A database maps its file: it changes without a new time of change."""
    mapped = world.write("mapped", "1234")
    with mapped.open("r+b") as file, mmap.mmap(file.fileno(), 4) as mapping:

        def change() -> None:
            mapping[:1] = b"x"
            world.write("other", "2")

        agent, _ = world.agent([world.doing("change", change), DONE], changes=DatedChanges(world.root, world.store))
        async with agent.open() as session:
            await session.run("one")
            times = mapped.stat()
            mapping[1:2] = b"y"
            assert mapped.stat().st_ctime_ns == times.st_ctime_ns, "this file system shows it"
            undo = world.undo(session)
            plan = await undo.plan()
            assert plan.files is not None and plan.files.conflicts == ()
            await undo.carry_out(plan)
            assert world.tree()["mapped"][1] == b"1234"
            await undo.carry_out(await undo.plan_redo())
            assert world.tree()["mapped"][1] == b"xy34"
            await asyncio.sleep(0.05)  # until after the time of the record
            mapped.write_text("mine")
            plan = await undo.plan()
            assert plan.files is not None and [each.path for each in plan.files.conflicts] == [os.fsencode(mapped)]


class HalfKnownChanges(WalkingChanges):
    """`WorkspaceChanges` that does not find what calls with `second` in their id changed."""

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """The checkpoints of an owner."""
        found = await super().settle(owner)
        return tuple(
            Checkpoint(each.call_id, "", LATE, is_known=False) if "second" in each.call_id else each for each in found
        )


async def test_a_step_of_which_a_part_is_saved_is_undone_as_far_as_it_is_saved(world: UndoWorld) -> None:
    replies = [world.writing(name, name, "new") for name in ("first", "second")]
    calls = [call for reply in replies for call in reply["tool_calls"]]
    agent, _ = world.agent([{"tool_calls": calls}, DONE], changes=HalfKnownChanges(world.root, world.store))
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        assert "not saved" not in steps_text(await undo.history(), undo.changes_of)
        outcome = await undo.carry_out(await undo.plan())
        assert not outcome.is_complete and set(world.tree()) == {"a", "second"}
        assert f"Not covered: change(second): {LATE}" in outcome_text(outcome, str(world.root))
