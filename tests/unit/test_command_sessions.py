"""`/sessions`, `/resume`, `/fork`, `/rename` and `/clear`: finding sessions, going on in them, naming them."""

import pytest
from command_world import CommandWorld, FakeUser

from bradawl.app.session_list import age_text, list_sessions
from bradawl.app.slash_commands import CommandError, CommandFailed
from bradawl.core.errors import SettingsError
from bradawl.core.events import SessionForked
from bradawl.core.messages import text_of


@pytest.fixture
def world(tmp_path) -> CommandWorld:
    made = CommandWorld(tmp_path)
    made.script = [{"text": f"Answer {n}."} for n in range(9)]
    return made


async def talked(world: CommandWorld, *prompts: str) -> str:
    async with world.conversation() as talk:
        for text in prompts:
            await talk.prompt(text)
        return talk.session.id


async def test_sessions_lists_the_latest_first_with_age_prompts_and_name(world):
    old = await talked(world, "Fix the \x1b[31mparser", "and its tests")
    async with world.conversation() as talk:
        assert await talk.type("/sessions") == f"{old}  just now, 2 prompts\n  Fix the [31mparser"
        await talk.prompt("Write docs")
        assert await talk.type("/rename  the   manual ") == "This session is named 'the manual' now."
        lines = (await talk.type("/sessions")).splitlines()
    assert lines[:2] == [f"{talk.session.id}  just now, 1 prompt (this one)", "  the manual"]
    async with world.conversation() as talk:
        assert len((await talk.type("/sessions docs")).splitlines()) == 2, "the first prompt is searched, too"
        assert (await talk.type(f"/sessions {old.lower()}")).startswith(old)
        assert await talk.type("/sessions xyz") == "No session of this folder has 'xyz'."


async def test_a_list_stops_at_so_many_bytes_and_says_so(world):
    for text in ("one", "two", "three"):
        await talked(world, text)
    (found, has_more), (all_of_them, none) = (list_sessions(world.store(), 0.0, most) for most in (1, 10**9))
    assert ([each.title for each in found], has_more) == (["three"], True)
    assert (len(all_of_them), none) == (3, False)


async def test_a_folder_without_sessions_says_so(world):
    async with world.conversation() as talk:
        assert await talk.type("/sessions") == "This folder has no sessions yet."
        with pytest.raises(CommandError, match="no other session"):
            await talk.type("/resume")


async def test_resume_opens_the_session_that_the_text_finds(world):
    parser, docs = await talked(world, "Fix the parser"), await talked(world, "Write docs")
    async with world.conversation() as talk:
        for text in (parser[:26], "PARSER"):
            result = await talk.run(f"/resume {text}")
            assert (result.then, result.session) == ("open_session", parser)
        with pytest.raises(CommandError, match="No other session of this folder has 'xyz'"):
            await talk.run("/resume xyz")
        with pytest.raises(CommandError, match="Several sessions have 's'") as several:
            await talk.run("/resume s")
    assert parser in str(several.value) and docs in str(several.value)


async def test_a_whole_name_is_meant_also_where_other_sessions_hold_it(world):
    async with world.conversation() as talk:
        await talk.prompt("Fix the parser")
        await talk.type("/rename the parser")
        await talk.run("/fork")
    async with world.conversation() as other:
        assert (await other.run("/resume The Parser")).session == talk.session.id


async def test_resume_without_a_text_lets_the_user_pick_and_leaves_out_this_session(world):
    parser, docs = await talked(world, "Fix the parser"), await talked(world, "Write docs")
    user = FakeUser("parser")
    async with world.conversation(docs, user=user) as talk:
        result = await talk.run("/resume")
        assert (result.then, result.session) == ("open_session", parser)
        assert [each.value for each in user.offered[0][1]] == [parser]
        assert (await talk.run("/resume")).then == "stay", "the user left the list"
        assert (await talk.run(f"/resume {docs}")).text == "You are in this session."


async def test_a_session_that_is_open_elsewhere_is_not_resumed_and_this_one_stays(world):
    first = await talked(world, "Fix the parser")
    async with world.conversation(first), world.conversation() as talk:
        with pytest.raises(CommandFailed, match="is open in"):
            await talk.run("/resume parser")
        assert await talk.prompt("go on") == "Answer 0."


async def test_a_fork_goes_on_from_here_and_the_old_session_stays(world):
    async with world.conversation() as talk:
        await talk.prompt("Fix the parser")
        await talk.type("/rename the parser")
        result = await talk.run("/fork another way")
        assert result.then == "open_session" and result.session in result.text
        await talk.prompt("only in the old one")
        old = talk.session.id
    async with world.conversation(result.session) as fork:
        assert [text_of(each.parts) for each in fork.session.messages] == ["Fix the parser", "Answer 0."]
        assert await fork.type("/rename") == "This session is named 'another way'."
        assert await fork.prompt("only in the fork") == "Answer 0."
        listed = (await fork.type("/sessions")).splitlines()
    assert listed[:2] == [f"{result.session}  just now, 1 prompt, a fork (this one)", "  another way"]
    async with world.conversation(old) as again:
        texts = [text_of(each.parts) for each in again.session.messages]
        assert texts == ["Fix the parser", "Answer 0.", "only in the old one", "Answer 1."]


async def test_a_fork_without_a_name_is_listed_by_the_first_prompt_of_its_origin(world):
    async with world.conversation() as talk:
        await talk.prompt("Fix the parser")
        fork = (await talk.run("/fork")).session
        await talk.prompt("more")
        again = (await talk.run("/fork")).session
        lines = (await talk.type("/sessions parser")).splitlines()
    assert f"{fork}  just now, 0 prompts, a fork" in lines and lines.count("  Fix the parser") == 3
    entries = world.store().entries(again)
    assert next(each.event for each in entries if isinstance(each.event, SessionForked)).session == talk.session.id


@pytest.mark.parametrize("torn", [1, 40])
async def test_a_fork_whose_writing_was_interrupted_never_harms_its_origin(world, torn):
    async with world.conversation() as talk:
        await talk.prompt("Fix the parser")
        fork = (await talk.run("/fork named")).session
    path = world.store().path(fork)
    path.write_bytes(path.read_bytes()[:-torn])
    async with world.conversation(fork) as again:
        assert len(again.session.messages) == 2
        assert await again.prompt("on") == "Answer 0."
    path.write_bytes(path.read_bytes()[:20])  # not even the first entry is whole
    async with world.conversation(talk.session.id) as old:
        assert talk.session.id in await old.type("/sessions")
        assert fork not in await old.type("/sessions")


async def test_a_name_holds_in_later_runs_and_after_a_rewind_and_can_be_taken_away(world):
    async with world.conversation() as talk:
        await talk.type("/rename early")
        await talk.prompt("a")
        before = talk.session.session.conversation.last_seq
        await talk.type("/rename late")
        await talk.session.session.rewind(before, "talk")
    async with world.conversation(talk.session.id) as again:
        assert await again.type("/rename") == "This session is named 'late'."
        assert await again.type("/rename -") == "This session has no name any more."
        assert await again.type("/rename") == "This session has no name."
        with pytest.raises(CommandError, match="at most 80"):
            await again.type("/rename " + "x" * 81)
    assert world.store().details(talk.session.id).name == ""


async def test_clear_says_how_to_come_back_and_what_ends_with_the_session(world):
    async with world.conversation() as talk:
        assert await talk.run("/clear") == ("", "new_session", *(await talk.run("/new"))[2:])
        await talk.prompt("a")
        result = await talk.run("/reset")
    assert (result.text, result.then) == (f"To come back to this session: /resume {talk.session.id}", "new_session")


async def test_without_a_user_a_fork_is_made_and_its_id_printed(world):
    first = await talked(world, "a")
    async with world.conversation(first, user_is_there=False) as talk:
        text = await talk.type("/fork")
        assert text.endswith(f"{first} stays as it is.")
        with pytest.raises(SettingsError, match="only in a conversation"):
            await talk.type("/resume")
    async with world.conversation(user_is_there=False) as talk:
        with pytest.raises(CommandError, match="nothing to fork"):
            await talk.type("/fork")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "just now"),
        (-5, "just now"),
        (60, "1 min ago"),
        (7_300, "2 h ago"),
        (90_000, "1 day ago"),
        (10**7, "115 days ago"),
    ],
)
def test_ages_are_short(seconds, text):
    assert age_text(seconds) == text
