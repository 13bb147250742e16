"""Adds the built-in rules, which `protected_paths` defines, to policies without them: they apply to every agent."""

from functools import lru_cache

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Policy
from bradawl.core.ports import Files
from bradawl.core.rules import Rule


def with_builtin_rules(policy: Policy, files: Files) -> Policy:
    """The policy, with the built-in rules if it has none. `files` resolves the home folder."""
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
    from bradawl.safety.permissions.protected_paths import built_in_rules  # most policies bring their own

    return built_in_rules(roots, home)
