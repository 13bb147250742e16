"""`/theme` and `/keys` speak to the terminal."""

import pytest
from command_world import CommandWorld, FakeDialogs, FakeUser

from bradawl.app.slash_commands import CommandError
from bradawl.core.errors import SettingsError


async def test_theme_is_chosen_by_name_or_from_a_list(tmp_path):
    user = FakeUser("light")
    async with CommandWorld(tmp_path).conversation(user=user) as talk:
        assert (await talk.type("/theme DARK")).startswith("theme dark: for a dark background; saved in ")
        assert (await talk.type("/theme")).startswith("theme light: for a light background; saved in ")
        assert await talk.type("/theme") == "The colours stay as they are."
        with pytest.raises(SettingsError, match="no name 'blue' of /theme; there are auto, dark, light, plain"):
            await talk.type("/theme blue")
    assert user.themes == ["dark", "light"]
    (saved,) = tmp_path.rglob("config.toml")
    assert saved.read_text() == 'theme = "light"\n'
    assert [each.value for each in user.offered[0][1]] == ["auto", "dark", "light", "plain"]


async def test_without_a_terminal_there_is_no_theme(tmp_path):
    async with CommandWorld(tmp_path).conversation() as talk:
        with pytest.raises(CommandError, match="no terminal here"):
            await talk.type("/theme dark")


async def test_keys_shows_what_the_front_end_says(tmp_path):
    async with CommandWorld(tmp_path).conversation(keys_help="Enter sends.") as talk:
        assert await talk.type("/keys") == "Enter sends."


async def test_help_in_a_live_terminal_is_short_and_the_whole_is_opened(tmp_path):
    user = FakeUser()
    user.dialogs = dialogs = FakeDialogs()
    async with CommandWorld(tmp_path).conversation(user=user, keys_help="Enter sends.") as talk:
        for line in ("/help", "/help all"):
            assert await talk.type(line) == ""
        assert (await talk.type("/help undo")).startswith("/undo [STEP] [PART]\n")
        names = [each.name for each in talk.frontend.commands.commands]
    (summary, _, whole, opens), (no_summary, _, same, opens_now) = dialogs.shown
    assert len(summary.splitlines()) <= 20 and (opens, no_summary, opens_now) == (False, "", True)
    assert all(f"/{name}" in summary.split() for name in names)
    text = "\n".join(map(str, whole))
    assert same == whole and text.endswith("Enter sends.") and "/redo         Take the last undo back" in text


async def test_help_all_by_lines_lists_each_command(tmp_path):
    async with CommandWorld(tmp_path).conversation(user=FakeUser(), keys_help="Enter sends.") as talk:
        assert await talk.type("/help all") == await talk.type("/help")
