"""One command and where it stands, taken apart into options and operands, for the judges of its kind."""

from collections.abc import Callable

import msgspec

from bradawl.safety.shell.deny.protected_targets import Ground
from bradawl.safety.shell.deny.wrappers import Argv


class Scene(msgspec.Struct, frozen=True):
    """Where a command stands."""

    ground: Ground
    cwd: str | None
    """None where that can't be told."""

    def guards(self, *texts: str, replaces: bool = False) -> str:
        """Why one of these may not be written to, or not be replaced."""
        return self.ground.guards(texts, self.cwd, replaces=replaces)


Judge = Callable[[Scene, Argv], str]
"""Gives back a reason, empty for none."""


def split(words: Argv, with_value: str = "") -> tuple[list[str], list[str]]:
    """Options and operands; an option's value, if it is a word of its own, counts as neither."""
    flags: list[str] = []
    operands: list[str] = []
    is_over = is_value = False
    for word in words[1:]:
        if is_value:
            is_value = False
        elif is_over or word[:1] != "-" or word == "-":
            operands.append(word)
        elif word == "--":
            is_over = True
        else:
            flags.append(word)
            is_value = word[1:2] != "-" and word[-1] in with_value
    return flags, operands


def has(flags: list[str], letters: str, *names: str) -> bool:
    """Whether an option is given, by its letter or by its name, also shortened."""
    for flag in flags:
        if flag.startswith("--"):
            given = flag[2:].partition("=")[0]
            if any(name.startswith(given) for name in names if len(given) > 1):
                return True
        elif any(letter in flag[1:] for letter in letters):
            return True
    return False


def option(words: Argv, *names: str) -> str:
    """The value of an option, of the last if it is given several times."""
    value = ""
    for place, word in enumerate(words):
        if word in names and place + 1 < len(words):
            value = words[place + 1]
        elif word.startswith("--") and word.partition("=")[0] in names:
            value = word.partition("=")[2]
        elif word.startswith(names[0]) and len(word) > 2 and word[1] != "-":
            value = word[2:]
    return value
