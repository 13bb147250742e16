"""Reads the disk to learn which programs a pattern names and which folders a command prints."""

import os
from collections.abc import Callable
from itertools import islice
from posixpath import dirname, join

from bradawl.safety.shell.deny.expansion import UNKNOWN_BUT_SET, UNKNOWN_VALUE
from bradawl.safety.shell.deny.predicted_output import output_of
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.wrappers import Argv, name_of
from bradawl.safety.shell.glob_expansion import expanded

_MAX_NAMES = 400
_MAX_PROGRAMS = 8
_TRANSPARENT = frozenset({"command", "builtin", "exec", "eval", "env", "nice", "nohup", "time"})


def programs_named(words: Argv, cwd: str | None) -> tuple[Argv, ...]:
    """The words once for each program that the first may name, if it is a pattern or has an unknown part."""
    first = words[0]
    if any(mark in first for mark in "*?[") and len(first) > 1 and first != "[[":
        found = sorted(islice(expanded(join(cwd or "/", first)), _MAX_NAMES))
        return (words, *((each, *words[1:]) for each in found[:_MAX_PROGRAMS] if each != first))
    known = first.replace(UNKNOWN_VALUE, "").replace(UNKNOWN_BUT_SET, "")
    return (words, (known, *words[1:])) if known not in ("", first) else (words,)


def predicted_output(
    words: Argv, text: str | None, cwd: str | None, protected: ProtectedTargets, value: Callable[[str], tuple[str, ...]]
) -> str | None:
    """What a command prints with `text` on its standard input; None if unknown."""
    name = name_of(words)
    while name in _TRANSPARENT and len(words) > 1:
        words = words[1:]
        name = name_of(words)
    match name:
        case "pwd":
            return f"{cwd or UNKNOWN_VALUE}\n"
        case "printenv" if len(words) == 2:
            return value(words[1])[0] + "\n"
        case "realpath" | "readlink":
            operands = [word for word in words[1:] if word[:1] != "-"]
            paths = protected.possible_paths(operands[0], cwd) if len(operands) == 1 else ()
            return f"{paths[-1]}\n" if paths else None
        case "git" if "rev-parse" in words:
            return _of_git(words, cwd)
        case _:
            return output_of(words, text)


def _of_git(words: Argv, cwd: str | None) -> str | None:
    """What `git rev-parse` prints for its folders; None if unknown."""
    folder = join(cwd or "", words[2]) if words[1:2] == ("-C",) else cwd or ""
    top = folder
    while top[:1] == "/" and top != "/" and not os.path.lexists(join(top, ".git")):
        top = dirname(top)
    if top[:1] != "/" or top == "/":
        return None
    match words[-2:]:
        case (_, "--git-dir" | "--absolute-git-dir" | "--git-common-dir"):
            return f"{top}/.git\n"
        case (_, "--show-toplevel"):
            return f"{top}\n"
        case ("--git-path", path):
            return f"{top}/.git/{path}\n"
        case _:
            return None
