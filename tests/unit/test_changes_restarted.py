"""A search process that is killed, as by a shortage of memory, costs no change: the next one searches."""

import os
import signal
from pathlib import Path

import pytest
from test_changes_client import Workspace, kill

from bradawl.checkpoints.errors import LOST
from bradawl.core.workspace import Checkpoint


@pytest.fixture
def workspace(tmp_path: Path):
    with Workspace(tmp_path) as made:
        yield made


async def test_the_process_is_started_once_more_if_it_dies(workspace: Workspace):
    workspace.write("file", "1")
    changes = workspace.client()
    await changes.begin("s/c1", None)
    kill(changes)
    workspace.write("file", "2")
    changes.end("s/c1")
    (first,) = await changes.settle("s")
    assert workspace.changed(first) == {"file": ("1", "2")} and workspace.is_late(first) and first.is_known
    assert "process that finds changes ended while it ran" in first.uncovered
    await changes.begin("s/c2", None)
    workspace.write("file", "3")
    changes.end("s/c2")
    (found,) = await changes.settle("s")
    assert workspace.changed(found) == {"file": ("2", "3")} and workspace.warnings == []


async def test_a_process_that_dies_between_two_calls_costs_no_change(workspace: Workspace):
    workspace.write("file", "1")
    changes = workspace.client()
    await changes.begin("s/c1", None)
    changes.end("s/c1")
    await changes.settle("s")
    kill(changes)
    workspace.write("file", "the user's")
    await changes.begin("s/c2", None)
    workspace.write("file", "3")
    changes.end("s/c2")
    (found,) = await changes.settle("s")
    assert workspace.changed(found) == {"file": ("the user's", "3")} and found.uncovered == ""
    assert workspace.warnings == [] and not workspace.is_late(found)


async def test_what_ended_calls_changed_is_searched_for_again_if_the_process_dies_meanwhile(workspace: Workspace):
    for name in ("a", "b"):
        workspace.write(name, "1")
    changes = workspace.client()
    assert await changes.covers()
    for name in ("a", "b"):
        await changes.begin(f"s/{name}", (workspace.path(name),))
    for name in ("a", "b"):
        workspace.write(name, "2")
    assert changes.pid is not None
    os.kill(changes.pid, signal.SIGSTOP)
    changes.end("s/a")
    changes.end("s/b")
    kill(changes)
    found = await changes.settle("s")
    assert [workspace.changed(each) for each in found] == [{"a": ("1", "2")}, {"b": ("1", "2")}]
    assert await changes.covers()


async def test_what_was_found_before_the_process_died_is_reported_once(workspace: Workspace):
    workspace.write("file", "1")
    changes = workspace.client()
    await changes.begin("s/job", None)
    workspace.write("file", "2")
    found = list(await changes.settle("s"))
    await changes.begin("s/c2", ())
    kill(changes)
    workspace.write("file", "3")
    for call in ("s/c2", "s/job"):
        changes.end(call)
        found += await changes.settle("s")
    assert [(each.call_id, workspace.changed(each)) for each in found if each.ref] == [
        ("job", {"file": ("1", "2")}),
        ("job", {"file": ("2", "3")}),
    ]


async def test_it_is_said_if_a_process_that_dies_has_left_nothing_to_compare_with(workspace: Workspace):
    changes = workspace.client()
    await changes.begin("s/c1", None)
    kill(changes)
    for path in workspace.folder.glob("*.calls"):
        path.unlink()
    changes.end("s/c1")
    (lost,) = await changes.settle("s")
    assert lost == Checkpoint("c1", "", LOST, is_known=False)


async def test_a_lost_call_is_not_credited_with_what_later_calls_changed(workspace: Workspace):
    for name in ("a", "b"):
        workspace.write(name, "1")
    changes = workspace.client()
    await changes.begin("s/job", None)
    workspace.write("a", "2")
    kill(changes)
    await changes.begin("s/c2", None)
    workspace.write("b", "2")
    changes.end("s/c2")
    (second,) = await changes.settle("s")
    workspace.write("a", "3")
    changes.end("s/job")
    (job,) = await changes.settle("s")
    assert workspace.changed(second) == {"b": ("1", "2")} and not workspace.is_late(second)
    assert workspace.changed(job) == {"a": ("1", "3")} and workspace.is_late(job)
