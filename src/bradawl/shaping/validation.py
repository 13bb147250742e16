"""What tools and hooks give back: users write some of them, and the log must be able to take it."""

from typing import TypeVar

import msgspec

T = TypeVar("T")


def validated(value: object, kind: type[T]) -> T:
    """The value as what it should be, down to its last field. Raises `ValidationError`, `TypeError`."""
    return msgspec.convert(msgspec.to_builtins(value, builtin_types=(bytes,)), kind)
