"""The user's texts in the system prompt: instead of bradawl's working rules, or after them."""

from pathlib import Path

import pytest

from bradawl import ModelSettings, Settings, build_agent
from bradawl.testing.scripted import ScriptedModel


async def system_prompt(folder: Path, **changes: str) -> str:
    """The system prompt of a session with these settings, in the folder `project`."""
    (folder / "project").mkdir(exist_ok=True)
    settings = Settings(
        model=ModelSettings("scripted", "x"),
        cwd=str(folder / "project"),
        home=str(folder / "data"),
        user_home=str(folder / "home"),
        sandbox="off",
        **changes,
    )
    model = ScriptedModel(b'[{"text": "done"}]')
    agent = build_agent(settings, model=model)
    async with agent.open() as session:
        await session.run("go")
    await agent.aclose()
    return model.prefixes[0].system


@pytest.mark.parametrize("more", ["", "In rhymes."])
async def test_own_rules_replace_those_of_bradawl_and_the_environment_stays(tmp_path, more):
    system = await system_prompt(tmp_path, system_prompt="Be a poet.", append_system_prompt=more)
    rules, _, environment = system.partition("\n\n<environment>\n")
    assert rules == "\n\n".join(filter(None, ("Be a poet.", more)))
    assert environment.startswith(f"working directory: {tmp_path}/project\n")


async def test_a_further_text_follows_bradawls_rules(tmp_path):
    usual = await system_prompt(tmp_path)
    system = await system_prompt(tmp_path, append_system_prompt="In rhymes.")
    assert system == usual.replace("\n\n<environment>\n", "\n\nIn rhymes.\n\n<environment>\n")


async def test_instruction_files_follow_own_rules(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project/AGENTS.md").write_text("Use tabs.")
    assert "\n</environment>\n\n" in (system := await system_prompt(tmp_path, system_prompt="Be a poet."))
    assert "Use tabs." in system
