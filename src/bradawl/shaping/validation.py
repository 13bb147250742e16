"""Validates values that tools and hooks return, because users write some of them and the log must store them."""

from posixpath import normpath
from typing import TypeVar

import msgspec

from bradawl.core.effects import Effects

T = TypeVar("T")


def validated(value: object, kind: type[T]) -> T:
    """The value, checked against the type with all its fields. Raises `ValidationError`, `TypeError`."""
    return msgspec.convert(msgspec.to_builtins(value, builtin_types=(bytes,)), kind)


def declared(value: object) -> Effects:
    """The effects, checked for absolute, normalised paths. Raises `ValidationError`, `TypeError`."""
    effects = validated(value, Effects)
    for path in (*effects.reads, *effects.writes):
        if normpath(f"/{path.strip('/')}") != (path.rstrip("/") or path[:1]):
            raise msgspec.ValidationError(
                f"Expected paths that are absolute and without `..`, as context.resolve gives them, got {path!r}"
            )
    return effects
