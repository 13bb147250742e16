"""Finds definitions of a file by the names that a model gives."""

from collections.abc import Iterable, Sequence

import msgspec

from bradawl.tools.outlines.symbol import Symbol

_MOST_NEAR = 5
_COMMENT = ("#", "//", "/*", "*", "--")


class Definition(msgspec.Struct, frozen=True):
    """Lines of a file that hold a definition with the comments above it. Lines count from 1."""

    symbol: Symbol
    first: int
    last: int


def find(symbols: Sequence[Symbol], name: str) -> list[Symbol]:
    """The symbols that a name means: those with just this name, or else those whose name ends with it."""
    wanted = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").strip(".")
    wanted = wanted.rpartition(" ")[2]  # `def remove`, `class Container`
    if same := [one for one in symbols if one.name == wanted]:
        return same
    return [one for one in symbols if one.name.endswith(f".{wanted}")]


def near_names(symbols: Sequence[Symbol], name: str) -> list[str]:
    """Names of symbols that are similar to a name that none has, the most similar first."""
    from difflib import get_close_matches

    wanted = name.rpartition(".")[2].lower()
    by_last: dict[str, list[str]] = {}
    for one in symbols:
        by_last.setdefault(one.name.rpartition(".")[2].lower(), []).append(one.name)
    close = get_close_matches(wanted, by_last, _MOST_NEAR, 0.7)
    held = [last for last in by_last if len(wanted) > 3 and wanted in last and last not in close]
    names = [name for last in (*close, *held) for name in by_last[last]]
    return list(dict.fromkeys(names))[:_MOST_NEAR]


def with_comments(symbols: Iterable[Symbol], lines: Sequence[str]) -> list[Definition]:
    """The symbols in the order of the file with the comments directly above; none that lies in another one."""
    found: list[Definition] = []
    for one in sorted(set(symbols), key=lambda each: (each.first, -each.last)):
        if found and one.last <= found[-1].last:
            continue
        first = one.first
        while first > 1 and lines[first - 2].lstrip().startswith(_COMMENT):
            first -= 1
        found.append(Definition(one, first, one.last))
    return found
