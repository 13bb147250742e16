"""Validates values that tools and hooks return, because users write some of them and the log must store them."""

import json
import re
from posixpath import normpath
from typing import TypeVar

import msgspec

from bradawl.core.effects import Effects

T = TypeVar("T")
_HALF = re.compile("[\ud800-\udfff]")
_HALF_SAID = (
    "its arguments hold half a character (the lone surrogate \\u{:04x}). Send it again with the whole character, or "
    "without it."
)
_MAY_BE_HALF = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""In JSON text. Most arguments hold no such escape, so that they are searched only once."""


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


def half_character(raw: str, arguments: dict[str, object]) -> str:
    """What is wrong if the arguments that were decoded from `raw` hold a lone surrogate; empty if they hold none.

    It can't be encoded: a file, a program and the next request would each get something else.
    """
    if not _MAY_BE_HALF.search(raw):
        return ""
    found = _HALF.search(json.dumps(arguments, ensure_ascii=False))
    return _HALF_SAID.format(ord(found[0])) if found else ""
