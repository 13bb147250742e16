"""Loop detection: repeated steps are first warned about and then end the turn. Waiting and progress are not loops."""

from typing import Any

import pytest
from scripted_agent import Probe, assert_valid, build, call, results

from bradawl.agent.configuration import Limits
from bradawl.core.effects import Effects
from bradawl.core.messages import Assistant, Origin, Text, ToolCall, ToolResult, ToolResults, User
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.folds.repetition import LONGEST_CYCLE, cycle_at_end


class Counting(Probe):
    """A tool whose result differs at each call."""

    def effects(self, params: Any, context: CallContext) -> Effects:
        return Effects()

    async def run(self, params: Any, context: CallContext) -> ToolOutput:
        self.log.append(params.name)
        return ToolOutput((Text(f"{len(self.log)} lines so far"),))


async def run(steps: list[dict[str, Any]], tool: Any = None, *, prompts: int = 1, **changes: Any) -> Any:
    for number, step in enumerate(steps):
        for each in step.get("tool_calls", ()):
            each["id"] = f"{each['id']}_{number}"
    tool = tool or Probe()
    agent, model, _ = build(steps, tools=(tool,), **changes)

    async with agent.open() as session:
        found = [await session.run("go") for _ in range(prompts)]
        assert_valid(session.transcript.messages)
    return found, model, tool


def warned_requests(model: Any) -> list[int]:
    """Indexes of the requests that contain a warning."""
    return [
        number
        for number, request in enumerate(model.requests)
        if any("got the same results each time" in note.text for note in getattr(request[-1], "notes", ()))
    ]


def step(*names: str) -> dict[str, Any]:
    return {"tool_calls": [call(name) for name in names]}


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]], ids=len)
async def test_repeated_steps_are_warned_about_at_the_third_round_and_end_the_turn_at_the_fifth(circle):
    (turn,), model, tool = await run([step(name) for name in circle * 20])
    assert turn.reason == "error" and turn.failure.kind == "bad_answer"
    assert "5 times" in turn.failure.message and not turn.failure.retryable
    assert len(model.requests) == 5 * len(circle)
    assert warned_requests(model) == [3 * len(circle)]
    assert len(tool.log) == 2 * 5 * len(circle)


async def test_all_calls_of_one_reply_count_as_one_step():
    (turn,), model, _ = await run([step("a", "b") for _ in range(20)])
    assert turn.reason == "error" and len(model.requests) == 5


async def test_repeating_a_failing_call_unchanged_is_a_loop():
    (turn,), model, _ = await run(
        [{"tool_calls": [{"id": "x", "name": "nothing", "arguments": {}}]} for _ in range(20)]
    )
    assert turn.reason == "error" and len(model.requests) == 5


async def test_repeating_a_call_whose_result_changes_is_no_loop():
    (turn,), model, tool = await run([*(step("poll") for _ in range(30)), {"text": "done"}], Counting())
    assert turn.reason == "completed" and warned_requests(model) == [] and len(tool.log) == 30


async def test_a_different_step_resets_the_count():
    steps = [step("a"), step("a"), step("a"), step("a"), step("b")] * 3
    (turn,), model, _ = await run([*steps, {"text": "done"}])
    assert turn.reason == "completed" and warned_requests(model) == [3, 8, 13]


async def test_a_new_prompt_resets_the_count():
    script = [*(step("a") for _ in range(4)), {"text": "1"}, *(step("a") for _ in range(4)), {"text": "2"}]
    turns, *_ = await run(script, prompts=2)
    assert [turn.reason for turn in turns] == ["completed", "completed"]


async def test_the_bound_can_be_changed_and_switched_off():
    (turn,), model, _ = await run([step("a") for _ in range(20)], limits=Limits(same_rounds=2))
    assert turn.reason == "error" and len(model.requests) == 2
    (turn,), _, tool = await run([*(step("a") for _ in range(20)), {"text": "done"}], limits=Limits(same_rounds=None))
    assert turn.reason == "completed" and len(tool.log) == 40


async def test_the_step_limit_takes_precedence():
    (turn,), model, _ = await run([step("a") for _ in range(20)], limits=Limits(max_steps=2))
    assert turn.reason == "steps" and len(model.requests) == 2


# ------------------------------------------------------------------ too many calls at once


async def test_of_too_many_calls_in_one_reply_only_the_first_run_and_all_get_results():
    names = [f"n{number}" for number in range(500)]
    (turn,), model, tool = await run([step(*names), {"text": "done"}], Counting())
    answers = results(model.requests[1])
    assert turn.reason == "completed" and len(answers) == 500
    assert tool.log == names[:100] and all("Not run: a reply may hold 100 calls" in text for text in answers[100:])


# ------------------------------------------------------------------ the pure function


def transcript(*steps: tuple[str, str]) -> list[Any]:
    messages: list[Any] = [User((Text("go"),))]
    for asked, answered in steps:
        messages.append(Assistant((Text("I try."), ToolCall("c", "bash", asked)), Origin("a", "b", "c")))
        messages.append(ToolResults((ToolResult("c", "bash", (Text(answered),)),)))
    return messages


def test_durations_in_results_are_ignored():
    circle = cycle_at_end(transcript(*(("make", f"failed\n[exit code 2] ({n}.{n} s)") for n in range(4))), 5)
    assert (circle.steps, circle.rounds) == (1, 4)


def test_a_transcript_with_at_most_one_step_has_no_loop():
    assert cycle_at_end([], 5).rounds == 1
    assert cycle_at_end(transcript(("a", "b")), 5).rounds == 1


def test_the_cost_of_detection_does_not_grow_with_the_conversation():
    looked = Watched(transcript(*((str(n), "x") for n in range(2_000))))
    cycle_at_end(looked, 5)
    assert looked.looks <= 2 * LONGEST_CYCLE * 5


class Watched(list[Any]):
    """A sequence that counts how often its items are read."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)
