"""Parses bash's report of exported variables and computes what a command changed."""

import os
import re
from collections.abc import Mapping

_PLAIN = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_ANSI = rb"\$'[^'\\]*(?:\\.[^'\\]*)*'"
_LINE = (
    rb"(?:declare|export)(?: -(?P<flags>[A-Za-z]+))? (?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    rb"(?:=(?:(?P<plain>"
    + _PLAIN
    + rb")|(?P<ansi>"
    + _ANSI
    + rb")|\((?:"
    + _PLAIN
    + rb"|"
    + _ANSI
    + rb'|[^"$)])*\)))?\n'
)
_ESCAPE = rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))"
_SIMPLE = {b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r"} | {
    b"t": b"\t",
    b"v": b"\v",
}
_OWN = frozenset({"PWD", "SHLVL", "_", "SHELLOPTS", "BASHOPTS"})
"""Names that each bash sets itself, or that are not variables."""
_NOT_THE_SCRIPTS = ("__bradawl", "BRADAWL_CALL")  # exported like all variables after `set -a`


def parse_exports(said: bytes) -> dict[str, str] | None:
    """Names and values in the output of `export -p`; None if it can't be parsed.

    Arrays and names without a value are left out: no program receives them.
    """
    line, place, found = re.compile(_LINE, re.DOTALL), 0, dict[str, str]()
    while place < len(said):
        match = line.match(said, place)
        if match is None:
            return None
        place = match.end()
        value = _value(match)
        if value is not None:
            found[match["name"].decode()] = os.fsdecode(value)
    return found


def _value(match: re.Match[bytes]) -> bytes | None:
    if {"a", "A", "n"}.intersection((match["flags"] or b"").decode()):
        return None
    if (plain := match["plain"]) is not None:
        return re.sub(rb"\\(.)", rb"\1", plain[1:-1], flags=re.DOTALL)
    if (ansi := match["ansi"]) is not None:
        return re.sub(_ESCAPE, _unescaped, ansi[2:-1], flags=re.DOTALL)
    return None


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if octal is not None:
        return bytes((int(octal, 8) & 0xFF,))
    if hexadecimal is not None:
        return bytes((int(hexadecimal, 16),))
    return _SIMPLE.get(other, other)


def export_changes(before: bytes, after: bytes) -> dict[str, str | None]:
    """Changes of exported variables between two outputs of `export -p`; None for a removed variable.

    Empty if either can't be parsed.
    """
    if before == after:
        return {}
    old, new = parse_exports(before), parse_exports(after)
    return {} if old is None or new is None else compare_exports(old, new)


def compare_exports(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """New and changed values, and None for removed variables, without those that each bash sets itself."""
    changed: dict[str, str | None] = {name: value for name, value in new.items() if old.get(name) != value}
    changed |= dict.fromkeys(name for name in old if name not in new)
    return {
        name: value for name, value in changed.items() if name not in _OWN and not name.startswith(_NOT_THE_SCRIPTS)
    }
