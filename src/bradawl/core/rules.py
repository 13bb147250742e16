"""What is allowed, asked about or refused by name: rules as values, and whether they speak of a call."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from bradawl.core.effects import Effects, is_within

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
    places: tuple[str, ...] = ()
    """`read`, `write`: the folders or files at or below which every path lies that `pattern` matches; absolute."""

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
            return () if tool == "agent" and effects.spends else effects.reads  # its calls are judged one by one
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
    if re.fullmatch(rule.pattern, part, re.DOTALL):
        return True
    if part.isascii() or rule.verdict == "allow":
        return False
    from unicodedata import normalize  # some file systems store another spelling of a name than the one given

    return re.fullmatch(rule.pattern, normalize("NFC", part), re.DOTALL) is not None


def _same_words(wanted: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if wanted[-1:] == ("*",):
        wanted = wanted[:-1]
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(map(fnmatchcase, words, wanted))


def met(rule: Rule, tool: str, effects: Effects) -> tuple[Part, ...]:
    """The parts of a call that a rule is about."""
    found = parts(rule, tool, effects)
    if not rule.places or rule.verdict == "allow" or effects.seal or tool in _SELECTIVE:
        return tuple(part for part in found if speaks_of(rule, part))
    return tuple(part for part in found if speaks_of(rule, part) or _holds(part, rule))


_SELECTIVE = frozenset({"glob", "grep", "read_file"})
"""Tools that leave out of a folder what rules refuse; of a shell line (`Effects.seal`) such paths are declared."""


def _holds(part: Part, rule: Rule) -> bool:
    """Whether a folder, which stands for all below it, holds the one path that a rule without wildcards names."""
    return isinstance(part, str) and any(is_within(each, part) and speaks_of(rule, each) for each in rule.places)


def path_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Those that refuse or ask about paths and are not built in."""
    return tuple(
        rule for rule in rules if rule.verdict != "allow" and rule.on in ("read", "write") and rule.source != BUILT_IN
    )


def refuses(rules: Iterable[Rule], on: Subject, path: str) -> bool:
    """Whether one of the rules refuses to read, or to write, this path."""
    return any(rule.verdict == "deny" and rule.on == on and speaks_of(rule, path) for rule in rules)


def all_met(rules: Iterable[Rule], found: Iterable[Part]) -> Rule | None:
    """The last of the rules that together speak of each of these parts; None if one is left over, or there is none."""
    last = None
    for part in found:
        last = next((rule for rule in rules if speaks_of(rule, part)), None)
        if last is None:
            return None
    return last
