"""The answer of a turn is checked against a JSON Schema."""

import json
from typing import Any

import pytest
from scripted_agent import build, call

from bradawl.core.errors import SettingsError
from bradawl.core.events import AssistantReplied, Envelope, RequestParams
from bradawl.shaping.json_answer import NotJson, read_answer
from bradawl.testing.fakes import RecordingEmit
from bradawl.testing.scripted import last_text
from bradawl.tools.json_schema import check_for

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"$ref": "#/$defs/count"}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"count": {"type": "integer", "minimum": 1}},
}
GOOD = '{"name": "a", "count": 3}'


async def run(script: list[dict[str, Any]], schema: Any = SCHEMA, **changes: Any) -> Any:
    agent, model, _ = build(script, check_for=check_for, **changes)
    return await agent.run("go", answer_schema=schema), model


@pytest.mark.parametrize(
    "said",
    [
        GOOD,
        f"\n {GOOD} \n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\n",
        f"  ```JSON\n{GOOD}\n  ```",
        f"~~~json\r\n{GOOD}\r\n~~~",
        f"Here it is:\n\n```json\n{GOOD}\n```\n\nAnything else?",
    ],
)
async def test_a_valid_answer_is_returned_as_a_value_and_as_plain_json(said: str) -> None:
    result, model = await run([{"text": said}])
    assert (result.reason, result.answer) == ("completed", {"name": "a", "count": 3})
    assert json.loads(result.text) == result.answer and len(model.requests) == 1
    assert json.loads(model.params[0].answer_schema) == SCHEMA


async def test_a_stream_of_events_can_be_held_to_a_schema_too() -> None:
    agent, _, _ = build([{"text": "no"}, {"text": GOOD}], check_for=check_for)
    events = [item.event async for item in agent.stream("go", answer_schema=SCHEMA) if isinstance(item, Envelope)]
    assert events[-1].reason == "completed"
    assert sum(isinstance(event, AssistantReplied) for event in events) == 2


def test_an_answer_that_contains_a_code_fence_is_read_completely() -> None:
    answer = {"name": "```json\n{}\n```"}
    said = f"```json\n{json.dumps(answer, indent=1)}\n```"
    assert read_answer(said)[0] == answer


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("I can't say.", "not JSON alone"),
        ("", "empty"),
        (GOOD + GOOD, "not JSON alone"),
        (f"```json\n{GOOD}\n```\nor\n```json\n{GOOD}\n```", "more than one block"),
        ('{"count": 0}', "minimum"),
        ('{"name": 5}', "$.name"),
        ('{"name": "a", "more": 1}', "more"),
        ('{"name": "a", "count": NaN}', "not JSON alone"),
        ('{"name": "\\ud800"}', "not JSON alone"),
        ("[" * 100_000, "nested"),
    ],
)
async def test_after_an_invalid_answer_the_model_is_asked_once_more_and_gets_the_errors(bad: str, told: str) -> None:
    result, model = await run([{"text": bad, "stop": "end_turn"}, {"text": GOOD}])
    assert (result.reason, result.answer, result.steps) == ("completed", {"name": "a", "count": 3}, 2)
    asked = last_text(list(model.requests[1]))
    assert told in asked and "$defs" in asked


async def test_a_second_invalid_answer_is_an_error_that_keeps_the_text() -> None:
    result, model = await run([{"text": "no"}, {"text": '{"name": 1}'}, {"text": GOOD}])
    assert (result.reason, result.failure.kind, result.answer) == ("error", "bad_answer", None)
    assert result.text == '{"name": 1}' and "$.name" in result.failure.message and len(model.requests) == 2


async def test_each_turn_is_checked_by_its_own_schema() -> None:
    agent, model, _ = build([{"text": "1"}, {"text": "free text"}, {"text": "x"}, {"text": "[]"}], check_for=check_for)

    async with agent.open() as session:
        first = await session.run("a", answer_schema={"type": "integer"})
        second = await session.run("b")
        third = await session.run("c", answer_schema='{"type": "array"}')
        assert [first.answer, second.answer, second.text, third.answer, third.steps] == [1, None, "free text", [], 2]
    assert [bool(params.answer_schema) for params in model.params] == [True, False, True, True]


async def test_the_schema_of_the_agent_holds_for_every_turn() -> None:
    result, _ = await run([{"text": "7"}], None, params=RequestParams(answer_schema='{"const": 7}'))
    assert result.answer == 7


async def test_only_the_final_answer_is_checked() -> None:
    result, model = await run([{"text": "I look.", "tool_calls": [call("a")]}, {"text": GOOD}])
    assert result.answer == {"name": "a", "count": 3} and len(model.requests) == 2


async def test_an_answer_in_pieces_is_checked_as_a_whole() -> None:
    result, _ = await run([{"text": GOOD[:9], "stop": "max_tokens"}, {"text": GOOD[9:]}])
    assert result.answer == {"name": "a", "count": 3} and result.text == GOOD


async def test_a_truncated_answer_is_not_reported_as_invalid() -> None:
    result, _ = await run([{"text": f"{n}", "stop": "max_tokens"} for n in range(9)])
    assert result.failure.kind == "output_limit"


async def test_a_turn_that_failed_keeps_its_own_failure() -> None:
    result, _ = await run([{"faults": {"status": 401}}])
    assert result.failure.kind == "auth"


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ('{"type": "objekt"}', "objekt"),
        ("{", "not JSON"),
        ("[]", "object"),
        ('{"$ref": "http://127.0.0.1:9/schema.json"}', "nothing is fetched"),
        ('{"$ref": "#/$defs/none"}', "none"),
        ({"const": float("nan")}, "JSON"),
    ],
)
async def test_an_invalid_schema_is_rejected_before_any_request(schema: Any, says: str) -> None:
    agent, model, _ = build([{"text": "1"}], check_for=check_for)
    emit = RecordingEmit()

    async with agent.open() as session:
        with pytest.raises(SettingsError, match=says.replace("$", ".")):
            await session.run("go", emit, answer_schema=schema)
        assert (await session.run("go", emit)).text == "1", "the session can be used afterwards"
    assert len(model.requests) == 1


async def test_an_agent_without_a_validator_rejects_a_schema() -> None:
    agent, *_ = build([{"text": "1"}])
    with pytest.raises(SettingsError, match="check_for"):
        await agent.run("go", answer_schema={})


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_all_keywords_of_every_supported_draft_are_checked(draft: str) -> None:
    wrong = check_for(
        json.dumps({"$schema": draft, "type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    )
    assert wrong([1, 2]) == "" and wrong([1, 1]) and wrong([1, "a"])


def test_without_a_declared_draft_the_newest_one_applies() -> None:
    wrong = check_for('{"type": "array", "prefixItems": [{"type": "integer"}], "items": false}')
    assert wrong([1]) == "" and wrong([1, 2]) and wrong(["a"])


def test_validation_errors_are_reported_in_a_few_short_lines() -> None:
    wrong = check_for('{"type": "array", "items": {"type": "integer"}}')(["x" * 5000] * 50)
    assert len(wrong) < 2_000 and wrong.endswith("and 45 more")


@pytest.mark.parametrize("text", ["", " ", "```json\n```", "null null"])
def test_text_without_a_json_value_is_not_an_answer(text: str) -> None:
    with pytest.raises(NotJson):
        read_answer(text)
