"""Permission rules as values, and whether a rule matches a part of a call.

`safety.permissions.rule_syntax` parses them, `core.permissions` decides by them.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from bradawl.core.effects import Effects, is_within

BUILT_IN = "built-in"
Subject = Literal["tool", "read", "write", "run", "network", "reach", "connect"]
ReadRules = Literal["whole", "exact", "later"]
"""How rules apply to a folder a tool reads. `whole`: also to all below it; `exact`: to the folder alone, the tool skips
what is refused below it; `later`: not at all, the reads are judged one by one."""


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A permission rule in the form in which calls are compared with it."""

    verdict: Literal["deny", "ask", "allow"]
    on: Subject
    """What it is about. `tool`: a name; `read`, `write`: a path; `run`: the words of a command; `reach`: a tool's host;
    `connect`: a host of tools and commands; `network`: the words of a command that may reach any host unasked."""
    pattern: str = ""
    """A regular expression, matched in full. `reach`: a domain with all below it, or `*`."""
    words: tuple[str, ...] = ()
    """`run`, `network`: a glob for each word of the command; a last `*` matches any number of words."""
    text: str = ""
    """The rule as written."""
    source: str = BUILT_IN
    """The file or option it comes from."""
    why: str = ""
    """Text of a refusal or question; without it the rule is named."""
    in_bypass: bool = True
    """A refusal that also holds in the mode `bypass`."""
    places: tuple[str, ...] = ()
    """`read`, `write`: absolute paths; every match of `pattern` is one of them or lies below."""

    @property
    def reason(self) -> str:
        """For the user and the model."""
        return self.why or f"the rule {self.text} ({self.source}) says {self.verdict}"


Part = str | tuple[str, ...]


def parts(rule: Rule, names: tuple[str, ...], effects: Effects, reads: ReadRules = "whole") -> tuple[Part, ...]:
    """The parts of a call that a kind of rule applies to; `names` are the tool's own and those of rules for it."""
    match rule.on:
        case "tool":
            return names
        case "read":
            return () if reads == "later" and effects.spends else effects.reads
        case "write":
            return effects.writes
        case "reach" | "connect":
            return effects.hosts
        case "run":
            return effects.commands if rule.verdict == "allow" else (*effects.commands, *effects.inner)
        case "network":
            return effects.commands


def speaks_of(rule: Rule, part: Part) -> bool:
    """Whether a rule matches this part of a call."""
    if isinstance(part, tuple):
        return _same_words(rule.words, part)
    if rule.on == "reach":
        host = part.partition(":")[0] if part.count(":") == 1 else part  # without a port; IPv6 addresses have none
        return rule.pattern in ("*", host) or host.endswith("." + rule.pattern)
    if re.fullmatch(rule.pattern, part, re.DOTALL):
        return True
    if part.isascii() or rule.verdict == "allow":
        return False
    from unicodedata import normalize  # some file systems store names in another normal form

    return re.fullmatch(rule.pattern, normalize("NFC", part), re.DOTALL) is not None


def _same_words(wanted: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if wanted[-1:] == ("*",):
        wanted = wanted[:-1]
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(map(fnmatchcase, words, wanted))


def met(rule: Rule, names: tuple[str, ...], effects: Effects, reads: ReadRules = "whole") -> tuple[Part, ...]:
    """Parts of a call that a rule matches. A shell line (`Effects.seal`) declares the paths below folders itself."""
    found = parts(rule, names, effects, reads)
    if not rule.places or rule.verdict == "allow" or effects.seal or reads == "exact":
        return tuple(part for part in found if speaks_of(rule, part))
    return tuple(part for part in found if speaks_of(rule, part) or _holds(part, rule))


def _holds(part: Part, rule: Rule) -> bool:
    """Whether a folder contains a path that a rule without wildcards names."""
    return isinstance(part, str) and any(is_within(each, part) and speaks_of(rule, each) for each in rule.places)


def path_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules that refuse or ask about paths and are not built in."""
    return tuple(
        rule for rule in rules if rule.verdict != "allow" and rule.on in ("read", "write") and rule.source != BUILT_IN
    )


def refuses(rules: Iterable[Rule], on: Subject, path: str) -> bool:
    """Whether one of the rules refuses to read or write this path."""
    return any(rule.verdict == "deny" and rule.on == on and speaks_of(rule, path) for rule in rules)


def all_met(rules: Iterable[Rule], found: Iterable[Part]) -> Rule | None:
    """One of the rules if together they match every part; None if a part is left over or there are none."""
    last = None
    for part in found:
        last = next((rule for rule in rules if speaks_of(rule, part)), None)
        if last is None:
            return None
    return last
