"""Decides for each tool call, by mode, rules and effects: allow it, ask the user or refuse it. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.core.messages import ToolCall, Value
from bradawl.core.rules import BUILT_IN, Part, ReadRules, Rule, all_met, met, path_rules

Mode = Literal["default", "accept-edits", "plan", "auto", "bypass"]
MODES: tuple[Mode, ...] = ("default", "accept-edits", "plan", "auto", "bypass")


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an allowed call may do. No process starts without one."""

    writable: tuple[str, ...] = ()
    """Files and folders its programs may write to; absolute, resolved. Not limited with `outside_sandbox`."""
    network: bool = False
    outside_sandbox: bool = False
    environment: tuple[str, ...] = ()
    """Variables that decide what later commands run and may stay changed; `*` for all."""
    command_hash: str = ""
    """The seal of the only command it starts; for a call without a command the sha256 of its arguments."""
    uncovered: tuple[str, ...] = ()
    """Paths that the sandbox would hide or protect and that were allowed by name."""
    rules: tuple[Rule, ...] = ()
    """Rules about paths the sandbox must hide or protect from the call."""


class Allow(Value, frozen=True):
    """Run it."""

    grant: Grant
    reason: str


class Ask(Value, frozen=True):
    """Run it only if the user agrees; it would get `grant`."""

    grant: Grant
    reason: str
    by_rule: bool = False
    """A rule demands the question, not only the mode."""


class Deny(Value, frozen=True):
    """Refuse it; the reason is for the model."""

    reason: str


Decision = Allow | Ask | Deny


class Request(msgspec.Struct, frozen=True):
    """A call to be judged."""

    tool: str
    arguments_digest: str
    """sha256 of the raw arguments."""
    effects: Effects
    rule_names: tuple[str, ...] = ()
    """Names besides the tool's own under which rules cover it."""
    read_rules: ReadRules = "whole"

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which rules cover the tool."""
        return (self.tool, *self.rule_names)

    @property
    def stands_alone(self) -> bool:
        """True if an approval says nothing about other calls of the tool, because programs can do anything."""
        return self.effects.unknown or bool(self.effects.commands)


class Sandbox(msgspec.Struct, frozen=True):
    """The sandbox of programs, as tests at start-up found it."""

    name: str = ""
    """Empty if there is none."""
    lacks: tuple[str, ...] = ()
    """Guarantees it can't give."""

    @property
    def holds_anything(self) -> bool:
        """Whether it may run a program whose effects are unknown."""
        return bool(self.name) and not set(self.lacks) - {"domains"}

    @property
    def limits_hosts(self) -> bool:
        """Whether programs reach only hosts that are permitted one by one, or for a command as a whole."""
        return bool(self.name) and "domains" not in self.lacks


class Policy(msgspec.Struct, frozen=True):
    """Mode, rules and workspace; read again for each call."""

    mode: Mode = "default"
    read_only: bool = False
    """Nothing may change in any mode; for sub-agents that only read."""
    rules: tuple[Rule, ...] = ()
    roots: tuple[str, ...] = ()
    """Folders of the workspace; absolute, resolved. Without any, every path is outside."""
    readable: tuple[str, ...] = ()
    """Folders outside it that may be read without a question."""
    sandbox: Sandbox = Sandbox()
    undo: bool = False
    """Undo is on, and complete for the workspace: it can bring back what calls discard there."""
    has_guards: bool = False
    """`rules` include the built-in ones; else a session adds the most important of them."""


_OWN = frozenset({"cwd", "env", "jobs", "mode", "todos", "user"})


def _stays_inside(effects: Effects) -> bool:
    """Whether nothing outside the conversation changes. The calls of a sub-agent are judged one by one."""
    session = tuple(part for part in effects.session if part not in _OWN)
    return msgspec.structs.replace(effects, spends=False, session=session).is_read_only


def _outside(paths: Iterable[str], folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in paths if not any(is_within(path, folder) for folder in folders))


def _change_in(effects: Effects) -> str:
    if effects.writes:
        return f"the call would write {', '.join(effects.writes[:3])}"
    if "host" in effects.lifts:
        return f"the command would reach {', '.join(effects.hosts[:3])}"
    return "what the call would change can't be told (plain ls, cat, head, grep, find and the like can)"


def decide(policy: Policy, request: Request) -> Decision:
    """Judge one call: refusals first, then questions, then permissions; without any, ask."""
    if refusal := _refusal(policy, request):
        return Deny(refusal)
    if policy.mode == "bypass":
        return Allow(_grant(policy, request, network=True), "questions are switched off")
    asked = _grant(policy, request, network=bool(request.effects.hosts))
    if question := request.effects.forced or _question(policy, request):
        return Ask(asked, question, by_rule=True)
    if rule := _allowing(policy, request):
        allowed = Allow(asked, f"{rule.text} ({rule.source}) allows it")
    elif (reason := request.effects.opaque or _by_mode(policy, request)) is None:
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
        holds = rule.verdict == "deny" and (rule.in_bypass or policy.mode != "bypass")
        if holds and (found := _met(rule, request)):
            return _named(rule, found)
    if policy.mode == "bypass" and policy.sandbox.name and "sandbox" in effects.lifts:
        return "commands are to stay in the sandbox, and nobody is asked"
    if _stays_inside(effects):
        return ""
    if policy.read_only:
        return f"this agent only reads, and {_change_in(effects)}; leave that out, or report it instead"
    if policy.mode == "plan":
        return f"nothing may change in plan mode, and {_change_in(effects)}; put it into the plan"
    return ""


def _question(policy: Policy, request: Request) -> str:
    """The reason of a rule that asks; a built-in one does not ask about paths allowed by name."""
    for rule in (each for each in policy.rules if each.verdict == "ask"):
        found = _met(rule, request)
        if found and not (rule.source == BUILT_IN and all_met(_allows(policy, rule.on), found)):
            return _named(rule, found)
    return ""


def _named(rule: Rule, found: tuple[Part, ...]) -> str:
    """The reason of a rule, with the paths or the command that it matches."""
    if rule.on in ("read", "write"):
        return f"{', '.join(map(str, found[:3]))}: {rule.reason}"
    return f"`{_line(found[0])}`: {rule.reason}" if rule.on == "run" else rule.reason


def _line(part: Part) -> str:
    text = " ".join(part)
    return text if len(text) <= 100 else f"{text[:100]}..."


def _met(rule: Rule, request: Request) -> tuple[Part, ...]:
    return met(rule, request.names, request.effects, request.read_rules)


def _allows(policy: Policy, *on: str) -> tuple[Rule, ...]:
    return tuple(rule for rule in policy.rules if rule.verdict == "allow" and rule.on in on)


def _allowing(policy: Policy, request: Request) -> Rule | None:
    """A rule that allows the whole call, alone or together with others."""
    effects = request.effects
    if effects.lifts:
        return all_met(_allows(policy, "connect"), effects.hosts) if effects.lifts == ("host",) else None
    if rule := next((each for each in _allows(policy, "tool") if _met(each, request)), None):
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
        (("write",), effects.writes),
        (("reach", "connect"), effects.hosts),
        (("read",), _outside(effects.reads, (*policy.roots, *policy.readable))),
    ):
        if found and (rule := all_met(_allows(policy, *on), found)) is None:
            return None
    return rule


def _beside_its_words(policy: Policy, effects: Effects) -> tuple[str, ...]:
    """The writes of a shell line that rules about its commands do not cover."""
    outside = _outside(effects.writes, policy.roots)
    if policy.mode in ("accept-edits", "auto"):
        return outside
    return tuple(dict.fromkeys((*outside, *effects.redirects)))


def _programs(effects: Effects) -> tuple[tuple[str, ...], ...]:
    """Its commands but `cd`, whose effect on the others is already taken into account."""
    return tuple(words for words in effects.commands if words[0] != "cd")


def _by_mode(policy: Policy, request: Request) -> str | None:
    """Why the mode asks; None if it allows the call."""
    effects, mode = request.effects, policy.mode
    if effects.lifts not in ((), ("host",)) and not _is_listed(policy, effects):
        hosts = "any public host" if policy.sandbox.limits_hosts else "the network"
        return "it asks to run without the sandbox" if "sandbox" in effects.lifts else f"it asks for {hosts}"
    if outside := _outside(effects.writes, policy.roots):
        uncovered = _uncovered_command(policy, effects) if all_met(_allows(policy, "write"), outside) else ""
        told = f"it writes outside the workspace: {', '.join(outside[:3])}"
        return f"{told}; {uncovered}" if uncovered else told
    if effects.discards and not (policy.undo and effects.undoable):
        return f"it discards {effects.discards}, and undo can't bring that back"
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
    """Whether the sandbox can contain the command; changes for later commands need the user."""
    return bool(effects.seal) and policy.sandbox.holds_anything and set(effects.session) <= _OWN


def _what_changes(policy: Policy, effects: Effects) -> str:
    if variables := tuple(part[4:] for part in effects.session if part.startswith("env:")):
        return f"later commands would run with {', '.join(variables[:5])} as it is set here"
    if effects.hosts:
        return f"it reaches {', '.join(effects.hosts[:3])}"
    told = "what it would change can't be told" if effects.unknown else ""
    if policy.mode == "auto" and effects.seal and told:
        lack = f"can't hold: {', '.join(policy.sandbox.lacks)}" if policy.sandbox.name else "is missing"
        told = f"{told}, and the sandbox {lack}"
    if uncovered := _uncovered_command(policy, effects):
        return f"{uncovered}, and {told}" if told else uncovered
    if policy.mode == "default":
        return ", and ".join(filter(None, ("mode default asks before every change", told)))
    return told or "it changes something, which this mode asks about"


def _uncovered_command(policy: Policy, effects: Effects) -> str:
    """The first command that the rules about commands do not cover, if there are such rules."""
    rules = _allows(policy, "run")
    words = next((words for words in _programs(effects) if all_met(rules, (words,)) is None), ())
    return f"`{_line(words)}` is not covered by {', '.join(rule.text for rule in rules[:3])}" if rules and words else ""


def _is_listed(policy: Policy, effects: Effects) -> bool:
    """Whether rules allow these commands the network."""
    return set(effects.lifts) <= {"network"} and all_met(_allows(policy, "network"), _programs(effects)) is not None


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
    """Whether programs must not reach the paths of a rule: it refuses them, or asks and the user was not asked."""
    return rule.verdict == "deny" or (policy.mode != "bypass" and not _met(rule, request))


def _uncovered(policy: Policy, effects: Effects) -> tuple[str, ...]:
    """Paths of the call that built-in rules ask about; they have been allowed by now."""
    covers = [rule for rule in policy.rules if rule.source == BUILT_IN and rule.verdict == "ask"]
    found = (met(rule, (), effects) for rule in covers if rule.on in ("read", "write"))
    return tuple(dict.fromkeys(path for paths in found for path in paths if isinstance(path, str)))


class Question(msgspec.Struct, frozen=True):
    """Whether a call may run, or its running command connect to `request.effects.hosts`, if the tool is `network`."""

    call: ToolCall
    request: Request
    reason: str
    grant: Grant = Grant()
    """What the call would get."""
    place: str = ""
    """The folder it would run in."""
    variables: Mapping[str, str | None] = {}
    """Variables that earlier commands exported or, as None, unset."""


class Answer(msgspec.Struct, frozen=True):
    """The user's answer; `by` is `nobody` without a user. A no with `session` is for all hosts of the command."""

    allowed: bool
    by: Literal["user", "nobody"]
    scope: Literal["once", "session", "project"] = "once"
    message: str = ""
    """The model gets it with a refusal."""
    rules: tuple[str, ...] = ()
    """Rules that were saved with an approval for the project."""


class Choice(msgspec.Struct, frozen=True):
    """A question of the model to the user."""

    question: str
    options: tuple[str, ...] = ()
    """Proposed answers; the user may give another."""
