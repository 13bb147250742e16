"""The outline of a file as text: one line for each definition."""

from collections.abc import Iterator, Sequence

from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.outlines.thresholds import OUTLINE_CHARACTERS

_LONGEST_SIGNATURE = 160


def outline(symbols: Sequence[Symbol], most: int = OUTLINE_CHARACTERS) -> list[str]:
    """Lines `first-last`, tab, signature, indented by depth, and what is left out, in about `most` characters.

    Functions in functions and constants that are not written in capitals are never listed. Of a longer outline these
    are left out, one after the other: constants, private methods, methods of operators, what is in private classes, all
    methods, what is private. At last the list is cut.
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
        kept = [one for one in kept if not leaves_out(one)]
        lines = [*_lines(kept), *_left_out(symbols, kept)]
        if sum(len(line) + 1 for line in lines) <= most:
            return lines
    return _cut(lines, most)


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
    missing = [one.kind for one in symbols if id(one) not in shown]
    if counts := [_number(missing.count(kind), kind) for kind in dict.fromkeys(missing)]:
        yield f"[not listed: {', '.join(counts)}]"


def _number(count: int, kind: str) -> str:
    plural = "classes" if kind == "class" else f"{kind}s"
    return f"{count} {kind if count == 1 else plural}"


def _cut(lines: list[str], most: int) -> list[str]:
    for place, line in enumerate(lines):
        most -= len(line) + 1
        if most < 0:
            return [*lines[:place], f"[the outline is cut: {len(lines) - place} more lines]"]
    return lines
