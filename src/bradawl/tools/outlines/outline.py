"""The outline of a file as text: one line for each definition."""

from collections.abc import Iterable, Iterator, Sequence

from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.outlines.thresholds import OUTLINE_CHARACTERS

_LONGEST_SIGNATURE = 160


def outline(symbols: Sequence[Symbol], most: int = OUTLINE_CHARACTERS) -> list[str]:
    """Lines `first-last`, tab, signature, indented by depth, and what is left out, in about `most` characters.

    Functions in functions and constants that are not written in capitals are never listed. Of a longer outline these
    are left out, one after the other: constants, private methods, methods of operators, what is in private classes, all
    methods, what is private. Of the last of these as many are listed as fit. At last the list is cut.
    """
    functions = {one.name for one in symbols if one.kind in {"method", "function"}}
    kept = [one for one in symbols if one.name.rpartition(".")[0] not in functions and not _is_minor(one)]
    for leaves_out in (
        _nothing,
        _is_constant,
        _is_private_method,
        _is_operator,
        _is_in_private,
        _is_method,
        _is_private,
    ):
        others, kept = kept, [one for one in kept if not leaves_out(one)]
        lines = [*_lines(kept), *_left_out(symbols, kept)]
        if (size := _size(lines)) <= most:
            kept = _with_others_that_fit(kept, others, most - size)
            return [*_lines(kept), *_left_out(symbols, kept)]
    return _cut(kept, most)


def _size(lines: Iterable[str]) -> int:
    return sum(len(line) + 1 for line in lines)


def _with_others_that_fit(kept: list[Symbol], others: list[Symbol], room: int) -> list[Symbol]:
    """What is kept, and the first of the others that fit into the room; `others` has all of them, in order."""
    shown = set(map(id, kept))
    chosen: list[Symbol] = []
    for one in others:
        if id(one) not in shown:
            room -= _size(_lines([one]))
            if room < 0:
                break
        chosen.append(one)
    return [*chosen, *(one for one in others[len(chosen) :] if id(one) in shown)]


def _nothing(_: Symbol) -> bool:
    return False


def _is_constant(one: Symbol) -> bool:
    return one.kind == "constant"


def _is_minor(one: Symbol) -> bool:
    return one.kind == "constant" and ("." in one.name or one.name.upper() != one.name)


def _is_method(one: Symbol) -> bool:
    return one.kind == "method"


def _is_private_method(one: Symbol) -> bool:
    return one.kind == "method" and _is_private(one)


def _is_operator(one: Symbol) -> bool:
    return one.kind == "method" and one.name.endswith("__") and not one.name.endswith(".__init__")


def _is_private(one: Symbol) -> bool:
    last = one.name.rpartition(".")[2]
    return last.startswith("_") and not last.endswith("__")


def _is_in_private(one: Symbol) -> bool:
    return any(part.startswith("_") for part in one.name.split(".")[:-1])


def _lines(kept: Sequence[Symbol]) -> Iterator[str]:
    for one in kept:
        where = f"{one.first}-{one.last}" if one.last > one.first else f"{one.first}"
        is_long = len(one.signature) > _LONGEST_SIGNATURE
        signature = f"{one.signature[:_LONGEST_SIGNATURE]}..." if is_long else one.signature
        yield f"{where}\t{'  ' * one.name.count('.')}{signature}"


def _left_out(symbols: Sequence[Symbol], kept: Sequence[Symbol]) -> Iterator[str]:
    shown = set(map(id, kept))
    missing = [("private " if _is_private(one) else "") + one.kind for one in symbols if id(one) not in shown]
    if counts := [_number(missing.count(kind), kind) for kind in dict.fromkeys(missing)]:
        yield f"[not listed: {', '.join(counts)}]"


def _number(count: int, kind: str) -> str:
    plural = f"{kind}es" if kind.endswith("class") else f"{kind}s"
    return f"{count:,} {kind if count == 1 else plural}"


def _cut(kept: list[Symbol], most: int) -> list[str]:
    lines = list(_lines(kept))
    for place, line in enumerate(lines):
        most -= len(line) + 1
        if most < 0:
            rest = f"{len(lines) - place:,} more definitions, from line {kept[place].first}"
            return [*lines[:place], f"[the outline is cut: {rest}]"]
    return lines
