"""One setting's value, checked: every error names the place it came from."""

from collections.abc import Mapping
from math import isfinite
from typing import Final, cast

from bradawl.core.errors import SettingsError

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How hard a model may be asked to think."""


def table_in(value: object, place: str) -> dict[str, object]:
    """A TOML table. Raises `SettingsError`."""
    if not isinstance(value, dict):
        raise SettingsError(f"{place} must be a table.")
    return cast("dict[str, object]", value)


def text_in(value: object, place: str, *, may_be_empty: bool = False) -> str:
    """A text without control characters, stripped. Raises `SettingsError`."""
    if not isinstance(value, str):
        raise SettingsError(f"{place} must be a text, not {value!r}.")
    text = value.strip()
    if not text and not may_be_empty:
        raise SettingsError(f"{place} is empty.")
    if not text.isprintable():
        raise SettingsError(f"{place} has a control character in it: {text!r}.")
    return text


def count_in(value: object, place: str) -> int:
    """A whole number of at least 1. Raises `SettingsError`."""
    text = value.strip().replace("_", "") if isinstance(value, str) else ""
    if text.isascii() and text.isdigit() and len(text) < 16:
        value = int(text)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{place} must be a whole number of at least 1, not {value!r}.")
    return value


def amount_in(value: object, place: str) -> float:
    """A number that is not negative. Raises `SettingsError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or not isfinite(value):
        raise SettingsError(f"{place} must be a number of at least 0, not {value!r}.")
    return float(value)


_WORDS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


def flag_in(value: object, place: str) -> bool:
    """True or false, also in words. Raises `SettingsError`."""
    answer = value if isinstance(value, bool) else _WORDS.get(str(value).strip().lower())
    if answer is None:
        raise SettingsError(f"{place} must be true or false, not {value!r}.")
    return answer


def choice_in(value: object, place: str, choices: tuple[str, ...]) -> str:
    """One of some words, in lower case. Raises `SettingsError`."""
    text = text_in(value, place).lower()
    if text not in choices:
        raise SettingsError(f"{place} must be one of {', '.join(choices)}, not {text!r}.")
    return text


def refuse_unknown(table: Mapping[str, object], known: frozenset[str], place: str) -> None:
    """Raises `SettingsError` for the first key that is not known, with the nearest that is."""
    for key in table:
        if key not in known:
            from difflib import get_close_matches

            near = get_close_matches(key, known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(sorted(known))}."
            raise SettingsError(f"{place}.{key} is not a setting; {hint}")
