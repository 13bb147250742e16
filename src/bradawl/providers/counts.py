"""Token counts as servers really write them."""

from collections.abc import Mapping
from typing import cast


def count(value: object) -> int:
    """A token count as servers write it: an integer, a float, digits in a string, or nothing."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 2**53 else 0


def inside(usage: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The object under a key, or an empty one."""
    details = usage.get(key)
    return cast("dict[str, object]", details) if isinstance(details, dict) else {}
