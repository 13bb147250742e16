"""Only the tools that fit the run are offered to the model."""

import json
from pathlib import Path

import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.settings.permission_values import RuleText, RuleVerdict
from bradawl.core.errors import SettingsError
from bradawl.shaping.tool_schema import schemas_of
from bradawl.testing.fakes import ScriptedApprover

ALL = (
    *(
        "bash",
        "bash_output",
        "bash_kill",
        "read_file",
        "write_file",
        "edit_file",
        "multi_edit",
        "glob",
        "grep",
        "agent",
    ),
    *("todo_write", "web_fetch", "ask_user", "exit_plan"),
)
FOR_USERS = {"ask_user", "exit_plan"}
SELDOM = {"agent", "glob", "multi_edit", "todo_write"}
"""Left out where nobody can answer, unless they are named."""


def built(folder: Path, script: list, approver=None, **changes):
    work = folder / "work"
    work.mkdir(exist_ok=True)
    (folder / "script.json").write_text(json.dumps(script))
    given = {"user_home": str(folder), "sandbox": "off", "headless": True, "environment": {}, **changes}
    model = ModelSettings("scripted", str(folder / "script.json"))
    return build_agent(Settings(model=model, cwd=str(work), home=str(folder / "data"), **given), approver)


async def offered(folder: Path, approver=None, **changes) -> tuple[str, ...]:
    agent = built(folder, [{"text": "done"}], approver, **changes)
    try:
        return tuple(schema.name for schema in schemas_of(agent.tools))
    finally:
        await agent.aclose()


def rule(text: str, verdict: RuleVerdict = "allow") -> RuleText:
    return RuleText(verdict, text, "a flag", "/")


def left_out(names: tuple[str, ...]) -> set[str]:
    return set(ALL) - set(names)


@pytest.mark.parametrize("mode", [None, "default", "accept-edits", "plan", "auto", "bypass"])
async def test_with_a_user_all_tools_are_offered_in_every_mode(tmp_path, mode):
    assert await offered(tmp_path, ScriptedApprover(), headless=False, permission_mode=mode) == ALL


@pytest.mark.parametrize("mode", [None, "default", "accept-edits", "plan", "auto"])
@pytest.mark.parametrize("approver", [None, DenyAllApprover()], ids=["none", "refuses"])
async def test_without_a_user_no_tool_is_offered_whose_calls_only_a_user_could_answer(tmp_path, mode, approver):
    assert left_out(await offered(tmp_path, approver, permission_mode=mode)) == FOR_USERS | SELDOM | {"web_fetch"}


@pytest.mark.parametrize(
    ("text", "verdict", "is_offered"),
    [
        ("WebFetch", "allow", True),
        ("web_fetch", "allow", True),
        ("WebFetch(domain:example.org)", "allow", True),
        ("Network(example.org)", "allow", True),
        ("example.org", "domain", True),
        ("Bash(npm test)", "allow", False),
        ("Edit", "allow", False),
        ("WebFetch(domain:example.org)", "ask", False),
        ("WebFetch(domain:example.org)", "deny", False),
    ],
)
async def test_web_fetch_is_offered_without_a_user_if_a_rule_allows_it_a_host(tmp_path, text, verdict, is_offered):
    names = await offered(tmp_path, rules=(rule(text, verdict),))
    assert ("web_fetch" in names) is is_offered


async def test_web_fetch_is_left_out_where_commands_may_do_all_without_a_question(tmp_path):
    assert left_out(await offered(tmp_path, permission_mode="bypass")) == FOR_USERS | SELDOM | {"web_fetch"}


@pytest.mark.parametrize(
    ("names", "without"),
    [
        ("", FOR_USERS | SELDOM | {"web_fetch"}),
        ("default", FOR_USERS | SELDOM | {"web_fetch"}),
        ("default, agent", FOR_USERS | SELDOM - {"agent"} | {"web_fetch"}),
        ("all", FOR_USERS | {"web_fetch"}),
        ("bash,read_file", set(ALL) - {"bash", "read_file"}),
    ],
)
async def test_a_setting_names_the_tools(tmp_path, names, without):
    assert left_out(await offered(tmp_path, tools=names)) == without


async def test_web_fetch_can_be_named_where_commands_may_do_all(tmp_path):
    assert "web_fetch" in await offered(tmp_path, tools="default,web_fetch", permission_mode="bypass")


async def test_a_tool_that_is_not_listed_answers_calls(tmp_path):
    todo = {"name": "todo_write", "arguments": {"todos": [{"content": "look"}]}}
    agent = built(tmp_path, [{"tool_calls": [todo]}, {"text": "done"}])
    try:
        assert "todo_write" not in {schema.name for schema in schemas_of(agent.tools)}
        async with agent.open() as session:
            assert (await session.run("go")).text == "done"
            assert [each.content for each in session.state.todos] == ["look"]
    finally:
        await agent.aclose()


async def test_the_setting_of_tools_may_leave_out_tools_with_a_user(tmp_path):
    assert await offered(tmp_path, ScriptedApprover(), headless=False, tools="grep, bash") == ("bash", "grep")


async def test_an_unknown_name_of_a_tool_is_an_error_that_names_the_tools(tmp_path):
    with pytest.raises(SettingsError) as error:
        await offered(tmp_path, tools="bash,ask_user,serch")
    assert str(error.value) == (
        "the setting `tools` names ask_user, serch, which this run does not have; there are all, default, bash, "
        "bash_output, bash_kill, read_file, write_file, edit_file, multi_edit, glob, grep, agent, todo_write"
    )


async def test_web_fetch_is_offered_if_the_user_has_allowed_it_for_the_project(tmp_path):
    (tmp_path / "work").mkdir()
    memory = RememberedRules(str(tmp_path / "data"), str(tmp_path / "work"), str(tmp_path))
    memory.add(("WebFetch(domain:example.org)",))
    assert left_out(await offered(tmp_path)) == FOR_USERS | SELDOM


async def test_an_approver_of_an_embedding_program_may_be_asked_about_web_fetch(tmp_path):
    assert left_out(await offered(tmp_path, ScriptedApprover())) == FOR_USERS


async def test_without_bash_there_are_no_tools_for_its_jobs(tmp_path):
    names = await offered(tmp_path, ScriptedApprover(), headless=False, rules=(rule("Bash", "deny"),))
    assert left_out(names) == {"bash", "bash_output", "bash_kill"}
