"""Splits the words of a command into options and operands, and defines the context in which a command is checked."""

from collections.abc import Callable

import msgspec

from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.wrappers import Argv


class CommandContext(msgspec.Struct, frozen=True):
    """What a hazard check knows besides the command's words."""

    protected: ProtectedTargets
    cwd: str | None
    """Working directory; None if unknown."""

    def guards(self, *texts: str, replaces: bool = False) -> str:
        """Why the first protected one of these paths may not be written to, or not be replaced; empty if none is."""
        return self.protected.guards(texts, self.cwd, replaces=replaces)


HazardCheck = Callable[[CommandContext, Argv], str]
"""Returns the reason why a command must not run; empty for none."""


def split(words: Argv, with_value: str = "") -> tuple[list[str], list[str]]:
    """Split words into options and operands, without the separate values of the options in `with_value`."""
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
    """Whether an option is given, by letter or by name; names may be abbreviated."""
    for flag in flags:
        if flag.startswith("--"):
            given = flag[2:].partition("=")[0]
            if any(name.startswith(given) for name in names if len(given) > 1):
                return True
        elif any(letter in flag[1:] for letter in letters):
            return True
    return False


def option(words: Argv, *names: str) -> str:
    """The value of an option, the last if it is given several times; empty if it is missing."""
    value = ""
    for place, word in enumerate(words):
        if word in names and place + 1 < len(words):
            value = words[place + 1]
        elif word.startswith("--") and word.partition("=")[0] in names:
            value = word.partition("=")[2]
        elif word.startswith(names[0]) and len(word) > 2 and word[1] != "-":
            value = word[2:]
    return value
