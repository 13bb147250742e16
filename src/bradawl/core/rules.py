"""What is allowed, asked about or refused by name: rules as values, and whether they speak of a call."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from bradawl.core.effects import Effects

BUILT_IN = "built-in"
Subject = Literal["tool", "read", "write", "run", "network", "reach"]


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a policy, in the form in which calls are compared with it."""

    verdict: Literal["deny", "ask", "allow"]
    on: Subject
    """`tool`: the name of the tool; `read`, `write`: a path; `run`: the words of a command; `network`: the same, for
    commands that may reach the network unasked; `reach`: a host."""
    pattern: str = ""
    """`tool`, `read`, `write`: a regular expression for all of it. `reach`: a host and all below it; `*` for any."""
    words: tuple[str, ...] = ()
    """`run`, `network`: a glob for each word of the command; a last `*` stands for any number of words."""
    text: str = ""
    """As somebody wrote it."""
    source: str = BUILT_IN
    """Where it stands."""
    why: str = ""
    """What a refusal or a question says; without it the rule is named."""
    in_bypass: bool = True
    """Of a refusal: it holds even where questions are switched off."""

    @property
    def reason(self) -> str:
        """For the user and the model."""
        return self.why or f"the rule {self.text} ({self.source}) says {self.verdict}"


Part = str | tuple[str, ...]


def parts(rule: Rule, tool: str, effects: Effects) -> tuple[Part, ...]:
    """What of a call a rule speaks of."""
    match rule.on:
        case "tool":
            return (tool,)
        case "read":
            return effects.reads
        case "write":
            return effects.writes
        case "reach":
            return effects.hosts
        case "run":
            return effects.commands if rule.verdict == "allow" else (*effects.commands, *effects.inner)
        case "network":
            return effects.commands


def speaks_of(rule: Rule, part: Part) -> bool:
    """Whether a rule is about this part of a call."""
    if isinstance(part, tuple):
        return _same_words(rule.words, part)
    if rule.on == "reach":
        host = rule.pattern
        return host in ("*", part) or part.endswith("." + host)
    return re.fullmatch(rule.pattern, part, re.DOTALL) is not None


def _same_words(wanted: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if wanted[-1:] == ("*",):
        wanted = wanted[:-1]
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(map(fnmatchcase, words, wanted))


def met(rule: Rule, tool: str, effects: Effects) -> tuple[Part, ...]:
    """The parts of a call that a rule is about."""
    return tuple(part for part in parts(rule, tool, effects) if speaks_of(rule, part))


def all_met(rules: Iterable[Rule], found: Iterable[Part]) -> Rule | None:
    """The last of the rules that together speak of each of these parts; None if one is left over, or there is none."""
    last = None
    for part in found:
        last = next((rule for rule in rules if speaks_of(rule, part)), None)
        if last is None:
            return None
    return last
