"""Verdicts on what a project's files hold: one `Finding` for each setting, import or program that a file names."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

import msgspec

Verdict = Literal["allow", "sanitize", "ask", "deny", "error"]
"""allow: it counts. sanitize: it is shown with what is hidden in it spelled out. ask: nothing happens before the user
has confirmed it. deny: it is ignored, and that is said. error: it can't be read, so nothing of it counts."""
ORDER: Final[tuple[Verdict, ...]] = ("allow", "sanitize", "ask", "deny", "error")
"""From the mildest on; of several the last holds."""


class Finding(msgspec.Struct, frozen=True):
    """The verdict on one thing that a file says."""

    key: str
    """As it stands in the file, with dots between levels; empty for the whole file."""
    verdict: Verdict
    reason: str
    name: str = ""
    """The setting that is meant, for example `permissions.deny`."""
    value: object = None
    is_for_trust: bool = False
    """Once the user trusts the folder and this very value, it counts."""
    is_program: bool = False
    """It says what to run."""


Check = Callable[[object], str]
"""Says why a value is wrong; empty if it is not."""


class ProjectSettings(NamedTuple):
    """The settings that a project's file may have, by name, with the check of their values."""

    untrusted: Mapping[str, Check]
    """Take effect in every project."""
    trusted: Mapping[str, Check]
    """Take effect once the user trusts the project and this very value."""


def canonical(key: str) -> str:
    """A name in the one spelling settings are compared in: `maxSteps`, `max-steps` and `MAX_STEPS` are one."""
    spelled: list[str] = []
    before = ""
    for character in key.strip():
        if character.isupper() and before.islower():
            spelled.append("_")
        spelled.append("_" if character in "- " else character.casefold())
        before = character
    return "".join(spelled)
