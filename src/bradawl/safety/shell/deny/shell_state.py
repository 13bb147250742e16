"""Effects of bash builtins on the state of the shell: working directory, variables, parameters and aliases."""

import re
from collections.abc import Callable

from bradawl.safety.shell.deny.expansion import MAX_WORDS, UNKNOWN_VALUE, array_items, array_value
from bradawl.safety.shell.deny.predicted_output import output_of
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.variable_state import VariableState, widen
from bradawl.safety.shell.deny.wrappers import Argv


class ShellState:
    """State of the shell at the current position of the scan."""

    def __init__(self, variables: VariableState, cwd: str, assign: Callable[[str, tuple[str, ...]], None]) -> None:
        """`assign` is called with the name and possible values of each declared variable."""
        self.cwd: str | None = cwd
        """The working directory; None if unknown."""
        self.leaves = False
        self.folders: dict[str, None] = {cwd: None}
        """All known working directories so far."""
        self.aliases: dict[str, str] = {}
        self.outer: list[str | None] = []
        """Working directories to restore at the ends of subshells."""
        self._stack: list[str | None] = []
        """The directory stack of `pushd`."""
        self._variables = variables
        self._set = assign

    def run(self, name: str, words: Argv, said: str, protected: ProtectedTargets) -> None:
        """Apply a builtin; `said` is the text on its standard input, empty if unknown."""
        match name:
            case "cd" | "pushd" | "popd":
                self._change_folder(words, protected)
            case "for" | "select" if len(words) > 1:
                each = words[3:] or tuple(
                    one for all_ in self._variables.array_values("@") for one in array_items(all_)
                )
                self._variables.assign(words[1], widen(each))  # any of them
            case "set" | "shift":
                self._set_parameters(words)
            case "alias" | "hash":
                self._rename(words)
            case "export" | "declare" | "typeset" | "local" | "readonly":
                self._declare(words, protected.home)
            case "printf" if words[1:2] == ("-v",) and len(words) > 3:
                self._variables.assign(words[2], (output_of(("printf", *words[3:]), None) or "",))
            case "read" | "mapfile" | "readarray" if said and len(words) > 1:
                is_list = name != "read" or "-a" in words
                for variable in words[1:] if name == "read" else words[-1:]:
                    self._read_into(variable, said, is_list=is_list)
            case _:
                for word in words[1:]:  # `read`, `unset`, `getopts` and so on
                    self._variables.widen_variable(word)

    def _set_parameters(self, words: Argv) -> None:
        if words[0] == "shift":
            self._variables.shift(int(words[1]) if len(words) > 1 and words[1].isdecimal() else 1)
        elif (parameters := _parameters(words)) is not None:
            self._variables.set_parameters(parameters)

    def _rename(self, words: Argv) -> None:
        """Apply `alias` or `hash -p`."""
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
                values = self._variables.array_values(value) if is_name else _in_case(value, words)
                self._set(variable, values)

    def _read_into(self, name: str, text: str, *, is_list: bool) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        parts = [part for line in lines for part in re.split(r"[\s:,;]+", line) if part]
        values = (array_value(lines), array_value(parts)) if is_list else (*lines, *parts)
        if name.isidentifier() and lines:
            self._variables.assign(name, widen(tuple(dict.fromkeys(values))[:MAX_WORDS]))

    def _change_folder(self, words: Argv, protected: ProtectedTargets) -> None:
        before = self.cwd
        target = self._entered(words, protected.home)
        possible_paths = protected.possible_paths(target, before) if target else ()
        self.cwd = possible_paths[0] if possible_paths else None
        self._variables.assign("OLDPWD", (before or UNKNOWN_VALUE,))
        self.folders |= dict.fromkeys(possible_paths)
        roots = protected.roots
        self.leaves = self.leaves or not any(_is_in(place, roots) for place in possible_paths[-1:])

    def _entered(self, words: Argv, home: str) -> str:
        """The folder that `cd`, `pushd` or `popd` changes to; empty if unknown."""
        targets = [word for word in words[1:] if word[:1] not in "-+" or word == "-"]
        target = targets[0] if targets else home
        if words[0] == "popd" or (words[0] == "pushd" and not targets):
            left = self._stack.pop() if self._stack else None
            self._stack += [self.cwd] if words[0] == "pushd" else []
            return left or ""
        if words[0] == "pushd":
            self._stack.append(self.cwd)
        return self._variables.value("OLDPWD")[0] if target == "-" else target


def _in_case(value: str, words: Argv) -> tuple[str, ...]:
    """A value, and its lower or upper case form under `declare -l` or `declare -u`."""
    letters = "".join(word for word in words[1:] if word[:1] == "-")
    transformed = value.lower() if "l" in letters else value.upper() if "u" in letters else value
    return (value,) if transformed == value else (value, transformed)


def _is_in(place: str, roots: tuple[str, ...]) -> bool:
    return any(place == root or place.startswith(root.rstrip("/") + "/") for root in roots)


def _parameters(words: Argv) -> Argv | None:
    """The positional parameters that `set` assigns; None if it keeps them."""
    place = 1
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] != "-":
        if words[place] == "--":
            return words[place + 1 :]
        place += 2 if words[place][-1] == "o" else 1
    return words[place:] or None


STATE_BUILTINS = frozenset(
    {"set", "shift", "alias", "hash", "cd", "pushd", "popd", "for", "select", "export", "declare", "typeset", "local"}
    | {"readonly", "read", "unset", "printf", "mapfile", "readarray", "getopts", "let", "wait"}
)
"""Names of the builtins that `ShellState.run` applies."""
