"""Tools, hooks and arguments that are not what they should be cost a call, never the turn or the session."""

import asyncio
from typing import Any

import pytest
from house import Probe, ProbeParams, build, call, results

from bradawl.core.effects import Effects
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.ports import ToolOutput
from bradawl.testing.fakes import MemoryStore

PLAN = [{"tool_calls": [call("a")]}, {"text": "went on"}]


def run(script: list[dict[str, Any]] = PLAN, **changes: Any) -> tuple[str, list[str], str]:
    """How the turn ended, its results, and what another turn of the resumed session says."""
    store = MemoryStore()
    agent, *_ = build([*script, {"text": "again"}], store=store, **changes)

    async def main() -> tuple[str, list[str], str]:
        async with agent.open() as session:
            result = await session.run("go")
        async with agent.open(session.id) as again:
            return result.reason, results(again.transcript.messages), (await again.run("more")).text

    return asyncio.run(main())


@pytest.mark.parametrize(
    "given",
    [None, "/p/a", {"reads": "/p"}, Effects(reads=("/p", None)), Effects(writes="/p/a"), 7],
)
def test_effects_that_are_none_cost_the_call(given: object) -> None:
    class Careless(Probe):
        def effects(self, params, context):
            return given

    tool = Careless()
    reason, answers, more = run(tools=(tool,))
    assert (reason, more) == ("completed", "again") and tool.log == []
    assert len(answers) == 1 and "probe broke: ValidationError: Expected" in answers[0]


@pytest.mark.parametrize("path", ["a", "", "~/.bashrc", "../a", "./a", "/p/../a", "/p/./a", "//a", "/p//a", "/p/.."])
@pytest.mark.parametrize("of", ["reads", "writes"])
def test_paths_that_rules_can_not_be_compared_with_cost_the_call(path: str, of: str) -> None:
    class Careless(Probe):
        def effects(self, params, context):
            return Effects(**{of: (path,)})

    tool = Careless()
    reason, answers, _ = run(tools=(tool,))
    assert reason == "completed" and tool.log == []
    assert "probe broke: ValidationError: Expected paths that are absolute" in answers[0]


@pytest.mark.parametrize("given", [None, "text", ("text",), ToolOutput("text"), ToolOutput(("text",)), [Text("x")]])
def test_a_result_that_is_none_is_said_to_be_the_tools_fault(given: object) -> None:
    class Careless(Probe):
        async def run(self, params, context):
            return given

    reason, answers, more = run(tools=(Careless(),))
    assert (reason, more) == ("completed", "again")
    assert len(answers) == 1 and "probe broke: ValidationError: Expected" in answers[0]


class Picky(ProbeParams, frozen=True):
    """Breaks when it is made."""

    def __post_init__(self) -> None:
        raise KeyError(self.name)


def test_parameters_that_break_when_they_are_made_cost_the_call() -> None:
    class Careless(Probe):
        params = Picky

    reason, answers, _ = run(tools=(Careless(),))
    assert reason == "completed" and "probe broke: KeyError: 'a'" in answers[0]


class Forgetful:
    """A hook that forgets to give back what it was given."""

    name = "forgetful"

    def __init__(self, before: bool) -> None:
        self._before = before

    async def before_call(self, call: ToolCall) -> Any:
        return None if self._before else call

    async def after_call(self, call: ToolCall, result: ToolResult) -> Any:
        return result if self._before else None


def test_a_hook_that_gives_nothing_back_is_one_that_broke() -> None:
    reason, answers, _ = run(hooks=(Forgetful(before=True),))
    assert reason == "completed" and "forgetful failed" in answers[0]
    reason, answers, _ = run(hooks=(Forgetful(before=False),))
    assert reason == "completed" and "did a" not in answers[0]
    assert answers[0].startswith("[the result of probe is withheld: the hook forgetful failed: ")


@pytest.mark.parametrize("reads", ["[" * 200_000, '["\\ud800"]', '[{"a":' * 20_000, '["a"'])
def test_text_that_is_no_list_after_all_costs_no_more_than_the_call(reads: str) -> None:
    reason, answers, _ = run([{"tool_calls": [call("a", reads=reads)]}, {"text": "went on"}])
    assert reason == "completed" and len(answers) == 1
