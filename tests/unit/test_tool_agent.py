"""The tool `agent` starts a sub-agent with a task and returns its conclusion."""

import json

import pytest
from session_calls import FakeSession
from tool_specs import request

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Deny, Policy, Request, decide
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.shaping.tool_schema import schema_of
from bradawl.testing.fakes import FakeSpawner
from bradawl.tools.agent import LIMIT, AgentTool


async def test_the_result_of_a_completed_task_is_only_the_conclusion():
    spawner = FakeSpawner(["It is in a.py:3.\n"])
    output = await FakeSession(spawner=spawner).call(AgentTool(), prompt="find it", kind="explore", description="find")
    assert (output.parts[0].text, output.is_error, output.full) == ("It is in a.py:3.", False, None)
    assert spawner.spawned == [("explore", "find it", "call")]


async def test_the_default_kind_is_general():
    spawner = FakeSpawner()
    await FakeSession(spawner=spawner).call(AgentTool(), prompt="mend it")
    assert spawner.spawned == [("general", "mend it", "call")]


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("steps", "it reached its limit of steps"),
        ("budget", "it reached the limit of cost"),
        ("time", "it reached the limit of time"),
        ("error", "it failed"),
        ("refused", "refused"),
        ("cancelled", "it was cancelled"),
        ("interrupted", "it was interrupted"),
    ],
)
async def test_any_other_end_is_an_error_that_begins_with_the_reason(reason, why):
    output = await FakeSession(spawner=FakeSpawner(["half of it"], [reason])).call(AgentTool(), prompt="x")
    first, rest = output.parts[0].text.split("\n", 1)
    assert output.is_error and "did not complete its task" in first and why in first
    assert rest == "half of it"


@pytest.mark.parametrize("extra", [0, 1, 100_000])
async def test_a_long_conclusion_shows_its_end_and_is_kept_whole(extra):
    whole = "b" * extra + "e" * (LIMIT - 4) + "\ud800END"
    output = await FakeSession(spawner=FakeSpawner([whole])).call(AgentTool(), prompt="x")
    text = output.parts[0].text
    assert text.endswith(whole[-LIMIT:]) and output.limit is None
    assert (output.full is not None) == (extra > 0)
    if extra:
        assert text.startswith(f"[the first {extra:,} characters are cut]\n")
        assert len(output.full) == len(whole)


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_task_is_refused_before_anything_is_spent(prompt):
    with pytest.raises(ToolError, match="prompt is empty"):
        AgentTool().effects(AgentTool().params(prompt), FakeSession().context)


async def test_without_sub_agents_the_error_says_to_do_the_task_directly():
    with pytest.raises(ToolError, match="do the task yourself"):
        await FakeSession().call(AgentTool(), prompt="x")


def test_it_declares_spending_and_reading_the_working_directory():
    for kind in ("explore", "general"):
        effects = AgentTool().effects(AgentTool().params("x", kind), FakeSession().context)
        assert effects.spends and effects.reads == ("/project",)
        assert not (effects.writes or effects.session or effects.unknown or effects.commands)


def test_its_schema_has_no_union_types():
    schema = json.loads(bytes(schema_of(AgentTool()).parameters))
    assert "anyOf" not in json.dumps(schema) and schema["required"] == ["prompt"]
    assert schema["properties"]["kind"]["enum"] == ["explore", "general"]


@pytest.mark.parametrize("rule", ["Read(secrets/**)", "Read(./.env)", "Read"])
def test_path_rules_do_not_apply_to_starting_a_sub_agent(rule):
    rules = parse_rule(rule, "deny", "test", Bases("/w", "/h", "/w"))
    effects = Effects(reads=("/w",), spends=True)
    assert not isinstance(decide(Policy(rules=rules, roots=("/w",)), request("agent", effects)), Deny)
    for other in (request("agent", Effects(reads=("/w/secrets/k", "/w/.env"))), Request("read", "d", effects)):
        assert isinstance(decide(Policy("bypass", rules=rules, roots=("/w",)), other), Deny)
