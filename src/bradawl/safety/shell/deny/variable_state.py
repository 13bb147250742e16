"""Tracks the possible values of shell variables through one pass over a text of which bash may skip or repeat parts."""

import re
from collections.abc import Iterable

from bradawl.safety.shell.deny.expansion import MAX_WORDS, UNKNOWN_BUT_SET, UNKNOWN_VALUE, array_items, array_value

Values = tuple[str, ...]
"""Possible values of one variable. A final `UNKNOWN_VALUE` means that any other value is possible too."""

ANY_VALUE: Values = (UNKNOWN_VALUE,)


def widen(values: Values) -> Values:
    """Add "or any other value" to possible values."""
    return (*(value for value in values if value != UNKNOWN_VALUE), UNKNOWN_VALUE)[-MAX_WORDS:]


class VariableState:
    """Possible values of variables at the current position of the scan."""

    def __init__(self, **values: str) -> None:
        self._values: dict[str, Values] = {name: (value,) for name, value in values.items()}
        self._outer: list[dict[str, Values]] = []
        self._set_in_functions: set[str] = set()

    def value(self, name: str) -> Values:
        """Possible values of a variable or parameter; of an array its first item, of `@` all items."""
        values = self._values.get(name)
        if values is not None and name != "@":
            return tuple(array_items(value)[0] for value in values)
        match name:
            case "@":
                return values or ANY_VALUE
            case "*":
                return tuple(" ".join(array_items(value)) for value in self._values.get("@", ANY_VALUE))
            case _ if name.isdecimal():
                return self.element("@", int(name) - 1) if name != "0" else ANY_VALUE
            case _:
                return ANY_VALUE

    def array_values(self, name: str) -> Values:
        """Possible values of a whole array, each with its items marked by `ARRAY_ITEM`."""
        return self._values.get(name, ANY_VALUE)

    def element(self, name: str, place: int) -> Values:
        """Possible values of one array item, counted from 0."""
        found: list[str] = []
        for value in self._values.get(name, ANY_VALUE):
            each = array_items(value)
            found.append(each[place] if 0 <= place < len(each) else UNKNOWN_VALUE)
        return widen(tuple(dict.fromkeys(found))) if UNKNOWN_VALUE in found else tuple(dict.fromkeys(found))

    def is_known(self, name: str) -> bool:
        """Whether the text has assigned or widened it."""
        return name in self._values

    def set_parameters(self, words: Iterable[str], zero: str = "") -> None:
        """Set `$1`, `$2` and so on, and `$0` to `zero` if that isn't empty."""
        self._values["@"] = (array_value(words) or UNKNOWN_VALUE,)
        if zero:
            self._values["0"] = (zero,)

    def shift(self, count: int) -> None:
        """Drop the first `count` positional parameters."""
        self._values["@"] = tuple(
            UNKNOWN_VALUE if value == UNKNOWN_VALUE else array_value(array_items(value)[count:]) or UNKNOWN_VALUE
            for value in self._values.get("@", ANY_VALUE)
        )

    def snapshot(self) -> tuple[dict[str, Values], list[dict[str, Values]]]:
        """The current state, for `restore`."""
        return dict(self._values), list(self._outer)

    def restore(self, state: tuple[dict[str, Values], list[dict[str, Values]]]) -> None:
        """Return to a state from `snapshot`."""
        self._values, self._outer = dict(state[0]), list(state[1])

    def assign(self, name: str, values: Values) -> None:
        """Set the possible values of a variable."""
        values = tuple(dict.fromkeys(value.replace(UNKNOWN_BUT_SET, UNKNOWN_VALUE) for value in values))
        self._values[name] = widen(values) if name in self._set_in_functions else values

    def widen_variable(self, word: str) -> None:
        """Widen the variable whose name a word begins with: a command may set it to anything."""
        if match := re.match(r"[A-Za-z_]\w*", word):
            self._values[match[0]] = widen(self._values.get(match[0], ()))

    def widen_all(self) -> None:
        """Widen all variables: unknown code may set any of them, or the following part may run again later."""
        self._values = {name: widen(values) for name, values in self._values.items()}

    def begin_branch(self) -> None:
        """Begin a part that may not run, or that runs in a process of its own."""
        self._outer.append(self._values)
        self._values = dict(self._values)

    def discard_branch(self) -> None:
        """End a part that ran in a process of its own; drop its changes."""
        self._values = self._outer.pop()

    def merge_branch(self, *, is_body: bool = False, is_repeated: bool = False) -> None:
        """End a part that may not have run, and widen what it changed.

        `is_body`: a function, which may make its changes at any later time.
        `is_repeated`: all variables were widened at its beginning, which alone counts as no change.
        """
        before, after = self._outer.pop(), self._values
        transformed = {name for name in before | after if before.get(name) != after.get(name)}
        if is_repeated:
            transformed = {name for name in transformed if after.get(name) != widen(before.get(name, ()))}
        self._set_in_functions |= transformed if is_body else set()
        both = {name: widen((*before.get(name, ()), *after.get(name, ()))) for name in transformed}
        self._values = before | both


def home_of(user: str) -> str:
    """The home folder that `~user` expands to; empty for an unknown user."""
    import pwd

    try:
        return pwd.getpwnam(user).pw_dir if user.isprintable() else ""
    except (KeyError, ValueError):
        return ""
