"""What a few commands print whose output is in their words, and the paths that `find` and `ls` list."""

import os
import re
from posixpath import dirname, join

from bradawl.safety.shell.argv import Argv, name_of, names
from bradawl.safety.shell.deny.expansion import MAX_LENGTH, UNKNOWN_VALUE
from bradawl.safety.shell.deny.shell_state import STATE_BUILTINS, ShellState


def known_output(words: Argv, stdin: str | None, state: ShellState) -> str | None:
    """What a command prints with this input; None if unknown."""
    operands = tuple(word for word in words[1:] if not word.startswith("-"))
    match name_of(words):
        case "echo":
            text = " ".join(operands if words[1:2] in _ECHO_OPTIONS else words[1:]) + "\n"
            return _escaped(text) if "e" in "".join(words[1:2])[:3] else text
        case "printf":
            return formatted(words[1:])
        case "cat" | "tee" as name if name == "tee" or not operands:
            return None if stdin == UNKNOWN_VALUE else stdin
        case name:
            is_quiet = name in STATE_BUILTINS or name in _PRINT_NOTHING
            return "" if is_quiet else _printed_path(words, operands, state)


def _printed_path(words: Argv, operands: Argv, state: ShellState) -> str | None:
    match name_of(words):
        case "pwd" | "printenv" as name if len(words) < 3:
            return state.value("PWD" if name == "pwd" else "".join(words[1:]))[0] + "\n"
        case "dirname" if len(operands) == 1:
            return dirname(operands[0]) + "\n"
        case "realpath" | "readlink" if len(operands) == 1:
            return "".join(f"{path}\n" for path in state.protected.possible_paths(operands[0], state.cwd)[-1:])
        case "git" if "rev-parse" in words:
            return _git_folder(words, state.cwd)
        case "mktemp":
            return "/mktemp/new\n"  # stands for a new file in a temporary folder
        case _:
            return None


def _git_folder(words: Argv, cwd: str | None) -> str | None:
    """What `git rev-parse` prints for the folders of a repository."""
    top = join(cwd or "", words[2]) if words[1:2] == ("-C",) else cwd or ""
    while top[:1] == "/" and top != "/" and not os.path.lexists(join(top, ".git")):
        top = dirname(top)
    match words[-2:]:
        case _ if len(top) < 2:
            return None
        case (_, "--git-dir" | "--absolute-git-dir" | "--git-common-dir"):
            return f"{top}/.git\n"
        case (_, "--show-toplevel"):
            return f"{top}\n"
        case ("--git-path", path):
            return f"{top}/.git/{path}\n"
        case _:
            return None


def formatted(words: Argv) -> str | None:
    """What `printf` prints that puts strings into a literal text; None for other formats."""
    words = words[1:] if words[:1] == ("--",) else words
    shape, operands = "".join(words[:1]), list(words[1:])
    if re.search(r"%[^sq]|\\[^nt0]", shape):
        return None
    text = ""
    while not text or (operands and "%" in shape):
        text += re.sub("%[sq]", lambda _: operands.pop(0) if operands else "", _escaped(shape))
        if len(text) > MAX_LENGTH or not shape:
            break
    return text


def _escaped(text: str) -> str:
    return re.sub(r"\\[n0]", "\n", text).replace("\\t", "\t")


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
