"""Advice after a run without a user: the flags, mode or rules that would allow the refused calls."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from bradawl.core.effects import Effects, is_within
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Question

if TYPE_CHECKING:
    from bradawl.core.permissions import Policy

RERUN: Final = "No user is present to be asked"
_EVERYTHING: Final = "--yolo (asks nothing, and nothing holds what runs)"
_RULES_SHOWN: Final = 20
_NAMES_SHOWN: Final = 5


def how_to_allow(
    questions: Sequence[Question], policy: "Policy", *, cwd: str, home: str, without_sandbox: Callable[[], str] = str
) -> str:
    """A sentence that says which flags or settings allow these calls. Relative paths in rules start at `cwd`.

    `without_sandbox` returns advice on installing a sandbox, for calls that a sandbox would have allowed.
    """
    ways = _ways(questions, policy, cwd, home)
    help_with_it = without_sandbox() if _lacks_a_sandbox(questions, policy) else ""
    return f"{ways} {help_with_it}" if help_with_it else ways


def _ways(questions: Sequence[Question], policy: "Policy", cwd: str, home: str) -> str:
    connections = [one for one in questions if one.request.effects.lifts == ("host",)]
    calls = [one for one in questions if one not in connections]
    flags = [*_mode_flags(calls, policy), *_rule_flags(calls, policy, cwd, home), *_host_flags(connections, policy)]
    ways = [f"rerun with {' '.join(flags)}"] if flags else []
    if line := _network_line(questions):
        ways.append(f"put {line} into config.toml")
    last = f", or rerun with {_EVERYTHING}" if _is_allowed_in_bypass(questions, policy) else ""
    if not ways:
        return f"{RERUN}, and no rule allows such calls: run bradawl without -p and answer{last}."
    every = " The rule Bash allows every command." if "--allowed-tools Bash" in flags else ""
    return f"{RERUN}; to allow such calls {' and '.join(ways)}{last}.{every}"


def _is_allowed_in_bypass(questions: Iterable[Question], policy: "Policy") -> bool:
    """Whether the mode `bypass` allows all the calls: it keeps refusals, and commands in the sandbox."""
    import msgspec

    from bradawl.core.permissions import Allow, decide

    bypass = msgspec.structs.replace(policy, mode="bypass")
    return all(isinstance(decide(bypass, one.request), Allow) for one in questions)


def _lacks_a_sandbox(questions: Iterable[Question], policy: "Policy") -> bool:
    """Whether a full sandbox would have allowed one of the calls without a question."""
    if policy.sandbox.holds_anything or policy.mode not in ("default", "auto"):
        return False
    import msgspec

    from bradawl.core.permissions import Allow, Sandbox, decide

    held = msgspec.structs.replace(policy, mode="auto", sandbox=Sandbox("bubblewrap"))
    return any(one.request.effects.seal != "" and isinstance(decide(held, one.request), Allow) for one in questions)


def _is_edit(effects: Effects, roots: Sequence[str]) -> bool:
    """Whether the mode `accept-edits` would have allowed the call."""
    inside = all(any(is_within(path, root) for root in roots) for path in effects.writes)
    return bool(effects.writes) and inside and not effects.commands and not effects.unknown


def _mode_flags(questions: Iterable[Question], policy: "Policy") -> Iterable[str]:
    if policy.mode == "default" and any(_is_edit(one.request.effects, policy.roots) for one in questions):
        yield "--permission-mode accept-edits"


def _rule_flags(questions: Sequence[Question], policy: "Policy", cwd: str, home: str) -> Iterable[str]:
    """One flag with the rules that allow the calls. Pasted into a shell, it allows exactly what was refused."""
    import shlex

    from bradawl.safety.permissions.headless_rules import rules_to_allow

    rules: dict[str, None] = {}
    for question in questions:
        if policy.mode != "default" or not _is_edit(question.request.effects, policy.roots):
            rules.update(dict.fromkeys(rules_to_allow(question.request, policy, cwd=cwd, home=home)))
    if "Bash" in rules:  # the other rules about commands are part of it
        rules = {rule: None for rule in rules if not rule.startswith("Bash(")}
    if rules:
        yield f"--allowed-tools {shlex.quote(', '.join(list(rules)[:_RULES_SHOWN]))}"


def _host_flags(connections: Iterable[Question], policy: "Policy") -> Iterable[str]:
    """The flags for hosts, without those about which a rule asks: no flag lifts that."""
    from bradawl.core.permissions import Ask, decide

    decided = [(one, decide(policy, one.request)) for one in connections]
    grantable = (one for one, found in decided if not (isinstance(found, Ask) and found.by_rule))
    hosts = list(dict.fromkeys(host for one in grantable for host in one.request.effects.hosts))
    yield from (f"--network {host}" for host in hosts[:_NAMES_SHOWN])
    if len(hosts) > _NAMES_SHOWN:
        yield f"(and {len(hosts) - _NAMES_SHOWN} more hosts)"


def _network_line(questions: Iterable[Question]) -> str:
    """The line `network_commands = [...]` for commands that asked for the network only; empty if there are none.

    There is no flag for this. Commands that asked to leave the sandbox are not named.
    """
    import json
    import shlex

    found = dict.fromkeys(
        shlex.join(words)
        for question in questions
        if question.request.effects.lifts == ("network",)
        for words in question.request.effects.commands
        if words[0] != "cd"
    )
    rules = [text for text in found if _is_rule(text)]
    if not rules:
        return ""
    more = f" (and {len(rules) - _NAMES_SHOWN} more)" if len(rules) > _NAMES_SHOWN else ""
    return f"network_commands = {json.dumps(rules[:_NAMES_SHOWN], ensure_ascii=False)}{more}"


def _is_rule(text: str) -> bool:
    from bradawl.safety.permissions.rule_syntax import network_rule

    try:
        network_rule(text, "", "")
    except SettingsError:
        return False
    return True
