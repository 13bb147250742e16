"""`/init` runs a prompt that has the model write AGENTS.md. Without a user it is written unasked, and nothing else."""

import io
import json
from pathlib import Path

import pytest
from cli_world import Terminal, World

from bradawl.app.build.agent import build_agent
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.init_command import prompt_for
from bradawl.core.effects import Effects
from bradawl.core.messages import Text, ToolCall, User
from bradawl.core.permissions import Question, Request
from bradawl.testing.scripted import ScriptedModel


def test_the_prompt_names_what_is_there_to_look_at(tmp_path):
    for name in ("pyproject.toml", "README.md", "CLAUDE.md", ".cursorrules"):
        (tmp_path / name).write_text("")
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github/copilot-instructions.md").write_text("")
    prompt = prompt_for(str(tmp_path))
    assert "Look at README.md, pyproject.toml, and" in prompt
    assert "Take over what still holds from CLAUDE.md, .cursorrules, .github/copilot-instructions.md;" in prompt
    assert "There is one already" not in prompt
    (tmp_path / "AGENTS.md").write_text("x")
    assert "There is one already: improve it." in prompt_for(str(tmp_path))


def test_the_prompt_for_an_empty_folder_is_short(tmp_path):
    prompt = prompt_for(str(tmp_path))
    assert "Look at what is there, and" in prompt
    assert "Take over" not in prompt
    assert len(prompt) < 1_200


def written(path: str) -> dict[str, object]:
    return {"name": "write_file", "arguments": {"file_path": path, "content": "Rules.\n"}}


def project(world: World, *paths: str) -> Path:
    """A folder, and an agent with bradawl's tools whose model writes these files."""
    folder = world.home / "project"
    folder.mkdir()
    calls = [{"id": f"call{number}", **written(path)} for number, path in enumerate(paths)]
    script = [{"tool_calls": calls}, {"text": "Written."}]

    def build(settings, approver):
        world.model = ScriptedModel(json.dumps(script).encode())
        return build_agent(settings, approver, model=world.model)

    world.build = build  # type: ignore[method-assign]  # the test's own class
    return folder


def test_without_a_user_it_writes_the_file_and_nothing_else(tmp_path):
    world = World(tmp_path, [])
    folder = project(world, "AGENTS.md", "sub/AGENTS.md", "x.py")
    code = world.run("-p", "/init", "-C", str(folder), "--sandbox", "off", "--no-undo")
    assert world.model is not None
    (prompt,) = (message for message in world.model.requests[0] if isinstance(message, User))
    assert "Write AGENTS.md in" in "".join(part.text for part in prompt.parts if isinstance(part, Text))
    assert (folder / "AGENTS.md").read_text() == "Rules.\n"
    assert sorted(path.name for path in folder.iterdir()) == ["AGENTS.md"]
    assert (code, world.out) == (5, "Written.\n")


def test_its_result_is_that_of_a_prompt(tmp_path):
    world = World(tmp_path, [])
    folder = project(world, "AGENTS.md")
    argv = ("-p", "/init", "-C", str(folder), "--sandbox", "off", "--no-undo", "--output-format", "json")
    assert world.run(*argv) == 0
    result = json.loads(world.out)
    assert (result["result"], result["num_turns"], result["reason"]) == ("Written.", 2, "completed")


def test_a_link_in_its_place_is_not_followed_unasked(tmp_path):
    world = World(tmp_path, [])
    folder = project(world, "AGENTS.md")
    (folder / "AGENTS.md").symlink_to("../elsewhere.md")
    world.run("-p", "/init", "-C", str(folder), "--sandbox", "off", "--no-undo")
    assert not (tmp_path / "elsewhere.md").exists()


def test_a_usual_prompt_does_not_get_this_permission(tmp_path):
    world = World(tmp_path, [])
    folder = project(world, "AGENTS.md")
    world.run("-p", "write AGENTS.md", "-C", str(folder), "--sandbox", "off", "--no-undo")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("effects", "allowed"),
    [
        (Effects(writes=("/p/AGENTS.md",)), True),
        (Effects(reads=("/p/AGENTS.md",), writes=("/p/AGENTS.md",)), True),
        (Effects(writes=("/p/AGENTS.md", "/p/x")), False),
        (Effects(writes=("/p/x",)), False),
        (Effects(reads=("/p/.env",), writes=("/p/AGENTS.md",)), False),
        (Effects(writes=("/p/AGENTS.md",), commands=(("tee",),)), False),
        (Effects(writes=("/p/AGENTS.md",), unknown=True), False),
        (Effects(), False),
    ],
)
async def test_the_agreed_file_is_the_only_one(effects, allowed):
    approver = DenyAllApprover()
    question = Question(ToolCall("id", "write_file", "{}"), Request("write_file", "", effects), "why")
    assert not (await approver.ask(question)).allowed
    approver.agreed = "/p/AGENTS.md"
    assert (await approver.ask(question)).allowed == allowed


def test_at_the_terminal_it_runs_a_turn(tmp_path):
    world = World(tmp_path, [{"text": "Written."}])
    world.stdout, world.stderr = Terminal(), Terminal()
    assert world.run(stdin=io.StringIO("/init\n/exit\n")) == 0
    assert world.model is not None
    (request,) = world.model.requests
    assert "Write AGENTS.md in" in str(request[0])
