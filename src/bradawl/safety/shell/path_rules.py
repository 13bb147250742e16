"""Matches the user's permission rules against the paths that a shell line names, or would reach below a folder."""

import os
from collections.abc import Callable

from bradawl.core.rules import Rule, Subject, speaks_of
from bradawl.safety.permissions.rule_targets import IncompleteSearch, RuleMatcher
from bradawl.safety.shell.errors import UnsupportedSyntax


class PathRules:
    """Rules that deny access to paths, or ask about it, as one shell line is compared with them."""

    def __init__(self, rules: tuple[Rule, ...], is_covered: Callable[[], bool] = bool) -> None:
        """`is_covered` returns whether a sandbox hides everything that the rules deny."""
        self._rules = rules
        self._is_covered = is_covered
        self._tree = RuleMatcher(rules)

    def matches(self, on: Subject, path: str) -> bool:
        """Whether a rule about reads or writes (`on`) matches a path."""
        return any(rule.on == on and speaks_of(rule, path) for rule in self._rules)

    def applies(self, on: Subject) -> bool:
        """Whether there are rules about reads or writes (`on`) that no sandbox enforces."""
        return any(rule.on == on for rule in self._rules) and not self._is_covered()

    def below(self, on: Subject, folder: str, *, also_covered: bool = False) -> tuple[str, ...]:
        """Existing paths at or below a folder that a rule matches; empty where a sandbox enforces the rules.

        With `also_covered` a sandbox makes no difference. Raises `UnsupportedSyntax` if there are too many folders to
        search.
        """
        if not any(rule.on == on for rule in self._rules) or (not also_covered and self._is_covered()):
            return ()
        try:
            found = {os.path.realpath(match.path) for match in self._tree.matches(folder) if match.rule.on == on}
        except IncompleteSearch:
            raise UnsupportedSyntax from None
        return tuple(sorted(found))

    def tracked_below(self, folder: str, repository: str) -> tuple[str, ...]:
        """As `below` for reads, only paths in git's index: their contents can be read from git although a sandbox hides
        them.
        """
        from bradawl.safety.git.tracked_files import is_tracked, tracks_below

        found = self.below("read", folder, also_covered=True)
        return tuple(path for path in found if is_tracked(path, repository) or tracks_below(path, repository))
