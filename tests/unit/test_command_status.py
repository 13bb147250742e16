"""`/status` shows the session, what it works with, and what it used so far."""

import pytest
from command_world import CommandWorld

from bradawl.core.events import DirsAdded


async def test_status_shows_what_is_known_and_leaves_out_what_there_is_not(tmp_path):
    world = CommandWorld(tmp_path)
    world.script = [{"text": "x", "usage": {"input": 100, "output": 5}}]
    async with world.conversation() as talk:
        before = (await talk.type("/status")).splitlines()
        assert [line.split()[0] for line in before] == [
            "session",
            "model",
            "folder",
            "mode",
            "sandbox",
            "trust",
            "context",
            "used",
        ]
        await talk.prompt("a")
        await talk.type("/rename the parser")
        await talk.type("/effort low")
        lines = dict(line.split(maxsplit=1) for line in (await talk.type("/status")).splitlines())
    assert lines["session"] == talk.session.id and lines["name"] == "the parser"
    assert lines["model"].endswith("default.json, effort low")
    assert lines["trust"] == "the project is not trusted; see /trust"
    assert lines["used"].startswith("1 step, 100 tokens in, 5 out")


async def test_status_names_branch_instruction_files_and_added_folders(tmp_path):
    world = CommandWorld(tmp_path)
    git = world.project / ".git"
    (git / "objects").mkdir(parents=True)
    (git / "refs").mkdir()
    (git / "HEAD").write_text("ref: refs/heads/topic/one\n")
    (git / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
    (tmp_path / "shared").mkdir()

    async def prompt() -> str:
        inside = "\n".join(
            (
                f'<instructions file="{world.project}/AGENTS.md" version="0123456789abcdef">\nRules.\n</instructions>',
                '<material file="/elsewhere/AGENTS.md" version="0123456789abcdee">\nRules.\n</material>',
            )
        )
        return f"You are a test.\n{inside}"

    world.agent_changes = {"system_prompt": prompt}
    world.script = [{"text": "x"}]
    async with world.conversation() as talk:
        talk.session.session.choices.record(DirsAdded((str(tmp_path / "shared"),)))
        await talk.prompt("a")
        status = await talk.type("/status")
    for text in (status, await again(world, talk.session.id)):
        lines = dict(line.split(maxsplit=1) for line in text.splitlines())
        assert lines["branch"] == "topic/one"
        assert lines["instructions"] == "AGENTS.md, /elsewhere/AGENTS.md (as material)"
    assert lines["added"] == str(tmp_path / "shared")


async def again(world: CommandWorld, session_id: str) -> str:
    async with world.conversation(session_id) as talk:
        return await talk.type("/status")


@pytest.mark.parametrize("head", ["", "ref: refs/heads/" + "x" * 500, "\0"])
async def test_a_strange_repository_has_no_branch(tmp_path, head):
    world = CommandWorld(tmp_path)
    (world.project / ".git").mkdir()
    (world.project / ".git/HEAD").write_text(head)
    async with world.conversation() as talk:
        assert "branch" not in await talk.type("/status")
