"""What a call changed is known although the agent and the search process were killed together."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_changes_client import Workspace, end_as_if_killed

from bradawl.checkpoints.call_journal import CallJournal, left_journal
from bradawl.checkpoints.client import LocalChanges
from bradawl.checkpoints.index_files import Answer
from bradawl.checkpoints.interrupted_calls import later_changes
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.core.workspace import Checkpoint


@pytest.fixture
def workspace(tmp_path: Path):
    with Workspace(tmp_path) as made:
        yield made


def kill(agent: LocalChanges) -> None:
    """Kill the search process; the agent never hears of it, as if it were killed too."""
    process = agent._process
    assert process is not None and agent.pid is not None
    os.kill(agent.pid, signal.SIGKILL)
    process._ending()


def wait_for(folder: Path, pattern: str) -> None:
    until = time.monotonic() + 60
    while not list(folder.glob(pattern)):
        assert time.monotonic() < until
        time.sleep(0.05)


async def found_by_next(workspace: Workspace, *calls: str) -> list[Checkpoint]:
    client = workspace.client()
    for call in calls:
        client.end(call)
    return list(await client.settle("s"))


async def test_a_running_command_is_credited_with_what_it_changed(workspace: Workspace):
    for name in ("a", "b", "kept"):
        workspace.write(name, name)
    agent = workspace.client()
    await agent.begin("s/c1", None)
    (workspace.root / "a").unlink()
    workspace.write("new", "n")
    kill(agent)
    workspace.write("b", "after")
    (found,) = await found_by_next(workspace, "s/c1")
    assert workspace.changed(found) == {"a": ("a", None), "b": ("b", "after"), "new": (None, "n")}
    assert "may have been made by the user since" in found.uncovered and workspace.is_late(found)


async def test_a_search_that_the_agent_did_not_log_is_told_to_the_next_one(workspace: Workspace):
    workspace.write("a", "a")
    agent = workspace.client()
    await agent.begin("s/c1", None)
    (workspace.root / "a").unlink()
    agent.end("s/c1")
    await agent.settle("other")
    kill(agent)
    workspace.write("b", "the user's")
    (found,) = await found_by_next(workspace, "s/c1")
    assert workspace.changed(found) == {"a": ("a", None)} and not found.uncovered and not workspace.is_late(found)


_AGENT = """
import asyncio, sys, time
from bradawl.checkpoints.client import LocalChanges
agent = LocalChanges((sys.argv[1],), sys.argv[2])
async def run():
    await agent.begin("s/c1", None)
    await agent.begin("s/c2", (sys.argv[1] + "/b",))
    print("begun", flush=True)
    time.sleep(60)
asyncio.run(run())
"""


def kill_alone(workspace: Workspace) -> None:
    """Kill an agent with two calls that change files; its search process lives, and ends in order."""
    argv = (sys.executable, "-c", _AGENT, workspace.root, workspace.folder)
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None and agent.stdout.readline() == b"begun\n"
        (workspace.root / "a").unlink()
        workspace.write("b", "2")
        agent.kill()
    until = time.monotonic() + 60
    while list(workspace.folder.glob("*.calls")):
        assert time.monotonic() < until
        time.sleep(0.05)


async def test_what_changed_until_the_agent_was_killed_is_told_from_what_changed_later(workspace: Workspace):
    for name in ("a", "b", "kept"):
        workspace.write(name, name)
    kill_alone(workspace)
    workspace.write("kept", "the user's")
    workspace.write("b", "the user's")
    found = [each for each in await found_by_next(workspace, "s/c1", "s/c2") if each.ref]
    until_then = [workspace.changed(each) for each in found if not workspace.is_late(each)]
    assert len(until_then) == 2 and {"a": ("a", None)} in until_then and {"b": ("b", "2")} in until_then
    (later,) = (workspace.changed(each) for each in found if workspace.is_late(each))
    assert later == {"kept": ("kept", "the user's"), "b": ("2", "the user's")}


async def test_what_a_killed_search_for_a_killed_call_found_is_found_again(workspace: Workspace):
    for name in ("a", "b", "kept"):
        workspace.write(name, name)
    kill_alone(workspace)
    workspace.write("kept", "the user's")
    second = workspace.client()
    for call in ("s/c1", "s/c2"):
        second.end(call)
    first_time = await second.settle("s")
    kill(second)
    assert list(await found_by_next(workspace, "s/c1", "s/c2")) == list(first_time)
    assert len([each for each in first_time if each.ref]) == 3 and all(each.is_known for each in first_time)


async def test_calls_before_the_killed_one_keep_what_they_changed(workspace: Workspace):
    workspace.write("a", "1")
    workspace.write("b", "1")
    agent = workspace.client()
    for number in ("1", "2"):
        await agent.begin(f"s/c{number}", None)
        workspace.write("a", f"{number} more")
        agent.end(f"s/c{number}")
    await agent.begin("s/c3", None)
    (workspace.root / "a").unlink()
    kill(agent)
    first, second, third = await found_by_next(workspace, "s/c1", "s/c2", "s/c3")
    assert workspace.changed(first) == {"a": ("1", "1 more")}
    assert workspace.changed(second) == {"a": ("1 more", "2 more")}
    assert workspace.changed(third) == {"a": ("2 more", None)}


@pytest.mark.parametrize("end", [kill, end_as_if_killed])
async def test_a_killed_call_with_the_id_of_an_earlier_one_is_searched(
    workspace: Workspace, end: Callable[[LocalChanges], None]
):
    workspace.write("a", "1")
    for number in range(2, 5):
        agent = workspace.client()
        await agent.begin("s/c1", None)
        workspace.write("a", f"{number} ended")
        agent.end("s/c1")
        assert len(await agent.settle("s")) == 1
        await agent.begin("s/c1", None)
        workspace.write("a", f"{number}")
        end(agent)
        (found,) = [each for each in await found_by_next(workspace, "s/c1") if each.ref]
        assert workspace.changed(found) == {"a": (f"{number} ended", f"{number}")}
        kill(workspace.clients[-1])
        (again,) = [each for each in await found_by_next(workspace, "s/c1") if each.ref]
        assert again == found
        kill(workspace.clients[-1])


async def test_two_calls_that_nothing_was_found_of_share_no_change(workspace: Workspace):
    workspace.write("a", "1")
    agent = workspace.client()
    await agent.begin("s/c1", (workspace.path("a"),))
    await agent.begin("s/c2", None)
    workspace.write("a", "2")
    workspace.write("b", "2")
    kill(agent)
    one, two = await found_by_next(workspace, "s/c1", "s/c2")
    assert workspace.changed(one) == {"a": ("1", "2")} and workspace.changed(two) == {"b": (None, "2")}


async def test_the_index_that_is_saved_between_calls_is_used(workspace: Workspace):
    workspace.write("a", "1")
    agent = workspace.client()
    await agent.begin("s/c1", None)
    workspace.write("a", "2")
    agent.end("s/c1")
    await agent.settle("s")
    wait_for(workspace.folder, "*-2.calls")  # the index is saved after a second without requests
    await agent.begin("s/c2", None)
    workspace.write("a", "3")
    kill(agent)
    (found,) = await found_by_next(workspace, "s/c2")
    assert workspace.changed(found) == {"a": ("2", "3")}


async def test_a_damaged_journal_makes_the_changes_unknown(workspace: Workspace):
    workspace.write("a", "1")
    agent = workspace.client()
    await agent.begin("s/c1", None)
    workspace.write("a", "2")
    kill(agent)
    (base,) = workspace.folder.glob("*.base")
    base.write_bytes(base.read_bytes()[:-1])
    (found,) = await found_by_next(workspace, "s/c1")
    assert not found.ref and "not known" in found.uncovered


async def test_an_agent_that_ends_in_order_leaves_no_journal(workspace: Workspace):
    agent = workspace.client()
    await agent.begin("s/c1", None)
    agent.end("s/c1")
    await agent.settle("s")
    assert list(workspace.folder.glob("*.calls"))
    agent.close()
    assert not [*workspace.folder.glob("*.calls"), *workspace.folder.glob("*.base")]


def test_a_journal_that_was_cut_at_any_byte_is_read_as_far_as_it_is_complete(tmp_path: Path) -> None:
    journal = CallJournal(tmp_path, "p")
    journal.start(b"index", {"s/c0": ("/ws/a",)}, (Answer("s/b", "ab", "", True),))
    journal.begin("s/c1", None)
    journal.found(Answer("s/c1", "cd", "said", True))
    journal.flush()
    (path,) = tmp_path.glob("*.calls")
    whole, lengths, found = path.read_bytes(), set[int](), None
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        found = left_journal(tmp_path, "s/c0")
        assert (found is None) == (left_journal(tmp_path, "s/b") is None)
        lengths.add(-1 if found is None else len(found.entries))
        path.write_bytes(whole[:end] + b"\0" * 99)
        left_journal(tmp_path, "s/c0")
    assert lengths == {-1, 0, 1, 2}
    assert found is not None and found.paths_of("s/c0") == ("/ws/a",) and found.index() == b"index"
    journal.close()
    assert left_journal(tmp_path, "s/c0") is None


def test_only_the_newest_journals_of_killed_processes_are_kept(tmp_path: Path) -> None:
    for number in range(20):
        place = tmp_path / "other"
        journal = CallJournal(place, f"p{number}")
        journal.start(b"index", {f"s/{number}": None}, ())
        for path in place.glob("p*"):
            path.rename(tmp_path / path.name)
        journal.close()
        os.utime(tmp_path / f"p{number}-1.calls", (number, number))
    journal = CallJournal(tmp_path, "last")
    journal.start(b"index", {}, ())
    journal.close()
    assert len(list(tmp_path.glob("*.calls"))) == len(list(tmp_path.glob("*.base"))) < 12
    assert left_journal(tmp_path, "s/19") is not None and left_journal(tmp_path, "s/1") is None


@pytest.mark.parametrize("seed", range(50))
def test_what_was_found_and_what_is_found_later_are_all_changes(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - test data
    names = [b"/ws/%d" % number for number in range(6)]

    def states() -> dict[bytes, FileState]:
        return {name: FileState("file", 0o644, choice.choice("abc") * 64, 1) for name in names if choice.random() < 0.7}

    def difference(one: dict[bytes, FileState], other: dict[bytes, FileState]) -> tuple[Change, ...]:
        changes = (Change(name, one.get(name), other.get(name)) for name in names)
        return tuple(each for each in changes if each.before != each.after)

    steps = [states() for _ in range(choice.randint(2, 5))]
    pairs = itertools.pairwise(steps[:-1])
    records = [ChangeRecord("c", 1, difference(one, other)) for one, other in pairs]
    assert later_changes(difference(steps[0], steps[-1]), records) == difference(steps[-2], steps[-1])
