"""Themes: what each role of a text looks like on a terminal of a given colour depth and background."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from bradawl.app.symbols import UNICODE, Symbols
from bradawl.app.tui.render.palettes import LOOKS, Background, Depth, Rgb, Role, luminance, sgr

ThemeName = Literal["dark", "light", "plain"]
RESET: Final = "\x1b[0m"
_MIDDLE_GREY: Final = 0.18
"""Relative luminance that looks half as bright as white."""


class Theme(msgspec.Struct, frozen=True):
    """The SGR parameters of each role, and the symbols of the screen."""

    name: ThemeName
    codes: Mapping[Role, str]
    symbols: Symbols = UNICODE
    depth: Depth = "none"

    @property
    def has_tints(self) -> bool:
        """Whether rows can have a background of their own."""
        return self.depth in ("256", "true")

    def paint(self, text: str, role: Role) -> str:
        """`text` in the look of a role, which ends with it. Painted parts of `text` keep their own look."""
        code = self.codes.get(role, "")
        if not code or not text:
            return text
        if RESET in text:
            text = text.replace(RESET, f"{RESET}\x1b[{code}m")
        return f"\x1b[{code}m{text}{RESET}"

    def code(self, *roles: Role) -> str:
        """The SGR parameters of several roles together; a later one wins."""
        return ";".join(filter(None, (self.codes.get(role, "") for role in roles)))


def theme_named(name: ThemeName, depth: Depth, symbols: Symbols = UNICODE) -> Theme:
    """A theme; without colours, `plain` whatever the name is."""
    if name == "plain" or depth == "none":
        return Theme("plain", {}, symbols)
    codes: dict[Role, str] = {role: sgr(look, name, depth) for role, look in LOOKS.items()}
    return Theme(name, codes, symbols, depth)


def theme_for_background(rgb: Rgb) -> Background:
    """The theme that is readable on a background colour, as a terminal reports it in 8 bits."""
    return "light" if luminance(rgb) > _MIDDLE_GREY else "dark"
