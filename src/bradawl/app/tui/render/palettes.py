"""The colours of each role on dark and on light backgrounds, as RGB, and the nearest colours of smaller palettes."""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

Role = Literal[
    "plain",
    "accent",
    "verb",
    "dim",
    "error",
    "warning",
    "ok",
    "added",
    "removed",
    "added_word",
    "removed_word",
    "code",
    "title",
    "heading",
    "strong",
    "emphasis",
    "struck",
    "link",
    "quote",
    "frame",
    "frame_warning",
    "frame_danger",
    "status",
    "thinking",
    "comment",
    "keyword",
    "string",
    "number",
    "function",
    "type",
    "builtin",
    "attribute",
    "operator",
]
Rgb = tuple[int, int, int]
Depth = Literal["none", "16", "256", "true"]
Background = Literal["dark", "light"]


class Look(msgspec.Struct, frozen=True):
    """How text of a role looks: a colour on each background, attributes as SGR parameters, and 16-colour codes."""

    dark: Rgb | None = None
    light: Rgb | None = None
    attributes: str = ""
    basic: str = ""
    """SGR parameters where a terminal has 16 colours; they name colours that a user's scheme keeps readable."""
    is_background: bool = False
    indexed: tuple[str, str] | None = None
    """SGR parameters where a terminal has 256 colours, on dark and on light, if the nearest colour is not good."""


LOOKS: Final[dict[Role, Look]] = {
    "plain": Look(),
    "accent": Look((102, 178, 255), (0, 92, 197), "", "36"),
    "verb": Look(attributes="1", basic="1"),
    "dim": Look((148, 148, 148), (98, 98, 98), "", "2"),
    "error": Look((255, 121, 121), (180, 32, 32), "", "31"),
    "warning": Look((230, 180, 90), (133, 88, 0), "", "33"),
    "ok": Look((126, 200, 126), (22, 114, 50), "", "32"),
    "added": Look((20, 54, 32), (218, 251, 225), "", "32", is_background=True, indexed=("48;5;22", "48;5;194")),
    "removed": Look((66, 26, 30), (255, 233, 231), "", "31", is_background=True, indexed=("48;5;52", "48;5;224")),
    "added_word": Look(
        (32, 94, 52), (157, 231, 172), "", "1;4;32", is_background=True, indexed=("1;38;5;231;48;5;28", "48;5;157")
    ),
    "removed_word": Look(
        (122, 40, 48), (255, 190, 184), "", "1;4;31", is_background=True, indexed=("1;38;5;231;48;5;88", "48;5;217")
    ),
    "code": Look((224, 175, 136), (140, 62, 16), "", "33"),
    "title": Look(attributes="1;4", basic="1;4"),
    "heading": Look(attributes="1", basic="1"),
    "strong": Look(attributes="1", basic="1"),
    "emphasis": Look(attributes="3", basic="3"),
    "struck": Look(attributes="9", basic="9"),
    "link": Look((122, 170, 240), (0, 92, 197), "4", "4;34"),
    "quote": Look((170, 170, 170), (84, 84, 84), "", ""),
    "frame": Look((110, 110, 110), (150, 150, 150), "", "2"),
    "frame_warning": Look((230, 180, 90), (168, 112, 0), "", "33"),
    "frame_danger": Look((255, 110, 110), (190, 32, 32), "", "31"),
    "status": Look((148, 148, 148), (98, 98, 98), "", "2"),
    "thinking": Look((148, 148, 148), (98, 98, 98), "3", "2;3"),
    "comment": Look((150, 156, 160), (90, 99, 108), "3", "2;3"),
    "keyword": Look((214, 158, 240), (140, 30, 150), "", "35"),
    "string": Look((152, 210, 132), (16, 100, 40), "", "32"),
    "number": Look((230, 180, 110), (128, 72, 0), "", "33"),
    "function": Look((122, 182, 255), (0, 84, 180), "", "34"),
    "type": Look((112, 208, 208), (0, 96, 104), "", "36"),
    "builtin": Look((112, 208, 208), (0, 96, 104), "", "36"),
    "attribute": Look((230, 180, 110), (128, 72, 0), "", "33"),
    "operator": Look((190, 190, 200), (70, 70, 80), "", ""),
}
_CUBE: Final = (0, 95, 135, 175, 215, 255)


def sgr(look: Look, background: Background, depth: Depth) -> str:
    """The SGR parameters of a look; empty for none."""
    if depth == "none":
        return ""
    if depth == "16":
        return look.basic
    colour = look.dark if background == "dark" else look.light
    if colour is None:
        return look.attributes
    if depth == "256" and look.indexed:
        return look.indexed[background == "light"]
    layer = "48" if look.is_background else "38"
    red, green, blue = colour
    shade = f"{layer};2;{red};{green};{blue}" if depth == "true" else f"{layer};5;{nearest_of_256(colour)}"
    return f"{look.attributes};{shade}" if look.attributes else shade


def nearest_of_256(colour: Rgb) -> int:
    """The index of the nearest colour among the cube and the greys of the 256-colour palette."""
    steps = [min(range(6), key=lambda step: abs(_CUBE[step] - part)) for part in colour]
    cube = 16 + 36 * steps[0] + 6 * steps[1] + steps[2]
    grey = min(23, max(0, round((sum(colour) / 3 - 8) / 10)))
    level = 8 + 10 * grey
    return 232 + grey if _distance((level,) * 3, colour) < _distance(_of_cube(steps), colour) else cube


def _of_cube(steps: list[int]) -> Rgb:
    return _CUBE[steps[0]], _CUBE[steps[1]], _CUBE[steps[2]]


def _distance(one: Sequence[int], other: Sequence[int]) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def luminance(colour: Rgb) -> float:
    """Relative luminance as WCAG 2 defines it: 0 is black, 1 is white."""
    red, green, blue = (_linear(part / 255) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
