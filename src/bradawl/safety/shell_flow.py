"""What variables may hold, to somebody who reads a text once from its top, though bash may skip parts of it."""

import re

from bradawl.safety.shell_expansion import MOST_WORDS, UNTOLD

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
        """What a variable may hold here."""
        return self._values.get(name, ANYTHING)

    def assign(self, name: str, values: Values) -> None:
        """From here on it holds one of these."""
        self._values[name] = in_doubt(values) if name in self._late else values

    def forget(self, word: str) -> None:
        """Something here may set the variable that a word begins with."""
        match = re.match(r"\w+", word)
        if match and match[0] in self._values:
            self._values[match[0]] = in_doubt(self._values[match[0]])

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

    def end_maybe(self, *, is_body: bool = False) -> None:
        """What may not have run may have changed something; the body of a function may do so at any time after."""
        before, after = self._outer.pop(), self._values
        changed = {name for name in before | after if before.get(name) != after.get(name)}
        self._late |= changed if is_body else set()
        both = {name: in_doubt((*before.get(name, ()), *after.get(name, ()))) for name in changed}
        self._values = before | both
