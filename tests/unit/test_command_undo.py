"""Going back to a prompt gives it back to be edited; the list of steps shows compactions too."""

import pytest
from command_world import CommandWorld, FakeUser

from bradawl.core.events import Compacted


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    made = CommandWorld(tmp_path)
    made.script = [{"text": f"Answer {n}."} for n in range(5)]
    return made


async def test_undo_and_rewind_of_a_prompt_put_it_into_the_input_line(world):
    user = FakeUser("talk")
    async with world.conversation(user=user) as talk:
        for text in ("first\nof two lines", "second", "third"):
            await talk.prompt(text)
        assert (await talk.run("/undo 3 talk")).draft == "third"
        assert (await talk.run("/redo")).draft == ""
        result = await talk.run("/rewind 1")
        assert result.draft == "first\nof two lines" and talk.session.messages == []


async def test_nothing_is_put_there_where_the_user_stays(world):
    user = FakeUser("n")
    async with world.conversation(user=user) as talk:
        await talk.prompt("first")
        result = await talk.run("/rewind 1")
        assert (result.draft, result.text) == ("", "Nothing was changed.")


async def test_the_list_of_steps_shows_where_the_conversation_was_compacted(world):
    async with world.conversation() as talk:
        await talk.prompt("first")
        conversation = talk.session.session.conversation
        conversation.record(Compacted("summarise", conversation.last_seq, tokens=(61_200, 3_300), kept_from=2))
        talk.session.session.prefix.open_compacted()
        await talk.prompt("second")
        lines = (await talk.type("/rewind")).splitlines()
    assert [line.split()[0] for line in lines] == ["1", "-----", "2"]
    assert "  the conversation was compacted (old part summarised): ~61.2k tokens" in lines[1]
