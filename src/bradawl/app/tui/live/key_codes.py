"""Keys as kitty and xterm name them with extended keys, as the sequences that older terminals send."""

import re
from typing import Final

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES

_SHIFT, _ALT, _CONTROL = 1, 2, 4
_LOCKS: Final = 64 | 128
"""Caps Lock and Num Lock, as kitty tells them."""
_NEWLINE: Final = "\n"
"""Ctrl+J, which begins a new line in the editor."""
_RELEASED: Final = "3"
_PASTE_BEGIN: Final = "\x1b[200~"
_ENTER, _TAB = 13, 9
_FUNCTION_KEY: Final = re.compile(
    r"\x1b\[(?P<number>\d{0,5})(?:;(?P<modifiers>\d{0,4})(?::(?P<event>\d))?)?(?:;[\d:]*)?(?P<final>[A-HPQRSZ~])"
)
_KEYPAD: Final = {57399 + place: key for place, key in enumerate("0123456789./*-+\r=,")} | {
    57417 + place: f"\x1b[{key}" for place, key in enumerate(("D", "C", "A", "B", "5~", "6~", "H", "F", "2~", "3~"))
}
"""Keys of the keypad; source: kitty's keyboard protocol, functional key definitions, checked 2026-11."""


def function_key(sequence: str) -> str:
    """A sequence that stands for a key with a name, with the modifiers that it can have; else empty."""
    if sequence.removeprefix("\x1b") in ANSI_SEQUENCES or sequence in ANSI_SEQUENCES:
        return sequence
    found = _FUNCTION_KEY.fullmatch(sequence)
    if found is None or found["event"] == _RELEASED:
        return ""
    modifiers = (int(found["modifiers"] or 1) - 1) & ~_LOCKS
    if modifiers & ~(_SHIFT | _ALT | _CONTROL):
        return ""
    number, final = found["number"], found["final"]
    if modifiers:
        plain = f"\x1b[{number or 1};{modifiers + 1}{final}"
    else:
        plain = f"\x1b[{number}~" if final == "~" else f"\x1b[{final}"
    return plain if plain in ANSI_SEQUENCES and plain != _PASTE_BEGIN else ""


def typed_key(code: int, modifiers: int) -> str:
    """What a terminal without extended keys sends for a key; Shift+Enter and Alt+Enter begin a new line."""
    if modifiers & ~(_SHIFT | _ALT | _CONTROL | _LOCKS):
        return ""  # with Super or Hyper it is a key of the desktop
    if key := _KEYPAD.get(code, ""):
        code = ord(key) if len(key) == 1 else code
    if code == _ENTER and modifiers & (_SHIFT | _ALT | _CONTROL):
        return _NEWLINE
    if code == _TAB and modifiers & _SHIFT:
        return "\x1b[Z"
    if len(key) > 1:
        return key
    if code > 0x10FFFF or 0xD800 <= code < 0xE000 or 57344 <= code < 63744:
        return ""  # keys without a character, such as a modifier alone
    return _with_modifiers(chr(code), modifiers)


def _with_modifiers(character: str, modifiers: int) -> str:
    upper = character.upper()
    if modifiers & _CONTROL:
        character = chr(ord(upper) & 0x1F) if len(upper) == 1 and 0x40 <= ord(upper) < 0x80 else character
    elif modifiers & _SHIFT and len(upper) == 1:
        character = upper
    return f"\x1b{character}" if modifiers & _ALT else character
