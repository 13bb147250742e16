"""Verdicts on what a project's files hold: one `Finding` for each setting, import or program that a file names."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

import msgspec

Verdict = Literal["allow", "sanitize", "ask", "deny", "error"]
"""allow: it takes effect. sanitize: it takes effect, and hidden characters are spelled out where it is shown.
ask: it takes effect after the user has confirmed it. deny: it is ignored with a warning. error: it can't be read, so
nothing in it takes effect."""
ORDER: Final[tuple[Verdict, ...]] = ("allow", "sanitize", "ask", "deny", "error")
"""From the mildest to the strictest; a file has the strictest verdict on what is in it."""


class Finding(msgspec.Struct, frozen=True):
    """The verdict on one entry of a file."""

    key: str
    """As spelled in the file, with dots between levels; empty for the whole file."""
    verdict: Verdict
    reason: str
    name: str = ""
    """The canonical name of the setting, for example `permissions.deny`."""
    value: object = None
    is_for_trust: bool = False
    """It takes effect once the user trusts the folder and this very value."""
    is_program: bool = False
    """It names a program or command to run."""


Check = Callable[[object], str]
"""Says why a value is wrong; empty if it is not."""


class ProjectSettings(NamedTuple):
    """The settings that a project's file may have, by name, with the check of their values."""

    untrusted: Mapping[str, Check]
    """Take effect in every project."""
    trusted: Mapping[str, Check]
    """Take effect once the user trusts the project and this very value."""


def canonical(key: str) -> str:
    """The spelling in which names are compared: `maxSteps`, `max-steps` and `MAX_STEPS` become `max_steps`."""
    spelled: list[str] = []
    before = ""
    for character in key.strip():
        if character.isupper() and before.islower():
            spelled.append("_")
        spelled.append("_" if character in "- " else character.casefold())
        before = character
    return "".join(spelled)
