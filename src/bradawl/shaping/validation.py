"""What tools and hooks give back: users write some of them, and the log must be able to take it."""

from posixpath import normpath
from typing import TypeVar

import msgspec

from bradawl.core.effects import Effects

T = TypeVar("T")


def validated(value: object, kind: type[T]) -> T:
    """The value as what it should be, down to its last field. Raises `ValidationError`, `TypeError`."""
    return msgspec.convert(msgspec.to_builtins(value, builtin_types=(bytes,)), kind)


def declared(value: object) -> Effects:
    """Effects with paths that rules can be compared with. Raises `ValidationError`, `TypeError`."""
    effects = validated(value, Effects)
    for path in (*effects.reads, *effects.writes):
        if normpath(f"/{path.strip('/')}") != (path.rstrip("/") or path[:1]):
            raise msgspec.ValidationError(
                f"Expected paths that are absolute and without `..`, as context.resolve gives them, got {path!r}"
            )
    return effects
