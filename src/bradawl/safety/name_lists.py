"""Long lists of names in messages."""

from collections.abc import Callable, Collection
from itertools import islice
from typing import TypeVar

_Name = TypeVar("_Name")


def first_of(names: Collection[_Name], most: int, shown: Callable[[_Name], str] = str, separator: str = ", ") -> str:
    """The first names in one line, and how many more there are. `shown` turns one of them into text."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(map(shown, islice(names, most))) + more
