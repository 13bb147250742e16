"""`JsonTool`: the schema sent to the model, the arguments passed to the tool, and the calls that are refused."""

import json
from typing import Any

import pytest
from scripted_agent import build, results

from bradawl.core.arguments import Arguments
from bradawl.core.effects import Effects
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.tools.json_tool import JsonTool

SCHEMA = {
    "type": "object",
    "properties": {
        "issue": {"type": "integer"},
        "state": {"enum": ["open", "closed"]},
        "labels": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"quiet": {"type": "boolean"}}},
        "note": {"type": ["string", "null"]},
        "ratio": {"type": "number"},
    },
    "required": ["issue"],
    "additionalProperties": False,
}
SIGNATURE = (
    "Its parameters are: issue (integer), state (one of open, closed, optional), labels (list, optional), "
    "options (object, optional), note (string or null, optional), ratio (number, optional)."
)


async def called(arguments: dict[str, Any] | str, schema: Any = SCHEMA) -> tuple[str, list[Arguments], Any]:
    """Result of one call, the arguments of each run of the tool, and the model."""
    ran: list[Arguments] = []

    async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
        ran.append(arguments)
        return ToolOutput((Text("done"),))

    tool = JsonTool(ToolSpec("mcp__tracker__edit"), "Edit an issue.", schema, run, lambda _a, _c: Effects())
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    script = [{"tool_calls": [{"id": "a", "name": tool.spec.name, "arguments": raw}]}, {"text": "ok"}]
    agent, model, _ = build(script, tools=(tool,))

    async with agent.open() as session:
        await session.run("go")
        (answer,) = results(session.transcript.messages)
    return answer, ran, model


async def test_the_description_and_the_schema_are_sent_unchanged() -> None:
    _, _, model = await called({"issue": 1})
    (shown,) = model.prefixes[0].tools
    assert (shown.name, shown.description) == ("mcp__tracker__edit", "Edit an issue.")
    assert json.loads(bytes(shown.parameters)) == SCHEMA


@pytest.mark.parametrize("schema", [json.dumps(SCHEMA), json.dumps(SCHEMA).encode(), SCHEMA])
async def test_arguments_reach_the_tool_as_a_dict(schema: Any) -> None:
    given = {"issue": 7, "state": "open", "labels": ["a"], "options": {"quiet": True}, "note": None}
    assert (await called(given, schema))[:2] == ("done", [given])


@pytest.mark.parametrize(
    ("given", "fitted"),
    [
        ({"issue": "7"}, {"issue": 7}),
        ({"issue": 7, "labels": "a"}, {"issue": 7, "labels": ["a"]}),
        ({"issue": 7, "labels": '["a", "b"]'}, {"issue": 7, "labels": ["a", "b"]}),
        ({"issue": 7, "labels": [1]}, {"issue": 7, "labels": ["1"]}),
        ({"issue": 7, "options": '{"quiet": "true"}'}, {"issue": 7, "options": {"quiet": True}}),
        ({"issue": 7, "state": None, "note": None}, {"issue": 7, "note": None}),
        ({"issue": 7, "ratio": "0.5"}, {"issue": 7, "ratio": 0.5}),
        ({"issue": 7, "reasoning": "because"}, {"issue": 7}),
    ],
)
async def test_small_mistakes_in_arguments_are_corrected_as_for_struct_tools(
    given: dict[str, Any], fitted: Arguments
) -> None:
    assert (await called(given))[1] == [fitted]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, '"issue" is a required property'),
        ({"issue": "seven"}, '"seven" is not of type "integer" (at $.issue)'),
        ({"issue": 1, "state": "shut"}, "(at $.state)"),
        ({"issue": 1, "labels": [{}]}, "(at $.labels[0])"),
        ({"issue": 1, "isue": 2}, "there is no parameter isue (did you mean issue?)"),
        ("{broken", "its arguments could not be read"),
    ],
)
async def test_arguments_that_do_not_satisfy_the_schema_never_reach_the_tool(given: Any, said: str) -> None:
    answer, ran, _ = await called(given)
    assert ran == [] and answer.startswith("mcp__tracker__edit was not run: ")
    assert said in answer and answer.endswith(SIGNATURE)


async def test_additional_properties_pass_if_the_schema_allows_them() -> None:
    given = {"issue": 1, "reason": "kept"}
    assert (await called(given, {"type": "object", "properties": {"issue": {"type": "integer"}}}))[1] == [given]


@pytest.mark.parametrize("schema", [{}, {"type": "object"}])
async def test_an_empty_schema_accepts_any_arguments(schema: dict[str, Any]) -> None:
    assert (await called({"a": 1}, schema))[1] == [{"a": 1}]


@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"$ref": "https://example.invalid/schema"}])
async def test_an_unusable_schema_fails_the_call_and_not_the_turn(schema: Any) -> None:
    answer, ran, _ = await called({"issue": 1}, schema)
    assert ran == [] and "mcp__tracker__edit" in answer


@pytest.mark.parametrize("schema", ["{", "[]", b"\xff"])
def test_a_schema_that_is_no_object_is_rejected_by_the_constructor(schema: str | bytes) -> None:
    async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
        raise AssertionError

    with pytest.raises(ValueError, match="JSON"):
        JsonTool(ToolSpec("x"), "X.", schema, run)


def test_without_declared_effects_a_call_has_unknown_effects() -> None:
    async def run(arguments: Arguments, context: CallContext) -> ToolOutput:
        raise AssertionError

    tool = JsonTool(ToolSpec("x"), "X.", {}, run)
    assert tool.effects({}, None).unknown  # type: ignore[arg-type]: the context is not used
