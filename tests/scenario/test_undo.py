"""Undo and redo of whole sessions: files and conversation go back and forward together, and nothing is overwritten."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_agent import assert_valid
from scripted_subagents import TwoScripts, task
from undo_world import ChangeTool, UndoWorld

from bradawl.agent.session import Session
from bradawl.app.undo import Undo, UndoRefused
from bradawl.app.undo_plan import conflicts_of
from bradawl.app.undo_text import conflicts_text, outcome_text, plan_text, steps_text
from bradawl.core.events import AgentEnded, HeadMoved
from bradawl.core.messages import ToolResults, User, text_of
from bradawl.folds.undo_history import UndoStep
from bradawl.tools.agent import AgentTool

DONE = {"text": "done"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[UndoWorld]:
    world = UndoWorld(tmp_path)
    yield world
    world.close()


def prompts(session: Session) -> list[str]:
    return [text_of(each.parts) for each in session.transcript.messages if isinstance(each, User)]


def script_of_two_turns(world: UndoWorld) -> list[dict[str, Any]]:
    """`one` writes a twice; `two` writes b, removes c and makes d executable."""
    world.write("c", "see")
    world.write("d", "dee").chmod(0o644)

    def second() -> None:
        world.write("folder/b", "bee")
        (world.root / "c").unlink()
        (world.root / "d").chmod(0o755)

    return [
        world.writing("a1", "a", "1"),
        world.writing("a2", "a", "2"),
        DONE,
        world.doing("second", second),
        DONE,
        *[DONE] * 5,
    ]


async def test_undo_goes_back_step_by_step_and_redo_forward_again(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    trees = [world.tree()]
    async with agent.open() as session:
        undo = world.undo(session)
        await session.run("one")
        await session.run("two")
        trees.append(world.tree())
        messages = list(session.transcript.messages)
        names, seen = [], []
        for _ in range(3):
            plan = await undo.plan()
            assert world.tree() == (seen[-1] if seen else trees[-1]), "a plan changes nothing"
            assert plan.step is not None
            names.append(plan.step.name)
            await undo.carry_out(plan)
            seen.append(world.tree())
        assert names == ["2", "1.2", "1"]
        assert seen[2] == trees[0] and (seen[1]["a"][1], seen[0]["a"][1]) == (b"1", b"2")
        assert session.transcript.messages == []
        with pytest.raises(UndoRefused, match="nothing to undo"):
            await undo.plan()
        for expected in (seen[1], seen[0], trees[1]):
            await undo.carry_out(await undo.plan_redo())
            assert world.tree() == expected
        assert session.transcript.messages == messages
        with pytest.raises(UndoRefused, match="nothing to redo"):
            await undo.plan_redo()


async def test_a_resumed_session_undoes_and_redoes_what_another_process_did(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    before = world.tree()
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
    after = world.tree()
    async with agent.open(session.id) as resumed:
        await world.undo(resumed).carry_out(await world.undo(resumed).plan("1"))
        assert (world.tree(), prompts(resumed)) == (before, [])
    async with agent.open(session.id) as again:
        assert prompts(again) == []
        await world.undo(again).carry_out(await world.undo(again).plan_redo())
        assert (world.tree(), prompts(again)) == (after, ["one", "two"])


async def test_the_conversation_goes_on_from_a_step_in_the_middle_of_a_turn(world: UndoWorld) -> None:
    agent, model = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan())
        assert world.tree()["a"][1] == b"1"
        await session.run("other")
        assert_valid(session.transcript.messages)
    results = [each for each in model.requests[-1] if isinstance(each, ToolResults)]
    assert [text_of(each.results[0].parts) for each in results][:1] == ["did a1"]


async def test_code_alone_leaves_the_conversation_and_tells_the_model_which_files_changed(world: UndoWorld) -> None:
    agent, model = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        outcome = await undo.carry_out(await undo.plan("", "code"))
        assert prompts(session) == ["one", "two"] and outcome.record is not None
        again = await undo.plan("", "code")
        assert again.step is not None and again.step.name == "1.2"
        await session.run("three")
        notes = [note.text for each in model.requests[-1] if isinstance(each, User) for note in each.notes]
        assert len(notes) == 1 and "folder/b" in notes[0] and "c" in notes[0] and len(notes[0]) < 400


async def test_the_conversation_alone_leaves_the_files(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        tree, undo = world.tree(), world.undo(session)
        plan = await undo.plan("", "talk")
        assert plan.prompts == ("two",) and plan.files is None
        await undo.carry_out(plan)
        assert (world.tree(), prompts(session)) == (tree, ["one"])
        plan = await undo.plan()  # its changes are still in the files; the conversation is before them
        assert (plan.part, plan.step and plan.step.name) == ("code", "2")
        await undo.carry_out(plan)
        assert (world.root / "c").read_text() == "see" and prompts(session) == ["one"]


async def test_a_file_that_the_user_changed_since_is_never_overwritten_unasked(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        mine = world.write("a", "mine")
        plan = await undo.plan("1")
        assert conflicts_of(plan) == (bytes(mine),)
        tree, count = world.tree(), len(session.conversation.entries())
        with pytest.raises(UndoRefused, match="changed since"):
            await undo.carry_out(plan)
        assert world.tree() == tree and len(session.conversation.entries()) == count
        outcome = await undo.carry_out(plan, keep_conflicts=True)
        assert outcome.kept == (bytes(mine),)
        assert mine.read_text() == "mine" and (world.root / "c").read_text() == "see"
        assert "Left alone" in outcome_text(outcome, undo.root) and "a" in conflicts_text(plan, undo.root)


async def test_a_forced_file_is_restored_and_redo_brings_the_users_version_back(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        mine = world.write("a", "mine")
        plan = await undo.plan("1")
        await undo.carry_out(plan, overwrite=conflicts_of(plan))
        assert not mine.exists()
        await undo.carry_out(await undo.plan_redo())
        assert mine.read_text() == "mine"


async def test_a_kept_file_is_not_a_conflict_of_the_next_undo(world: UndoWorld) -> None:
    script = [world.writing("a1", "a", "1"), world.writing("b1", "b", "1"), DONE]
    agent, _ = world.agent(script)
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        world.write("b", "mine")
        await undo.carry_out(await undo.plan(), keep_conflicts=True)
        plan = await undo.plan()
        assert conflicts_of(plan) == ()
        await undo.carry_out(plan)
        assert {name: data for name, (_, data) in world.tree().items()} == {"b": b"mine"}


async def test_a_plan_that_is_out_of_date_is_refused(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        plan = await undo.plan()
        await session.run("two")
        with pytest.raises(UndoRefused, match="Plan it again"):
            await undo.carry_out(plan)


async def test_a_file_changed_between_plan_and_restoring_is_left_alone_and_said(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        plan = await undo.plan("1")
        world.write("a", "mine")
        outcome = await undo.carry_out(plan)
        assert (world.root / "a").read_text() == "mine"
        assert "changed since the plan" in outcome_text(outcome, undo.root)


async def test_steps_that_do_not_exist_and_empty_sessions_are_refused(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        undo = world.undo(session)
        with pytest.raises(UndoRefused, match="has no steps"):
            await undo.plan()
        await session.run("one")
        with pytest.raises(UndoRefused, match="There is no step 7"):
            await undo.plan("7")
        with pytest.raises(UndoRefused, match=r"No file has changed since step 1\.3"):
            await undo.plan("1.3", "code")


async def test_the_list_shows_prompts_steps_and_counts(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        lines = steps_text(await undo.history(), undo.changes_of).splitlines()
        assert [line.split()[0] for line in lines] == ["1", "1", "1.2", "2", "2"]
        assert lines[0].endswith("  one") and "+1 ~0 -0" in lines[1] and "+0 ~1 -0" in lines[2]
        assert "+2 ~1 -1" in lines[4]
        await undo.carry_out(await undo.plan("2"))
        lines = steps_text(await undo.history(), undo.changes_of).splitlines()
        assert lines[-1].endswith("two  (taken back)")


async def test_a_dry_run_names_what_comes_back_and_what_is_not_covered(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        text = plan_text(await undo.plan("2"), undo.root)
    lines = text.splitlines()
    assert lines[0].startswith("Would go back to before step 2")
    assert "+ c (3 bytes)" in lines and "- folder/b" in lines and "~ d (mode 0755 -> 0644)" in lines
    assert "databases" in lines[-1] and len(lines) < 24


async def test_the_changes_of_the_session_and_of_one_step_are_told_apart(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        await session.run("two")
        undo = world.undo(session)
        whole = [Path(each.path.decode()).name for each in await undo.changes()]
        step = [Path(each.path.decode()).name for each in await undo.changes("1.2")]
        assert (whole, step) == (["a", "c", "d", "folder", "b"], ["a"])


async def test_the_log_names_the_record_of_each_undo(world: UndoWorld) -> None:
    agent, _ = world.agent(script_of_two_turns(world))
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        outcome = await undo.carry_out(await undo.plan())
        moved = [each.event for each in session.conversation.entries() if isinstance(each.event, HeadMoved)][-1]
        assert world.store.record(moved.checkpoint_ref) == outcome.record


async def test_what_a_sub_agent_changed_goes_with_the_step_that_started_it(world: UndoWorld) -> None:
    inner = world.writing("inner", "b", "from the sub-agent")
    outer = {"tool_calls": [task("outer", kind="general")]}
    model = TwoScripts([world.writing("first", "a", "1"), outer, DONE, DONE], [inner, DONE])
    agent, _ = world.agent([], model=model, tools=(ChangeTool(world.functions), AgentTool()))
    async with agent.open() as session:
        await session.run("go")
        after = world.tree()
        undo = world.undo(session)
        plan = await undo.plan()
        assert plan.step is not None and plan.step.name == "1.2" and [call.tool for call in plan.calls] == ["change"]
        await undo.carry_out(plan)
        assert set(world.tree()) == {"a"}
        await undo.carry_out(await undo.plan_redo())
        assert world.tree() == after
    async with agent.open(session.id) as resumed:  # the sub-agent's end is on the branch again
        assert_valid(resumed.transcript.messages)
        await resumed.run("on")
    assert len([each for each in resumed.conversation.entries() if isinstance(each.event, AgentEnded)]) == 1


async def test_a_step_that_was_taken_back_still_names_the_place_that_the_conversation_returns_to(
    world: UndoWorld,
) -> None:
    script = [world.writing("one", "a", "1"), DONE, world.writing("two", "b", "2"), DONE]
    agent, _ = world.agent([*script, world.writing("three", "c", "3"), DONE])
    async with agent.open() as session:
        undo = world.undo(session)
        await session.run("one")
        await session.run("two")
        await undo.carry_out(await undo.plan())
        await session.run("three")
        plan = await undo.plan("2")
        assert plan.part == "both" and plan.prompts == ("three",)
        await undo.carry_out(plan)
        assert set(world.tree()) == {"a"} and [step.name for step in (await kept_steps(undo))] == ["1", "1.2"]
        await undo.carry_out(await undo.plan_redo())
        assert set(world.tree()) == {"a", "c"}
        await undo.carry_out(await undo.plan("2", "talk"))
        assert [step.name for step in (await kept_steps(undo))] == ["1", "1.2"]
        with pytest.raises(UndoRefused, match="not in the conversation any more"):
            await undo.plan("2", "talk")


async def kept_steps(undo: Undo) -> list[UndoStep]:
    return [step for step in (await undo.history()).steps if step.is_in_conversation]
