"""A definition in a source file."""

from collections.abc import Iterable
from typing import Literal

import msgspec

Kind = Literal["class", "function", "method", "constant", "module"]
"""`module` is everything else that contains definitions: namespace, package, implementation block."""


class Symbol(msgspec.Struct, frozen=True):
    """A definition in a source file. Lines count from 1."""

    name: str
    """With the names of the definitions around it: `Container.remove`."""
    kind: Kind
    first: int
    """First line, that of the first decorator if there is one."""
    last: int
    signature: str
    """The head of the definition on one line, without its body: `def remove(self, key: str) -> None`."""


def enclosing(symbols: Iterable[Symbol], line: int) -> Symbol | None:
    """The innermost class, function or method around a line; None outside of all."""
    around = [each for each in symbols if each.first <= line <= each.last and each.kind != "constant"]
    return max(around, key=lambda each: (each.first, -each.last), default=None)
