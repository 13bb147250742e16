"""Values of the permission settings: a mode, a sandbox requirement, one rule as it was written."""

from typing import Final, Literal

import msgspec

from bradawl.app.settings.values import parse_choice
from bradawl.core.permissions import MODES, Mode

RuleVerdict = Literal["deny", "ask", "allow", "network"]
SandboxWish = Literal["required", "auto", "off"]
SANDBOX_WISHES: Final[tuple[SandboxWish, ...]] = ("required", "auto", "off")
# What others call the same.
_OTHER_NAMES: Final = {"acceptedits": "accept-edits", "accept_edits": "accept-edits", "bypasspermissions": "bypass"}


class RuleText(msgspec.Struct, frozen=True):
    """One permission rule as somebody wrote it."""

    verdict: RuleVerdict
    """`network`: these commands may reach the network unasked."""
    text: str
    source: str
    """What to call the place in a message."""
    folder: str
    """What its relative paths start from."""
    is_projects: bool = False
    """It came with the project: one that can't be understood must not stop the user."""


def parse_mode(value: object, place: str) -> Mode:
    """A mode by any of its names. Raises `SettingsError`."""
    named = _OTHER_NAMES.get(value.strip().lower(), value) if isinstance(value, str) else value
    text = parse_choice(named, place, MODES)
    return next(mode for mode in MODES if mode == text)


def parse_sandbox(value: object, place: str) -> SandboxWish:
    """What is wanted of the sandbox. Raises `SettingsError`."""
    text = parse_choice(value, place, SANDBOX_WISHES)
    return next(wish for wish in SANDBOX_WISHES if wish == text)
