"""What permission rules say of the paths that a line of bash names, or would read below a folder."""

import os
from collections.abc import Callable

from bradawl.core.rules import Rule, Subject, speaks_of
from bradawl.safety.permissions.rule_targets import RuledTree, TooMuch
from bradawl.safety.shell.errors import NotUnderstood


class RuledPaths:
    """Rules that refuse paths or ask about them, held against the paths of one line."""

    def __init__(self, rules: tuple[Rule, ...], is_covered: Callable[[], bool] = bool) -> None:
        """`is_covered` tells whether a sandbox keeps programs from all that the rules refuse."""
        self._rules = rules
        self._is_covered = is_covered
        self._tree = RuledTree(rules)

    def speaks(self, on: Subject, path: str) -> bool:
        """Whether a rule speaks of this path."""
        return any(rule.on == on and speaks_of(rule, path) for rule in self._rules)

    def applies(self, on: Subject) -> bool:
        """Whether there are such rules, and no sandbox covers what they refuse."""
        return any(rule.on == on for rule in self._rules) and not self._is_covered()

    def below(self, on: Subject, folder: str, *, also_covered: bool = False) -> tuple[str, ...]:
        """Paths at or below a folder that a rule speaks of; none where a sandbox covers them.

        Raises `NotUnderstood` where that is too much to look through.
        """
        if not any(rule.on == on for rule in self._rules) or (not also_covered and self._is_covered()):
            return ()
        try:
            found = {os.path.realpath(match.path) for match in self._tree.matches(folder) if match.rule.on == on}
        except TooMuch:
            raise NotUnderstood from None
        return tuple(sorted(found))

    def tracked_below(self, folder: str, repository: str) -> tuple[str, ...]:
        """As `below`, of what may not be read, as far as git has it in its index: that no sandbox hides."""
        from bradawl.safety.git.tracked_files import is_tracked, tracks_below

        found = self.below("read", folder, also_covered=True)
        return tuple(path for path in found if is_tracked(path, repository) or tracks_below(path, repository))
