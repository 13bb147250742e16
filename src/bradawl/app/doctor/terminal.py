"""Check of the terminal: what it is, its size, its colours and its characters."""

import locale
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from bradawl.app.console import Console
from bradawl.app.doctor.check import Check

_NARROWEST: Final = 40
_FEWEST_LINES: Final = 10


def terminal_checks(console: Console, environ: Mapping[str, str]) -> list[Check]:
    """The terminal of the conversation, and whether it shows all characters."""
    return [_terminal_check(console, environ), _characters_check(console)]


def _terminal_check(console: Console, environ: Mapping[str, str]) -> Check:
    name = environ.get("TERM", "")
    if not console.has_user and not console.is_interactive:
        return Check("terminal", "ok", f"none here; TERM is {name or 'not set'}")
    size = _size(console)
    if console.is_dumb:
        text = f"TERM is {name or 'not set'}: no colours, and lines are edited by the terminal itself"
        return Check("terminal", "warning", text, "Set TERM to what the terminal is, for example xterm-256color.")
    shown = f"{size[0]} x {size[1]}" if size else "of unknown size"
    text = f"{name}, {shown}, {_colours(environ)}; synchronised output is not known before it is used"
    if size and (size[0] < _NARROWEST or size[1] < _FEWEST_LINES):
        return Check("terminal", "warning", text, f"Make it at least {_NARROWEST} x {_FEWEST_LINES}.")
    return Check("terminal", "ok", text)


def _size(console: Console) -> tuple[int, int] | None:
    """Columns and lines; None if the terminal does not say."""
    with suppress(OSError, ValueError, AttributeError):
        columns, lines = os.get_terminal_size(console.stdin.fileno())
        return (columns, lines) if columns and lines else None
    return None


def _colours(environ: Mapping[str, str]) -> str:
    if environ.get("NO_COLOR"):
        return "no colours (NO_COLOR is set)"
    if environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "all colours"
    return "256 colours" if "256" in environ.get("TERM", "") else "16 colours"


def _characters_check(console: Console) -> Check:
    encoding = str(getattr(console.stdout, "encoding", None) or "utf-8").lower().replace("_", "-")
    place = locale.setlocale(locale.LC_CTYPE)
    if encoding.replace("-", "") == "utf8":
        return Check("characters", "ok", f"UTF-8 (locale {place})")
    hint = "Set LC_ALL=C.UTF-8, or PYTHONUTF8=1."
    return Check("characters", "warning", f"{encoding} (locale {place}): other characters are shown as ?", hint)
