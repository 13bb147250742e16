"""Data type for the paths that a line may touch against a rule; `refused_reads` and `refused_writes` fill it."""

from typing import Literal

import msgspec


class RefusedPaths(msgspec.Struct, frozen=True):
    """Paths that a line may read or change and that rules of the user deny."""

    paths: tuple[str, ...] = ()
    danger: str = ""
    """Why the line is refused in every mode, also if no path can be named; empty if it isn't."""


def too_many_paths(verb: Literal["read", "write"]) -> str:
    """The reason to refuse a line that names more paths than the search may compare with the rules."""
    return f"it names more paths than can be compared with the rules that refuse to {verb}; run fewer commands at once"
