"""Cleans a key as users paste it, and recognises what is no key. Pure; no message repeats the key."""

import re
from typing import Final, NamedTuple

from bradawl.core.errors import SettingsError
from bradawl.safety.control_characters import clean

_ASSIGNMENT: Final = re.compile(
    r"(?P<command>export\s+|set\s+|\$env:)?[\"']?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[\"']?\s*[:=]\s*(?P<value>[^\s=].*)",
    re.DOTALL,
)
_COMMAND: Final = re.compile(r"(?:set\s+-\w+|setenv)\s+\w+\s+(?P<value>\S.*)", re.DOTALL)
_NAMES: Final = re.compile(r"key|token|secret|auth|pass", re.IGNORECASE)
_BEARER: Final = re.compile(r"(?:(?:Authorization\s*:\s*)?Bearer\s|x-api-key\s*:)\s*(?P<value>\S.*)", re.DOTALL | re.I)
_QUOTES: Final = "\"'`\u201c\u201d\u2018\u2019"
_PLACEHOLDER: Final = re.compile(
    r"\$\{?\w+\}?|%\w+%|<.*>|\[.*\]|\*{3,}.*|.*\.\.\.+|x{6,}|your[-_ ]?(?:api[-_ ]?)?key.*|sk-x+"
    r"|[A-Z]+(?:_[A-Z]+)*_(?:KEY|TOKEN)",
    re.IGNORECASE | re.DOTALL,
)
_PREFIXES: Final = (
    ("sk-ant-", "anthropic"),
    ("sk-or-", "openrouter"),
    ("sk-proj-", "openai"),
    ("gsk_", "groq"),
    ("xai-", "xai"),
    ("AIza", "gemini"),
    ("csk-", "cerebras"),
    ("fw_", "fireworks"),
)
"""How the keys of some vendors begin. Other vendors use these beginnings too seldom to matter: it is only a remark."""
_SHOWN_FROM: Final = 16
"""Characters of the shortest key whose end is shown."""


class CleanedKey(NamedTuple):
    """A key, and what was removed from the pasted text."""

    key: str
    removed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"CleanedKey(***, {self.removed!r})"


def cleaned_key(text: str) -> CleanedKey:
    """The key in a pasted text; empty if there is nothing in it.

    Raises `SettingsError` for a placeholder, the name of a variable, or characters that no key has.
    """
    removed: list[str] = []
    key = clean(text)
    if key != text.replace("\r\n", "\n").replace("\r", "\n"):
        removed.append("invisible characters")
    if key.strip() != key.rstrip("\n"):
        removed.append("blanks around it")
    key = _unwrapped(key.strip(), removed)
    if re.search(r"[ \t]", key):
        removed.append("blanks in it")
    if "\n" in key:
        removed.append("line breaks in it")
    key = re.sub(r"\s+", "", key)
    if key and _PLACEHOLDER.fullmatch(key):
        raise SettingsError("That is a placeholder or the name of a variable, not a key. Copy the key itself.")
    if not key.isascii() or not key.isprintable():
        raise SettingsError("That has characters in it that no key has. Copy the key again.")
    return CleanedKey(key, tuple(dict.fromkeys(removed)))


def _unwrapped(key: str, removed: list[str]) -> str:
    """The text without quotes, `export NAME=` and `Bearer` around it, in whatever order they are."""
    while key:
        inner = key.rstrip(";,").strip()
        if inner.strip(_QUOTES) != inner:
            removed.append("quotes")
            inner = inner.strip(_QUOTES).strip()
        if (bearer := _BEARER.fullmatch(inner)) is not None:
            removed.append("the name of the header")
            inner = bearer["value"]
        elif (command := _COMMAND.fullmatch(inner)) is not None:
            removed.append("the name of the variable")
            inner = command["value"]
        elif (found := _ASSIGNMENT.fullmatch(inner)) is not None and (found["command"] or _NAMES.search(found["name"])):
            removed.append("the name of the variable")
            inner = found["value"]
        if inner == key:
            return key
        key = inner
    return key


def vendor_of(key: str) -> str:
    """The provider whose keys begin like this one; empty if that is not known."""
    return next((vendor for prefix, vendor in _PREFIXES if key.startswith(prefix)), "")


def masked(key: str) -> str:
    """The last four characters; none of a short key."""
    return f"…{key[-4:]}" if len(key) >= _SHOWN_FROM else "…"


def looks_like_key(word: str) -> bool:
    """Whether a word could be a key that was typed in the wrong place."""
    if vendor_of(word) or word.startswith(("sk-", "sk_")):
        return len(word) >= _SHOWN_FROM
    has_shape = len(word) >= 24 and re.fullmatch(r"[\w.-]+", word) is not None
    return has_shape and re.search(r"\d", word) is not None and re.search("[A-Za-z]", word) is not None
