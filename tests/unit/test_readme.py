"""The README's examples run, and its tables agree with the program."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app.cli import main_parser
from bradawl.app.exit_code import (
    CANCELLED,
    CLOSED,
    ERROR,
    LIMIT,
    NO_SANDBOX,
    NOT_SAVED,
    NOT_WRITTEN,
    REFUSED,
    TERMINATED,
    TRY_AGAIN,
    USAGE,
)
from bradawl.app.settings.readme_table import readme_table
from bradawl.app.settings.table import SETTINGS
from bradawl.core.messages import ToolResults, text_of
from bradawl.shaping.tool_schema import schema_of

README = (Path(__file__).parents[2] / "README.md").read_text()


def _example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```python\n(.*?)```", README, re.DOTALL)
    assert found, name
    return found[1]


def test_the_tool_of_the_readme_is_twenty_lines_and_runs(tmp_path: Path) -> None:
    source = _example("a tool")
    body = [line for line in source[source.index("class ") :].splitlines() if line.strip()]
    assert len(body) <= 20
    namespace: dict[str, object] = {"__name__": "example"}
    exec(compile(source, "README", "exec", dont_inherit=True), namespace)  # noqa: S102 - our own README
    tool = namespace["CountLines"]()  # type: ignore[operator]  # a class, as the assertion below shows

    (tmp_path / "a.txt").write_text("one\ntwo\n")
    calls = [{"id": "c1", "name": "count_lines", "arguments": {"file_path": "a.txt"}}]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"tool_calls": calls}, {"text": "two"}]))
    home = str(tmp_path / "home")
    settings = Settings(model=ModelSettings("scripted", str(script)), cwd=str(tmp_path), home=home)
    agent = build_agent(settings, extra_tools=[tool])
    result = agent.run_sync("how many lines?")
    assert result.reason == "completed", result
    answers = [m for m in agent.model.requests[1] if isinstance(m, ToolResults)]  # type: ignore[attr-defined]  # it is the scripted model
    assert text_of(answers[0].results[0].parts) == "2 lines in a.txt"
    schema = schema_of(tool)
    assert schema.description == "Count the lines of a file."
    assert msgspec.json.decode(schema.parameters)["required"] == ["file_path"]


def test_the_library_example_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.json").write_text(json.dumps([{"text": "mended"}]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BRADAWL_HOME", str(tmp_path / "home"))
    source = _example("the library").replace("openai/gpt-5.5", "scripted/script.json")
    exec(compile(source, "README", "exec", dont_inherit=True), {})  # noqa: S102 - our own README
    assert capsys.readouterr().out == "mended\n"


def test_the_exit_codes_of_the_readme_are_those_of_the_program() -> None:
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", README, re.MULTILINE) for code in row.split(",")}
    assert listed == {
        0,
        ERROR,
        TRY_AGAIN,
        USAGE,
        NO_SANDBOX,
        LIMIT,
        REFUSED,
        NOT_WRITTEN,
        NOT_SAVED,
        CANCELLED,
        CLOSED,
        TERMINATED,
    }


def test_the_readmes_table_of_settings_is_that_of_the_program() -> None:
    found = re.search(r"<!-- settings: .*? -->\n(.*?)<!-- end of settings -->", README, re.DOTALL)
    assert found
    assert found[1] == readme_table(SETTINGS), "run scripts/readme_table.py"


def test_every_flag_in_the_readmes_tables_exists() -> None:
    known = {name for action in main_parser()._actions for name in action.option_strings}
    listed = set(re.findall(r"`(--?[a-zA-Z][\w-]*)", README)) - {"--compile-bytecode"}
    assert listed <= known, listed - known
