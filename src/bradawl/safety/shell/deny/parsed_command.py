"""Parsed commands, and the visitor interface that the lenient parser passes them to."""

from collections.abc import Sequence
from typing import Protocol

_MAX_CALLS = 6


class ScanBudgetExceeded(Exception):
    """The text exceeds the limits of a scan. The visitor has received everything that was parsed before."""


class ParsedCommand:
    """One simple command; the parser fills it, the visitor adds `output`."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.other_names: list[str] = []
        """Other possible values of the first word."""
        self.alternatives: list[tuple[int, int]] = []
        """(index, count) of runs of words that are alternatives for one word."""
        self.assignments: list[tuple[str, tuple[str, ...]]] = []
        self.redirects: list[tuple[str, str]] = []
        """(operator, target) of the redirections that name a file."""
        self.stdin: str | None = None
        """Text on its standard input, as far as the line determines it."""
        self.literal_stdin: str | None = None
        """The same, if no part of it is a guess."""
        self.subshell_commands: list[ParsedCommand] = []
        """The commands in a subshell."""
        self.output: str | None = None
        """What it prints, if the visitor knows."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no words, assignments, redirections, input or subshell yet."""
        return not (
            self.words or self.assignments or self.redirects or self.subshell_commands or self.stdin is not None
        )

    def program_argvs(self) -> list[tuple[str, ...]]:
        """Its words, once for each possible first word."""
        found = [tuple(self.words), *((name, *self.words[1:]) for name in self.other_names)] if self.words else []
        return [_without_empty(words) for words in found]

    def call_argvs(self) -> list[tuple[str, ...]]:
        """Its words with one alternative chosen for each run, for the calls of a function."""
        count = min(_MAX_CALLS, max((count for _, count in self.alternatives), default=1))
        return [self._chosen(turn) for turn in range(count)]

    def _chosen(self, turn: int) -> tuple[str, ...]:
        left_out = {
            place
            for begin, count in self.alternatives
            for place in range(begin, begin + count)
            if place != begin + min(count - 1, turn)
        }
        return tuple(word for place, word in enumerate(self.words) if place not in left_out)


def _without_empty(words: tuple[str, ...]) -> tuple[str, ...]:
    """Drop leading empty words: bash drops an unquoted variable without a value in front of a command."""
    while len(words) > 1 and not words[0]:
        words = words[1:]
    return words


class CommandVisitor(Protocol):
    """Receives commands in the order in which bash would run them, as far as that is known."""

    def visit_pipeline(self, commands: Sequence[ParsedCommand], bodies: Sequence[str], *, in_background: bool) -> None:
        """Receive commands joined by `|`, and the names of the functions whose bodies enclose them."""
        ...

    def visit_subshell(self, *, begins: bool) -> None:
        """A subshell begins or ends. Changes of the shell's state within it don't outlast it."""
        ...

    def variable_value(self, name: str) -> tuple[str, ...]:
        """Possible values of a variable; `(UNKNOWN_VALUE,)` for an unknown one."""
        ...

    def substitution_output(self, commands: Sequence[ParsedCommand]) -> tuple[str, ...]:
        """Possible outputs of the commands of a substitution."""
        ...
