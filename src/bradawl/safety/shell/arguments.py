"""Splits the arguments of a program into options and operands as getopt does, given the options that take a value.

`program_options` knows these options by the name of the program.
"""

import msgspec

from bradawl.safety.shell.argv import Argv


class Arguments(msgspec.Struct, frozen=True):
    """Options with their values, and operands."""

    given: tuple[tuple[str, str], ...]
    """Letter or long name of each option, and its value; the value is empty if the option has none."""
    operands: Argv

    def has(self, letters: str, *names: str) -> bool:
        """Whether an option is given by one of `letters` or by one of `names`, which may be abbreviated."""
        return any(_is_one_of(option, letters, names) for option, _ in self.given)

    def values(self, letters: str, *names: str) -> Argv:
        """All non-empty values of the options, in order."""
        return tuple(value for option, value in self.given if value and _is_one_of(option, letters, names))

    def last(self, letters: str, *names: str) -> str:
        """The value of an option, the last one if it is repeated; empty if it is missing."""
        return next(iter(self.values(letters, *names)[::-1]), "")


def _is_one_of(option: str, letters: str, names: tuple[str, ...]) -> bool:
    return option in letters if len(option) == 1 else any(name.startswith(option.rstrip()) for name in names)


def arguments(words: Argv, letters: str = "", names: str = "", optional: str = "") -> Arguments:
    """Split `words` (the program included) into options and operands.

    `letters` and `names` (separated by blanks) are the options that take a value; `optional` are letters whose value is
    only ever attached, as in `-i.bak`.
    """
    given: list[tuple[str, str]] = []
    operands: list[str] = []
    place = 1
    while place < len(words):
        word = words[place]
        place += 1
        if word == "--":
            operands += words[place:]
            break
        if word[:1] != "-" or word == "-":
            operands.append(word)
        elif word[1] == "-":
            place += _long(word, words[place : place + 1], names, given)
        else:
            place += _short(word, words[place : place + 1], letters, optional, given)
    return Arguments(tuple(given), tuple(operands))


def _long(word: str, after: Argv, names: str, given: list[tuple[str, str]]) -> int:
    name, equals, value = word[2:].partition("=")
    takes_next = not equals and any(each.startswith(name) for each in names.split()) and bool(after)
    given.append((name if len(name) > 1 else f"{name} ", after[0] if takes_next else value))
    return int(takes_next)


def _short(word: str, after: Argv, letters: str, optional: str, given: list[tuple[str, str]]) -> int:
    for place, letter in enumerate(word[1:], 2):
        if letter in letters:
            given.append((letter, word[place:] or (after[0] if after else "")))
            return int(not word[place:])
        if letter in optional:
            given.append((letter, word[place:]))
            return 0
        given.append((letter, ""))
    return 0
