"""Built-in rules for a policy that brings none: the least that holds for every agent, however it was put together."""

from functools import lru_cache
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Policy
from bradawl.core.places import CREDENTIALS, LOGIN_FILES, below_home, below_other_homes
from bradawl.core.ports import Files
from bradawl.core.rules import Rule

_GIT: Final = r".*/\.git/(?:config[^/]*|hooks|modules|worktrees|commondir|gitdir|info/attributes)(?:/.*)?"
_OWN: Final = r".*/\.bradawl(?:/.*)?|.*/\.(?:config|local/share)/bradawl(?:/.*)?"
_KERNEL: Final = r"/(?:proc|sys|dev)(?:/.*)?"
_SYSTEM: Final = r"/(?:bin|boot|efi|etc|lib(?:32|64|x32)?|sbin|usr|var/(?:lib|spool)|System|Library)(?:/.*)?"
_KEYS: Final = (
    r".*/(?:\.env(?:\.[^/]*)?|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx)|\.netrc|\.git-credentials)"
)
_LEAVE_IT: Final = "leave it to the user and say what they should change"


def guarded(policy: Policy, files: Files) -> Policy:
    """The policy, with built-in rules if it has none."""
    if policy.has_guards:
        return policy
    return msgspec.structs.replace(policy, rules=(*_rules(policy.roots, _home(files)), *policy.rules), has_guards=True)


def _home(files: Files) -> str:
    try:
        return files.resolve("~", "/")
    except ToolError:
        return ""


@lru_cache(maxsize=8)
def _rules(roots: tuple[str, ...], home: str) -> tuple[Rule, ...]:
    keys = f"{_KEYS}|{below_home(home, CREDENTIALS)}"
    return (
        _never(f"{below_home(home, LOGIN_FILES)}|{_GIT}", f"what it says runs by itself later; {_LEAVE_IT}"),
        _never(f"{_OWN}|{_KERNEL}", f"it belongs to bradawl or to the kernel; {_LEAVE_IT}"),
        Rule("deny", "write", _outside(_SYSTEM, roots), why=f"it belongs to the system; {_LEAVE_IT}", in_bypass=False),
        Rule("deny", "read", r"(?ai:/proc/.*/(?:environ|mem))", why="keys are kept there; do the work without them"),
        Rule("deny", "read", f"(?ai:{below_other_homes(home)})", why="another user's keys are kept there"),
        Rule("ask", "write", f"(?ai:{keys})", why="such files hold keys or passwords"),
        Rule("ask", "read", f"(?ai:{keys})", why="such files hold keys or passwords"),
    )


def _never(places: str, why: str) -> Rule:
    return Rule("deny", "write", f"(?ai:{places})", why=why)


def _outside(places: str, roots: tuple[str, ...]) -> str:
    """The same places without the workspaces that lie in them."""
    import re

    inside = [re.escape(root) for root in roots if root != "/" and any(is_within(root, top) for top in _TOPS)]
    return f"(?ai:(?!(?:{'|'.join(inside)})(?:/|\\Z))(?:{places}))" if inside else f"(?ai:{places})"


_TOPS: Final = ("/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/usr", "/var/lib", "/var/spool")
