"""The fakes of clock, workspace changes, processes, HTTP and agent ports do what their ports promise."""

import asyncio

import pytest

from bradawl.core.deltas import TextDelta
from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.events import Envelope, Live, TurnFinished
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.permissions import Answer, Grant, Question, Request
from bradawl.core.workspace import Checkpoint, Command, CommandResult
from bradawl.testing.fakes import (
    FakeChanges,
    FakeClock,
    FakeHook,
    FakeSpawner,
    MemoryFiles,
    RecordingEmit,
    Reply,
    ScriptedApprover,
    ScriptedHttp,
    ScriptedProcesses,
)

CALL = ToolCall("c1", "bash", "{}")
QUESTION = Question(CALL, Request("bash", "digest", Effects()), "why")


async def test_a_clock_wakes_its_sleepers_in_order_when_it_is_advanced():
    clock, woken = FakeClock(), []

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(sleep("late", 5))
        group.create_task(sleep("early", 1))
        group.create_task(sleep("cancelled", 2)).cancel()
        await asyncio.sleep(0)
        clock.advance(0.5)
        await asyncio.sleep(0)
        assert woken == []
        clock.advance(5)
    assert clock.monotonic() == 5.5 and clock.now_ms() == FakeClock().now_ms() + 5500
    assert woken == ["early", "late"]


async def test_changes_name_what_each_call_changed():
    files = MemoryFiles({"/p/a": b"old", "/p/same": b"same"})
    changes = FakeChanges(files)
    assert await changes.begin("c1", None) == ()
    files.files.update({"/p/a": b"changed", "/p/new": b"made"})
    changes.end("c1")
    assert await changes.begin("c2", ("/p/a",)) == (Checkpoint("c1", "checkpoint-c1"),)
    changes.end("c2")
    assert await changes.settle() == (Checkpoint("c2"),)
    assert await changes.settle() == ()
    assert changes.changed == {"checkpoint-c1": {"/p/a": (b"old", b"changed"), "/p/new": (None, b"made")}}


async def test_processes_record_what_ran_and_can_be_held_and_cancelled():
    done = CommandResult(0, b"ok", b"")
    processes = ScriptedProcesses({("rg", "x"): done, "make": ToolError("no make")})
    processes.hold(("rg", "x"))
    command = Command(("rg", "x"), "/")
    first = asyncio.ensure_future(processes.run(command, Grant(network=True)))
    second = asyncio.ensure_future(processes.run(command, Grant()))
    await asyncio.sleep(0)
    assert processes.running == 2
    second.cancel()
    await asyncio.wait((second,))
    assert processes.cancelled == [command] and processes.running == 1
    processes.release(("rg", "x"))
    assert await first == done and processes.grants == [Grant(network=True), Grant()]
    for line in ("make", "unheard of"):
        with pytest.raises(ToolError, match=line):
            await processes.run(Command((line,), "/", is_shell=True), Grant())


async def test_scripted_http_replies_in_order_waits_for_events_and_fails_at_the_end_of_its_script():
    gate = asyncio.Event()
    http = ScriptedHttp([Reply(200, (b"a", gate, b"b"), (("X-A", "1"),))])
    request = HttpRequest("GET", "http://x", ())
    async with http.stream(request) as response:
        assert (response.status, response.headers, http.open) == (200, {"x-a": "1"}, 1)
        chunks = response.chunks()
        assert await anext(chunks) == b"a"
        following = asyncio.ensure_future(anext(chunks))
        await asyncio.sleep(0)
        assert not following.done()
        gate.set()
        assert await following == b"b"
    with pytest.raises(HttpError, match="Only 1"):
        async with http.stream(request):
            pass
    await http.aclose()
    assert http.is_closed and http.open == 0 and http.requests == [request, request]


async def test_approver_and_spawner_return_their_scripted_answers_in_order_and_then_none():
    approver = ScriptedApprover([True, Answer(allowed=False, by="user", message="not that")])
    yes, no, unscripted = [await approver.ask(QUESTION) for _ in range(3)]
    assert (yes.allowed, yes.by, no.message) == (True, "user", "not that")
    assert (unscripted, approver.questions) == (Answer(allowed=False, by="nobody"), [QUESTION] * 3)
    spawner = FakeSpawner(["first"])
    conclusion, ended = await spawner.spawn("explore", "look", "c1")
    assert (conclusion, ended.reason, spawner.spawned) == ("first", "completed", [("explore", "look", "c1")])
    with pytest.raises(ToolError, match="1 conclusions"):
        await spawner.spawn("explore", "again", "c2")


async def test_a_hook_applies_its_functions_and_an_emit_records_its_items():
    result = ToolResult("c1", "bash", (Text("x"),))
    assert (await FakeHook().before_call(CALL), await FakeHook().after_call(CALL, result)) == (CALL, result)
    hook = FakeHook(lambda call: f"not {call.name}", lambda call, result: ToolResult("c1", call.name, ()), "strict")
    assert await hook.before_call(CALL) == "not bash"
    assert (await hook.after_call(CALL, result)).parts == ()
    assert (hook.name, hook.seen) == ("strict", ["c1", "c1"])
    emit, live = RecordingEmit(), Live("main", 0, TextDelta(0, "x"))
    finished = Envelope(0, None, 1, "main", TurnFinished("completed"))
    emit(live)
    emit(finished)
    assert (emit.items, emit.events) == ([live, finished], (finished.event,))
