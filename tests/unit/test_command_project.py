"""`/add-dir`, `/trust` and `/doctor`: the folder of the session and what belongs to it."""

import json
from pathlib import Path

import pytest
from command_world import CommandWorld, FakeUser

from bradawl.app.slash_commands import CommandError
from bradawl.core.errors import SettingsError
from bradawl.core.events import DirsAdded, StateChanged
from bradawl.core.messages import User


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    made = CommandWorld(tmp_path)
    made.script = [{"text": "x"}, {"text": "y"}]
    return made


@pytest.fixture
def shared(tmp_path) -> Path:
    (tmp_path / "shared" / "inner").mkdir(parents=True)
    return tmp_path / "shared"


def roots(session) -> tuple[str, ...]:
    return session.session.policy().roots


async def test_an_added_folder_belongs_to_the_workspace_of_the_session_reopened_for_it_and_of_later_runs(world, shared):
    shown: list = []
    frontend = world.start(shown)
    async with frontend.open() as session:
        await session.run("a")
        result = await session.run_command("/add-dir ../shared")
        assert result == (f"{shared} belongs to the workspace from now on.", "open_session", session.id, *result[3:])
        assert roots(session) == (str(world.project),), "it is opened anew for it"
    async with frontend.open(session.id) as again:
        assert roots(again) == (str(world.project), str(shared))
        assert frontend.settings.add_dirs == (str(shared),)
        assert (await again.run("b")).text == "x", "another agent answers"
        prompt = again.messages[-2]
        assert isinstance(prompt, User) and f"added the folder {shared}" in prompt.notes[0].text
        assert (
            await again.run_command(f"/add-dir {shared}/inner")
        ).text == f"{shared}/inner is in the workspace already."
    async with frontend.open() as new:
        assert roots(new) == (str(world.project), str(shared)), "for the rest of the run"
        await new.run("c")
    await frontend.agent.aclose()
    for name in (session.id, new.id):
        async with world.conversation(name) as later:
            assert roots(later.session) == (str(world.project), str(shared))
            assert await later.prompt("d") == "x"
    async with world.conversation() as other:
        assert roots(other.session) == (str(world.project),)


async def test_a_folder_added_before_the_first_prompt_is_in_the_log_of_the_session_that_begins(world, shared):
    frontend = world.start([])
    async with frontend.open() as session:
        assert (await session.run_command("/add-dir ../shared")).then == "new_session"
    async with frontend.open() as session:
        await session.run("a")
        entries = session.session.conversation.entries()
    await frontend.agent.aclose()
    added = [
        each.event.state
        for each in entries
        if isinstance(each.event, StateChanged) and isinstance(each.event.state, DirsAdded)
    ]
    assert added == [DirsAdded((str(shared),))]


async def test_an_added_folder_that_is_gone_is_left_out_with_a_warning(world, shared):
    async with world.conversation() as talk:
        await talk.prompt("a")
        await talk.run("/add-dir ../shared")
    (shared / "inner").rmdir()
    shared.rmdir()
    async with world.conversation(talk.session.id) as later:
        assert roots(later.session) == (str(world.project),)
        assert any(f"{shared}, which was added to this session, is left out" in each for each in later.notices)
        assert await later.prompt("b") == "x"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/add-dir", "/add-dir needs FOLDER"),
        ("/add-dir ../missing", "missing is not a folder"),
        ("/add-dir /", "it holds the whole system"),
        ("/add-dir ~", "it holds your home folder"),
        ("/add-dir ~/.config/bradawl", "is bradawl's own"),
        ("/add-dir a\0b", "can't be used"),
    ],
)
async def test_a_folder_that_can_not_belong_to_the_workspace_is_refused(world, line, said):
    (world.home / ".config/bradawl").mkdir(parents=True)
    async with world.conversation() as talk:
        await talk.prompt("a")
        with pytest.raises(SettingsError) as refused:
            await talk.run(line)
        assert said in str(refused.value)
        assert talk.session.session.choices.now.dirs == () and talk.frontend.next_settings is None


async def test_without_a_user_a_folder_is_added_to_a_session_that_has_begun(world, shared):
    async with world.conversation(user_is_there=False) as talk:
        with pytest.raises(CommandError, match="no session yet to widen"):
            await talk.run("/add-dir ../shared")
        await talk.prompt("a")
    async with world.conversation(talk.session.id, user_is_there=False) as again:
        await again.run("/add-dir ../shared")
    async with world.conversation(talk.session.id, user_is_there=False) as later:
        assert roots(later.session) == (str(world.project), str(shared))


async def test_trust_shows_the_entries_asks_and_the_next_session_has_them(world):
    (world.project / ".git").mkdir()
    (world.project / ".bradawl").mkdir()
    (world.project / ".bradawl/config.toml").write_text('[permissions]\nallow = ["Bash(npm test:*)"]\n')
    user = FakeUser("n", "y")
    shown: list = []
    frontend = world.start(shown, user)
    async with frontend.open() as session:
        assert "permissions.allow" in (await session.run_command("/trust show")).text
        assert (await session.run_command("/trust")).text == "Nothing was changed."
        assert "permissions.allow" in user.asked[0][0] and str(world.project) in user.asked[0][1]
        assert (await session.run_command("/trust list")).text == "No project is trusted."
        assert "is trusted" in (await session.run_command("/trust")).text
        assert not session.frontend.settings.is_trusted
    async with frontend.open() as session:
        assert session.frontend.settings.is_trusted
        assert (await session.run_command("/trust list")).text == str(world.project)
        assert (await session.run_command("/trust remove")).text == f"{world.project} is no longer trusted."
    await frontend.agent.aclose()


async def test_without_a_user_no_project_is_trusted(world):
    async with world.conversation(user_is_there=False) as talk:
        with pytest.raises(CommandError, match="Only a user can trust"):
            await talk.run("/trust")
        assert (await talk.run("/trust list")).text == "No project is trusted."


async def test_doctor_checks_the_model_of_the_session(world):
    async with world.conversation() as talk:
        other = world.script_file("other.json", [])
        await talk.type(f"/model {other}")
        text = (await talk.run("/doctor")).text
        data = json.loads((await talk.run("/doctor json")).text)
    assert "bradawl" in text and "sandbox" in text.lower()
    assert "other.json" in json.dumps(data)
