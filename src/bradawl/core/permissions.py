"""One pure decision for every call: may it run, must someone be asked, or never."""

from typing import Literal

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.messages import Value

Mode = Literal["default", "bypass"]


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an allowed call may do. A process never starts without one."""

    writable: tuple[str, ...] = ()
    """Folders it may write to; absolute, resolved. Empty with `outside_sandbox` means anywhere."""
    network: bool = False
    outside_sandbox: bool = False
    environment: tuple[str, ...] = ()
    """Names of variables passed beyond the standard ones."""
    command_hash: str = ""
    """sha256 of the command that was judged; the one that runs must be the same."""


class Allow(Value, frozen=True):
    """Run it."""

    grant: Grant
    reason: str


class Ask(Value, frozen=True):
    """Run it only if the user says so; `grant` is what it would get."""

    grant: Grant
    reason: str


class Deny(Value, frozen=True):
    """Never; the reason is for the model."""

    reason: str


Decision = Allow | Ask | Deny


class Request(msgspec.Struct, frozen=True):
    """What is to be judged."""

    tool: str
    arguments_digest: str
    """sha256 of the raw arguments."""
    effects: Effects


class Policy(msgspec.Struct, frozen=True):
    """The rules in force; read anew for each call."""

    mode: Mode = "default"


def decide(policy: Policy, request: Request) -> Decision:
    """Judge one call. Whatever isn't known to be read-only asks, unless the user switched questions off."""
    grant = Grant(
        writable=request.effects.writes,
        network=True,
        outside_sandbox=True,
        command_hash=request.arguments_digest,
    )
    if policy.mode == "bypass":
        return Allow(grant, "questions are switched off")
    if request.effects.is_read_only:
        return Allow(Grant(command_hash=request.arguments_digest), "it only reads")
    if request.effects.unknown:
        return Ask(grant, "what it would change can't be told")
    return Ask(grant, "it changes something")
