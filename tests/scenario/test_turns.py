"""Whole turns of the real agent on a scripted model."""

import asyncio

import pytest
from scripted_agent import Probe, assert_valid, build, call, results

from bradawl.agent.configuration import Limits
from bradawl.core.errors import ToolError
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    Cwd,
    LimitReached,
    Live,
    PermissionAsked,
    ReplyWithdrawn,
    ToolFinished,
    ToolStarted,
)
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.permissions import Answer, Policy
from bradawl.core.ports import ToolOutput
from bradawl.core.retry import RetryBudget
from bradawl.core.workspace import Checkpoint
from bradawl.testing.fakes import FakeHook, MemoryStore, RecordingEmit, ScriptedApprover

EVERYWHERE = Policy(roots=("/",))


async def run(script, prompt="go", **changes):
    agent, model, probe = build(script, **changes)

    emit = RecordingEmit()
    async with agent.open() as session:
        result = await session.run(prompt, emit)
        assert_valid(session.transcript.messages)
        messages, events = session.transcript.messages, emit.events
    return result, messages, events, model, probe


async def test_a_reply_without_calls_ends_the_turn() -> None:
    result, messages, events, model, _ = await run([{"text": "hello", "usage": {"input": 7, "output": 3}}])
    assert (result.reason, result.text, result.steps) == ("completed", "hello", 1)
    assert (result.usage.input, result.usage.output, result.cost) == (7, 3, None)
    assert [type(e).__name__ for e in events] == [
        "SessionOpened",
        "PrefixOpened",
        "PromptSubmitted",
        "RequestSent",
        "AssistantReplied",
        "TurnFinished",
    ]
    assert len(messages) == 2 and not model.failures


async def test_the_finish_reason_does_not_decide_whether_calls_run() -> None:
    script = [{"tool_calls": [call("a")], "stop": "end_turn"}, {"text": "done", "stop": "tool_use"}]
    result, messages, *_ = await run(script)
    assert result.reason == "completed" and results(messages) == ["did a"]


async def test_results_are_in_call_order_regardless_of_how_long_the_calls_take() -> None:
    agent, _, probe = build([{"tool_calls": [call("slow"), call("quick")]}, {"text": "ok"}])

    gate = probe.gate("slow")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("slow").wait()
        await probe.has_ended("quick").wait()
        gate.set()
        await turn
        assert results(session.transcript.messages) == ["did slow", "did quick"]
    assert probe.log == ["+slow", "+quick", "-quick", "-slow"]


async def test_calls_that_conflict_never_overlap_and_keep_their_order() -> None:
    calls = [
        call("read1", reads=["/p/a"]),
        call("write", writes=["/p/a"]),
        call("read2", reads=["/p"]),
        call("free", reads=["/p/b"]),
        call("alone", unknown=True),
        call("last", reads=["/q"]),
    ]
    agent, _, probe = build([{"tool_calls": calls}, {"text": "ok"}])

    gate = probe.gate("read1")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("free").wait()
        waiting = list(probe.log)
        gate.set()
        await turn
    assert "+write" not in waiting and "+alone" not in waiting, "a call waits for those it conflicts with"
    log = probe.log
    assert log.index("-read1") < log.index("+write") < log.index("-write") < log.index("+read2")
    assert all(log.index(f"-{name}") < log.index("+alone") for name in ("read1", "write", "read2", "free"))
    assert log.index("-alone") < log.index("+last")


async def test_the_number_of_concurrent_calls_is_limited() -> None:
    agent, _, probe = build([{"tool_calls": [call(f"c{n}") for n in range(25)]}, {"text": "ok"}])

    gate = asyncio.Event()
    probe.gates = {f"c{n}": gate for n in range(25)}
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("c9").wait()
        for _ in range(200):
            await asyncio.sleep(0)  # enough iterations for an eleventh call to start
        gate.set()
        await turn
        messages = session.transcript.messages
    assert probe.most_running == 10
    assert results(messages) == [f"did c{n}" for n in range(25)]


async def test_a_closed_call_starts_while_the_reply_still_arrives() -> None:
    agent, _, probe = build([{"tool_calls": [call("early"), call("late")]}, {"text": "ok"}])
    seen: list[str] = []

    def emit(item):
        if isinstance(item, Live):
            return
        seen.append(type(item.event).__name__)

    async with agent.open() as session:
        await session.run("go", emit)
    assert seen.index("ToolStarted") < seen.index("AssistantReplied")
    assert probe.log[0] == "+early"


async def test_a_call_that_must_be_asked_about_waits_for_the_end_of_the_reply() -> None:
    script = [{"tool_calls": [call("w", writes=["/p/a"]), call("r", reads=["/p/b"])]}, {"text": "ok"}]
    approver = ScriptedApprover([True])
    _, messages, events, _, probe = await run(script, approver=approver, policy=lambda: EVERYWHERE)
    names = [type(e).__name__ for e in events]
    assert names.index("AssistantReplied") < names.index("PermissionAsked")
    assert probe.log.index("+r") < probe.log.index("+w")
    assert results(messages) == ["did w", "did r"]


async def test_a_call_permitted_for_the_session_is_not_asked_about_again() -> None:
    script = [{"tool_calls": [call("a", writes=["/p/a"]), call("b", writes=["/p/b"])]}, {"text": "ok"}]
    approver = ScriptedApprover([Answer(True, "user", "session")])
    result, messages, events, *_ = await run(script, approver=approver, policy=lambda: EVERYWHERE)
    assert result.reason == "completed" and results(messages) == ["did a", "did b"]
    assert sum(isinstance(e, PermissionAsked) for e in events) == 1


async def test_a_refused_call_gets_a_result_and_the_turn_continues() -> None:
    script = [{"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "then not"}]
    approver = ScriptedApprover([Answer(False, "user", message="not there")])
    result, messages, _, _, probe = await run(script, approver=approver, policy=lambda: EVERYWHERE)
    assert result.reason == "completed" and probe.log == []
    assert "declined" in results(messages)[0] and "not there" in results(messages)[0]


async def test_a_question_without_a_user_ends_the_turn_as_refused() -> None:
    script = [{"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "I could not"}]
    approver = ScriptedApprover([Answer(False, "nobody")])
    result, _, events, _, probe = await run(script, approver=approver, policy=lambda: EVERYWHERE)
    assert (result.reason, result.text, probe.log) == ("refused", "I could not", [])
    assert [c.name for c in result.denials] == ["probe"]
    assert not any(isinstance(e, ToolStarted) for e in events)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"id": "x", "name": "prob", "arguments": {}}, "Did you mean probe?"),
        ({"id": "x", "name": "rm_rf", "arguments": {}}, "There is no tool named 'rm_rf'"),
        ({"id": "x", "name": "probe", "arguments": "{'name': 'a',}"}, "could not be read: Expecting property name"),
        ({"id": "x", "name": "probe", "arguments": "[1]"}, "a JSON list, not an object"),
        ({"id": "x", "name": "probe", "arguments": '{"name": "a"'}, "they end after 12 characters"),
        ({"id": "x", "name": "probe", "arguments": {}}, "name is missing"),
        ({"id": "x", "name": "probe", "arguments": {"name": "a", "oops": 1}}, "there is no parameter oops"),
        ({"id": "x", "name": "probe", "arguments": {"the_name": "a"}}, "did you mean name?"),
        ({"id": "x", "name": "probe", "arguments": {"name": None}}, "in name"),
        ({"id": "x", "name": "probe", "arguments": {"name": ["a"]}}, "in name"),
    ],
)
async def test_an_invalid_call_gets_an_error_result_and_does_not_run(bad, says) -> None:
    result, messages, events, _, probe = await run([{"tool_calls": [bad]}, {"text": "sorry"}])
    assert result.reason == "completed" and probe.log == []
    assert says in results(messages)[0]
    assert not any(isinstance(e, ToolStarted) for e in events)
    assert [e.outcome for e in events if isinstance(e, ToolFinished)] == ["error"]


@pytest.mark.parametrize(
    "slip",
    [
        {"reads": None, "unknown": None},
        {"description": "look at it", "reason": "because"},
        {"reads": "/p/a"},
        {"reads": '["/p/a", "/p/b"]'},
        {"unknown": "false"},
    ],
)
async def test_an_unambiguous_mistake_in_arguments_is_corrected(slip) -> None:
    call_with_slip = {"id": "x", "name": "probe", "arguments": {"name": "a", **slip}}
    _, messages, *_ = await run([{"tool_calls": [call_with_slip]}, {"text": "ok"}])
    assert results(messages) == ["did a"]


async def test_a_number_in_place_of_a_string_is_converted_to_its_digits() -> None:
    calls = [{"id": "x", "name": "probe", "arguments": {"name": 404}}, {**call("b"), "arguments": {"name": True}}]
    _, messages, *_ = await run([{"tool_calls": calls}, {"text": "ok"}])
    number, truth = results(messages)
    assert number == "did 404" and "Expected str, got bool" in truth


async def test_a_session_permission_for_one_command_does_not_cover_another() -> None:
    calls = [call("a", unknown=True), {**call("a", unknown=True), "id": "again"}, call("b", unknown=True)]
    approver = ScriptedApprover([Answer(True, "user", "session"), Answer(False, "user")])
    _, messages, events, *_ = await run(
        [{"tool_calls": calls}, {"text": "ok"}], approver=approver, policy=lambda: EVERYWHERE
    )
    assert [text.startswith("did") for text in results(messages)] == [True, True, False]
    assert sum(isinstance(e, PermissionAsked) for e in events) == 2


async def test_the_output_of_a_cancelled_call_is_in_its_result() -> None:
    class PrintingProbe(Probe):
        async def run(self, params, context):
            context.progress("half of it\n")
            return await super().run(params, context)

    printing = PrintingProbe()
    agent, *_ = build([{"tool_calls": [call("a")]}, {"text": "ok"}], tools=(printing,))

    printing.gate("a")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await printing.has_started("a").wait()
        session.cancel()
        await turn
        (text,) = results(session.transcript.messages)
    assert text.startswith("half of it\n") and "cancelled while it was running" in text


async def test_a_call_cut_by_the_length_limit_gets_a_result_and_does_not_run() -> None:
    cut = {"id": "x", "name": "probe", "arguments": '{"name": "a'}
    _, messages, _, _, probe = await run([{"tool_calls": [cut], "stop": "max_tokens"}, {"text": "shorter"}])
    assert probe.log == [] and "cut off" in results(messages)[0]


async def test_a_tool_that_raises_gives_an_error_result() -> None:
    script = [{"tool_calls": [call("a", fails="no such thing; try b"), call("b", fails="bug")]}, {"text": "ok"}]
    result, messages, events, *_ = await run(script)
    assert result.reason == "completed"
    assert results(messages)[0] == "no such thing; try b"
    assert "RuntimeError: a defect" in results(messages)[1]
    broken = next(e for e in events if isinstance(e, ToolFinished) and e.call_id == "id_b")
    assert broken.full_ref is not None, "the traceback belongs in a blob, not in the model's context"


async def test_the_turn_ends_at_the_step_limit() -> None:
    script = [{"tool_calls": [call(f"c{n}")]} for n in range(5)]
    result, _, events, model, _ = await run(script, limits=Limits(max_steps=3))
    assert (result.reason, result.steps, len(model.requests)) == ("steps", 3, 3)
    assert LimitReached("steps", 3, 3) in events


async def test_a_refusal_by_the_provider_ends_the_turn_and_starts_no_further_call() -> None:
    script = [{"text": "half", "tool_calls": [call("w", unknown=True)], "stop": "content_filter"}]
    result, messages, _, _, probe = await run(script, policy=lambda: EVERYWHERE, approver=ScriptedApprover([True]))
    assert result.reason == "refused" and probe.log == []
    assert "Not run" in results(messages)[0]


async def test_an_answer_cut_by_the_length_limit_is_not_called_complete() -> None:
    result, *_ = await run([{"text": "half an ans", "stop": "max_tokens"}])
    assert result.reason == "error" and result.failure is not None and result.failure.kind == "output_limit"


async def test_a_broken_stream_is_retried_and_its_shown_text_withdrawn() -> None:
    script = [{"text": "one two three", "faults": {"cut_at_byte": 6}}, {"text": "whole"}]
    result, messages, events, model, _ = await run(script)
    assert (result.reason, result.text, result.steps) == ("completed", "whole", 1)
    assert sum(isinstance(e, ReplyWithdrawn) for e in events) == 1
    assert len(messages) == 2 and len(model.requests) == 2


async def test_a_read_made_by_a_broken_reply_is_not_repeated() -> None:
    reply = {"tool_calls": [call("r", reads=["/p"]), call("long", reads=["/q" * 60])]}
    script = [{**reply, "faults": {"cut_at_byte": 60}}, reply, {"text": "ok"}]
    result, messages, events, model, probe = await run(script)
    assert result.reason == "completed" and not model.failures
    assert probe.log.count("+r") == 1 and results(messages) == ["did r", "did long"]
    assert sum(isinstance(e, ReplyWithdrawn) for e in events) == 1


async def test_a_change_made_before_the_stream_broke_happens_exactly_once() -> None:
    reply = {"tool_calls": [call("w", writes=["/p"]), call("long", reads=["/q" * 60])]}
    script = [{**reply, "faults": {"cut_at_byte": 60}}, {"text": "went on"}]
    result, messages, events, _, probe = await run(script)
    assert (result.reason, result.text, result.steps) == ("completed", "went on", 2)
    assert probe.log == ["+w", "-w"] and results(messages) == ["did w"]
    replied = [e for e in events if isinstance(e, AssistantReplied)]
    assert [e.cut for e in replied] == [True, False] and not replied[0].message.complete


async def test_retries_stop_at_the_budget_and_the_last_shown_text_is_kept() -> None:
    script = [{"text": "one two three", "faults": {"cut_at_byte": 6}}] * 3
    result, messages, _, model, _ = await run(script, retry=RetryBudget(attempts=3))
    assert result.reason == "error" and result.failure is not None and result.failure.retryable
    assert len(model.requests) == 3 and result.text.startswith("one")
    assert len(messages) == 2


async def test_a_final_failure_is_not_retried() -> None:
    result, _, _, model, _ = await run([{"faults": {"status": 401}}])
    assert result.reason == "error" and result.failure is not None and result.failure.kind == "auth"
    assert len(model.requests) == 1


async def test_a_call_is_in_the_log_before_it_may_change_anything() -> None:
    store = MemoryStore()
    agent, _, probe = build([{"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "ok"}], store=store)

    gate = probe.gate("w")
    async with agent.open() as session:
        turn = asyncio.ensure_future(session.run("go"))
        await probe.has_started("w").wait()
        events = [entry.event for entry in session.log.entries]
        awaited = list(session.log.awaited)
        started = next(e for e in session.log.entries if isinstance(e.event, ToolStarted))
        gate.set()
        await turn
    started = started.seq
    assert any(isinstance(e, CallPrepared) for e in events) and started in awaited


async def test_hooks_can_change_calls_and_results_and_can_refuse_calls() -> None:
    class Guard:
        name = "guard"

        async def before_call(self, call: ToolCall) -> ToolCall | str:
            if '"b"' in call.raw_arguments:
                return "b is not allowed here"
            return call

        async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
            return ToolResult(result.call_id, result.name, (Text("amended"),), result.is_error)

    script = [{"tool_calls": [call("a"), call("b")]}, {"text": "ok"}]
    _, messages, _, _, probe = await run(script, hooks=(Guard(),))
    assert results(messages) == ["amended", "amended"] and probe.log == ["+a", "-a"]


async def test_a_hooks_change_to_a_call_still_applies_after_the_working_directory_changed() -> None:
    class Rename:
        name = "rename"

        async def before_call(self, call: ToolCall) -> ToolCall | str:
            return ToolCall(call.id, call.name, call.raw_arguments.replace('"risky"', '"harmless"'))

        async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
            return result

    class Mover(Probe):
        async def run(self, params, context):
            output = await super().run(params, context)
            if params.name == "move":
                context.change(Cwd("/elsewhere"))
            return output

    calls = [call("move", unknown=True), call("risky", reads=["/p"])]
    mover = Mover()
    agent, *_ = build([{"tool_calls": calls}, {"text": "ok"}], tools=(mover,), hooks=(Rename(),))
    moves = mover.gate("move")

    def emit(item):
        if not isinstance(item, Live) and getattr(item.event, "call_id", "") == "id_risky":
            moves.set()  # not before the second call was checked with the working directory in which it will not run

    async with agent.open() as session:
        await session.run("go", emit)
        assert results(session.transcript.messages) == ["did move", "did harmless"] and "+risky" not in mover.log


async def test_a_change_is_not_made_if_its_files_can_not_be_backed_up() -> None:
    class FullDisk:
        async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
            raise ToolError("no space left")

        def end(self, call_id: str) -> None:
            raise AssertionError

        async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
            return ()

        async def covers(self) -> bool:
            return False

    script = [{"tool_calls": [call("w", writes=["/p/a"])]}, {"text": "ok"}]
    result, messages, _, _, probe = await run(script, changes=FullDisk())
    assert result.reason == "completed" and probe.log == []
    assert "was not run" in results(messages)[0] and "no space left" in results(messages)[0]


async def test_hooks_see_only_valid_calls_and_their_changed_calls_are_validated() -> None:
    seen = []

    def look(call: ToolCall) -> ToolCall:
        seen.append(call.id)
        return ToolCall(call.id, call.name, call.raw_arguments.replace('"spoil"', "[7]"))

    calls = [{"id": "x", "name": "probe", "arguments": {}}, call("a"), call("spoil")]
    _, messages, events, _, probe = await run([{"tool_calls": calls}, {"text": "ok"}], hooks=(FakeHook(look),))
    assert seen == ["id_a", "id_spoil"] and probe.log == ["+a", "-a"]
    assert "name is missing" in results(messages)[0] and "Expected str, got array" in results(messages)[2]
    assert [e.name for e in events if isinstance(e, CallPrepared)] == ["probe"] * 3


async def test_an_agent_without_tools_says_so_to_a_model_that_calls_one() -> None:
    agent, *_ = build([{"tool_calls": [call("a")]}, {"text": "ok"}], tools=())
    async with agent.open() as session:
        await session.run("go")
        (answer,) = results(session.transcript.messages)
    assert answer == "There is no tool named 'probe'; nothing was run. This session has no tools."


async def test_an_exception_in_effects_fails_the_call_and_not_the_turn() -> None:
    class Careless(Probe):
        def effects(self, params, context):
            raise ZeroDivisionError("oops")

    result, messages, *_ = await run([{"tool_calls": [call("a")]}, {"text": "ok"}], tools=(Careless(),))
    assert result.reason == "completed"
    assert results(messages) == ["probe broke: ZeroDivisionError: oops. The tool is at fault, not your call."]


async def test_a_result_over_its_limit_is_shown_in_part_and_stored_completely() -> None:
    class Long(Probe):
        async def run(self, params, context):
            return ToolOutput((Text("x" * 500), Text("[end]")), limit=100)

    store = MemoryStore()
    _, messages, events, *_ = await run([{"tool_calls": [call("a")]}, {"text": "ok"}], tools=(Long(),), store=store)
    text = results(messages)[0]
    assert len(text) < 350 and text.startswith("x" * 31 + "\n[... characters 32-") and "[end]" in text
    finished = next(e for e in events if isinstance(e, ToolFinished))
    assert store.blobs.get(finished.full_ref) == b"x" * 500 + b"[end]"


async def test_an_exception_in_a_hook_fails_the_call() -> None:
    class Broken:
        name = "broken"

        async def before_call(self, call: ToolCall) -> ToolCall | str:
            raise RuntimeError("boom")

        async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
            return result

    _, messages, _, _, probe = await run([{"tool_calls": [call("a")]}, {"text": "ok"}], hooks=(Broken(),))
    assert probe.log == [] and "broken failed" in results(messages)[0]
