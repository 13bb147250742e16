"""Changes of single entries of a TOML file as text, so that comments and order stay. Pure.

A change is made by lines and then parsed: a file in which lines are not enough raises `UnchangeableFile`.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Final, cast

from bradawl.core.errors import SettingsError

_HEADER: Final = re.compile(r"[ \t]*\[")
Table = dict[str, object]


class UnchangeableFile(SettingsError):
    """The change can't be made by lines; the text says which one it was."""


def with_value(text: str, key: str, value: str) -> str:
    """`text` with a key of the top level set to a text, in its present line or before the first table."""
    lines = text.splitlines(keepends=True)
    end = _line_end(text)
    first_table = next((at for at, line in enumerate(lines) if _HEADER.match(line)), len(lines))
    assignment = re.compile(rf"[ \t]*(?:{key}|\"{key}\"|'{key}')[ \t]*=")
    present = next((at for at, line in enumerate(lines[:first_table]) if assignment.match(line)), None)
    fresh = f"{key} = {quoted(value)}"
    expected = {**_parsed(text), key: value}
    if present is not None:
        lines[present] = f"{fresh}{_comment_of(lines[present])}{end}"
        return _checked("".join(lines), expected, fresh)
    at = first_table
    while at and not lines[at - 1].strip():
        at -= 1  # the blank lines before the table stay there
    before = _ended(lines[:at], end)
    after = "".join(lines[at:])
    return _checked(f"{before}{fresh}{end}{after}", expected, fresh)


def with_table(text: str, name: str, entries: Mapping[str, str | bool]) -> str:
    """`text` with the table `[name]`, a name with dots, which has these entries and no others."""
    end = _line_end(text)
    body = [f"{key} = {_literal(value)}{end}" for key, value in entries.items()]
    lines = text.splitlines(keepends=True)
    place = _table_lines(lines, name)
    if place is None:
        before = _ended(lines, end)
        fresh = "".join((before, end if before.strip() else "", f"[{name}]{end}", *body))
    else:
        kept = [line for line in lines[place.start + 1 : place.stop] if line.lstrip()[:1] in ("", "#")]
        header = _ended(lines[place.start : place.start + 1], end)
        fresh = "".join((*lines[: place.start], header, *body, *kept, *lines[place.stop :]))
    return _checked(fresh, _with_entry(_parsed(text), name, dict(entries)), f"[{name}]")


def without_table(text: str, name: str) -> str:
    """`text` without the table `[name]`; unchanged if it has none."""
    lines = text.splitlines(keepends=True)
    place = _table_lines(lines, name)
    if place is None:
        return text
    fresh = "".join((*lines[: place.start], *lines[place.stop :]))
    return _checked(fresh, _with_entry(_parsed(text), name, None), f"[{name}]")


def _literal(value: str | bool) -> str:
    return quoted(value) if isinstance(value, str) else str(value).lower()


def quoted(value: str) -> str:
    """A TOML string."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in escaped) + '"'


def _table_lines(lines: list[str], name: str) -> range | None:
    """The lines of a table, from its header to the line before the next header."""
    words = (re.escape(one) for one in name.split("."))
    part = r"[ \t]*\.[ \t]*".join(rf"(?:{word}|\"{word}\"|'{word}')" for word in words)
    header = re.compile(rf"[ \t]*\[[ \t]*{part}[ \t]*\][ \t]*(?:#.*)?\r?\n?$")
    start = next((at for at, line in enumerate(lines) if header.match(line)), None)
    if start is None:
        return None
    return range(start, next((at for at in range(start + 1, len(lines)) if _HEADER.match(lines[at])), len(lines)))


def _comment_of(line: str) -> str:
    """The comment behind a value that is a simple text on one line."""
    found = re.search(r"=[ \t]*(?:\"[^\"\\]*\"|'[^']*')([ \t]*#[^\r\n]*)", line)
    return found[1] if found else ""


def _with_entry(table: Table, name: str, entries: Table | None) -> Table:
    head, dot, rest = name.partition(".")
    fresh = dict(table)
    if dot:
        fresh[head] = _with_entry(cast(Table, table.get(head, {})), rest, entries)
    elif entries is None:
        fresh.pop(head, None)
    else:
        fresh[head] = entries
    return fresh


def _checked(fresh: str, expected: Table, what: str) -> str:
    try:
        if _parsed(fresh) == expected:
            return fresh
    except SettingsError:
        pass
    raise UnchangeableFile(f"{what.partition(' = ')[0]} can't be changed without changing more of the file")


def _parsed(text: str) -> Table:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        # A parser's message may quote the line it stopped at, and with it a key.
        raise UnchangeableFile("it is not valid TOML") from None


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _ended(lines: list[str], end: str) -> str:
    """The lines, the last of which gets a line end if it has none."""
    text = "".join(lines)
    return text if not text or text.endswith(("\n", "\r")) or text == "\ufeff" else text + end
