"""Questions in the live region: a frame with keys. Also the list of completions."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bradawl.app.tui.render.cells import cut, pad, wrap
from bradawl.app.tui.render.cells import width as cells_of
from bradawl.app.tui.render.palettes import Role
from bradawl.app.tui.render.theme import Theme
from bradawl.safety.control_characters import escape

CLOSED: Final = "closed"
"""The answer when the user leaves the question, by Esc or Ctrl+C."""
TYPED: Final = "typed"
"""The answer when the user began to type one, to a question that takes a text."""
_MOVES: Final = {"up": -1, "c-p": -1, "down": 1, "c-n": 1}
_NAMES: Final = {"c-i": "tab", "c-o": "v"}
"""Keys that press the one with another name."""
_LEAST_BODY: Final = 2
_COMPLETIONS: Final = 6
_LOW: Final = 6
"""Rows for a question up to which it has no frame."""


class Key(NamedTuple):
    """One answer of a question, and its key."""

    key: str
    """As the user sees it; a single character, or `tab`."""
    label: str
    value: str
    is_hidden: bool = False
    """It works and is not listed."""
    short: str = ""
    """The label where all keys are on one line; the whole label by default."""


class KeyDialog:
    """A framed text with answers, each of which has a key; arrow keys and Enter choose as well."""

    def __init__(
        self,
        title: str,
        body: Callable[[Theme, int], list[str]],
        foot: str,
        keys: Sequence[Key],
        *,
        role: Role = "frame_warning",
        after: str = "",
        fixed: Callable[[Theme, int], list[str]] | None = None,
    ) -> None:
        """`body` gives the lines of the text for a width; `foot` stands in the lower border, `after` below the keys."""
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._title, self._body, self._foot, self._keys = title, body, foot, keys
        self._role: Role = role
        self._after = after
        self._fixed = fixed or (lambda _theme, _width: [])
        self.takes_text = False
        """A letter is no key: it begins an answer of the user's own."""
        self._chosen = 0
        self.typed = ""
        """What was typed behind the answer while the question was there, or the begin of an own answer."""
        self.is_cut = False
        """The last drawing left lines of the body out."""

    def press(self, key: str, text: str) -> None:
        """See `Dialog`."""
        shown = text if text.isprintable() else ""
        if self.answer.done():
            self.typed += shown
        elif key in _MOVES:
            self._chosen = (self._chosen + _MOVES[key]) % len(self._listed())
        elif (value := self._value_of(key, shown)) is not None:
            self._answer(value)

    def _listed(self) -> list[Key]:
        return [each for each in self._keys if not each.is_hidden]

    def _value_of(self, key: str, text: str) -> str | None:
        """The answer that a key gives; None for a key without a meaning."""
        listed = self._listed()
        if key in ("escape", "c-c"):
            return CLOSED
        if key in ("c-m", "enter"):
            return listed[self._chosen].value
        if text.isascii() and text.isdigit() and 0 < int(text) <= len(listed):
            return listed[int(text) - 1].value
        if self.takes_text and text:
            self.typed = text
            return TYPED
        name = _NAMES.get(key, text.lower())
        return next((each.value for each in self._keys if each.key == name), None)

    def _answer(self, value: str) -> None:
        if not self.answer.done():
            self.answer.set_result(value)

    def lines(self, theme: Theme, width: int, rows: int) -> list[str]:
        """See `Dialog`. Heading and keys always stay; the body is cut to what is left.

        On a low screen, where the frame would push them out, only the text and a line with the keys are left.
        """
        lines = self._framed_lines(theme, width, rows) if rows > _LOW else []
        return lines if 0 < len(lines) <= rows else self._low_lines(theme, width, rows)

    def _low_lines(self, theme: Theme, cells: int, rows: int) -> list[str]:
        """Title, as much of the text as fits, and a line with the keys; of too few rows the last ones."""
        room = max(0, rows - 1)
        body = self._body(theme, cells)
        title = " · ".join(filter(None, (self._title, self._foot)))
        head = [theme.paint(cut(title, cells), self._role)] if room > len(body) or (room > 2 and self._foot) else []
        room -= len(head)
        self.is_cut = len(body) > room
        if self.is_cut and room > 1:
            body = [*body[: room - 1], theme.paint(cut(f"… {len(body) - room + 1} more lines", cells), "dim")]
        return [*head, *(cut(line, cells) for line in body[:room]), self._key_row(theme, cells)][-rows:]

    def _key_row(self, theme: Theme, cells: int) -> str:
        """All keys on one line, with the labels that fit, that of the chosen answer first."""
        listed = [each for each in self._keys if not each.is_hidden or (self.is_cut and each.short)]
        shown = [self._short_key(theme, each, number) for number, each in enumerate(listed)]
        texts = [f"{key} {each.short or each.label}" for key, each in zip(shown, listed, strict=True)]
        for number in (self._chosen, *range(len(listed))):
            longer = [*shown[:number], texts[number], *shown[number + 1 :]]
            if cells_of("  ".join(longer)) <= cells:
                shown = longer
        gap = "  " if cells_of("  ".join(shown)) <= cells else " "
        return cut(gap.join(shown), cells)

    def _short_key(self, theme: Theme, key: Key, number: int) -> str:
        mark = theme.paint(theme.symbols.prompt, "accent") if number == self._chosen else ""
        return mark + theme.paint(key.key, "verb")

    def _framed_lines(self, theme: Theme, width: int, rows: int) -> list[str]:
        body = self._body(theme, width - 4)
        frame = framed(theme, width, self._title, (), self._foot, self._role)
        keys = self._key_lines(theme, width)
        if len(keys) > (most := max(1, rows - _LEAST_BODY - len(frame))):
            keys = self._few_key_lines(theme, width, most)
        fixed = self._fixed(theme, width - 4)[: max(1, (rows - len(keys) - len(frame)) // 2)]
        room = max(_LEAST_BODY, rows - len(keys) - len(frame) - len(fixed))
        self.is_cut = len(body) > room
        if self.is_cut:
            left = len(body) - room + 1
            key = "Ctrl+O" if self.takes_text else "v"
            body = [*body[: room - 1], theme.paint(f"… {left} more lines · {key} shows all", "dim")]
        return [*framed(theme, width, self._title, [*body, *fixed], self._foot, self._role), *keys]

    def _few_key_lines(self, theme: Theme, cells: int, rows: int) -> list[str]:
        """For a low screen: each answer on one line, and as many as fit around the chosen one."""
        listed = self._listed()
        first = max(0, min(self._chosen - rows // 2, len(listed) - rows))
        shown = enumerate(listed[first : first + rows], first)
        return [cut(self._key_line(theme, each, each.label, is_chosen=at == self._chosen), cells) for at, each in shown]

    @staticmethod
    def _key_line(theme: Theme, key: Key, label: str, *, is_chosen: bool) -> str:
        mark = theme.paint(theme.symbols.prompt, "accent") if is_chosen else " "
        return f" {mark} {theme.paint(key.key, 'verb')}  {label}"

    def _key_lines(self, theme: Theme, cells: int) -> list[str]:
        """The answers, as many on a line as fit; one that needs several lines shares none of them."""
        listed = self._listed()
        lines: list[str] = []
        is_alone = True
        for number, each in enumerate(listed):
            shown = self._key_line(theme, each, "", is_chosen=number == self._chosen)
            first, *rest = wrap(each.label, max(10, cells - 6 - len(each.key)))
            is_alone = is_alone or bool(rest)
            if not is_alone and cells_of(lines[-1]) + cells_of(shown + first) + 1 <= cells:
                lines[-1] += f" {shown}{first}"
                continue
            is_alone = bool(rest)
            lines.append(f"{shown}{first}")
            lines += [" " * (5 + len(each.key)) + line for line in rest]
        if self._after:
            lines += [theme.paint(f"   {line}", "dim") for line in wrap(self._after, max(10, cells - 4))]
        return lines


def framed(theme: Theme, cells: int, title: str, body: Sequence[str], foot: str, role: Role) -> list[str]:
    """Lines with a bar at their left, a title above and a text below, in at most `cells` cells.

    Nothing is at the right: a terminal that becomes narrower breaks only lines that are long.
    """
    box = box_of(theme)
    inner = cells - 2
    heads = wrap(title, max(4, cells - 4))
    bar = theme.paint(box.bar, role)
    body = [*(theme.paint(head, "verb") for head in heads[1:]), *body]
    feet = wrap(foot, max(4, cells - 4)) if foot else [""]
    body += [theme.paint(each, "dim") for each in feet[:-1]]
    return [
        _border(theme, cells, box.top_left, heads[0], role),
        *(f"{bar} {cut(line, inner)}" for line in body),
        _border(theme, cells, box.bottom_left, feet[-1], role),
    ]


def _border(theme: Theme, cells: int, corner: str, text: str, role: Role) -> str:
    rule = box_of(theme).rule
    shown = f" {text} " if text else ""
    rest = max(0, cells - 1 - cells_of(shown))
    return theme.paint(corner, role) + theme.paint(shown, "verb") + theme.paint(rule * rest, role)


def completion_lines(options: Sequence[tuple[str, str]], chosen: int, theme: Theme, cells: int) -> list[str]:
    """A list of completions, each with what it means; -1 if none is chosen."""
    first = max(0, min(chosen - _COMPLETIONS // 2, len(options) - _COMPLETIONS))
    shown = [(one_line(label), one_line(meaning)) for label, meaning in options[first : first + _COMPLETIONS]]
    column = min(max(cells_of(label) for label, _ in shown), max(8, cells // 2))
    lines = []
    for number, (label, meaning) in enumerate(shown, first):
        mark = theme.paint(theme.symbols.prompt, "accent") if number == chosen else " "
        name = pad(cut(label, column), column)
        name = theme.paint(name, "verb") if number == chosen else name
        room = cells - column - 8
        lines.append(f"  {mark} {name}  {theme.paint(cut(meaning, room), 'dim') if room > 8 else ''}".rstrip())
    if len(options) > len(shown):
        lines.append(theme.paint(f"    {len(options) - len(shown)} more", "dim"))
    return lines


class Box(NamedTuple):
    """The characters of a frame."""

    top_left: str
    top_right: str
    bottom_left: str
    bottom_right: str
    rule: str
    bar: str


_ROUND: Final = Box("╭", "╮", "╰", "╯", "─", "│")
_ASCII: Final = Box("+", "+", "+", "+", "-", "|")


def box_of(theme: Theme) -> Box:
    """The frame that the terminal can show."""
    return _ASCII if theme.symbols.bar == "|" else _ROUND


def one_line(text: str) -> str:
    """The text on one line, with everything invisible spelled out."""
    return " ".join(escape(text).split())
