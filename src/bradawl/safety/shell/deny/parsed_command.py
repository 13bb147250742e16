"""What somebody hears who has a text read to him as bash might read it."""

from collections.abc import Sequence
from typing import Protocol

_MOST_CALLS = 6


class TooMuch(Exception):
    """The text is longer or deeper than anybody looks; what was found until then has been told."""


class Draft:
    """One simple command while it is read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.names: list[str] = []
        """What its first word may be instead."""
        self.either: list[tuple[int, int]] = []
        """Places and counts of words of which it has only one."""
        self.assignments: list[tuple[str, tuple[str, ...]]] = []
        self.redirects: list[tuple[str, str]] = []
        """Operator and target, of those that name a file."""
        self.text: str | None = None
        """What it reads on its standard input, if the line says so itself."""
        self.said: str | None = None
        """The same, where no part of it was guessed."""
        self.inside: list[Draft] = []
        """Of a subshell: the commands in it."""
        self.output: str | None = None
        """What it prints, where the listener can tell."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been read of it."""
        return not (self.words or self.assignments or self.redirects or self.inside or self.text is not None)

    def ways(self) -> list[tuple[str, ...]]:
        """Its words, once for each program that it may start."""
        found = [tuple(self.words), *((name, *self.words[1:]) for name in self.names)] if self.words else []
        return [_without_empty(words) for words in found]

    def calls(self) -> list[tuple[str, ...]]:
        """Its words as a function may get them."""
        count = min(_MOST_CALLS, max((count for _, count in self.either), default=1))
        return [self._chosen(turn) for turn in range(count)]

    def _chosen(self, turn: int) -> tuple[str, ...]:
        left_out = {
            place
            for begin, count in self.either
            for place in range(begin, begin + count)
            if place != begin + min(count - 1, turn)
        }
        return tuple(word for place, word in enumerate(self.words) if place not in left_out)


def _without_empty(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words from the first that is not empty: a variable without a value in front of a command is no word."""
    while len(words) > 1 and not words[0]:
        words = words[1:]
    return words


class Listener(Protocol):
    """Hears of commands in the order in which they would run, as far as that can be told."""

    def pipeline(self, commands: Sequence[Draft], bodies: Sequence[str], *, in_background: bool) -> None:
        """Commands joined by `|`, and the names of the functions in whose bodies they stand."""
        ...

    def subshell(self, *, begins: bool) -> None:
        """What follows changes nothing outside, until it ends."""
        ...

    def value(self, name: str) -> tuple[str, ...]:
        """What a variable may hold; for one that isn't known one element, `UNTOLD`."""
        ...

    def printed(self, commands: Sequence[Draft]) -> tuple[str, ...]:
        """What the output of commands in a word may be."""
        ...
