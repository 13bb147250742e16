"""The middleware port supports compaction, a budget, a stop hook and loop detection: one test double of each."""

import asyncio
from typing import Any

import pytest
from scripted_agent import assert_valid, build, call, only, results

from bradawl.agent.middleware import Continue, Finish, Middleware, MiddlewareContext, Retry, StepOutcome
from bradawl.core.errors import Failure, SettingsError
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    LimitReached,
    PrefixOpened,
    ReplyWithdrawn,
    RequestParams,
    RequestSent,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Message, Text, User, calls_of, text_of
from bradawl.core.usage import Price
from bradawl.testing.fakes import MemoryStore, RecordingEmit
from bradawl.testing.scripted import ScriptedModel

OVERFLOW = {"text": "too long", "faults": {"status": 413}}
SUMMARY = "Summary: the file was read. Go on."


class Compaction(Middleware):
    """Replaces the transcript when the provider reports a context overflow, and retries once."""

    def __init__(self, context: MiddlewareContext) -> None:
        self._context = context
        self.compacted = 0

    async def after_step(self, outcome: StepOutcome) -> Retry | None:
        failure = outcome.failure
        if failure is None or failure.kind != "context_overflow" or not outcome.can_retry or self.compacted:
            return None
        self.compacted += 1
        await asyncio.sleep(0)  # a model would write the summary
        conversation = self._context.conversation
        whole = len(conversation.transcript.messages)
        conversation.record(Compacted("reactive", conversation.last_seq, summary=SUMMARY, kept_from=whole))
        self._context.prefix.open_compacted()
        return Retry(failure)


class Budget(Middleware):
    """Ends the turn before the next request when the session has spent its budget in US dollars."""

    most = 1.0

    def __init__(self, context: MiddlewareContext) -> None:
        self._conversation = context.conversation

    async def before_step(self) -> Finish | None:
        spent = self._conversation.state.cost
        if spent is None or spent < self.most:
            return None
        self._conversation.record(LimitReached("budget", spent, self.most))
        return Finish(TurnFinished("budget"))


class StopHook(Middleware):
    """Continues the turn with a note until the model has run the tests."""

    def __init__(self, context: MiddlewareContext) -> None:
        self._asked = 0

    def begin_turn(self, params: RequestParams) -> None:
        self._asked = 0

    async def after_step(self, outcome: StepOutcome) -> Continue | None:
        if outcome.ending is None or outcome.ending.reason != "completed" or "tests pass" in outcome.answer:
            return None
        await asyncio.sleep(0)  # a command would run here
        self._asked += 1
        return Continue(f"Run the tests first ({self._asked}).")


class LoopDetection(Middleware):
    """Warns when a reply is identical to the previous one, and ends the turn at the third identical reply."""

    def __init__(self, context: MiddlewareContext) -> None:
        self._last: list[str] = []
        self._times = 1

    async def after_step(self, outcome: StepOutcome) -> Continue | Finish | None:
        said = [] if outcome.reply is None else [each.raw_arguments for each in calls_of(outcome.reply)]
        self._times = self._times + 1 if said == self._last else 1
        self._last = said
        if self._times == 3:
            failure = Failure("bad_answer", "The model repeats itself.")
            return Finish(TurnFinished("error", failure), "gave up", ["loop"])
        return Continue("You repeat yourself.") if self._times == 2 else None


async def run(
    script: list[dict[str, Any]], *middleware: Any, prompts: tuple[str, ...] = ("go",), **changes: Any
) -> Any:
    model = ScriptedModel(script, **{name: changes.pop(name) for name in ("price", "max_output") if name in changes})
    agent, *_ = build([], model=model, middleware=middleware, **changes)
    emit = RecordingEmit()

    async with agent.open() as session:
        turns = [await session.run(prompt, emit) for prompt in prompts]
        assert_valid(session.transcript.messages)
        result, messages = turns[-1], list(session.transcript.messages)
    return result, messages, list(emit.events), model


def notes(message: Message) -> list[str]:
    return [] if isinstance(message, Assistant) else [note.text for note in message.notes]


# ------------------------------------------------------------------ the test doubles


@pytest.mark.parametrize("overflow", [OVERFLOW, {"text": "half", "stop": "context_overflow"}])
async def test_after_an_overflow_the_conversation_is_compacted_and_the_step_retried(
    overflow: dict[str, Any],
) -> None:
    script = [{"tool_calls": [call("a")]}, overflow, {"text": "done"}]
    result, messages, events, model = await run(script, Compaction)
    assert (result.reason, result.text, result.steps) == ("completed", "done", 2)
    assert [event.step for event in only(events, RequestSent)] == [1, 2, 2]
    assert [event.reason for event in only(events, PrefixOpened)] == ["start", "compaction"]
    assert [event.failure.kind for event in only(events, ReplyWithdrawn)] == ["context_overflow"]
    assert model.requests[2] == (User((Text(SUMMARY),)),) and len(model.prefixes) == 2
    assert model.prefixes[0] == model.prefixes[1]
    assert messages[0] == User((Text(SUMMARY),)) and text_of(messages[1].parts) == "done"


async def test_an_overflow_after_a_compaction_ends_the_turn_with_the_providers_error() -> None:
    result, _, events, model = await run([OVERFLOW, OVERFLOW], Compaction)
    assert (result.reason, result.failure.kind) == ("error", "context_overflow")
    assert len(model.requests) == 2 and len(only(events, Compacted)) == 1


async def test_a_compacted_session_is_resumed_with_its_replacement() -> None:
    store = MemoryStore()
    agent, *_ = build([OVERFLOW, {"text": "done"}], middleware=(Compaction,), store=store)
    session_id = (await agent.run("go")).session_id
    agent, model, _ = build([{"text": "again"}], store=store)
    await agent.run("more", session_id)
    assert model.requests[0][0] == User((Text(SUMMARY),)) and text_of(model.requests[0][1].parts) == "done"
    assert len(model.requests[0]) == 3


async def test_cancelling_a_compaction_keeps_the_text_received() -> None:
    class Slow(Middleware):
        def __init__(self, context: MiddlewareContext) -> None:
            self._session = context.conversation

        async def after_step(self, outcome: StepOutcome) -> Retry | None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)

    result, messages, events, _ = await run([{"text": "half", "stop": "context_overflow"}], Slow)
    assert (result.reason, result.text) == ("cancelled", "half")
    assert [event.stop for event in only(events, AssistantReplied)] == ["cancelled"]
    assert text_of(messages[-1].parts) == "half"


async def test_a_budget_ends_the_turn_before_the_next_step() -> None:
    costly = {"tool_calls": [call("a")], "usage": {"input": 2_000_000, "output": 0}}
    result, messages, events, model = await run([costly, {"text": "never"}], Budget, price=Price(1.0, 1.0))
    assert (result.reason, result.cost, result.steps) == ("budget", 2.0, 1)
    assert results(messages) == ["did a"], "the calls of the last reply have results"
    assert only(events, LimitReached) == [LimitReached("budget", 2.0, 1.0)] and len(model.requests) == 1


async def test_a_stop_hook_continues_the_turn_with_a_note_until_its_condition_holds() -> None:
    script = [{"text": "done"}, {"tool_calls": [call("test")]}, {"text": "tests pass"}, {"text": "x"}]
    result, messages, events, model = await run(script, StopHook)
    assert (result.reason, result.text, len(model.requests)) == ("completed", "tests pass", 3)
    assert notes(messages[2]) == ["Run the tests first (1)."]
    kinds = [type(event).__name__ for event in events]
    assert kinds.index("NoteQueued") > kinds.index("AssistantReplied"), "the note follows the reply"


async def test_loop_detection_warns_and_then_ends_the_turn_with_its_own_reason() -> None:
    script = [{"tool_calls": [call("a") | {"id": f"c{n}"}]} for n in range(4)]
    result, messages, _, model = await run(script, LoopDetection)
    assert (result.reason, result.text, result.answer) == ("error", "gave up", ["loop"])
    assert len(model.requests) == 3 and result.failure.message == "The model repeats itself."
    assert [notes(message) for message in model.requests[2]][-1] == ["You repeat yourself."]
    assert results(messages) == ["did a"] * 3


# ------------------------------------------------------------------ rules of the port


async def test_middleware_are_called_in_order_until_one_answers() -> None:
    seen: list[str] = []

    def named(name: str, answer: Continue | None) -> Any:
        class Named(Middleware):
            def __init__(self, context: MiddlewareContext) -> None:
                self._answers = [answer]

            def adjust(self, params: RequestParams) -> RequestParams:
                return RequestParams(effort=f"{params.effort or ''}{name}")

            async def before_step(self) -> None:
                seen.append(f"before {name}")

            async def after_step(self, outcome: StepOutcome) -> Continue | None:
                seen.append(f"after {name}")
                return self._answers.pop() if self._answers else None

        return Named

    result, _, _, model = await run(
        [{"text": "1"}, {"text": "2"}], named("a", None), named("b", Continue("go on")), named("c", None)
    )
    assert result.text == "2" and [params.effort for params in model.params] == ["abc", "abc"]
    first = ["before a", "before b", "before c", "after a", "after b"]
    assert seen == [*first, "before a", "before b", "before c", "after a", "after b", "after c"]


async def test_texts_that_are_kept_form_one_answer() -> None:
    class GoOn(Middleware):
        def __init__(self, context: MiddlewareContext) -> None:
            self.answers: list[str] = []

        async def after_step(self, outcome: StepOutcome) -> Continue | None:
            return Continue(keeps_text=True) if outcome.answer in ("a", "ab") else None

    result, *_ = await run([{"text": "a"}, {"text": "b"}, {"text": "c"}, {"text": "never"}], GoOn)
    assert result.text == "abc"


async def test_a_middleware_can_neither_retry_forever_nor_retry_a_logged_step() -> None:
    class Stubborn(Middleware):
        def __init__(self, context: MiddlewareContext) -> None:
            self.tries = 0

        async def after_step(self, outcome: StepOutcome) -> Retry:
            return Retry(Failure("server", "once more"))

    result, _, events, model = await run([{"text": "half", "stop": "context_overflow"}] * 9, Stubborn)
    assert (result.reason, result.failure.kind, len(model.requests)) == ("error", "context_overflow", 6)
    assert len(only(events, ReplyWithdrawn)) == 5 and len(only(events, AssistantReplied)) == 1
    result, _, events, _ = await run([{"tool_calls": [call("a")]}, {"text": "done"}], Stubborn)
    assert result.reason == "completed" and not only(events, ReplyWithdrawn)


async def test_a_turn_that_a_middleware_rejects_leaves_no_log_entry() -> None:
    class Refuses(Middleware):
        def __init__(self, context: MiddlewareContext) -> None:
            self.turns = 0

        def begin_turn(self, params: RequestParams) -> None:
            raise SettingsError("not like this")

    emit = RecordingEmit()
    agent, model, _ = build([{"text": "never"}], middleware=(Refuses,))

    async with agent.open() as session:
        for _ in range(2):
            with pytest.raises(SettingsError, match="not like this"):
                await session.run("go", emit)
    assert not emit.events and not model.requests
