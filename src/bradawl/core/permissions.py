"""One pure decision for every call: may it run, must someone be asked, or never."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.core.messages import ToolCall, Value
from bradawl.core.rules import BUILT_IN, Rule, all_met, met, path_rules

Mode = Literal["default", "accept-edits", "plan", "auto", "bypass"]
MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto", "bypass")


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an allowed call may do. A process never starts without one."""

    writable: tuple[str, ...] = ()
    """Files and folders its programs may write to; absolute, resolved. With `outside_sandbox` they may anywhere."""
    network: bool = False
    outside_sandbox: bool = False
    environment: tuple[str, ...] = ()
    """Names of variables that decide what later commands run and that may stay changed; `*` for all."""
    command_hash: str = ""
    """The seal of the command that was judged, which is the only one that starts with it; sha256 of the arguments of
    a call that runs no command."""
    uncovered: tuple[str, ...] = ()
    """Paths the sandbox would hide or protect, and that were allowed by name."""
    rules: tuple[Rule, ...] = ()
    """Rules about paths that the call must not get at, for the sandbox to cover."""


class Allow(Value, frozen=True):
    """Run it."""

    grant: Grant
    reason: str


class Ask(Value, frozen=True):
    """Run it only if the user says so; `grant` is what it would get."""

    grant: Grant
    reason: str
    by_rule: bool = False
    """A rule wants it asked, not the mode alone."""


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


class Sandbox(msgspec.Struct, frozen=True):
    """What holds the programs that are started here, as it was found to behave."""

    name: str = ""
    """Empty where nothing holds them."""
    lacks: tuple[str, ...] = ()
    """What it should hold, and can't."""

    @property
    def holds_anything(self) -> bool:
        """Whether a program that can't be understood may be left to it."""
        return bool(self.name) and not self.lacks


class Policy(msgspec.Struct, frozen=True):
    """The rules in force; read anew for each call."""

    mode: Mode = "default"
    read_only: bool = False
    """Nothing may change, whatever the mode; of a sub-agent that only looks."""
    rules: tuple[Rule, ...] = ()
    roots: tuple[str, ...] = ()
    """Folders of the workspace; absolute, resolved. Without any, every path lies outside."""
    readable: tuple[str, ...] = ()
    """Folders outside it that may be read unasked."""
    sandbox: Sandbox = Sandbox()
    has_guards: bool = False
    """The built-in rules are among `rules`; else a session adds the least of them."""


_OWN = frozenset({"cwd", "env", "jobs", "mode", "todos", "user"})


def _stays_inside(effects: Effects) -> bool:
    """Nothing outside the conversation changes: a plan, a question, a folder entered.

    A sub-agent only spends: what it does is judged call by call.
    """
    session = tuple(part for part in effects.session if part not in _OWN)
    return msgspec.structs.replace(effects, spends=False, session=session).is_read_only


def _outside(paths: Iterable[str], folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if not any(is_within(path, folder) for folder in folders))


def _change_in(effects: Effects) -> str:
    if effects.writes:
        return f"the call would write {', '.join(effects.writes[:3])}"
    return "what the call would change can't be told (plain ls, cat, head, grep, find and the like can)"


# ------------------------------------------------------------------ the decision


def decide(policy: Policy, request: Request) -> Decision:
    """Judge one call: refusals first, then questions, then what is allowed; what nothing speaks of asks."""
    if refusal := _refusal(policy, request):
        return Deny(refusal)
    if policy.mode == "bypass":
        return Allow(_grant(policy, request, network=True), "questions are switched off")
    asked = _grant(policy, request, network=bool(request.effects.hosts))
    if question := _question(policy, request):
        return Ask(asked, question, by_rule=True)
    if rule := _allowing(policy, request):
        allowed = Allow(asked, f"{rule.text} ({rule.source}) allows it")
    elif (reason := _by_mode(policy, request)) is None:
        allowed = Allow(_grant(policy, request, network=False), "it stays within what this mode allows")
    else:
        return Ask(asked, reason)
    if (names := request.effects.variables) and (allowed.grant.outside_sandbox or allowed.grant.network):
        return Ask(asked, f"it would run with what earlier commands exported: {', '.join(names[:5])}")
    return allowed


def _refusal(policy: Policy, request: Request) -> str:
    """Why the call may never run; empty if it may."""
    effects = request.effects
    if effects.danger:
        return effects.danger
    for rule in policy.rules:
        holds = rule.in_bypass or policy.mode != "bypass"
        if rule.verdict == "deny" and holds and met(rule, request.tool, effects):
            return rule.reason
    if policy.mode == "bypass" and policy.sandbox.name and "sandbox" in effects.lifts:
        return "commands are to stay in the sandbox, and nobody is asked"
    if _stays_inside(effects):
        return ""
    if policy.read_only:
        return f"this agent only reads, and {_change_in(effects)}; leave that out, or report it instead"
    if policy.mode == "plan":
        return f"nothing may change in plan mode, and {_change_in(effects)}; put it into the plan (exit_plan)"
    return ""


def _question(policy: Policy, request: Request) -> str:
    """What a rule wants asked; a built-in question is not asked about a path that somebody allowed by name."""
    for rule in policy.rules:
        if rule.verdict != "ask":
            continue
        found = met(rule, request.tool, request.effects)
        if found and not (rule.source == BUILT_IN and all_met(_allows(policy, rule.on), found)):
            return rule.reason
    return ""


def _allows(policy: Policy, on: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in policy.rules if rule.verdict == "allow" and rule.on == on)


def _allowing(policy: Policy, request: Request) -> Rule | None:
    """The rule that allows the whole call, alone or with others."""
    effects = request.effects
    if effects.lifts:
        return None
    if rule := all_met(_allows(policy, "tool"), (request.tool,)):
        return rule
    if effects.seal:
        beside = _beside_its_words(policy, effects)
        if beside and all_met(_allows(policy, "write"), beside) is None:
            return None
        return all_met(_allows(policy, "run"), _programs(effects))
    if not _stays_inside(msgspec.structs.replace(effects, writes=(), hosts=())):
        return None
    rule = None
    for on, found in (
        ("write", effects.writes),
        ("reach", effects.hosts),
        ("read", _outside(effects.reads, (*policy.roots, *policy.readable))),
    ):
        if found and (rule := all_met(_allows(policy, on), found)) is None:
            return None
    return rule


def _beside_its_words(policy: Policy, effects: Effects) -> tuple[str, ...]:
    """What a line writes to that a rule about the words of its commands can't have meant."""
    outside = _outside(effects.writes, policy.roots)
    if policy.mode in ("accept-edits", "auto"):
        return outside
    return tuple(dict.fromkeys((*outside, *effects.redirects)))


def _programs(effects: Effects) -> tuple[tuple[str, ...], ...]:
    """What runs besides `cd`, which decides where the others do: that has been taken into account."""
    return tuple(words for words in effects.commands if words[0] != "cd")


def _by_mode(policy: Policy, request: Request) -> str | None:
    """Why the mode wants the user asked; None if it allows the call."""
    effects, mode = request.effects, policy.mode
    if effects.lifts and not _is_listed(policy, effects):
        return "it asks to run without the sandbox" if "sandbox" in effects.lifts else "it asks for the network"
    if outside := _outside(effects.writes, policy.roots):
        return f"it writes outside the workspace: {', '.join(outside[:3])}"
    if mode == "auto" and _is_contained(policy, effects):
        return None
    reads = () if mode == "auto" else _outside(effects.reads, (*policy.roots, *policy.readable))
    if reads:
        return f"it reads outside the workspace: {', '.join(reads[:3])}"
    writes_freely = mode in ("accept-edits", "auto") and not effects.commands
    if _stays_inside(msgspec.structs.replace(effects, writes=()) if writes_freely else effects):
        return None
    return _what_changes(policy, effects)


def _is_contained(policy: Policy, effects: Effects) -> bool:
    """A command, left to a sandbox that can hold it; what it would change for later commands is for the user."""
    return bool(effects.seal) and policy.sandbox.holds_anything and set(effects.session) <= _OWN


def _what_changes(policy: Policy, effects: Effects) -> str:
    if effects.hosts:
        return f"it reaches {', '.join(effects.hosts[:3])}"
    if not effects.unknown:
        return "it changes something"
    if policy.mode == "auto" and effects.seal:
        lack = f"can't hold: {', '.join(policy.sandbox.lacks)}" if policy.sandbox.name else "is missing"
        return f"what it would change can't be told, and the sandbox {lack}"
    return "what it would change can't be told"


def _is_listed(policy: Policy, effects: Effects) -> bool:
    """Whether the user has said beforehand that these commands may reach the network."""
    wants_more = set(effects.lifts) - {"network"}
    return not wants_more and all_met(_allows(policy, "network"), _programs(effects)) is not None


def _grant(policy: Policy, request: Request, *, network: bool) -> Grant:
    effects, everything = request.effects, policy.mode == "bypass"
    grant = Grant(command_hash=effects.seal or request.arguments_digest, uncovered=_uncovered(policy, effects))
    if effects.seal:
        covered = (rule for rule in path_rules(policy.rules) if rule.places and _is_covered(policy, request, rule))
        grant = msgspec.structs.replace(grant, rules=tuple(covered))
    if _stays_inside(effects) and not everything:
        return grant
    confined = bool(policy.sandbox.name) and "sandbox" not in effects.lifts
    variables = tuple(part[4:] for part in effects.session if part.startswith("env:"))
    return msgspec.structs.replace(
        grant,
        writable=(*policy.roots, *_outside(effects.writes, policy.roots)) if confined else effects.writes,
        network=not confined or network or "network" in effects.lifts or _is_listed(policy, effects),
        outside_sandbox=not confined,
        environment=("*",) if everything else variables,
    )


def _is_covered(policy: Policy, request: Request, rule: Rule) -> bool:
    """Whether programs must not get at what a rule speaks of: it refuses that, or asks and nobody was asked."""
    return rule.verdict == "deny" or (policy.mode != "bypass" and not met(rule, request.tool, request.effects))


def _uncovered(policy: Policy, effects: Effects) -> tuple[str, ...]:
    """What the call touches of that which is asked about by itself; who got this far has been allowed to."""
    covers = [rule for rule in policy.rules if rule.source == BUILT_IN and rule.verdict == "ask"]
    found = (met(rule, "", effects) for rule in covers if rule.on in ("read", "write"))
    return tuple(dict.fromkeys(path for paths in found for path in paths if isinstance(path, str)))


# ------------------------------------------------------------------ asking


class Question(msgspec.Struct, frozen=True):
    """What the user is asked before a call runs."""

    call: ToolCall
    request: Request
    reason: str
    grant: Grant = Grant()
    """What it would get."""
    place: str = ""
    """The folder it would run in."""
    variables: Mapping[str, str | None] = {}
    """What earlier commands of the session exported or, as None, unset: it would run with that."""


class Answer(msgspec.Struct, frozen=True):
    """The user's word. `by` is `nobody` when there is no one to ask."""

    allowed: bool
    by: Literal["user", "nobody"]
    scope: Literal["once", "session", "project"] = "once"
    message: str = ""
    """Passed on to the model with a refusal."""
    rules: tuple[str, ...] = ()
    """What was saved with a yes for the project, as it can be read there."""


class Choice(msgspec.Struct, frozen=True):
    """What the model wants to know from the user."""

    question: str
    options: tuple[str, ...] = ()
    """Answers to choose from; the user may always say something else."""
