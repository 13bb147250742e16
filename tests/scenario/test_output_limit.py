"""Replies cut by the output limit, or paused, are retried with a higher limit, continued, or reported as errors."""

from typing import Any

import pytest
from scripted_agent import assert_valid, build, call, results
from wire_model import WireModel

from bradawl.agent.middleware.output_limit import MOST_CONTINUATIONS
from bradawl.core.deltas import TextDelta
from bradawl.core.events import AssistantReplied, Event, Live, NoteDelivered, ReplyWithdrawn, RequestParams, RequestSent
from bradawl.core.retry import RetryBudget
from bradawl.core.usage import Price, Usage
from bradawl.testing.fakes import RecordingEmit
from bradawl.testing.scripted import ScriptedModel, last_text
from wire.codecs import FORMATS, Format


async def run(script: list[dict[str, Any]], prompts: tuple[str, ...] = ("go",), **changes: Any) -> Any:
    info = {name: changes.pop(name) for name in ("max_output", "price") if name in changes}
    model = ScriptedModel(script, **info)
    agent, _, probe = build([], model=model, **changes)
    emit = RecordingEmit()

    async with agent.open() as session:
        turns = [await session.run(prompt, emit) for prompt in prompts]
        assert_valid(session.transcript.messages)
        result, messages = turns[-1], session.transcript.messages
    return result, messages, emit.events, model, probe


def limits(model: ScriptedModel) -> list[int | None]:
    return [params.max_output_tokens for params in model.params]


def count(events: tuple[Event, ...], kind: type) -> int:
    return sum(isinstance(event, kind) for event in events)


CUT = {"text": "half an ans", "stop": "max_tokens", "usage": {"input": 100, "output": 50}}


async def test_a_cut_reply_is_withdrawn_and_retried_with_the_models_largest_limit() -> None:
    whole = {"text": "a whole answer", "usage": {"input": 100, "output": 80}}
    result, messages, events, model, _ = await run([CUT, whole], max_output=64_000, price=Price(1.0, 1.0))
    assert (result.reason, result.text, result.steps) == ("completed", "a whole answer", 1)
    assert limits(model) == [None, 64_000] and len(messages) == 2
    withdrawn = next(event for event in events if isinstance(event, ReplyWithdrawn))
    assert withdrawn.failure.kind == "output_limit" and "64,000" in withdrawn.failure.message
    assert result.usage == Usage(200, 130) and result.cost == pytest.approx(330 / 1e6), "both requests are billed"
    sent = [event.params.max_output_tokens for event in events if isinstance(event, RequestSent)]
    assert sent == [None, 64_000]


async def test_raising_the_limit_uses_no_retry_and_applies_to_the_whole_session() -> None:
    script = [CUT, {"text": "whole"}, {"text": "next"}]
    result, _, _, model, _ = await run(script, ("go", "on"), max_output=64_000, retry=RetryBudget(attempts=1))
    assert result.reason == "completed" and limits(model) == [None, 64_000, 64_000]


async def test_a_limit_set_by_the_user_is_not_raised_and_the_answer_is_continued() -> None:
    script = [CUT, {"text": "wer, and", "stop": "max_tokens"}, {"text": " the end."}]
    result, _, events, model, _ = await run(script, max_output=64_000, params=RequestParams(max_output_tokens=50))
    assert limits(model) == [50, 50, 50] and count(events, ReplyWithdrawn) == 0
    assert (result.reason, result.text, result.steps) == ("completed", "half an answer, and the end.", 3)
    assert count(events, NoteDelivered) == 2
    assert "Continue exactly where you stopped" in last_text(list(model.requests[1]))


@pytest.mark.parametrize("used", [58_000, 64_000])
async def test_a_reply_of_the_models_largest_length_is_continued_without_a_retry(used: int) -> None:
    cut = {"text": "long ", "stop": "max_tokens", "usage": {"input": 1, "output": used}}
    result, _, events, model, _ = await run([cut, {"text": "enough"}], max_output=64_000)
    assert limits(model) == [None, None] and count(events, ReplyWithdrawn) == 0
    assert result.text == "long enough"


async def test_a_reply_cut_by_the_raised_limit_is_kept_and_continued() -> None:
    cut = {"text": "longer ", "stop": "max_tokens", "usage": {"input": 100, "output": 8_000}}
    result, _, events, model, _ = await run([CUT, cut, {"text": "and over"}], max_output=8_000)
    assert limits(model) == [None, 8_000, 8_000] and count(events, ReplyWithdrawn) == 1
    assert (result.reason, result.text) == ("completed", "longer and over")


async def test_the_number_of_continuations_is_limited_and_the_text_is_kept() -> None:
    script = [{"text": f"part {n}. ", "stop": "max_tokens"} for n in range(9)]
    result, _, _, model, _ = await run(script)
    assert len(model.requests) == 1 + MOST_CONTINUATIONS == 4
    assert (result.reason, result.failure.kind) == ("error", "output_limit")
    assert result.text == "part 0. part 1. part 2. part 3. "


@pytest.mark.parametrize("nothing", ["", " \n", "half an ans"])
async def test_an_empty_or_repeated_continuation_is_the_last(nothing: str) -> None:
    result, _, _, model, _ = await run([CUT, {"text": nothing, "stop": "max_tokens"}, {"text": "never asked"}])
    assert (result.reason, result.failure.kind, len(model.requests)) == ("error", "output_limit", 2)


async def test_a_reply_that_consists_of_thinking_only_is_not_continued() -> None:
    result, *_, model, _ = await run([{"thinking": "hm " * 50, "stop": "max_tokens"}, {"text": "never asked"}])
    assert (result.reason, result.failure.kind, len(model.requests)) == ("error", "output_limit", 1)


async def test_a_failed_continuation_is_reported_as_a_cut_answer() -> None:
    result, *_ = await run([CUT, {"faults": {"status": 401}, "text": "bad key"}])
    assert (result.reason, result.failure.kind, result.text) == ("error", "output_limit", "half an ans")
    assert "bad key" in result.failure.message


async def test_a_call_cut_by_the_limit_gets_a_result_and_the_next_step_has_a_higher_limit() -> None:
    cut = {"text": "I", "tool_calls": [{"id": "x", "name": "probe", "arguments": '{"name": "a'}], "stop": "max_tokens"}
    result, messages, events, model, probe = await run([cut, {"text": "done"}], max_output=64_000)
    assert probe.log == [] and "cut off" in results(messages)[0]
    assert limits(model) == [None, 64_000] and count(events, ReplyWithdrawn) == 0
    assert result.text == "done"


async def test_text_cut_before_a_call_does_not_become_part_of_the_answer() -> None:
    script = [CUT, {"text": " more", "tool_calls": [call("a")]}, {"text": "The answer."}]
    result, *_ = await run(script)
    assert (result.reason, result.text) == ("completed", "The answer.")


async def test_the_number_of_continuations_is_counted_per_turn() -> None:
    script = [CUT, {"text": "wer"}, {"text": "1 ", "stop": "max_tokens"}, {"text": "2"}]
    result, *_ = await run(script, ("go", "on"))
    assert result.text == "1 2"


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.api)
async def test_every_format_can_encode_a_cut_reply_and_the_request_to_continue(form: Format) -> None:
    model = WireModel([{"text": "half an ans", "stop": "max_tokens"}, {"text": "wer"}], form.new)
    agent, *_ = build([], model=model)
    assert (await agent.run("go")).text == "half an answer"
    assert form.check(model.bodies[1]) == [] and b"Continue exactly where you stopped" in model.bodies[1]


# ------------------------------------------------------------------ pauses


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.api)
async def test_a_paused_reply_is_sent_back_unchanged_and_continued(form: Format) -> None:
    model = WireModel([{"text": "searching... ", "stop": "pause"}, {"text": "found."}], form.new)
    agent, *_ = build([], model=model)
    result = await agent.run("go")
    assert (result.reason, result.text, result.steps) == ("completed", "searching... found.", 2)
    assert form.check(model.bodies[1]) == []
    assert model.bodies[1].count(b"searching") == 1 and b"<note" not in model.bodies[1]


async def test_a_reply_that_is_paused_again_and_again_is_an_error() -> None:
    result, *_, model, _ = await run([{"text": "...", "stop": "pause"}] * 30)
    assert (result.reason, len(model.requests)) == ("error", 11) and "paused" in result.failure.message


# ------------------------------------------------------------------ the cost of incomplete replies


async def test_the_usage_of_a_broken_reply_is_estimated_and_marked_as_an_estimate() -> None:
    words = "one two three four five six seven eight nine ten"
    script = [{"text": words, "faults": {"cut_at_byte": 40}}, {"text": "whole", "usage": {"input": 100, "output": 1}}]
    result, _, events, *_ = await run(script, price=Price(1.0, 2.0))
    withdrawn = next(event for event in events if isinstance(event, ReplyWithdrawn))
    assert withdrawn.usage is not None and withdrawn.usage.source == "estimated"
    assert withdrawn.usage.output in range(6, 14) and withdrawn.usage.input > 20
    assert withdrawn.cost == pytest.approx((withdrawn.usage.input + 2 * withdrawn.usage.output) / 1e6)
    assert result.usage == withdrawn.usage + Usage(100, 1) and result.cost == pytest.approx(withdrawn.cost + 102 / 1e6)


async def test_the_estimate_for_a_broken_reply_starts_from_the_last_reported_usage() -> None:
    script = [
        {"tool_calls": [call("a")], "usage": {"input": 5_000, "output": 100}},
        {"text": "some words of an answer", "faults": {"cut_at_byte": 15}},
    ]
    result, _, events, *_ = await run(script, retry=RetryBudget(attempts=1))
    last = [event for event in events if isinstance(event, AssistantReplied)][-1]
    assert result.reason == "error" and last.usage is not None and last.usage.source == "estimated"
    assert 5_100 < last.usage.input < 5_130, "the reported request and reply, and one short result"
    assert last.usage.output > 0


async def test_a_request_without_a_reply_costs_nothing() -> None:
    result, _, events, *_ = await run([{"faults": {"status": 503}}, {"text": "ok", "usage": {"input": 7, "output": 1}}])
    withdrawn = next(event for event in events if isinstance(event, ReplyWithdrawn))
    assert (withdrawn.usage, result.usage) == (None, Usage(7, 1))


async def test_the_usage_of_a_cancelled_reply_is_estimated() -> None:
    agent, *_ = build([{"text": "one two three four five six"}])
    emit = RecordingEmit()

    async with agent.open() as session:

        def show(item: Any) -> None:
            emit(item)
            if isinstance(item, Live) and isinstance(item.item, TextDelta):
                session.cancel()

        result = await session.run("go", show)
    (reply,) = [event for event in emit.events if isinstance(event, AssistantReplied)]
    assert result.reason == "cancelled" and reply.cut
    assert reply.usage is not None and reply.usage.source == "estimated" and reply.usage.output > 0
