"""Decisions about the session's own `/tmp`, whose files have two names: the real one, and the one that commands use."""

from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.permissions import Ask, Decision, Deny, Policy, Request, decide
from bradawl.core.rules import path_rules
from bradawl.safety.permissions.protected_paths import is_scratch

_TMP: Final = "/tmp"  # noqa: S108 - as commands name it


def decide_by_both_names(policy: Policy, request: Request) -> Decision:
    """As `decide`; the user's rules about paths also refuse and ask by the names that commands use."""
    decision = decide(policy, request)
    if isinstance(decision, Deny) or (other := _renamed(policy, request)) is None:
        return decision
    match decide(msgspec.structs.replace(policy, rules=path_rules(policy.rules)), other):
        case Deny() as refusal:
            return refusal
        case Ask(reason=reason, by_rule=True):
            return Ask(decision.grant, reason, by_rule=True)
        case _:
            return decision


def _renamed(policy: Policy, request: Request) -> Request | None:
    """The request with the names that commands use, and these paths only; None without any."""
    if not policy.sandbox.name or "private_tmp" in policy.sandbox.lacks:
        return None
    folders = tuple(filter(is_scratch, policy.roots))
    reads, writes = _names(request.effects.reads, folders), _names(request.effects.writes, folders)
    if not (reads or writes):
        return None
    effects = msgspec.structs.replace(request.effects, reads=reads, writes=writes, danger="", forced="")
    return msgspec.structs.replace(request, effects=effects)


def _names(paths: tuple[str, ...], folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_TMP + path[len(folder) :] for folder in folders for path in paths if is_within(path, folder))
