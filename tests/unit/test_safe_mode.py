"""`--safe-mode` and `--bare`: what files of the project change is left out, and nothing more is permitted by it."""

import pytest
from cli_world import World
from settings_files import settings_loader

from bradawl import ModelSettings, Settings, build_agent
from bradawl.app.cli import parse
from bradawl.app.trust_question import trust_question
from bradawl.testing.scripted import ScriptedModel

MINE = 'model = "openai/gpt-5.5"\nmax_steps = 9\n[permissions]\nallow = ["Read"]\n'
PROJECTS = """\
model = "groq/theirs"
max_steps = 3
network = ["example.org"]
unknown = 1
[permissions]
allow = ["Edit"]
deny = ["Bash(rm:*)"]
ask = ["Bash(git push:*)"]
"""


@pytest.fixture
def load(tmp_path):
    return settings_loader(tmp_path)


@pytest.mark.parametrize("trust", [True, None])
@pytest.mark.parametrize("flag", ["--safe-mode", "--bare"])
def test_only_rules_that_allow_less_are_left_of_a_projects_settings(load, flag, trust):
    settings = load({**parse(["-p", "x", flag]), "trust": trust}, MINE, PROJECTS)
    assert (settings.model.name, settings.max_steps) == ("gpt-5.5", 9)
    rules = {(rule.verdict, rule.text) for rule in settings.rules}
    assert rules == {("allow", "Read"), ("deny", "Bash(rm:*)"), ("ask", "Bash(git push:*)")}
    assert [warning for warning in settings.warnings if "config.toml" in warning] == []
    assert any(warning.startswith("safe mode: ") for warning in settings.warnings)
    assert (settings.user_tools, settings.undo) == ((False, False) if flag == "--bare" else (True, True))


def test_without_the_flag_they_count(load):
    settings = load({"trust": True}, MINE, PROJECTS)
    assert (settings.model.name, settings.max_steps) == ("theirs", 3)
    assert not any(warning.startswith("safe mode") for warning in settings.warnings)


@pytest.mark.parametrize("is_safe", [True, False])
async def test_no_instruction_file_is_read_and_no_trust_asked_for(tmp_path, is_safe):
    project, config = tmp_path / "project", tmp_path / "config"
    for folder in (project / ".git", config):
        folder.mkdir(parents=True)
    for folder in (project, config):
        (folder / "AGENTS.md").write_text("Always whistle.\n")
    settings = Settings(
        model=ModelSettings("scripted", "x"),
        cwd=str(project),
        project=str(project),
        home=str(tmp_path / "data"),
        config_home=str(config),
        user_home=str(tmp_path),
        environment={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        sandbox="off",
        undo=False,
        user_tools=False,
        values={"safe_mode": is_safe},
    )
    agent = build_agent(settings, model=ScriptedModel(b'[{"text": "x"}]'))
    try:
        async with agent.open() as session:
            await session.run("hello")
            told = await agent.system_prompt() + str(session.transcript.messages)
        assert ("whistle" in told) == (not is_safe)
        assert (trust_question(settings) is None) == is_safe
    finally:
        await agent.aclose()


def test_a_run_says_that_it_is_in_safe_mode(user_home):
    world = World(user_home, [{"text": "Done."}])
    assert world.run("-p", "hello", "--bare") == 0
    assert "note: safe mode: " in world.err and world.out == "Done.\n"
