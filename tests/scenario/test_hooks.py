"""Hooks fail closed: what one may not change, or an exception in one, lets neither a call nor a result through."""

import asyncio
from typing import Any

import msgspec
import pytest
from scripted_agent import Probe, build, call, only, results

from bradawl.core.errors import SettingsError
from bradawl.core.events import HookRan, ResultAmended
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.testing.fakes import FakeHook, MemoryStore, RecordingEmit

SCRIPT = [{"tool_calls": [call("secret")]}, {"text": "ok"}]


async def answered(*hooks: Any) -> tuple[str, list[HookRan], Probe]:
    """The result the model reads, what was logged of the hooks, and the tool."""
    agent, _, probe = build(SCRIPT, hooks=hooks)
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("go", emit)
        (answer,) = results(session.transcript.messages)
    return answer, only(list(emit.events), HookRan), probe


def broken(_: ToolCall, result: ToolResult) -> ToolResult:
    raise KeyError("pattern")


@pytest.mark.parametrize("changes", [{"name": "other"}, {"id": "other"}])
async def test_a_hook_that_changes_name_or_id_of_a_call_refuses_it(changes: dict[str, str]) -> None:
    answer, ran, probe = await answered(FakeHook(lambda call: msgspec.structs.replace(call, **changes)))
    assert probe.log == [] and "not its name or id" in answer
    assert [(each.hook, each.moment, each.outcome) for each in ran] == [("fake", "before_call", "failed")]


@pytest.mark.parametrize("changes", [{"name": "other"}, {"call_id": "other"}, {"is_error": True}])
async def test_a_hook_that_changes_more_than_the_parts_of_a_result_withholds_it(changes: dict[str, Any]) -> None:
    answer, ran, probe = await answered(FakeHook(after=lambda _, result: msgspec.structs.replace(result, **changes)))
    assert probe.log == ["+secret", "-secret"]
    assert answer.startswith("[the result of probe is withheld: the hook fake failed: ") and "did secret" not in answer
    assert [each.outcome for each in ran] == ["failed"]


async def test_a_hook_that_raises_after_a_call_withholds_its_result_from_the_model_and_later_hooks() -> None:
    later = FakeHook(name="later")
    answer, ran, _ = await answered(FakeHook(after=broken), later)
    assert answer == "[the result of probe is withheld: the hook fake failed: 'pattern']"
    assert [(each.outcome, each.detail) for each in ran] == [("failed", "KeyError: 'pattern'")]
    assert later.seen == ["id_secret"], "only before the call"


async def test_a_result_whose_hook_was_cancelled_stays_withheld_in_the_resumed_session() -> None:
    class Waits(FakeHook):
        def __init__(self) -> None:
            super().__init__()
            self.begun = asyncio.Event()

        async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
            self.begun.set()
            await asyncio.Event().wait()
            return result

    hook, store = Waits(), MemoryStore()
    agent, *_ = build(SCRIPT, hooks=(hook,), store=store)
    async with agent.open() as session, asyncio.TaskGroup() as group:
        turn = group.create_task(session.run("go"))
        await hook.begun.wait()
        session.cancel()
        assert (await turn).reason == "cancelled"
    agent, model, _ = build([{"text": "again"}], store=store)
    await agent.run("more", session.id)
    assert results(model.requests[0]) == ["[the result of probe is withheld: the turn ended before its hooks]"]


async def test_a_hook_may_change_the_parts() -> None:
    def redact(_: ToolCall, result: ToolResult) -> ToolResult:
        return msgspec.structs.replace(result, parts=(Text("did [redacted]"),))

    agent, *_ = build(SCRIPT, hooks=(FakeHook(after=redact),))
    emit = RecordingEmit()
    async with agent.open() as session:
        await session.run("go", emit)
        assert results(session.transcript.messages) == ["did [redacted]"]
    assert only(list(emit.events), ResultAmended) == [ResultAmended("id_secret", (Text("did [redacted]"),), "hook")]


class Nameless(FakeHook):
    name = None


class Empty(FakeHook):
    name = ""


class Half:
    name = "half"

    async def before_call(self, call: ToolCall) -> ToolCall:
        return call


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (Nameless(), "The hook Nameless needs the attribute `name`"),
        (Empty(), "The hook Empty needs the attribute `name`"),
        (Half(), "type Half is not a hook: it has no method after_call"),
        (FakeHook, r"FakeHook is a class, not a hook; .*FakeHook\(\)"),
    ],
)
def test_an_object_that_is_not_a_hook_is_refused_when_the_agent_is_made(hook: Any, why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        build(SCRIPT, hooks=(hook,))
