"""What calls changed that ran when their agent was lost, calls whose files have unusual names, and a full disk."""

import os
import resource
from pathlib import Path

import pytest
from test_changes_client import Workspace, end_as_if_killed

from bradawl.checkpoints.store import ContentStore


@pytest.fixture
def workspace(tmp_path: Path):
    with Workspace(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"c1": None, "c2": None}, [{"a": ("1", "2"), "b": ("1", "2")}, {}]),
        ({"c1": None, "c2": ("b",)}, [{"a": ("1", "2"), "b": ("1", "2")}, {}]),
        ({"c1": ("a",), "c2": ("b",)}, [{"a": ("1", "2")}, {"b": ("1", "2")}]),
        ({"c1": ("a",), "c2": None}, [{"a": ("1", "2")}, {"b": ("1", "2")}]),
    ],
)
async def test_all_calls_that_ran_when_their_agent_was_lost_are_found(
    workspace: Workspace, files: dict[str, tuple[str, ...] | None], expected: list[dict[str, tuple[str, str]]]
):
    for name in ("a", "b"):
        workspace.write(name, "1")
    first = workspace.client()
    for call_id, names in files.items():
        await first.begin(f"s/{call_id}", names and tuple(map(workspace.path, names)))
    for name in ("a", "b"):
        workspace.write(name, "2")
    end_as_if_killed(first)
    second = workspace.client()
    for call_id in files:
        second.end(f"s/{call_id}")
    found = await second.settle("s")
    assert [(each.call_id, each.is_known) for each in found] == [("c1", True), ("c2", True)]
    assert [workspace.changed(each) if each.ref else {} for each in found] == expected
    assert not list(workspace.folder.glob("*.interrupted"))


async def test_a_call_that_names_a_file_whose_name_is_not_utf8_is_found(workspace: Workspace):
    client = workspace.client()
    await client.begin("s/c1", (workspace.path(os.fsdecode(b"caf\xe9")),))
    workspace.write(os.fsdecode(b"caf\xe9"), "new")
    client.end("s/c1")
    (found,) = await client.settle("s")
    with ContentStore(workspace.folder) as store:
        assert [change.path for change in store.record(found.ref).changes] == [
            os.fsencode(workspace.root / os.fsdecode(b"caf\xe9"))
        ]


async def test_nothing_is_covered_while_the_disk_of_the_store_is_full(workspace: Workspace):
    workspace.write("saved", "its content is in the store")
    changes = workspace.client()
    assert await changes.covers()
    assert changes.pid is not None
    unlimited = resource.prlimit(changes.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(changes.pid, resource.RLIMIT_FSIZE, (0, unlimited[1]))
    assert not await changes.covers()
    (warning,) = workspace.warnings
    assert f"{workspace.folder} can't be written (File too large)." in warning
    resource.prlimit(changes.pid, resource.RLIMIT_FSIZE, unlimited)
    assert await changes.covers()
    assert not list(workspace.folder.glob("*.space"))
