"""What variables may hold, to somebody who reads a text once from its top, though bash may skip parts of it."""

import re
from collections.abc import Iterable

from bradawl.safety.shell.deny.expansion import DOUBT, MOST_WORDS, UNTOLD, elements, listed

Values = tuple[str, ...]
"""What one variable may hold; `UNTOLD` among them, then as the last: or anything else."""

ANYTHING: Values = (UNTOLD,)


def in_doubt(values: Values) -> Values:
    """These, or anything else."""
    return (*(value for value in values if value != UNTOLD), UNTOLD)[-MOST_WORDS:]


class Flow:
    """Values of variables at the place up to which a text has been read."""

    def __init__(self, **values: str) -> None:
        self._values: dict[str, Values] = {name: (value,) for name, value in values.items()}
        self._outer: list[dict[str, Values]] = []
        self._late: set[str] = set()

    def value(self, name: str) -> Values:
        """What a variable or a parameter may hold here; of an array its first element, of `@` all."""
        values = self._values.get(name)
        if values is not None and name != "@":
            return tuple(elements(value)[0] for value in values)
        match name:
            case "@":
                return values or ANYTHING
            case "*":
                return tuple(" ".join(elements(value)) for value in self._values.get("@", ANYTHING))
            case _ if name.isdecimal():
                return self.element("@", int(name) - 1) if name != "0" else ANYTHING
            case _:
                return ANYTHING

    def elements(self, name: str) -> Values:
        """What all elements of an array may be together."""
        return self._values.get(name, ANYTHING)

    def element(self, name: str, place: int) -> Values:
        """What one element of an array may be."""
        found: list[str] = []
        for value in self._values.get(name, ANYTHING):
            each = elements(value)
            found.append(each[place] if 0 <= place < len(each) else UNTOLD)
        return in_doubt(tuple(dict.fromkeys(found))) if UNTOLD in found else tuple(dict.fromkeys(found))

    def is_known(self, name: str) -> bool:
        """Whether anything was said about it."""
        return name in self._values

    def parameters(self, words: Iterable[str], zero: str = "") -> None:
        """From here on these are `$1`, `$2` and so on."""
        self._values["@"] = (listed(words) or UNTOLD,)
        if zero:
            self._values["0"] = (zero,)

    def shift(self, count: int) -> None:
        """The first so many of them go."""
        self._values["@"] = tuple(
            UNTOLD if value == UNTOLD else listed(elements(value)[count:]) or UNTOLD
            for value in self._values.get("@", ANYTHING)
        )

    def mark(self) -> tuple[dict[str, Values], list[dict[str, Values]]]:
        """All that is known, for `back`."""
        return dict(self._values), list(self._outer)

    def back(self, mark: tuple[dict[str, Values], list[dict[str, Values]]]) -> None:
        """Know what was known then."""
        self._values, self._outer = dict(mark[0]), list(mark[1])

    def assign(self, name: str, values: Values) -> None:
        """From here on it holds one of these."""
        values = tuple(dict.fromkeys(value.replace(DOUBT, UNTOLD) for value in values))
        self._values[name] = in_doubt(values) if name in self._late else values

    def forget(self, word: str) -> None:
        """Something here may set the variable that a word begins with."""
        if match := re.match(r"[A-Za-z_]\w*", word):
            self._values[match[0]] = in_doubt(self._values.get(match[0], ()))

    def doubt(self) -> None:
        """Something here may set any of them, or what follows may run again later."""
        self._values = {name: in_doubt(values) for name, values in self._values.items()}

    def begin(self) -> None:
        """A part begins that may not run, or runs in a process of its own."""
        self._outer.append(self._values)
        self._values = dict(self._values)

    def end_apart(self) -> None:
        """What ran in a process of its own changed nothing here."""
        self._values = self._outer.pop()

    def end_maybe(self, *, is_body: bool = False, is_again: bool = False) -> None:
        """What may not have run may have changed something; the body of a function may do so at any time after.

        `is_again`: all was in doubt in there from the beginning, which alone changes nothing.
        """
        before, after = self._outer.pop(), self._values
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        if is_again:
            changed = {name for name in changed if after.get(name) != in_doubt(before.get(name, ()))}
        self._late |= changed if is_body else set()
        both = {name: in_doubt((*before.get(name, ()), *after.get(name, ()))) for name in changed}
        self._values = before | both


def home_of(user: str) -> str:
    """The home folder of a user of this machine, as `~user` names it; empty for an unknown one."""
    import pwd

    try:
        return pwd.getpwnam(user).pw_dir if user.isprintable() else ""
    except (KeyError, ValueError):
        return ""
