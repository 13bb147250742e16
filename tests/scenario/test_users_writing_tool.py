"""A user's writing tool is one file with one declaration, which determines rules, display and sub-agents."""

import json
import os
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bradawl.app.build.agent import build_agent
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permission_values import RuleText
from bradawl.app.settings.settings import Settings
from bradawl.app.tui.plain.painter import Painter
from bradawl.core.messages import ToolResults, text_of

TOOL = '''
from difflib import unified_diff
from pathlib import Path

from bradawl import CallContext, tool


@tool(writes="path")
def sort_lines(path: str, *, context: CallContext) -> str:
    """Sort the lines of a file."""
    file = Path(context.resolve(path))
    before = file.read_text().splitlines(keepends=True)
    file.write_text("".join(sorted(before)))
    return "".join(unified_diff(before, sorted(before), n=0))
'''


class Place:
    """A workspace, and a user's `tools` folder with the tool."""

    def __init__(self, root: Path) -> None:
        self.root, self.work = root, root / "work"
        (root / "data" / "tools").mkdir(parents=True)
        (root / "data" / "tools" / "mine.py").write_text(TOOL)
        for name in ("notes/a.txt", "secret/b.txt"):
            (self.work / name).parent.mkdir(parents=True)
            (self.work / name).write_text("b\na\n")

    def agent(self, script: list[dict[str, Any]], mode: str = "default", **rules: str) -> Any:
        (self.root / "script.json").write_text(json.dumps([*script, {"text": "done"}]))
        texts = tuple(RuleText(verdict, text, "settings", str(self.work)) for verdict, text in rules.items())
        settings = Settings(
            model=ModelSettings("scripted", str(self.root / "script.json")),
            cwd=str(self.work),
            home=str(self.root / "data"),
            user_home=str(self.root),
            environment={"HOME": str(self.root), "PATH": os.environ["PATH"], "TMPDIR": os.environ["TMPDIR"]},
            sandbox="off",
            headless=True,
            tools="all",
            permission_mode=mode,
            rules=texts,
        )
        return build_agent(settings)

    def answer(self, path: str, mode: str = "default", **rules: str) -> str:
        """The result of one call of the tool."""
        agent = self.agent([call(path)], mode, **rules)
        agent.run_sync("go")
        (found,) = (one for one in agent.model.requests[1] if isinstance(one, ToolResults))
        return text_of(found.results[0].parts)

    def text(self, path: str) -> str:
        return (self.work / path).read_text()


def call(path: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": "c", "name": "sort_lines", "arguments": {"path": path}}]}


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_rule_for_edits_of_a_path_allows_it(place: Place) -> None:
    assert "needs permission" in place.answer("notes/a.txt")
    assert "was not run" not in place.answer("notes/a.txt", allow="Edit(notes/**)")
    assert place.text("notes/a.txt") == "a\nb\n"


@pytest.mark.parametrize("mode", ["accept-edits", "bypass"])
def test_a_rule_for_edits_of_a_path_refuses_it(place: Place, mode: str) -> None:
    assert "was not run" in place.answer("secret/b.txt", mode, deny="Edit(secret/**)")
    assert "was not run" not in place.answer("notes/a.txt", mode, deny="Edit(secret/**)")
    assert place.text("secret/b.txt") == "b\na\n"


def test_a_rule_against_all_edits_hides_it_from_the_model(place: Place) -> None:
    assert "sort_lines" in [tool.spec.name for tool in place.agent([]).tools]
    assert "sort_lines" not in [tool.spec.name for tool in place.agent([], deny="Edit").tools]


async def drawn(place: Place, *, colour: bool, learned: bool) -> list[str]:
    """Printed lines of a turn with one call."""
    agent, shown = place.agent([call("notes/a.txt")], "bypass"), StringIO()
    console: Any = SimpleNamespace(stdout=shown, stdout_colour=colour, draw=shown.write)
    painter = Painter(console)
    painter.learn(agent.tools if learned else ())

    async with agent.open() as session:
        await session.run("go", painter.emit)
    await agent.aclose()
    return shown.getvalue().splitlines()


async def test_its_call_is_drawn_in_one_line_and_its_result_as_a_diff(place: Place) -> None:
    lines = await drawn(place, colour=True, learned=True)
    assert any(line.startswith("\x1b[2m✓ sort_lines notes/a.txt") for line in lines), lines
    assert "\x1b[32m    +a\x1b[0m" in lines and "\x1b[31m    -a\x1b[0m" in lines


async def test_a_call_of_a_removed_tool_is_still_drawn(place: Place) -> None:
    assert "✓ sort_lines notes/a.txt  6 lines" in await drawn(place, colour=False, learned=False)


@pytest.mark.parametrize(("kind", "has_it"), [("explore", False), ("general", True)])
def test_an_exploring_sub_agent_does_not_get_the_tool(place: Place, kind: str, has_it: bool) -> None:
    task = {"id": "t", "name": "agent", "arguments": {"prompt": "look", "kind": kind}}
    agent = place.agent([{"tool_calls": [task]}, {"text": "looked"}])
    agent.run_sync("go")
    main, sub = agent.model.prefixes
    assert "sort_lines" in [tool.name for tool in main.tools]
    assert ("sort_lines" in [tool.name for tool in sub.tools]) is has_it
