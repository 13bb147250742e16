"""Applies the decision of `core.permissions` to a prepared call, and asks the user where that says so."""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import Final, assert_never

import msgspec

from bradawl.agent.calls.call import ASKS_USER, Prepared, Refused
from bradawl.agent.calls.context import CallServices
from bradawl.agent.calls.prepare import foreseen_failure
from bradawl.agent.calls.questions import permission
from bradawl.agent.conversation import Conversation
from bradawl.core.effects import Effects
from bradawl.core.events import PermissionAsked, PermissionDecided
from bradawl.core.permissions import Allow, Answer, Ask, Decision, Deny, Grant, Policy, Question, Request
from bradawl.core.ports import Files
from bradawl.safety.permissions.builtin_rules import with_builtin_rules
from bradawl.safety.permissions.names_in_sandbox import decide_by_both_names
from bradawl.shaping.approval_scope import covered
from bradawl.shaping.refusal_hints import without_user

_NOT_SAVED: Final = (
    "The history of this session can't be written to the disk, so undo would not know what was changed: commands that"
    " discard work are asked about."
)


class SessionPolicy:
    """The policy for the next call of a session: the agent's policy, in the mode chosen in the session.

    The mode `bypass` is never taken from a resumed session: it must be chosen again. A policy without built-in rules
    gets them here.
    """

    def __init__(self, policy: Callable[[], Policy], files: Files, conversation: Conversation) -> None:
        self._policy, self._files, self._conversation = policy, files, conversation

    def __call__(self) -> Policy:
        """The policy of this moment: mode and rules can change between calls."""
        policy, mode = with_builtin_rules(self._policy(), self._files), self._conversation.state.mode
        if mode is None or mode == "bypass":
            return policy
        return msgspec.structs.replace(policy, mode=mode)


async def authorize(services: CallServices, prepared: Prepared, reply_ended: asyncio.Event) -> Grant | Refused:
    """Decide whether the call may run. A question is asked only after the reply has ended."""
    call = prepared.call
    if ASKS_USER in prepared.effects.session:
        await reply_ended.wait()  # a reply may be withdrawn until it has ended, but a question can't be
    undo = await _undo_covers(services, prepared)
    decision = decision_on(services, prepared, undo=undo)
    if isinstance(decision, Ask):
        await reply_ended.wait()
        async with services.asking:
            # The answer to an earlier question may cover this call too.
            decision = decision_on(services, prepared, undo=undo)
            if isinstance(decision, Ask):
                return await _ask(services, prepared, decision)
    match decision:
        case Allow(grant, reason):
            if not prepared.effects.is_read_only:
                services.conversation.record(PermissionDecided(call.id, "allow", "policy", reason))
            return grant
        case Deny(reason):
            services.conversation.record(PermissionDecided(call.id, "deny", "policy", reason))
            return _refused(prepared, reason, ".")
        case _:
            assert_never(decision)


def _scope_of(services: CallServices, prepared: Prepared, ask: Ask) -> str:
    """Identifies what an answer for the whole session covers; empty if it covers this call alone."""
    return covered(_request(prepared), ask, services.conversation.name, prepared.place.cwd, prepared.place.env)


def _request(prepared: Prepared) -> Request:
    digest = sha256(prepared.call.raw_arguments.encode("utf-8", "surrogatepass")).hexdigest()
    spec = prepared.tool.spec
    if prepared.effects.lifts == ("host",):  # rules about the tool applied when its command was judged
        return Request("network", digest, prepared.effects)
    return Request(spec.name, digest, prepared.effects, spec.rule_names, spec.read_rules)


async def _undo_covers(services: CallServices, prepared: Prepared) -> bool:
    """Whether undo can bring back what the call discards."""
    changes = services.changes if prepared.effects.discards else None
    if changes is None:
        return False
    if not await services.conversation.is_on_disk():
        services.conversation.warn(_NOT_SAVED)
        return False
    return await changes.covers()


def decision_on(services: CallServices, prepared: Prepared, *, undo: bool = False) -> Decision:
    """The decision by rules, mode and the user's answers for the session. `undo`: see `Policy.undo`."""
    policy = services.policy() if undo else msgspec.structs.replace(services.policy(), undo=False)
    decision = decide_by_both_names(policy, _request(prepared))
    if isinstance(decision, Ask) and _scope_of(services, prepared, decision) in services.allowed:
        return Allow(decision.grant, "allowed by the user for this session")
    return decision


async def _ask(services: CallServices, prepared: Prepared, ask: Ask) -> Grant | Refused:
    call = prepared.call
    if prepared.effects.lifts != ("host",) and (failed := await foreseen_failure(services, prepared, ask.grant)):
        return failed
    services.conversation.record(PermissionAsked(call.id, ask.reason))
    place = prepared.place
    question = Question(call, _request(prepared), ask.reason, ask.grant, place.cwd, place.env)
    answer = await permission(services.approver, question)
    word = "allow" if answer.allowed else "deny"
    services.conversation.record(PermissionDecided(call.id, word, answer.by, ", ".join(answer.rules), answer.scope))
    if answer.allowed:
        if answer.scope == "session" and (scope := _scope_of(services, prepared, ask)):
            services.allowed.add(scope)
        return ask.grant
    return _denied(services, prepared, ask, answer)


def _denied(services: CallServices, prepared: Prepared, ask: Ask, answer: Answer) -> Refused:
    call, lacks_user = prepared.call, answer.by == "nobody"
    if lacks_user or prepared.effects.lifts == ("host",):  # the result of such a command need not be an error
        services.denials.add(call)
    if lacks_user:
        needed, is_first = _how_granted(prepared.effects, ask), services.denials.attempts.is_first_denied(call.id)
        return _refused(prepared, without_user(call, needed or ask.reason, prepared.place.cwd, is_first=is_first))
    said = f" They said: {answer.message}" if answer.message else " Do something else, or say what you need and why."
    refused = _refused(prepared, f"the user declined.{said}")
    return msgspec.structs.replace(refused, is_for_all_hosts=answer.scope == "session")


def _how_granted(effects: Effects, ask: Ask) -> str:
    """The options that would allow the connections of a command; empty for any other call, and if a rule asks."""
    is_grantable = effects.lifts == ("host",) and not ask.by_rule
    return " ".join(f"--network {host}" for host in effects.hosts) if is_grantable else ""


def _refused(prepared: Prepared, why: str, end: str = "") -> Refused:
    """A call that is not run; or a connection that is not made, for which the text is the reason alone."""
    if prepared.effects.lifts == ("host",):
        return Refused(prepared.call, why, "refused")
    return Refused(prepared.call, f"{prepared.call.name} was not run: {why}{end}", "refused")
