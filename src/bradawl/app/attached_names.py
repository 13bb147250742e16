"""Names behind `@` in a prompt, and which of them were pasted: a paste alone attaches nothing."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

_NAMED: Final = re.compile(r"""(?:^|(?<=[\s(]))@(?:"([^"\n]+)"|([^\s"]+))""")
_ANYWHERE: Final = re.compile(r"""@(?:"([^"\n]+)"|([^\s"]+))""")
_END_OF_WORD: Final = ".,;:!?)"
_MOST: Final = 10_000


def names_in(text: str) -> Iterator[str]:
    """The names behind `@` in a text, without quotation marks."""
    return (found[1] or found[2] for found in _NAMED.finditer(text))


def spellings_of(name: str) -> tuple[str, ...]:
    """A name, and the same without what ends a sentence."""
    return tuple(dict.fromkeys(each for each in (name, name.rstrip(_END_OF_WORD)) if each))


def is_pasted(name: str, pasted: Iterable[str]) -> bool:
    """Whether the name, or its beginning, was pasted with its `@`."""
    return any(name.startswith(each) for each in pasted)


class PastedNames:
    """Names whose `@` was pasted, and that the user has not confirmed since."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """These names, without quotation marks."""
        return tuple(self._names)

    def add(self, text: str) -> None:
        """Note the names in a pasted text; also those with a letter before the `@`, which may be removed."""
        for found in _ANYWHERE.finditer(text):
            self._names.update(dict.fromkeys(spellings_of(found[1] or found[2])))
        while len(self._names) > _MOST:
            del self._names[next(iter(self._names))]

    def confirm(self, completion: str) -> None:
        """The user took a completion: it may be attached, and what it completes."""
        taken = completion.strip()
        self._names = {name: None for name in self._names if not taken.startswith(name)}

    def keep_those_in(self, text: str) -> None:
        """Forget the names that are not in the text; called when the user types an `@`."""
        self._names = {name: None for name in self._names if f"@{name}" in text or f'@"{name}' in text}
