"""The examples of CONTRIBUTING.md run, and the tests and files it names exist."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from first_result import first_result

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app.cli import parse
from bradawl.app.commands.builtin import builtin_commands
from bradawl.app.settings.readme_table import readme_table
from bradawl.app.settings.table import ROWS, SETTINGS
from bradawl.app.settings.table_check import table_problems
from bradawl.app.slash_commands import CommandRegistry, commands_in
from bradawl.providers.compat_table import TABLE, profile_for

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: ([^>]+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


def example(name: str) -> dict[str, Any]:
    """The names that an example of the page defines."""
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(EXAMPLES[name], name, "exec", dont_inherit=True), names)  # noqa: S102 - our own page
    return names


@pytest.fixture
def make_agent(tmp_path: Path):
    """Builds an agent with a script, in a workspace with the file `notes.txt`."""

    def make(*script: dict[str, Any], **changes: Any) -> Any:
        (tmp_path / "script.json").write_text(json.dumps(script))
        (tmp_path / "notes.txt").write_text("one two three\n")
        model = ModelSettings("scripted", str(tmp_path / "script.json"))
        settings = Settings(model=model, cwd=str(tmp_path), home=str(tmp_path / "home"), sandbox="off")
        extra_tools = changes.pop("extra_tools", ())
        return msgspec.structs.replace(build_agent(settings, extra_tools=extra_tools), **changes)

    return make


def calling(name: str, **arguments: object) -> dict[str, Any]:
    return {"tool_calls": [{"id": "1", "name": name, "arguments": arguments}]}


def test_every_recipe_names_an_example_or_a_test_that_exists():
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| ([^|]+) \|$", PAGE, re.MULTILINE)[1:]
    assert len(rows) == 11
    for row in rows:
        linked, file = re.search(r"\(#([\w-]+)\)", row), re.search(r"`(tests/[^`]+)`", row)
        assert (linked and linked[1].replace("-", " ") in EXAMPLES) or (file and (ROOT / file[1]).is_file()), row


def test_the_files_that_the_page_names_exist():
    for name in re.findall(r"`((?:src/bradawl|tests|agent|app|core|providers|scripts|docs)/[\w/.]+)`", PAGE):
        places = (ROOT / name, ROOT / "src" / "bradawl" / name)
        assert any(place.exists() for place in places), name


def test_the_example_of_a_tool_runs(make_agent):
    agent = make_agent(
        calling("count_words", path="notes.txt"), {"text": "3"}, extra_tools=[example("a tool")["count_words"]]
    )
    assert agent.run_sync("count").text == "3" and first_result(agent) == "3"


async def test_the_example_of_a_slash_command_runs():
    registry = CommandRegistry((*builtin_commands().commands, *commands_in(example("a slash command"))))
    result = await registry.run(None, "/repeat 3 well done", user_is_there=False)
    assert result.text == "well done well done well done"
    assert "print a text several times" in "\n".join(registry.help_lines(user_is_there=True)).lower()


def test_the_example_of_a_setting_adds_a_flag_a_variable_and_a_table_row():
    row = example("a setting")["ROW"]
    assert table_problems((*ROWS, row)) == ()
    table = SETTINGS.with_rows(row)
    assert parse(["--colour", "green"], table)["colour"] == "green"
    assert table.variables["BRADAWL_COLOUR"] == "colour" and "colour" in table.file_keys()
    assert "the colour of the answer" in readme_table(table)


def test_the_example_of_a_server_quirk_applies_to_its_host():
    table = TABLE._replace(by_host=(example("a server quirk")["ROW"], *TABLE.by_host))
    assert profile_for("https://quirky.example/v1", table=table).max_tokens_field == "max_completion_tokens"


def test_the_example_of_a_middleware_stops_the_turn(make_agent):
    steps = [calling("read_file", file_path="notes.txt")] * 3
    agent = make_agent(*steps, {"text": "never"}, middleware=(example("a middleware")["StopAfter"],))
    result = agent.run_sync("go")
    assert (result.reason, result.steps) == ("steps", 2)


def test_the_example_of_a_hook_refuses_a_push(make_agent):
    agent = make_agent(calling("bash", command="git push"), {"text": "ok"}, hooks=(example("a hook")["NoPush"](),))
    agent.run_sync("go")
    assert "pushing is for people" in first_result(agent)
