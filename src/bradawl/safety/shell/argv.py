"""The words of one command (argv), the names of shells, and tables of program names."""

from collections.abc import Iterable

Argv = tuple[str, ...]

UNKNOWN_WORD = "$"
"""Stands for a word, or the part of a word, whose text is not known."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish", "rbash"})


def names(text: str) -> frozenset[str]:
    """The words of `text`, for tables of program names."""
    return frozenset(text.split())


def name_of(words: Iterable[str]) -> str:
    """The name of the program without its folder; empty if there are no words."""
    return next(iter(words), "").rpartition("/")[2]
