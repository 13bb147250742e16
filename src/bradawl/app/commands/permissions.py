"""The slash command `/permissions`."""

import asyncio
import os
from typing import Final, Literal, NamedTuple

from bradawl.agent.session_rules import SESSION, rule_in
from bradawl.app.frontend import FrontendSession
from bradawl.app.modes import mode_text
from bradawl.app.remembered_rules import RememberedRules
from bradawl.app.rendering import cut, one_line
from bradawl.app.slash_commands import CommandError, Rest, command
from bradawl.app.terminal_user import Option
from bradawl.core.errors import SettingsError
from bradawl.core.events import CallPrepared, PermissionDecided, RulesAdded
from bradawl.core.rules import BUILT_IN
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule

_ALWAYS: Final = "always"
_LINE: Final = 100
Verdict = Literal["allow", "ask", "deny"]


class _Shown(NamedTuple):
    """A rule in the list."""

    verdict: str
    text: str
    source: str


@command("permissions")
async def show_or_change_rules(
    session: FrontendSession, action: Verdict | Literal["remove"] | None = None, rule: Rest = ""
) -> str:
    """List the permission rules in force, or change them: /permissions allow Bash(make:*).

    `allow`, `ask` and `deny` add a RULE for this session, which later runs of the session keep. `/permissions allow
    always RULE` allows it in this folder from now on, in all sessions. `/permissions remove 2` removes the rule with
    that number in the list. Rules of the settings are changed in their files. A refusal is stronger than a permission.
    """
    if action is None:
        return _overview(session)
    if not rule:
        wanted = "the number of a rule" if action == "remove" else "a rule, such as Bash(npm test:*)"
        raise CommandError(f"/permissions {action} needs {wanted}.")
    _check_has_begun(session)
    if action == "remove":
        return await _remove(session, rule)
    return await _add(session, action, rule)


def _overview(session: FrontendSession) -> str:
    policy = session.session.policy()
    rules = _rules(session)
    lines = [f"mode {mode_text(session.mode)}", ""]
    lines += [
        f"{number:>2}  {each.verdict:<5} {cut(one_line(each.text), _LINE)}  ({one_line(each.source)})"
        for number, each in enumerate(rules, 1)
    ]
    if not rules:
        lines.append("No rules of your own. /permissions allow Bash(npm test:*) adds one.")
    built_in = len({rule.text or rule.pattern for rule in policy.rules if rule.source == BUILT_IN})
    lines.append(f"Besides, {built_in} built-in rules protect keys, bradawl's files and what runs at a login.")
    if answers := _answers(session):
        lines += ["", "allowed by your answers, for this session:", *(f"    {each}" for each in answers)]
    return "\n".join(lines)


def _rules(session: FrontendSession) -> list[_Shown]:
    """The rules that are not built in, each once, in the order of their sources."""
    rules = session.session.policy().rules
    shown = (_Shown(rule.verdict, rule.text or rule.pattern, rule.source) for rule in rules if rule.source != BUILT_IN)
    return list(dict.fromkeys(shown))


def _answers(session: FrontendSession) -> list[str]:
    """The calls that the user has allowed for the session in this run."""
    allowed = len(session.session.calls.allowed)
    if not allowed:
        return []
    calls: dict[str, CallPrepared] = {}
    found: list[str] = []
    for entry in session.session.conversation.entries():
        match entry.event:
            case CallPrepared() as prepared:
                calls[prepared.call_id] = prepared
            case PermissionDecided(call_id, "allow", "user", scope="session") if call_id in calls:
                call = calls[call_id]
                found.append(cut(one_line(f"{call.name} {call.raw_arguments}"), _LINE))
            case _:
                pass
    return list(dict.fromkeys(found))[-allowed:]


def _check_has_begun(session: FrontendSession) -> None:
    if not session.frontend.user_is_there and session.session.conversation.last_event is None:
        raise CommandError("There is no session yet to change that for: add -c or -r ID, or use --allowed-tools.")


async def _add(session: FrontendSession, verdict: Verdict, rule: str) -> str:
    head, _, rest = rule.partition(" ")
    is_lasting = head.lower() == _ALWAYS and bool(rest.strip())
    rule = rest.strip() if is_lasting else rule
    _check(session, verdict, rule)
    if verdict == "allow" and not is_lasting and (user := session.frontend.user) is not None:
        options = (
            Option("session", "for this session", "later runs of the session keep it"),
            Option(_ALWAYS, "always in this folder", "in all sessions"),
        )
        picked = await user.pick(f"Allow {one_line(rule)}:", options)
        if picked is None:
            return "Nothing was changed."
        is_lasting = picked == _ALWAYS
    if not is_lasting:
        session.session.choices.record(RulesAdded((f"{verdict} {rule}",)))
        return f"{one_line(rule)}: {verdict}, in this session."
    if verdict != "allow":
        place = f"permissions.{verdict} of your config.toml"
        raise CommandError(f"Only `allow` can be remembered for a folder. Put {one_line(rule)!r} into {place}.")
    path = await asyncio.to_thread(_memory(session).add, [rule])
    return f"{one_line(rule)}: allow, in this folder from now on ({one_line(path)})."


def _check(session: FrontendSession, verdict: Verdict, rule: str) -> None:
    """Raises `CommandError` for a rule that can't be understood."""
    settings = session.frontend.settings
    try:
        parse_rule(rule, verdict, "/permissions", Bases(settings.cwd, settings.user_home, settings.cwd))
    except SettingsError as error:
        raise CommandError(str(error)) from error


async def _remove(session: FrontendSession, number: str) -> str:
    rules = _rules(session)
    if not number.isdecimal() or not 1 <= int(number) <= len(rules):
        there = f"they are 1 to {len(rules)}" if rules else "there are none"
        raise CommandError(f"{number[:20]!r} is not the number of a rule; {there}. /permissions lists them.")
    found = rules[int(number) - 1]
    memory = _memory(session)
    if found.source == SESSION:
        texts = [each for each in session.session.choices.now.rules if rule_in(each) == (found.verdict, found.text)]
        session.session.choices.record(RulesAdded((), tuple(texts)))
    elif found.source == memory.path:
        await asyncio.to_thread(memory.remove, found.text)
    else:
        raise CommandError(f"Rule {number} comes from {one_line(found.source)}: change it there.")
    return f"Removed: {found.verdict} {one_line(found.text)}."


def _memory(session: FrontendSession) -> RememberedRules:
    """The rules that the user has allowed in this folder."""
    settings = session.frontend.settings
    return RememberedRules(settings.home, os.path.realpath(settings.cwd), settings.user_home, settings.add_dirs)
