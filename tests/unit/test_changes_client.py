"""`LocalChanges` with its real process: what calls change, whose change it is, and failures of the process."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bradawl.checkpoints import client as client_module
from bradawl.checkpoints import protocol
from bradawl.checkpoints.client import LocalChanges
from bradawl.checkpoints.record import ChangeRecord
from bradawl.checkpoints.restore import plan
from bradawl.checkpoints.store import ContentStore
from bradawl.core.workspace import Checkpoint
from patience import no_wait


def end_as_if_killed(agent: LocalChanges) -> None:
    """Close the socket without a word and wait for the process, as when the agent is killed."""
    process = agent._process
    assert process is not None
    process._ending()


class Workspace:
    """A workspace, the folder of its checkpoints, and clients for it."""

    def __init__(self, place: Path) -> None:
        self.root, self.folder = place / "ws", place / "data" / "checkpoints"
        self.root.mkdir()
        self.warnings: list[str] = []
        self.clients: list[LocalChanges] = []

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *_: object) -> None:
        for client in self.clients:
            client.close()

    def client(self, **options: Any) -> LocalChanges:
        given = {"notify": self.warnings.append, "environment": {}, **options}
        made = LocalChanges((str(self.root),), str(given.pop("folder", self.folder)), **given)
        self.clients.append(made)
        return made

    def path(self, name: str) -> str:
        return str(self.root / name)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def record(self, checkpoint: Checkpoint) -> ChangeRecord:
        with ContentStore(self.folder) as store:
            return store.record(checkpoint.ref)

    def is_late(self, checkpoint: Checkpoint) -> bool:
        with ContentStore(self.folder) as store:
            return store.record(checkpoint.ref).is_late

    def changed(self, checkpoint: Checkpoint) -> dict[str, tuple[str | None, str | None]]:
        """By relative path the contents before and after; `/` for a folder."""
        with ContentStore(self.folder) as store:

            def content(state: Any) -> str | None:
                if state is None:
                    return None
                return store.read(state.content).decode() if state.kind == "file" else "/"

            return {
                os.path.relpath(os.fsdecode(change.path), self.root): (content(change.before), content(change.after))
                for change in store.record(checkpoint.ref).changes
            }


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as made:
        yield made


async def test_a_command_is_credited_with_all_it_changed(workspace: Workspace):
    workspace.write("kept", "same")
    workspace.write("old", "before")
    workspace.write("gone/inner", "text")
    changes = workspace.client()
    assert await changes.begin("s/c1", None) == ()
    workspace.write("old", "after")
    (workspace.root / "gone/inner").unlink()
    (workspace.root / "gone").rmdir()
    workspace.write("new/file", "made")
    changes.end("s/c1")
    (found,) = await changes.settle("s")
    assert (found.call_id, found.uncovered) == ("c1", "")
    assert workspace.record(found).call_id == "c1"
    assert workspace.changed(found) == {
        "gone": ("/", None),
        "gone/inner": ("text", None),
        "new": (None, "/"),
        "new/file": (None, "made"),
        "old": ("before", "after"),
    }
    assert await changes.settle("s") == ()


async def test_a_call_that_names_its_files_is_credited_with_them_alone(workspace: Workspace):
    workspace.write("mine", "before")
    workspace.write("other", "before")
    changes = workspace.client()
    await changes.begin("s/c1", (workspace.path("mine"), workspace.path("new/deep")))
    workspace.write("mine", "after")
    workspace.write("other", "by the user")
    workspace.write("new/deep", "made")
    changes.end("s/c1")
    (found,) = await changes.settle("s")
    made = {"mine": ("before", "after"), "new": (None, "/"), "new/deep": (None, "made")}
    assert workspace.changed(found) == made


async def test_what_the_user_changes_between_calls_belongs_to_no_call(workspace: Workspace):
    workspace.write("file", "one")
    changes = workspace.client()
    await changes.begin("s/c1", None)
    changes.end("s/c1")
    assert await changes.settle("s") == (Checkpoint("c1"),)
    workspace.write("file", "by the user")
    assert await changes.begin("s/c2", None) == ()
    workspace.write("file", "by the call")
    changes.end("s/c2")
    (found,) = await changes.settle("s")
    assert workspace.changed(found) == {"file": ("by the user", "by the call")}


async def test_each_owner_gets_the_checkpoints_of_its_own_calls(workspace: Workspace):
    changes = workspace.client()
    await changes.begin("s.main/c1", None)
    workspace.write("a", "1")
    changes.end("s.main/c1")
    assert await changes.begin("s.sub/c1", None) == ()
    workspace.write("b", "2")
    changes.end("s.sub/c1")
    (of_sub,) = await changes.settle("s.sub")
    (of_main,) = await changes.settle("s.main")
    assert list(workspace.changed(of_main)) == ["a"] and list(workspace.changed(of_sub)) == ["b"]


async def test_of_calls_that_overlap_the_one_that_ends_first_is_credited(workspace: Workspace):
    changes = workspace.client()
    await changes.begin("s/c1", (workspace.path("a"),))
    await changes.begin("s/c2", (workspace.path("b"),))
    workspace.write("a", "1")
    workspace.write("b", "2")
    changes.end("s/c2")
    changes.end("s/c1")
    found = await changes.settle("s")
    assert {each.call_id: list(workspace.changed(each)) for each in found} == {"c1": ["a"], "c2": ["b"]}


async def test_what_a_background_call_changed_before_another_begins_is_its_own(workspace: Workspace):
    workspace.write("log", "")
    changes = workspace.client()
    await changes.begin("s/job", None)
    workspace.write("log", "1")
    (first,) = await changes.begin("s/c2", None)
    workspace.write("by-c2", "x")
    changes.end("s/c2")
    (second,) = await changes.settle("s")
    workspace.write("log", "2")
    changes.end("s/job")
    (last,) = await changes.settle("s")
    assert [each.call_id for each in (first, second, last)] == ["job", "c2", "job"]
    assert workspace.changed(first) == {"log": ("", "1")} and "other programs or the user" in first.uncovered
    assert list(workspace.changed(second)) == ["by-c2"]
    assert workspace.changed(last) == {"log": ("1", "2")}


async def test_the_end_of_a_turn_ends_what_a_background_call_is_credited_with_without_a_warning(workspace: Workspace):
    changes = workspace.client()
    await changes.begin("s/job", None)
    workspace.write("a", "1")
    (found,) = await changes.settle("s")
    assert (found.call_id, list(workspace.changed(found))) == ("job", ["a"])


async def test_calls_go_on_without_undo_if_the_process_dies_again(workspace: Workspace):
    changes = workspace.client()
    for call in ("s/c1", "s/c2"):
        await changes.begin(call, None)
        kill(changes)
        changes.end(call)
        assert [each.ref for each in await changes.settle("s")] == [""]
    for call in ("s/c3", "s/c4"):
        assert await changes.begin(call, None) == ()
        changes.end(call)
        (found,) = await changes.settle("s")
        assert not found.ref and "Undo can't restore it" in found.uncovered
    assert len(workspace.warnings) == 1 and "can't be undone" in workspace.warnings[0]


async def test_a_process_in_the_workspace_is_not_started_again(workspace: Workspace):
    changes = workspace.client(may_restart=False)
    await changes.begin("s/c1", None)
    kill(changes)
    changes.end("s/c1")
    await changes.begin("s/c2", None)
    assert changes.pid is None and len(workspace.warnings) == 1


async def test_no_request_is_sent_before_the_first_message_of_a_start_is_complete(workspace: Workspace, monkeypatch):
    original = client_module._SearchProcess.send
    sent: list[str] = []

    def send(process: Any, message: Any) -> None:
        if isinstance(message, protocol.Open):
            with memoryview(process._unsent):  # as while `socket.send` works in the thread of the start
                time.sleep(0.3)
        original(process, message)
        sent.append(type(message).__name__)

    monkeypatch.setattr(client_module._SearchProcess, "send", send)
    changes = workspace.client()
    changes.start()
    changes._is_needed.set()
    await asyncio.sleep(0.15)
    await changes.begin("s/c1", None)
    workspace.write("a", "1")
    changes.end("s/c1")
    (found,) = await changes.settle("s")
    assert list(workspace.changed(found)) == ["a"]
    assert sent == ["Open", "Begin", "End", "Settle"] and workspace.warnings == []


async def test_calls_go_on_without_undo_if_the_process_can_not_be_started(workspace: Workspace):
    changes = workspace.client(interpreter="/nowhere/python")
    await changes.begin("s/c1", None)
    changes.end("s/c1")
    (found,) = await changes.settle("s")
    assert not found.ref and "No such file" in found.uncovered and len(workspace.warnings) == 1


async def test_calls_go_on_without_undo_if_an_interpreter_without_the_modules_is_started(workspace: Workspace):
    changes = workspace.client(interpreter="/bin/false")
    found: list[Checkpoint] = []
    for call in ("s/c1", "s/c2", "s/c3"):
        found += await changes.begin(call, None)
        changes.end(call)
        found += await changes.settle("s")
    assert [(each.call_id, each.ref) for each in found] == [("c1", ""), ("c2", ""), ("c3", "")]
    assert all("Undo can't restore it" in each.uncovered for each in found) and len(workspace.warnings) == 1


async def test_calls_go_on_if_nothing_can_be_saved(workspace: Workspace, tmp_path: Path):
    (tmp_path / "file").write_text("not a folder")
    workspace.write("a", "1")
    changes = workspace.client(folder=tmp_path / "file/checkpoints")
    for call, text in (("s/c1", "2"), ("s/c2", "3")):
        await changes.begin(call, None)
        workspace.write("a", text)
        changes.end(call)
        (found,) = await changes.settle("s")
        assert not found.ref and "could not be" in found.uncovered
    assert len(workspace.warnings) == 1 and "can't be written" in workspace.warnings[0]


async def test_a_call_waits_a_limited_time_for_a_process_that_hangs(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    changes = workspace.client()
    await changes.begin("s/c1", None)
    changes.end("s/c1")
    await changes.settle("s")
    pid = changes.pid
    assert pid is not None
    monkeypatch.setattr(client_module, "BEGIN_S", 0.5)
    os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    try:
        with no_wait():
            await changes.begin("s/c2", None)
        assert time.monotonic() - started >= client_module.BEGIN_S
        workspace.write("a", "1")
        changes.end("s/c2")
    finally:
        os.kill(pid, signal.SIGCONT)
    (found,) = await changes.settle("s")
    assert list(workspace.changed(found)) == ["a"] and "not complete when it began" in found.uncovered
    with ContentStore(workspace.folder) as store:
        assert not store.record(found.ref).is_exact
        assert plan(store, [store.record(found.ref)], [os.fsencode(workspace.root)]).is_partial


async def test_a_call_cancelled_while_it_waits_leaves_the_others_alone(workspace: Workspace):
    changes = workspace.client()
    for number in range(20):
        waiting = asyncio.ensure_future(changes.begin(f"s/c{number}", None))
        for _ in range(number % 4):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        changes.end(f"s/c{number}")
    await changes.settle("s")
    await changes.begin("s/last", None)
    workspace.write("a", "1")
    changes.end("s/last")
    found = await changes.settle("s")
    assert [each.call_id for each in found] == ["last"]


async def test_a_settle_that_is_cancelled_loses_no_checkpoint(workspace: Workspace):
    changes = workspace.client()
    await changes.begin("s/c1", None)
    workspace.write("a", "1")
    changes.end("s/c1")
    waiting = asyncio.ensure_future(changes.settle("s"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert [each.call_id for each in await changes.settle("s")] == ["c1"]


async def test_what_a_call_changed_before_its_agent_was_lost_is_found_by_the_next_one(workspace: Workspace):
    workspace.write("a", "1")
    first = workspace.client()
    await first.begin("s/c0", None)
    workspace.write("a", "2")
    first.end("s/c0")
    await first.settle("s")
    await first.begin("s/c1", None)
    workspace.write("a", "3")
    first.close()
    workspace.write("b", "by the user")
    other = workspace.client()
    await other.begin("t/c1", None)
    other.end("t/c1")
    assert await other.settle("t") == (Checkpoint("c1"),)
    other.close()
    second = workspace.client()
    second.end("s/c1")
    (found,) = await second.settle("s")
    assert found.call_id == "c1" and "by the user since" in found.uncovered
    assert workspace.changed(found) == {"a": ("2", "3"), "b": (None, "by the user")}
    second.end("s/c1")
    (again,) = await second.settle("s")
    assert again == found


async def test_what_a_lost_agent_was_not_told_is_told_to_the_next_one(workspace: Workspace):
    workspace.write("a", "1")
    first = workspace.client()
    for call_id, text in (("s/c1", "2"), ("s/c2", "3")):
        await first.begin(call_id, None)
        workspace.write("a", text)
        first.end(call_id)
    end_as_if_killed(first)
    workspace.write("a", "by the user")
    second = workspace.client()
    for call_id in ("s/c1", "s/c2", "s/c3"):
        second.end(call_id)
    found = await second.settle("s")
    assert [each.call_id for each in found] == ["c1", "c2", "c3"]
    assert workspace.changed(found[0]) == {"a": ("1", "2")}
    # The second search may have come after the agent's end, and after the user's change.
    assert workspace.changed(found[1]) in ({"a": ("2", "3")}, {"a": ("2", "by the user")})
    assert not found[2].ref and "not known" in found[2].uncovered


async def test_an_agent_that_ends_in_order_leaves_no_answers(workspace: Workspace):
    for number in range(3):
        agent = workspace.client()
        await agent.begin(f"s/c{number}", None)
        workspace.write("a", str(number))
        agent.end(f"s/c{number}")
        await agent.settle("s")
        agent.close()
    assert not list(workspace.folder.glob("*.answers"))


async def test_two_agents_work_in_one_workspace(workspace: Workspace):
    one, two = workspace.client(), workspace.client()
    await one.begin("s/c1", (workspace.path("a"),))
    await two.begin("t/c1", (workspace.path("b"),))
    workspace.write("a", "1")
    workspace.write("b", "2")
    one.end("s/c1")
    two.end("t/c1")
    (of_one,), (of_two,) = await one.settle("s"), await two.settle("t")
    assert list(workspace.changed(of_one)) == ["a"] and list(workspace.changed(of_two)) == ["b"]


async def test_a_warning_names_what_undo_does_not_cover(workspace: Workspace):
    changes = workspace.client()
    assert await changes.covers() and workspace.warnings == []
    (workspace.root / "node_modules").mkdir()
    with (workspace.root / "data.bin").open("wb") as file:
        file.truncate(50_000_001)
    await changes.begin("s/c1", None)
    assert not await changes.covers() and not await changes.covers()
    (warning,) = workspace.warnings
    assert warning == (
        "Undo does not cover the whole workspace, so commands that discard work are asked about."
        " Files over 50 MB are not saved: data.bin."
    )


async def test_the_store_inside_the_workspace_is_not_searched(workspace: Workspace):
    own = client_module.OwnFolders((str(workspace.root / ".data"),))
    changes = workspace.client(folder=workspace.root / ".data/checkpoints", own=own)
    await changes.begin("s/c1", None)
    workspace.write("a", "1")
    changes.end("s/c1")
    (found,) = await changes.settle("s")
    with ContentStore(workspace.root / ".data/checkpoints") as store:
        assert [change.path for change in store.record(found.ref).changes] == [os.fsencode(workspace.path("a"))]


def test_the_process_ends_with_its_agent(workspace: Workspace):
    code = f"""
import asyncio, os, signal
from bradawl.checkpoints.client import LocalChanges
async def main():
    changes = LocalChanges(({str(workspace.root)!r},), {str(workspace.folder)!r})
    await changes.begin("s/c1", None)
    print(changes.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until_gone(int(done.stdout))


async def test_the_process_runs_no_file_of_the_workspace_or_of_the_environment(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    canary = workspace.root.parent / "canary"
    planted = f"open({str(canary)!r}, 'a').write(__name__)\n"
    for name in ("sitecustomize", "usercustomize", "json", "select", "bradawl/__init__", "msgspec/__init__", "os"):
        workspace.write(f"{name}.py", planted)
    monkeypatch.chdir(workspace.root)
    monkeypatch.setenv("PYTHONPATH", str(workspace.root))
    monkeypatch.setenv("PYTHONSTARTUP", workspace.path("json.py"))
    changes = workspace.client()
    await changes.begin("s/c1", None)
    workspace.write("a", "1")
    changes.end("s/c1")
    assert [bool(each.ref) for each in await changes.settle("s")] == [True]
    assert not canary.exists()


async def test_the_data_is_readable_for_the_user_alone(workspace: Workspace):
    changes = workspace.client()
    await changes.begin("s/c1", None)
    workspace.write("a", "1")
    changes.end("s/c1")
    await changes.settle("s")
    changes.close()
    assert workspace.folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in workspace.folder.iterdir()} == {0o600}
    assert not [path for path in workspace.folder.iterdir() if path.name.endswith((".tmp", ".user"))]


def kill(changes: LocalChanges) -> None:
    pid = changes.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.001)


def wait_until_gone(pid: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} still runs")
