"""The slash commands about the terminal: `/theme`, `/keys`."""

import asyncio
from typing import TYPE_CHECKING, Final, Literal

from bradawl.app.frontend import FrontendSession
from bradawl.app.rendering import one_line
from bradawl.app.slash_commands import CommandError, command
from bradawl.app.terminal_user import Option
from bradawl.core.errors import SettingsError

if TYPE_CHECKING:
    from bradawl.app.settings.settings import Settings

_THEMES: Final = {
    "auto": "follows the background of the terminal",
    "dark": "for a dark background",
    "light": "for a light background",
    "plain": "no colours",
}


@command("theme", needs_user=True)
async def choose_theme(session: FrontendSession, name: Literal["auto", "dark", "light", "plain"] | None = None) -> str:
    """Choose the colours: auto, dark, light or plain. Without NAME a list opens."""
    if (user := session.frontend.user) is None:
        raise CommandError("There is no terminal here that has colours.")
    chosen = name or await user.pick("Colours:", [Option(each, each, detail) for each, detail in _THEMES.items()])
    if chosen is None:
        return "The colours stay as they are."
    user.use_theme(chosen)
    saved = await asyncio.to_thread(_save_theme, session.frontend.settings, chosen)
    return f"theme {chosen}: {_THEMES[chosen]}; {saved}"


def _save_theme(settings: "Settings", theme: str) -> str:
    """Write it into the user's settings file; returns a text that says so. May block."""
    from bradawl.app.config.change import set_value
    from bradawl.app.config.target import target_of
    from bradawl.app.settings.homes import Homes
    from bradawl.app.settings.table import SETTINGS

    try:
        home = Homes(settings.user_home, settings.config_home or settings.home, settings.home)
        target = target_of({}, home, settings.cwd)
        set_value({"key": "theme", "values": [theme]}, target, SETTINGS, home, settings.cwd)
    except SettingsError as error:
        return f"it could not be saved: {one_line(str(error))}"
    return f"saved in {target.name}"


@command("keys", needs_user=True)
def show_keys(session: FrontendSession) -> str:
    """Show what the keys do."""
    return session.frontend.keys_help or "No keys have a meaning of their own here."
