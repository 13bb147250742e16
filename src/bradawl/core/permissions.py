"""One pure decision for every call: may it run, must someone be asked, or never."""

from typing import Literal

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.messages import ToolCall, Value

Mode = Literal["default", "bypass"]


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an allowed call may do. A process never starts without one."""

    writable: tuple[str, ...] = ()
    """Folders it may write to; absolute, resolved. Empty with `outside_sandbox` means anywhere."""
    network: bool = False
    outside_sandbox: bool = False
    environment: tuple[str, ...] = ()
    """Names of variables that decide what later commands run and that may stay changed; `*` for all."""
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

    @property
    def stands_alone(self) -> bool:
        """True when a yes to it says nothing about other calls of the tool: programs can do anything."""
        return self.effects.unknown or bool(self.effects.commands)


class Policy(msgspec.Struct, frozen=True):
    """The rules in force; read anew for each call."""

    mode: Mode = "default"
    read_only: bool = False
    """Nothing may change, whatever the mode; of a sub-agent that only looks."""


_OWN = frozenset({"cwd", "env", "jobs", "todos", "user"})


def _stays_inside(effects: Effects) -> bool:
    """Nothing outside the conversation changes: a plan, a question, a folder entered.

    A sub-agent only spends: what it does is judged call by call.
    """
    session = tuple(part for part in effects.session if part not in _OWN)
    return msgspec.structs.replace(effects, spends=False, session=session).is_read_only


def _change_in(effects: Effects) -> str:
    if effects.writes:
        return f"the call would write {', '.join(effects.writes[:3])}"
    return "what the call would change can't be told (plain ls, cat, head, grep, find and the like can)"


def decide(policy: Policy, request: Request) -> Decision:
    """Judge one call. Whatever isn't known to be read-only asks, unless the user switched questions off."""
    harmless = _stays_inside(request.effects)
    if policy.read_only and not harmless:
        return Deny(f"this agent only reads, and {_change_in(request.effects)}; leave that out, or report it instead")
    everything = policy.mode == "bypass"
    variables = tuple(part[4:] for part in request.effects.session if part.startswith("env:"))
    grant = Grant(
        writable=request.effects.writes,
        network=True,
        outside_sandbox=True,
        environment=("*",) if everything else variables,
        command_hash=request.arguments_digest,
    )
    if everything:
        return Allow(grant, "questions are switched off")
    if harmless:
        return Allow(Grant(command_hash=request.arguments_digest), "it changes nothing outside the conversation")
    if request.effects.unknown:
        return Ask(grant, "what it would change can't be told")
    return Ask(grant, "it changes something")


class Question(msgspec.Struct, frozen=True):
    """What the user is asked before a call runs."""

    call: ToolCall
    request: Request
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """The user's word. `by` is `nobody` when there is no one to ask."""

    allowed: bool
    by: Literal["user", "nobody"]
    scope: Literal["once", "session"] = "once"
    message: str = ""
    """Passed on to the model with a refusal."""
