"""A tool, hook or argument that violates its contract fails the call, not the turn or the session."""

from typing import Any

import pytest
from scripted_agent import Probe, ProbeParams, build, call, results

from bradawl.core.effects import Effects
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.ports import ToolOutput
from bradawl.testing.fakes import MemoryStore

PLAN = [{"tool_calls": [call("a")]}, {"text": "went on"}]


async def run(script: list[dict[str, Any]] = PLAN, **changes: Any) -> tuple[str, list[str], str]:
    """Reason and results of the turn, and the text of another turn in the resumed session."""
    store = MemoryStore()
    agent, *_ = build([*script, {"text": "again"}], store=store, **changes)

    async with agent.open() as session:
        result = await session.run("go")
    async with agent.open(session.id) as again:
        return result.reason, results(again.transcript.messages), (await again.run("more")).text


@pytest.mark.parametrize(
    "given",
    [None, "/p/a", {"reads": "/p"}, Effects(reads=("/p", None)), Effects(writes="/p/a"), 7],
)
async def test_effects_of_a_wrong_type_fail_the_call(given: object) -> None:
    class Careless(Probe):
        def effects(self, params, context):
            return given

    tool = Careless()
    reason, answers, more = await run(tools=(tool,))
    assert (reason, more) == ("completed", "again") and tool.log == []
    assert len(answers) == 1 and "probe broke: ValidationError: Expected" in answers[0]


@pytest.mark.parametrize("path", ["a", "", "~/.bashrc", "../a", "./a", "/p/../a", "/p/./a", "//a", "/p//a", "/p/.."])
@pytest.mark.parametrize("of", ["reads", "writes"])
async def test_effects_with_unusable_paths_fail_the_call(path: str, of: str) -> None:
    class Careless(Probe):
        def effects(self, params, context):
            return Effects(**{of: (path,)})

    tool = Careless()
    reason, answers, _ = await run(tools=(tool,))
    assert reason == "completed" and tool.log == []
    assert "probe broke: ValidationError: Expected paths that are absolute" in answers[0]


@pytest.mark.parametrize("given", [None, "text", ("text",), ToolOutput("text"), ToolOutput(("text",)), [Text("x")]])
async def test_a_result_of_a_wrong_type_is_reported_as_an_error_of_the_tool(given: object) -> None:
    class Careless(Probe):
        async def run(self, params, context):
            return given

    reason, answers, more = await run(tools=(Careless(),))
    assert (reason, more) == ("completed", "again")
    assert len(answers) == 1 and "probe broke: ValidationError: Expected" in answers[0]


class Picky(ProbeParams, frozen=True):
    """Parameters whose constructor raises."""

    def __post_init__(self) -> None:
        raise KeyError(self.name)


async def test_parameters_whose_constructor_raises_fail_the_call() -> None:
    class Careless(Probe):
        params = Picky

    reason, answers, _ = await run(tools=(Careless(),))
    assert reason == "completed" and "probe broke: KeyError: 'a'" in answers[0]


class Forgetful:
    """A hook that returns nothing."""

    name = "forgetful"

    def __init__(self, before: bool) -> None:
        self._before = before

    async def before_call(self, call: ToolCall) -> Any:
        return None if self._before else call

    async def after_call(self, call: ToolCall, result: ToolResult) -> Any:
        return result if self._before else None


async def test_a_hook_that_returns_nothing_fails_the_call() -> None:
    reason, answers, _ = await run(hooks=(Forgetful(before=True),))
    assert reason == "completed" and "forgetful failed" in answers[0]
    reason, answers, _ = await run(hooks=(Forgetful(before=False),))
    assert reason == "completed" and "did a" not in answers[0]
    assert answers[0].startswith("[the result of probe is withheld: the hook forgetful failed: ")


@pytest.mark.parametrize("reads", ["[" * 200_000, '["\\ud800"]', '[{"a":' * 20_000, '["a"'])
async def test_text_in_place_of_a_list_fails_only_the_call(reads: str) -> None:
    reason, answers, _ = await run([{"tool_calls": [call("a", reads=reads)]}, {"text": "went on"}])
    assert reason == "completed" and len(answers) == 1
