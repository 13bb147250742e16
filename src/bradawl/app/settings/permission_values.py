"""Values of the permission settings: a mode, a sandbox requirement, one rule as it was written."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from bradawl.app.settings.values import parse_choice
from bradawl.core.permissions import MODES, Mode

RuleVerdict = Literal["deny", "ask", "allow", "network", "domain"]
SandboxChoice = Literal["required", "auto", "off"]
SANDBOX_CHOICES: Final[tuple[SandboxChoice, ...]] = ("required", "auto", "off")
RULE_SETTINGS: Final[Mapping[str, RuleVerdict]] = {
    "disallowed_tools": "deny",
    "permissions.deny": "deny",
    "permissions.ask": "ask",
    "allowed_tools": "allow",
    "permissions.allow": "allow",
    "network_commands": "network",
    "network": "domain",
}
"""The settings that hold permission rules, and what their rules do."""
# Spellings of other agents.
_OTHER_NAMES: Final = {"acceptedits": "accept-edits", "accept_edits": "accept-edits", "bypasspermissions": "bypass"}


class RuleText(msgspec.Struct, frozen=True):
    """One permission rule as it was written, and its source."""

    verdict: RuleVerdict
    """`network`: these commands may reach any public host without a question; `domain`: all commands may reach this
    domain, or the domains of this preset, without a question."""
    text: str
    source: str
    """The place in messages: a flag, a variable, or file and key."""
    folder: str
    """The folder that its relative paths start from."""
    is_projects: bool = False
    """It is from a project's file. If it is invalid, it refuses its tool and does not stop the run."""


def parse_mode(value: object, place: str) -> Mode:
    """A permission mode, also in the spelling of other agents. Raises `SettingsError`."""
    named = _OTHER_NAMES.get(value.strip().lower(), value) if isinstance(value, str) else value
    text = parse_choice(named, place, MODES)
    return next(mode for mode in MODES if mode == text)


def parse_sandbox(value: object, place: str) -> SandboxChoice:
    """Whether commands run in a sandbox. Raises `SettingsError`."""
    text = parse_choice(value, place, SANDBOX_CHOICES)
    return next(choice for choice in SANDBOX_CHOICES if choice == text)
