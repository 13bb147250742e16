"""A model that repeats itself is warned and then stopped; one that waits or makes progress is not."""

import asyncio
from typing import Any

import pytest
from house import Probe, assert_valid, build, call, results

from bradawl.agent.configuration import Limits
from bradawl.core.effects import Effects
from bradawl.core.messages import Assistant, Origin, Text, ToolCall, ToolResult, ToolResults, User
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.folds.repetition import LONGEST_CYCLE, cycle_at_end


class Counting(Probe):
    """Answers something else each time."""

    def effects(self, params: Any, context: CallContext) -> Effects:
        return Effects()

    async def run(self, params: Any, context: CallContext) -> ToolOutput:
        self.log.append(params.name)
        return ToolOutput((Text(f"{len(self.log)} lines so far"),))


def run(steps: list[dict[str, Any]], tool: Any = None, *, prompts: int = 1, **changes: Any) -> Any:
    for number, step in enumerate(steps):
        for each in step.get("tool_calls", ()):
            each["id"] = f"{each['id']}_{number}"
    tool = tool or Probe()
    agent, model, _ = build(steps, tools=(tool,), **changes)

    async def main() -> Any:
        async with agent.open() as session:
            found = [await session.run("go") for _ in range(prompts)]
            assert_valid(session.transcript.messages)
        return found

    return asyncio.run(main()), model, tool


def told(model: Any) -> list[int]:
    """Numbers of the requests that came with a warning."""
    return [
        number
        for number, request in enumerate(model.requests)
        if any("got the same results each time" in note.text for note in getattr(request[-1], "notes", ()))
    ]


def step(*names: str) -> dict[str, Any]:
    return {"tool_calls": [call(name) for name in names]}


@pytest.mark.parametrize("circle", [["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]], ids=len)
def test_the_same_steps_are_warned_of_at_the_third_round_and_ended_at_the_fifth(circle):
    (turn,), model, tool = run([step(name) for name in circle * 20])
    assert turn.reason == "error" and turn.failure.kind == "bad_answer"
    assert "5 times" in turn.failure.message and not turn.failure.retryable
    assert len(model.requests) == 5 * len(circle)
    assert told(model) == [3 * len(circle)]
    assert len(tool.log) == 2 * 5 * len(circle)


def test_several_calls_of_one_reply_are_one_step():
    (turn,), model, _ = run([step("a", "b") for _ in range(20)])
    assert turn.reason == "error" and len(model.requests) == 5


def test_a_failing_call_repeated_unchanged_is_a_circle_too():
    (turn,), model, _ = run([{"tool_calls": [{"id": "x", "name": "nothing", "arguments": {}}]} for _ in range(20)])
    assert turn.reason == "error" and len(model.requests) == 5


def test_a_call_whose_result_changes_is_waiting_and_no_circle():
    (turn,), model, tool = run([*(step("poll") for _ in range(30)), {"text": "done"}], Counting())
    assert turn.reason == "completed" and told(model) == [] and len(tool.log) == 30


def test_something_else_in_between_begins_the_count_anew():
    steps = [step("a"), step("a"), step("a"), step("a"), step("b")] * 3
    (turn,), model, _ = run([*steps, {"text": "done"}])
    assert turn.reason == "completed" and told(model) == [3, 8, 13]


def test_a_new_prompt_begins_the_count_anew():
    script = [*(step("a") for _ in range(4)), {"text": "1"}, *(step("a") for _ in range(4)), {"text": "2"}]
    turns, *_ = run(script, prompts=2)
    assert [turn.reason for turn in turns] == ["completed", "completed"]


def test_the_bound_can_be_moved_and_taken_away():
    (turn,), model, _ = run([step("a") for _ in range(20)], limits=Limits(same_rounds=2))
    assert turn.reason == "error" and len(model.requests) == 2
    (turn,), _, tool = run([*(step("a") for _ in range(20)), {"text": "done"}], limits=Limits(same_rounds=None))
    assert turn.reason == "completed" and len(tool.log) == 40


def test_the_limit_of_steps_comes_first():
    (turn,), model, _ = run([step("a") for _ in range(20)], limits=Limits(max_steps=2))
    assert turn.reason == "steps" and len(model.requests) == 2


# ------------------------------------------------------------------ too many calls at once


def test_of_too_many_calls_in_one_reply_the_first_run_and_all_are_answered():
    names = [f"n{number}" for number in range(500)]
    (turn,), model, tool = run([step(*names), {"text": "done"}], Counting())
    answers = results(model.requests[1])
    assert turn.reason == "completed" and len(answers) == 500
    assert tool.log == names[:100] and all("Not run: a reply may hold 100 calls" in text for text in answers[100:])


# ------------------------------------------------------------------ the pure part


def transcript(*steps: tuple[str, str]) -> list[Any]:
    messages: list[Any] = [User((Text("go"),))]
    for asked, answered in steps:
        messages.append(Assistant((Text("I try."), ToolCall("c", "bash", asked)), Origin("a", "b", "c")))
        messages.append(ToolResults((ToolResult("c", "bash", (Text(answered),)),)))
    return messages


def test_how_long_things_took_is_no_difference():
    circle = cycle_at_end(transcript(*(("make", f"failed\n[exit code 2] ({n}.{n} s)") for n in range(4))), 5)
    assert (circle.steps, circle.rounds) == (1, 4)


def test_without_steps_or_with_one_there_is_no_circle():
    assert cycle_at_end([], 5).rounds == 1
    assert cycle_at_end(transcript(("a", "b")), 5).rounds == 1


def test_looking_costs_no_more_in_a_long_conversation():
    looked = Watched(transcript(*((str(n), "x") for n in range(2_000))))
    cycle_at_end(looked, 5)
    assert looked.looks <= 2 * LONGEST_CYCLE * 5


class Watched(list[Any]):
    """Counts what is looked at."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)
