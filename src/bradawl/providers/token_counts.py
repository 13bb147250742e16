"""Reads token counts from the JSON forms that servers use."""

from collections.abc import Mapping
from typing import cast


def count(value: object) -> int:
    """A token count from an integer, a float or a string of digits; 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 2**53 else 0


def inside(usage: Mapping[str, object], key: str) -> Mapping[str, object]:
    """The object under a key, or an empty one."""
    details = usage.get(key)
    return cast("dict[str, object]", details) if isinstance(details, dict) else {}
