"""Rules that allow a call in a run without a user: what to pass to `--allowed-tools`.

Some are wider than those of `suggestions`, because the words of the next run will differ. All others name the command
word for word. Rules are returned only if the policy then allows exactly this call.
"""

from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Allow, Policy, Request, decide
from bradawl.core.rules import Rule
from bradawl.safety.permissions.path_globs import Bases
from bradawl.safety.permissions.rule_syntax import parse_rule
from bradawl.safety.permissions.suggestions import path_rule, proposals, rule_for_words, word_for_word

_MOST: Final = 10
_ANY_WORDS: Final = frozenset({"curl", "ping", "dig", "nslookup", "host", "mkdir", "touch"})
"""Programs whose words change with each use, and that run no program that a word names."""
_ANY_WORDS_BEHIND: Final = {
    "git": frozenset({"checkout", "switch", "stash", "tag", "branch", "mv"}),
    "npm": frozenset({"install", "i", "ci"}),
    "pnpm": frozenset({"install", "i"}),
    "yarn": frozenset({"install"}),
    "bun": frozenset({"install"}),
    "pip": frozenset({"install", "download"}),
    "pip3": frozenset({"install", "download"}),
    "uv": frozenset({"sync", "lock"}),
    "poetry": frozenset({"install", "lock"}),
    "bundle": frozenset({"install"}),
    "composer": frozenset({"install"}),
}
"""The same for subcommands. Those that install run code of packages, whatever their words."""


def rules_to_allow(request: Request, policy: Policy, *, cwd: str, home: str) -> tuple[str, ...]:
    """Allow rules that together make the policy allow this call; empty if none do."""
    narrow = proposals(request, cwd=cwd, home=home, roots=policy.roots)
    found = (narrow, _for_line(request, policy, cwd, home), _for_every_line(request))
    return next((rules for rules in found if rules and _are_enough(rules, request, policy, cwd, home)), ())


def _are_enough(texts: tuple[str, ...], request: Request, policy: Policy, cwd: str, home: str) -> bool:
    rules: list[Rule] = []
    for text in texts:
        try:
            rules += parse_rule(text, "allow", "--allowed-tools", Bases(cwd, home, cwd), str)
        except SettingsError:
            return False
    allowing = msgspec.structs.replace(policy, rules=(*policy.rules, *rules))
    return isinstance(decide(allowing, request), Allow)


def _for_line(request: Request, policy: Policy, cwd: str, home: str) -> tuple[str, ...]:
    effects = request.effects
    if not effects.seal or effects.lifts:
        return ()
    programs = [words for words in effects.commands if words[:1] != ("cd",)]
    rules = [_for_command(words) for words in programs]
    outside = [path for path in effects.writes if not any(is_within(path, root) for root in policy.roots)]
    rules += [path_rule("Edit", path, cwd, home) for path in dict.fromkeys((*outside, *effects.redirects))]
    return tuple(dict.fromkeys(rules)) if 0 < len(rules) <= _MOST and all(rules) else ()


def _for_command(words: tuple[str, ...]) -> str:
    program, part = (*words, "", "")[:2]
    if program in _ANY_WORDS:
        return f"Bash({program} *)"
    if part in _ANY_WORDS_BEHIND.get(program, ()):
        return f"Bash({program} {part} *)"
    return rule_for_words(words) or word_for_word(words)


def _for_every_line(request: Request) -> tuple[str, ...]:
    """The rule for every command, where the line has no commands that a rule could name."""
    return ("Bash",) if request.effects.seal and "Bash" in request.names else ()
