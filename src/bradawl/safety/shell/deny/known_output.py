"""What a few commands print whose output is in their words, and the paths that `find` and `ls` list."""

import re
from posixpath import dirname

from bradawl.safety.shell.argv import Argv, name_of, names
from bradawl.safety.shell.deny.expansion import UNKNOWN_VALUE
from bradawl.safety.shell.deny.shell_state import STATE_BUILTINS, ShellState


def known_output(words: Argv, stdin: str | None, state: ShellState) -> str | None:
    """What a command prints with this input; None if unknown."""
    operands = tuple(word for word in words[1:] if not word.startswith("-"))
    match name_of(words):
        case "echo":
            return " ".join(operands if words[1:2] in _ECHO_OPTIONS else words[1:]) + "\n"
        case "printf":
            return formatted(words[1:])
        case "cat" | "tee" as name if name == "tee" or not operands:
            return None if stdin == UNKNOWN_VALUE else stdin
        case "pwd" | "printenv" as name if len(words) < 3:
            return state.value("PWD" if name == "pwd" else "".join(words[1:]))[0] + "\n"
        case "dirname" if len(operands) == 1:
            return dirname(operands[0]) + "\n"
        case "realpath" | "readlink" if len(operands) == 1:
            return "".join(f"{path}\n" for path in state.protected.possible_paths(operands[0], state.cwd)[-1:])
        case "mktemp":
            return "/mktemp/new\n"  # stands for a new file in a temporary folder
        case name:
            return "" if name in STATE_BUILTINS or name in _PRINT_NOTHING else None


def formatted(words: Argv) -> str | None:
    """What `printf` prints that puts strings into a literal text; None for other formats."""
    shape, operands = "".join(words[:1]), iter(words[1:])
    if re.search(r"%[^s]|\\[^n0]", shape):
        return None
    text = re.sub("%s", lambda _: next(operands, ""), re.sub(r"\\[n0]", "\n", shape))
    return "\n".join((text, *operands))


def listed_paths(words: Argv) -> str:
    """Patterns, one a line, for what `find` or `ls` lists; empty for other commands."""
    name = name_of(words)
    starts = [word for word in words[1:] if word[:1] not in ("-", "(", "!")]
    if name == "find":
        below = "/*" if all(word in _LIST_ALL for word in words[1:] if word[:1] == "-") else ""
        return "\n".join(f"{word}{below}" for word in starts if word[:1] in ("/", "~", "."))
    if name == "ls" and not prints_paths(words):
        return "\n".join(f"{word.rstrip('/')}/*" for word in starts) or "*"
    return "\n".join(starts) if name == "ls" else ""


def prints_paths(words: Argv) -> bool:
    """Whether `find` or `ls` prints paths rather than bare names."""
    return name_of(words) == "find" or any(re.match(r"-[a-zA-Z]*d", word) for word in words[1:])


_ECHO_OPTIONS = (("-n",), ("-e",), ("-E",), ("-ne",), ("-en",))
_PRINT_NOTHING = names(": true false test [ [[")
_LIST_ALL = names("-type -print -print0 -depth -mindepth -maxdepth -xdev -L -H -P")
"""Options with which `find` lists all below a folder."""
