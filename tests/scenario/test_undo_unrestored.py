"""What an undo could not restore is tried again by the next one, and what is outside of its folders is named."""

import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from undo_world import States, UndoWorld, WalkingChanges

from bradawl.agent.session import Session
from bradawl.app.undo import Undo, UndoRefused, UndoStopped
from bradawl.app.undo_plan import UndoOutcome
from bradawl.app.undo_text import outcome_text, plan_text, refusal_text, unrestored_text
from bradawl.core.events import JobStarted
from bradawl.tools.editing.diffs import describe_change

DONE = {"text": "done"}
LARGE = "x" * 3_000_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[UndoWorld]:
    world = UndoWorld(tmp_path)
    yield world
    world.close()


@contextlib.contextmanager
def no_large_files() -> Iterator[None]:
    """Writing a file of more than 1 MB fails, as on a full disk."""
    earlier = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, earlier[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, earlier)


async def partly_undone(session: Session, undo: Undo) -> UndoOutcome:
    await session.run("one")
    await session.run("two")
    with no_large_files():
        return await undo.carry_out(await undo.plan())


def removing_two(world: UndoWorld) -> list[dict[str, object]]:
    """The first turn writes `first`, the second removes a large and a small file."""
    world.write("large", LARGE)
    world.write("small", "s")

    def remove() -> None:
        (world.root / "large").unlink()
        (world.root / "small").unlink()

    return [world.writing("first", "first", "1"), DONE, world.doing("remove", remove), DONE, DONE]


async def test_what_failed_is_restored_by_the_next_undo(world: UndoWorld) -> None:
    agent, _ = world.agent(removing_two(world))
    async with agent.open() as session:
        undo = world.undo(session)
        before = {**world.tree(), "first": (0o100644, b"1")}
        outcome = await partly_undone(session, undo)
        assert not outcome.is_complete and not (world.root / "large").exists()
        said = outcome_text(outcome, undo.root)
        assert "large' was not restored" in said and unrestored_text(1) in said and "tries again" in said
        history = await undo.history()
        assert [each.path for each in undo.unrestored(history)] == [os.fsencode(world.root / "large")]
        plan = await undo.plan()
        assert plan.completes == "both" and plan.part == "code"
        assert "restore what the last undo, to before step 2, could not" in plan_text(plan, undo.root)
        again = await undo.carry_out(plan)
        assert again.is_complete and "+ large" in outcome_text(again, undo.root)
        assert {name: data for name, (_, data) in world.tree().items()} == {n: d for n, (_, d) in before.items()}
        assert undo.unrestored(await undo.history()) == ()
        await undo.carry_out(await undo.plan())
        assert not (world.root / "first").exists()
        assert (world.root / "large").read_text() == LARGE


async def test_redo_takes_both_back_one_by_one_and_what_failed_can_fail_again(world: UndoWorld) -> None:
    agent, _ = world.agent(removing_two(world))
    async with agent.open() as session:
        undo = world.undo(session)
        await partly_undone(session, undo)
        after = {"first"}
        with no_large_files():
            again = await undo.carry_out(await undo.plan())
        assert not again.is_complete and len(undo.unrestored(await undo.history())) == 1
        assert "No file was restored." in outcome_text(again, undo.root)
        await undo.carry_out(await undo.plan())
        assert set(world.tree()) == {"first", "large", "small"}
        await undo.carry_out(await undo.plan_redo())
        assert set(world.tree()) == {"first", "small"}
        assert len(undo.unrestored(await undo.history())) == 1
        await undo.carry_out(await undo.plan_redo())
        await undo.carry_out(await undo.plan_redo())
        assert set(world.tree()) == after and undo.unrestored(await undo.history()) == ()
        with pytest.raises(UndoRefused, match="nothing to redo"):
            await undo.plan_redo()
        await undo.carry_out(await undo.plan())
        assert set(world.tree()) == {"first", "large", "small"}


async def test_an_undo_further_back_restores_what_failed_too(world: UndoWorld) -> None:
    agent, _ = world.agent(removing_two(world))
    async with agent.open() as session:
        undo = world.undo(session)
        await partly_undone(session, undo)
        plan = await undo.plan("1")
        assert plan.completes is None and plan.files is not None and plan.files.conflicts == ()
        outcome = await undo.carry_out(plan)
        assert outcome.is_complete and set(world.tree()) == {"large", "small"}


async def test_a_file_that_the_user_makes_meanwhile_is_a_conflict_and_a_prompt_ends_the_undo(world: UndoWorld) -> None:
    agent, _ = world.agent(removing_two(world))
    async with agent.open() as session:
        undo = world.undo(session)
        await partly_undone(session, undo)
        mine = world.write("large", "mine")
        plan = await undo.plan()
        with pytest.raises(UndoRefused, match="large"):
            await undo.carry_out(plan)
        assert mine.read_text() == "mine"
        mine.write_text(LARGE)
        assert (await undo.plan()).to < plan.to
        mine.unlink()
        await session.run("three")
        assert undo.unrestored(await undo.history()) == ()


class TwoFolders(WalkingChanges):
    """Reads the project and another folder."""

    def __init__(self, world: UndoWorld, other: Path) -> None:
        super().__init__(world.root, world.store)
        self._other = WalkingChanges(other, world.store)

    def read(self) -> States:
        return {**super().read(), **self._other.read()}


async def test_files_outside_are_named_and_restored_with_their_folder_added(world: UndoWorld, tmp_path: Path) -> None:
    folder = tmp_path / "my folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "f").write_text("f")
    (folder / "sub" / "g").write_text("g")
    world.changes = TwoFolders(world, folder)
    inside = world.write("a", "1")

    def remove() -> None:
        for path in (folder / "f", folder / "sub" / "g", inside):
            path.unlink()

    agent, _ = world.agent([world.doing("remove", remove), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        outcome = await undo.carry_out(await undo.plan())
        said = outcome_text(outcome, undo.root)
        assert not outcome.is_complete and inside.exists() and not (folder / "f").exists()
        assert said.count(f"give its folder with --add-dir '{folder}'") == 2 and "tries again" in said
        plan = await undo.plan()
        with pytest.raises(UndoRefused, match="none of the files can be"):
            await undo.carry_out(plan)
        assert "--add-dir" in refusal_text(plan, undo.root) and "--to STEP" in refusal_text(plan, undo.root)
        store = undo.store
        wider = Undo(session, lambda: store, [str(world.root), str(folder)], describe_change)
        done = await wider.carry_out(await wider.plan())
        assert done.is_complete
        assert (folder / "f").read_text() + (folder / "sub" / "g").read_text() == "fg"


async def test_undo_after_all_was_undone_says_so(world: UndoWorld) -> None:
    agent, _ = world.agent([world.writing("a", "a", "1"), DONE, DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan())
        with pytest.raises(UndoRefused, match=r"was undone already\. /redo takes the last undo back"):
            await undo.plan()
        await session.run("two")
        with pytest.raises(UndoRefused, match=r"was undone already\.$"):
            await undo.plan()


@pytest.mark.parametrize("arguments", [("1", "files"), (1, "both"), (None, "both"), ("", None), ("1", "")])
async def test_other_parts_and_types_are_refused(world: UndoWorld, arguments: tuple[object, object]) -> None:
    agent, _ = world.agent([world.writing("a", "a", "1"), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo, count = world.undo(session), len(session.conversation.entries())
        with pytest.raises(UndoRefused, match=r"A (step|part) is"):
            await undo.plan(*arguments)  # pyright: ignore[reportArgumentType] wrong on purpose
        assert len(session.conversation.entries()) == count


async def test_names_to_overwrite_may_be_relative_and_others_are_refused(world: UndoWorld) -> None:
    agent, _ = world.agent([world.writing("a", "a", "1"), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        mine = world.write("a", "mine")
        plan = await undo.plan()
        with pytest.raises(UndoRefused, match=r"1 files were changed since: a\. "):
            await undo.carry_out(plan)
        with pytest.raises(UndoRefused, match="b is no conflict of this plan"):
            await undo.carry_out(plan, overwrite=[b"a", b"b"])
        assert mine.read_text() == "mine"
        await undo.carry_out(plan, overwrite=[b"a"])
        assert not mine.exists()


async def test_a_dry_run_says_that_a_lock_of_git_would_stop_it(world: UndoWorld) -> None:
    world.write(".git/HEAD", "ref: refs/heads/main\n")
    agent, _ = world.agent([world.writing("head", ".git/HEAD", "ref: refs/heads/other\n"), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        assert (await undo.plan()).lock == ""
        lock = world.write(".git/index.lock", "")
        plan = await undo.plan()
        shown = plan_text(plan, undo.root)
        assert shown.startswith("Nothing would be restored now: ") and "index.lock' exists" in shown
        lock.unlink()
        assert (await undo.plan()).lock == ""


async def test_finishing_a_stopped_undo_names_what_is_outside(world: UndoWorld, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "f").write_text("f")
    world.changes = TwoFolders(world, folder)
    inside = [world.write(name, name) for name in "abc"]

    def remove() -> None:
        for path in (folder / "f", *inside):
            path.unlink()

    agent, _ = world.agent([world.doing("remove", remove), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        answers = iter([False, True])
        with pytest.raises(UndoStopped):
            await undo.carry_out(await undo.plan(), should_stop=lambda: next(answers))
        outcome = await undo.carry_out(await undo.plan())
        assert not outcome.is_complete and all(path.exists() for path in inside)
        assert f"--add-dir {folder}" in outcome_text(outcome, undo.root)
        store = undo.store
        wider = Undo(session, lambda: store, [str(world.root), str(folder)], describe_change)
        assert (await wider.carry_out(await wider.plan())).is_complete and (folder / "f").exists()


async def test_a_stopped_undo_is_no_change_by_others_after_the_next_prompt(world: UndoWorld) -> None:
    files = [world.write(f"folder/{name}", name) for name in "abcd"]
    before = world.tree()

    def remove() -> None:
        for path in files:
            path.unlink()
        files[0].parent.rmdir()

    script = [world.doing("remove", remove), DONE, world.writing("second", "folder/a", "2"), DONE, DONE]
    agent, _ = world.agent(script)
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        answers = iter([False, False, False, True])
        with pytest.raises(UndoStopped):
            await undo.carry_out(await undo.plan(), should_stop=lambda: next(answers))
        files[0].parent.chmod(0o700)  # the mode at which a kill leaves it
        await session.run("two")
        plan = await undo.plan("1")
        assert plan.files is not None and plan.files.conflicts == ()
        assert (await undo.carry_out(plan)).is_complete
        assert world.tree() == before


async def test_a_file_outside_that_makes_git_run_a_program_is_asked_about_when_its_folder_is_added(
    world: UndoWorld, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    (folder / ".git").mkdir(parents=True)
    config = folder / ".git" / "config"
    config.write_text("[core]\n\tfsmonitor = planted\n")
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    world.changes = TwoFolders(world, folder)
    inside = world.write("a", "1")

    def disarm() -> None:
        config.write_text("[core]\n")
        inside.unlink()

    agent, _ = world.agent([world.doing("disarm", disarm), DONE])
    async with agent.open() as session:
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan())
        store = undo.store
        wider = Undo(session, lambda: store, [str(world.root), str(folder)], describe_change)
        for plan in (await wider.plan(), await wider.plan("1")):
            assert [each.path for each in (plan.files.conflicts if plan.files else ())] == [os.fsencode(config)]
            with pytest.raises(UndoRefused, match="changed since"):
                await wider.carry_out(plan)
        assert config.read_text() == "[core]\n"


async def test_what_a_job_may_not_have_changed_outside_is_asked_about_when_its_folder_is_added(
    world: UndoWorld, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    mine = folder / "mine"
    mine.write_text("1")
    world.changes = TwoFolders(world, folder)
    inside = world.write("a", "1")
    sessions: list[Session] = []

    def change() -> None:
        sessions[0].conversation.record(JobStarted("job-1", "id_change", "serve"))
        mine.write_text("2")
        inside.write_text("2")

    agent, _ = world.agent([world.doing("change", change), DONE])
    async with agent.open() as session:
        sessions.append(session)
        await session.run("one")
        undo = world.undo(session)
        await undo.carry_out(await undo.plan(), overwrite=[b"a"])
        store = undo.store
        wider = Undo(session, lambda: store, [str(world.root), str(folder)], describe_change)
        plan = await wider.plan()
        assert plan.completes == "both" and inside.read_text() == "1"
        with pytest.raises(UndoRefused, match="changed since"):
            await wider.carry_out(plan)
        assert mine.read_text() == "2"
        await wider.carry_out(plan, overwrite=[os.fsencode(mine)])
        assert mine.read_text() == "1"
