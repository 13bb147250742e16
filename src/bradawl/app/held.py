"""The line that says what the sandbox and the permissions hold: in the system prompt, and in a note if it changes."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bradawl.agent.middleware import Finish, Middleware, MiddlewareContext
from bradawl.app.policies import PROMPT_SOURCE
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant
from bradawl.safety.name_lists import first_of

if TYPE_CHECKING:
    from bradawl.core.permissions import Policy, Sandbox
    from bradawl.core.rules import Rule

_MOST_FOLDERS: Final = 3
_MOST_RULES: Final = 6
_LONGEST_RULE: Final = 100
_EDITORS: Final = ("Edit", "edit_file", "write_file", "multi_edit")
_SHELLS: Final = ("Bash", "bash")
_CHANGED: Final = "What is held has changed. Now it is:\n"
_LINE: Final = r"(?m)^held: .*$"


def held_line(policy: "Policy", *, cwd: str, tmp: str, can_ask: bool, runs_commands: bool = True) -> str:
    """`held: ...`: what this policy decides about edits and commands.

    `tmp` is the folder behind `/tmp` of commands; empty if there is none. `runs_commands`: the model can run commands.
    """
    if policy.mode == "plan":
        return "held: nothing may change (plan mode)"
    folders = [root for root in policy.roots if root not in (cwd, tmp)]
    more = f" and {', '.join(folders[:_MOST_FOLDERS])}{' ...' * (len(folders) > _MOST_FOLDERS)}" if folders else ""
    place = f"the working directory{more}"
    if policy.mode == "bypass":
        return f"held: {_in_bypass(policy, place, runs_commands=runs_commands)}"
    rest = "asked about" if can_ask else "refused"
    edits, commands = _allowed_by_mode(policy, cwd)
    if not runs_commands:
        return f"held: {_without_commands(policy, place, rest, edits=edits)}"
    if edits and commands:
        rules = _listed(policy, ("write",), "; also allowed: ")
        return f"held: {_confined(policy, place, can_ask=can_ask)}{rules}; what needs more is {rest}"
    if edits:
        rules = _listed(policy, ("tool", "write", "run"), "; also allowed: ")
        return f"held: edits only in {place}{rules}; {'other ' * bool(rules)}commands that change something are {rest}"
    if rules := _listed(policy, ("tool", "write", "run"), "allowed without asking: "):
        runs = bool(policy.sandbox.name) and any(_is_about_commands(rule) for rule in _given(policy, ("tool", "run")))
        confined = f"; {_confined(policy, place, can_ask=can_ask)}" if runs else ""
        return f"held: {rules}; every other change is {rest}{confined}"
    if can_ask:
        return "held: every edit and every command that changes something is asked about"
    return "held: this run changes nothing: edits and commands that change something are refused"


def _allowed_by_mode(policy: "Policy", cwd: str) -> tuple[bool, bool]:
    """Whether an edit in `cwd` and a command with unknown effects are allowed without a rule that allows them."""
    import msgspec

    from bradawl.core.effects import Effects
    from bradawl.core.permissions import Allow, Request, decide

    without = msgspec.structs.replace(policy, rules=tuple(rule for rule in policy.rules if rule.verdict != "allow"))
    edit = Request("edit_file", "", Effects(writes=(f"{cwd}/an-ordinary-name",)), ("Edit",))
    command = Request("bash", "", Effects(commands=(("any-program",),), unknown=True, seal="any"), ("Bash",))
    return isinstance(decide(without, edit), Allow), isinstance(decide(without, command), Allow)


def _confined(policy: "Policy", place: str, *, can_ask: bool) -> str:
    network = _network(policy, can_ask=can_ask)
    return f"commands write only in {place}{_and_tmp(policy.sandbox)}; {network}"


def _in_bypass(policy: "Policy", place: str, *, runs_commands: bool) -> str:
    if policy.sandbox.name and runs_commands:
        tmp = " the folder $TMPDIR" if "private_tmp" in policy.sandbox.lacks else " /tmp"
        return (
            f"nothing is asked; commands write in {place},{tmp} and at paths that they name, and reach any network; "
            "git hooks and the like are refused"
        )
    return "nothing is asked, no sandbox; only git hooks and the like, and deletions such as rm -rf ~, are refused"


def _without_commands(policy: "Policy", place: str, rest: str, *, edits: bool) -> str:
    if edits:
        return f"edits only in {place}{_listed(policy, ('write',), '; also allowed: ')}; others are {rest}"
    if rules := _listed(policy, ("tool", "write"), "allowed without asking: "):
        return f"{rules}; every other change is {rest}"
    return "every edit is asked about" if rest == "asked about" else "this run changes nothing: edits are refused"


def _listed(policy: "Policy", on: tuple[str, ...], head: str) -> str:
    """The given rules that allow changes, after `head`; empty if there are none."""
    texts = dict.fromkeys(rule.text[:_LONGEST_RULE] for rule in _given(policy, on))
    return f"{head}{first_of(tuple(texts), _MOST_RULES)}" if texts else ""


def _given(policy: "Policy", on: tuple[str, ...]) -> "list[Rule]":
    from bradawl.core.rules import BUILT_IN

    rules = (rule for rule in policy.rules if rule.verdict == "allow" and rule.on in on and rule.text)
    return [rule for rule in rules if rule.source not in (BUILT_IN, PROMPT_SOURCE) and _is_about_changes(rule)]


def _is_about_changes(rule: "Rule") -> bool:
    from bradawl.core.rules import speaks_of

    return rule.on != "tool" or any(speaks_of(rule, name) for name in (*_EDITORS, *_SHELLS))


def _is_about_commands(rule: "Rule") -> bool:
    from bradawl.core.rules import speaks_of

    return rule.on == "run" or any(speaks_of(rule, name) for name in _SHELLS)


def _and_tmp(sandbox: "Sandbox") -> str:
    return " and the folder $TMPDIR" if "private_tmp" in sandbox.lacks else " and /tmp, which is the session's own"


def _network(policy: "Policy", *, can_ask: bool) -> str:
    if any(rule.verdict == "allow" and rule.on in ("connect", "network") for rule in policy.rules):
        return "network only to granted hosts"
    return "no network without permission" if can_ask else "no network"


class HeldNotes(Middleware):
    """Tells the model the line again if it is no longer what the conversation says.

    The mode and the rules can change between turns, and the sandbox too if a session is continued.
    """

    def __init__(self, context: MiddlewareContext, line: "Callable[[Policy], str]") -> None:
        """`line` returns the line of a policy."""
        self._conversation, self._prefix, self._policy = context.conversation, context.prefix, context.policy
        self._line = line
        self._is_first_step = False

    def begin_turn(self, params: RequestParams) -> None:
        """A prompt follows."""
        self._is_first_step = True

    async def before_step(self) -> Finish | None:
        """Queue the note if the line has changed. The first request of a session does not wait for the sandbox."""
        is_first, self._is_first_step = self._is_first_step, False
        if not is_first or not self._conversation.state.replies or self._conversation.is_sub_agent:
            return None
        policy = self._policy()
        if policy.mode != "plan" and (line := self._line(policy)) != self._told():  # plan mode has its own note
            self._conversation.note(f"{_CHANGED}{line}")
        return None

    def _told(self) -> str:
        """The line as the model knows it."""
        notes = (
            note.text
            for message in reversed(self._conversation.transcript.messages)
            if not isinstance(message, Assistant)
            for note in reversed(message.notes)
            if note.source == "system" and note.text.startswith(_CHANGED)
        )
        found = re.search(_LINE, next(notes, self._prefix.system))
        return found[0] if found else ""
