"""What is known of the shell at the current place of a scan: variables, working directory, functions, aliases."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from bradawl.core.effects import is_within
from bradawl.safety.shell.argv import Argv, names
from bradawl.safety.shell.deny.expansion import (
    FIELD,
    MAX_VALUES,
    SLICE,
    UNKNOWN_BUT_SET,
    UNKNOWN_VALUE,
    Values,
    any_of,
    transformed,
)
from bradawl.safety.shell.deny.protected_targets import ProtectedTargets
from bradawl.safety.shell.deny.syntax import AndOr, Parameter
from bradawl.safety.shell.glob_expansion import is_pattern


class ShellState:
    """Possible values of variables; an array is the text of its items, each after `FIELD`."""

    def __init__(self, protected: ProtectedTargets, cwd: str) -> None:
        self.cwd: str | None = cwd
        """The working directory; None if unknown."""
        self.folders: dict[str, None] = {cwd: None}
        """All known working directories so far."""
        self.leaves = False
        """Whether the shell changes to a folder outside the workspace, or to an unknown one."""
        self.functions: dict[str, list[AndOr]] = {}
        self.aliases: dict[str, str] = {}
        self.variables: dict[str, Values] = {"OLDPWD": ((protected.environment or {}).get("OLDPWD") or UNKNOWN_VALUE,)}
        self.protected = protected
        """With the links and copies of secrets that the text has made so far."""
        self._stack: list[str | None] = []
        """The folders to which `popd` returns."""

    # -------------------------------------------------------------- what may not run, or runs in another process

    @contextmanager
    def subshell(self) -> Iterator[None]:
        """Undo all changes at the end."""
        before = self.variables, self.cwd
        self.variables = dict(self.variables)
        yield
        self.variables, self.cwd = before

    @contextmanager
    def branch(self) -> Iterator[None]:
        """At the end, add the values from the beginning: what is done in between may not be done."""
        before = dict(self.variables)
        yield
        self.variables = {
            name: any_of(values, before.get(name) or self._inherited(name)) for name, values in self.variables.items()
        }

    # -------------------------------------------------------------- variables

    def assign(self, name: str, values: Values) -> None:
        """Set the possible values of a variable; of a parameter's text nothing is taken to be set."""
        self.variables[name] = any_of(tuple(value.replace(UNKNOWN_BUT_SET, UNKNOWN_VALUE) for value in values))

    def set_parameters(self, words: Argv) -> None:
        """Set `$@`."""
        self.variables["@"] = ("".join(FIELD + word for word in words),)

    def value(self, name: str, index: str | None = None) -> Values:
        """Possible values of a variable, parameter or item; `index` `@` gives whole arrays."""
        if name == "PWD":
            return (self.cwd or UNKNOWN_VALUE,)
        if name in ("@", "*") or re.fullmatch("[1-9][0-9]{0,3}", name):
            name, index = "@", str(int(name) - 1) if name.isdecimal() else name
        values = self.variables.get(name)
        if values is None:
            return self._inherited(name)
        return any_of(*(_items(value, index) for value in values))

    def restore(self, before: dict[str, Values | None]) -> None:
        """Give variables their earlier values; None for one that was not set."""
        for name, values in before.items():
            self.variables.pop(name, None)
            self.variables |= {name: values} if values is not None else {}

    def with_home(self, value: str) -> str:
        """Expand a leading `~`, `~+`, `~-` or `~user`."""
        if value[:1] != "~":
            return value
        user, slash, rest = value[1:].partition("/")
        variable = {"": "HOME", "+": "PWD", "-": "OLDPWD"}.get(user)
        return (self.value(variable)[0] if variable else _home_of(user) or UNKNOWN_VALUE) + slash + rest

    def _inherited(self, name: str) -> Values:
        if name == "HOME":
            return (self.protected.home or UNKNOWN_VALUE,)
        return self.protected.variable(name) if name.isidentifier() and name not in _SET_BY_BASH else (UNKNOWN_VALUE,)

    def expanded(self, parameter: Parameter, operand: Values) -> Values:
        """Possible values of `$name` or `${name...}`; `operand` are those of the text after the operator."""
        name, operator = parameter.name, parameter.operator
        values = self.value(name, parameter.subscript)
        if parameter.prefix == "!":
            values = any_of(*(self.value(each) for each in values))
        if name == "#" or parameter.prefix == "#":
            return (UNKNOWN_VALUE,)
        match operator.removeprefix(":"):
            case "-" | "=":
                if UNKNOWN_VALUE in values or "" in values:
                    values = any_of(tuple(filter(None, values)), operand)
                if operator.endswith("="):
                    self.assign(name, values)
                return values
            case "+":
                return any_of(operand, ("",))
            case "?":
                return tuple(value.replace(UNKNOWN_VALUE, UNKNOWN_BUT_SET) for value in values)
            case "" if not operator:
                return values
            case _ if name in ("@", "*") and operator == ":":
                return tuple(_slice(value, operand[0]) for value in values)
            case _:
                return any_of(tuple(transformed(value, operator, operand[0]) for value in values))

    # -------------------------------------------------------------- builtins

    def run(self, name: str, words: Argv, stdin: str | None) -> None:
        """Apply a builtin that changes the state."""
        match name:
            case "cd" | "pushd" | "popd":
                self._change_folder(words)
            case "shift" if "@" in self.variables:
                count = int(words[1]) if len(words) > 1 and re.fullmatch("[0-9]{1,4}", words[1]) else 1
                left = (value.split(FIELD)[count + 1 :] for value in self.variables["@"])
                self.variables["@"] = tuple("".join(FIELD + item for item in items) for items in left)
            case "set" if operands := _PARAMETERS.sub("", "".join(FIELD + word for word in words[1:])):
                self.variables["@"] = (operands,)
            case "alias":
                self.aliases |= dict(word.split("=", 1) for word in words if "=" in word)
            case "hash" if words[1:2] == ("-p",) and len(words) > 3:
                self.aliases[words[3]] = words[2]
            case "read" | "mapfile" | "readarray" if stdin:
                items = [part for line in stdin.split("\n") for part in (line, *re.split(r"[\s:,;]+", line)) if part]
                values = any_of(("".join(FIELD + item for item in items),), tuple(items), (UNKNOWN_VALUE,))
                self.variables |= dict.fromkeys(words[1:], values)
            case _:
                for word in words[1:]:  # `unset`, `getopts`, `let` and so on may set them to anything
                    if match := re.match(r"[A-Za-z_]\w*", word):
                        self.assign(match[0], (*self.value(match[0]), UNKNOWN_VALUE))

    def _change_folder(self, words: Argv) -> None:
        before = self.cwd
        targets = [word for word in words[1:] if word[:1] not in "-+" or word == "-"] or [self.protected.home]
        if words[0] == "popd":
            targets = [self._stack.pop() or "" if self._stack else ""]
        elif words[0] == "pushd":
            self._stack.append(before)
        target = self.value("OLDPWD")[0] if targets[0] == "-" else targets[0]
        paths = self.protected.possible_paths(target, before) if target else ()
        self.cwd = paths[0] if paths else None
        self.assign("OLDPWD", (before or UNKNOWN_VALUE,))
        self.folders |= dict.fromkeys(paths)
        is_inside = any(is_within(path, root) for path in paths[-1:] for root in self.protected.roots)
        # A pattern may match a link.
        self.leaves = self.leaves or not is_inside or is_pattern(target)


def _home_of(user: str) -> str:
    """The home folder that `~user` expands to; empty for an unknown user."""
    import pwd

    try:
        return pwd.getpwnam(user).pw_dir if user.isprintable() else ""
    except (KeyError, ValueError):
        return ""


def _items(value: str, index: str | None) -> Values:
    if value in (UNKNOWN_VALUE, UNKNOWN_BUT_SET):
        return (value,)
    items = value[1:].split(FIELD) if value[:1] == FIELD else [value]
    match index:
        case "@":
            return (value,)
        case "*":
            return (" ".join(items),)
        case None | "":
            return (items[0],)
        case _ if re.fullmatch("[0-9]{1,4}", index):
            return (items[int(index)] if int(index) < len(items) else "",)
        case _:
            return tuple(items)


def _slice(value: str, rest: str) -> str:
    """The parameters that `${@:1:2}` selects."""
    if (match := SLICE.fullmatch(rest)) is None:
        return UNKNOWN_VALUE
    items = value.split(FIELD)[int(match[1]) :][: int(match[2] or MAX_VALUES)]
    return "".join(FIELD + item for item in items if item)


_PARAMETERS = re.compile(rf"\A(?:{FIELD}[-+](?:[a-zA-Z]*o{FIELD})?\w+)*(?:{FIELD}--)?")
"""The options of `set`."""
_SET_BY_BASH = names("IFS BASH BASH_ENV BASH_SOURCE OLDPWD _")
"""Variables whose inherited values don't count, because bash sets them itself."""
STATE_BUILTINS = names("cd pushd popd shift set alias hash read mapfile readarray unset getopts let wait")
"""What `ShellState.run` applies."""
