"""What commands of the shell itself change: its working directory, its variables and parameters, its aliases."""

import re
from collections.abc import Callable

from bradawl.safety.shell.deny.expansion import MOST_WORDS, UNTOLD, elements, listed
from bradawl.safety.shell.deny.program_output import output_of
from bradawl.safety.shell.deny.protected_targets import Ground
from bradawl.safety.shell.deny.variable_state import Flow, in_doubt
from bradawl.safety.shell.deny.wrappers import Argv


class ShellState:
    """The shell at the place up to which a text has been read."""

    def __init__(self, flow: Flow, cwd: str, assign: Callable[[str, tuple[str, ...]], None]) -> None:
        """`assign` is called for a variable that gets a value."""
        self.cwd: str | None = cwd
        """None where it can't be told."""
        self.leaves = False
        self.folders: dict[str, None] = {cwd: None}
        """All working directories until now."""
        self.aliases: dict[str, str] = {}
        self.outer: list[str | None] = []
        """Working directories to which the ends of subshells lead back."""
        self._stack: list[str | None] = []
        """Of `pushd`."""
        self._flow = flow
        self._set = assign

    def run(self, name: str, words: Argv, said: str, ground: Ground) -> None:
        """A command of the shell itself; `said` is what stands on its standard input, where that is known."""
        match name:
            case "cd" | "pushd" | "popd":
                self._change_folder(words, ground)
            case "for" | "select" if len(words) > 1:
                each = words[3:] or tuple(one for all_ in self._flow.elements("@") for one in elements(all_))
                self._flow.assign(words[1], in_doubt(each))  # which of them, nobody can tell
            case "set" | "shift":
                self._set_parameters(words)
            case "alias" | "hash":
                self._rename(words)
            case "export" | "declare" | "typeset" | "local" | "readonly":
                self._declare(words, ground.home)
            case "printf" if words[1:2] == ("-v",) and len(words) > 3:
                self._flow.assign(words[2], (output_of(("printf", *words[3:]), None) or "",))
            case "read" | "mapfile" | "readarray" if said and len(words) > 1:
                is_list = name != "read" or "-a" in words
                for variable in words[1:] if name == "read" else words[-1:]:
                    self._read_into(variable, said, is_list=is_list)
            case _:
                for word in words[1:]:  # `read` and its like
                    self._flow.forget(word)

    def _set_parameters(self, words: Argv) -> None:
        if words[0] == "shift":
            self._flow.shift(int(words[1]) if len(words) > 1 and words[1].isdecimal() else 1)
        elif (parameters := _parameters(words)) is not None:
            self._flow.parameters(parameters)

    def _rename(self, words: Argv) -> None:
        """From here on a name means other words."""
        if words[0] == "hash":
            self.aliases |= {words[3]: words[2]} if words[1:2] == ("-p",) and len(words) > 3 else {}
            return
        for word in words[1:]:
            name, equals, value = word.partition("=")
            self.aliases |= {name: value} if equals else {}

    def _declare(self, words: Argv, home: str) -> None:
        is_name = any(word[:1] == "-" and "n" in word for word in words[1:])
        for word in words[1:]:
            variable, equals, value = word.partition("=")
            if equals:
                value = home + value[1:] if home and (value == "~" or value.startswith("~/")) else value
                values = self._flow.elements(value) if is_name else _in_case(value, words)
                self._set(variable, values)

    def _read_into(self, name: str, text: str, *, is_list: bool) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        parts = [part for line in lines for part in re.split(r"[\s:,;]+", line) if part]
        values = (listed(lines), listed(parts)) if is_list else (*lines, *parts)
        if name.isidentifier() and lines:
            self._flow.assign(name, in_doubt(tuple(dict.fromkeys(values))[:MOST_WORDS]))

    def _change_folder(self, words: Argv, ground: Ground) -> None:
        before = self.cwd
        target = self._entered(words, ground.home)
        places = ground.places(target, before) if target else ()
        self.cwd = places[0] if places else None
        self._flow.assign("OLDPWD", (before or UNTOLD,))
        self.folders |= dict.fromkeys(places)
        roots = ground.roots
        self.leaves = self.leaves or not any(_is_in(place, roots) for place in places[-1:])

    def _entered(self, words: Argv, home: str) -> str:
        """The folder that `cd` and its kin go to; empty where it can't be told."""
        targets = [word for word in words[1:] if word[:1] not in "-+" or word == "-"]
        target = targets[0] if targets else home
        if words[0] == "popd" or (words[0] == "pushd" and not targets):
            left = self._stack.pop() if self._stack else None
            self._stack += [self.cwd] if words[0] == "pushd" else []
            return left or ""
        if words[0] == "pushd":
            self._stack.append(self.cwd)
        return self._flow.value("OLDPWD")[0] if target == "-" else target


def _in_case(value: str, words: Argv) -> tuple[str, ...]:
    """A value as `declare -l` and `declare -u` change it."""
    letters = "".join(word for word in words[1:] if word[:1] == "-")
    changed = value.lower() if "l" in letters else value.upper() if "u" in letters else value
    return (value,) if changed == value else (value, changed)


def _is_in(place: str, roots: tuple[str, ...]) -> bool:
    return any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)


def _parameters(words: Argv) -> Argv | None:
    """What `set` makes of the parameters; None if it leaves them alone."""
    place = 1
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] != "-":
        if words[place] == "--":
            return words[place + 1 :]
        place += 2 if words[place][-1] == "o" else 1
    return words[place:] or None


ON_THE_SHELL = frozenset(
    {"set", "shift", "alias", "hash", "cd", "pushd", "popd", "for", "select", "export", "declare", "typeset", "local"}
    | {"readonly", "read", "unset", "printf", "mapfile", "readarray", "getopts", "let", "wait"}
)
"""Names of these commands."""
