"""The permission rules that the user added to one session."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec

from bradawl.agent.users_choices import UsersChoices
from bradawl.core.permissions import Policy
from bradawl.core.ports import Files
from bradawl.core.rules import Rule

SESSION: Final = "this session"
"""Source of these rules."""
Verdict = Literal["allow", "ask", "deny"]


class SessionRules:
    """Returns the policy of an agent together with the user's rules for the session."""

    def __init__(self, policy: Callable[[], Policy], choices: UsersChoices, files: Files, project: str) -> None:
        """Relative paths in rules start at `project`."""
        self._policy, self._choices, self._files, self._project = policy, choices, files, project
        self._texts: tuple[str, ...] = ()
        self._rules: tuple[Rule, ...] = ()

    def __call__(self) -> Policy:
        """The policy of this moment."""
        policy, texts = self._policy(), self._choices.now.rules
        if texts != self._texts:
            self._texts = texts
            self._rules = tuple(rule for text in texts for rule in self._parsed(text))
        return msgspec.structs.replace(policy, rules=(*policy.rules, *self._rules)) if self._rules else policy

    def _parsed(self, text: str) -> Iterator[Rule]:
        """A rule that can't be understood, such as one of a later version, never allows anything."""
        from bradawl.safety.permissions.path_globs import Bases
        from bradawl.safety.permissions.rule_syntax import parse_project_rule

        verdict, rule = rule_in(text)
        if verdict is not None:
            home = self._files.resolve("~", self._project)
            yield from parse_project_rule(rule, verdict, SESSION, Bases(self._project, home, self._project))[0]


def rule_in(text: str) -> tuple[Verdict | None, str]:
    """Verdict and rule of a text such as `deny Bash(rm:*)`; no verdict if it has none."""
    word, _, rule = text.partition(" ")
    return (word, rule.strip()) if word in ("allow", "ask", "deny") else (None, text)
