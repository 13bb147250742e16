"""The decision on a tool call without making the call: for `bradawl permissions check` and for lists of attacks."""

from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal, TypeVar

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import BradawlError, ToolError
from bradawl.core.permissions import Allow, Ask, Deny, Grant, Policy, Request
from bradawl.core.ports import CallContext, Tool
from bradawl.safety.permissions.names_in_sandbox import decide_by_both_names

REASON_LIMIT: Final = 1_000
"""Characters of a reason."""
_FAILURES: Final = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError),
    *(ValueError, BradawlError),
)
P = TypeVar("P", bound=msgspec.Struct)


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The decision on a call that was not made."""

    decision: Literal["allow", "ask", "deny", "error"]
    """`error`: the call is invalid and would be answered with an error."""
    reason: str
    effects: Effects | None = None
    """What the call would touch, as far as that is known."""
    grant: Grant | None = None
    """What the call would be granted if it were allowed."""


def dry_run(tool: Tool[P], params: P, context: CallContext, policy: Policy) -> Verdict:
    """Decide as the agent does: the tool declares effects, then the policy decides."""
    try:
        effects = tool.effects(params, context)
    except ToolError as error:
        return Verdict("error", str(error))
    digest = sha256(repr(params).encode("utf-8", "surrogatepass")).hexdigest()
    return verdict_on(policy, Request(tool.spec.name, digest, effects, tool.spec.rule_names, tool.spec.read_rules))


def verdict_on(policy: Policy, request: Request) -> Verdict:
    """The policy's decision on a request."""
    effects = request.effects
    match decide_by_both_names(policy, request):
        case Allow(grant, reason):
            return Verdict("allow", reason, effects, grant)
        case Ask(grant, reason):
            return Verdict("ask", reason, effects, grant)
        case Deny(reason):
            return Verdict("deny", reason, effects)


def error_as_verdict(judge: Callable[[], Verdict]) -> Verdict:
    """The verdict; an exception becomes a verdict too."""
    try:
        return judge()
    except _FAILURES as error:
        return Verdict("error", f"it can't be judged: {type(error).__name__}: {str(error)[:REASON_LIMIT]}")
