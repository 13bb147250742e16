"""`/theme` and `/keys` speak to the terminal."""

import pytest
from command_world import CommandWorld, FakeUser

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
