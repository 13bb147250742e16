"""The line of the system prompt that says what the sandbox and the permissions hold, and whether anything is asked."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bradawl.core.permissions import Mode, Policy, Sandbox

_MOST_FOLDERS: Final = 3
_WITHOUT_SANDBOX: Final = {
    "default": "every change needs permission",
    "accept-edits": "commands that change something and writes outside {place} need permission",
}


def held_line(policy: "Policy", *, cwd: str, tmp: str, can_ask: bool) -> str:
    """`held: ...`, as the session begins. `tmp` is the folder behind `/tmp` of commands; empty if there is none.

    A later change of the mode reaches the model as a note.
    """
    folders = [root for root in policy.roots if root not in (cwd, tmp)]
    more = f" and {', '.join(folders[:_MOST_FOLDERS])}{' ...' * (len(folders) > _MOST_FOLDERS)}" if folders else ""
    place = f"the working directory{more}"
    held = "nothing may change (plan mode)" if policy.mode == "plan" else _held(policy, place)
    return f"held: {held}{_asking(policy.mode, can_ask=can_ask)}"


def _held(policy: "Policy", place: str) -> str:
    sandbox, mode = policy.sandbox, policy.mode
    if sandbox.name:
        network = "any network" if mode == "bypass" else _network(policy)
        return f"commands write only in {place}{_and_tmp(sandbox)}; {network}"
    if mode == "bypass":
        return "nothing; commands run with all rights of the user"
    text = _WITHOUT_SANDBOX["default" if mode == "default" else "accept-edits"]
    return f"no sandbox: {text.format(place=place)}"


def _and_tmp(sandbox: "Sandbox") -> str:
    return " and the folder $TMPDIR" if "private_tmp" in sandbox.lacks else " and /tmp, which is the session's own"


def _network(policy: "Policy") -> str:
    is_granted = any(rule.verdict == "allow" and rule.on in ("connect", "network") for rule in policy.rules)
    return "network only to granted hosts" if is_granted else "no network without permission"


def _asking(mode: "Mode", *, can_ask: bool) -> str:
    if mode in ("bypass", "plan"):
        return ""
    return "; what needs more is asked about" if can_ask else "; what needs more is refused"
