"""The policy for the next call: mode, sandbox, and rules (built-in, from settings, remembered)."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bradawl.app.settings.permission_values import RuleText
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Mode, Policy, Sandbox
from bradawl.core.rules import Rule, path_rules, speaks_of
from bradawl.core.tools import ToolSpec

if TYPE_CHECKING:
    from bradawl.app.build.session_tmp import SessionTmp
    from bradawl.app.remembered_rules import RememberedRules

_READABLE = ("/usr",)
"""Folders that may be read without a question: they hold programs, libraries and headers, and no secrets."""


PROMPT_SOURCE = "the prompt names it"
"""Source of rules that follow from a prompt and hold for single files."""
_MOST_ENTRIES = 1_000
"""Directory entries of a root that are searched for Python environments."""


def _ignore(_: str) -> None: ...


class Policies:
    """The policy of one workspace. Calling it returns the policy at that moment."""

    def __init__(  # noqa: PLR0913 - the parts of a policy
        self,
        settings: Settings,
        roots: tuple[str, ...],
        own: tuple[str, ...],
        blobs: str,
        sandbox: Callable[[], Sandbox],
        *,
        has_undo: bool = False,
        notify: Callable[[str], None] | None = None,
        records: str = "",
        tmp: "SessionTmp | None" = None,
    ) -> None:
        """`own` are bradawl's folders; `blobs` is the folder of stored results, `records` that of
        what compactions took out; the model may read both.

        The first call of `sandbox` may block while sandboxes are probed. `has_undo`: changes of calls are saved.
        `notify` is called with each message about the setting `network`, when the first policy is made. `tmp` is
        the `/tmp` of the session.
        """
        self._settings = settings
        self._roots = roots
        self._own = own
        self._shown = tuple(filter(None, (blobs, records)))
        self._sandbox = sandbox
        self._has_undo = has_undo
        self._notify = notify or _ignore
        self._tmp = tmp
        self._fixed: tuple[str, tuple[Rule, ...]] | None = None
        """The folder that the session calls `/tmp`, and the fixed rules with it."""

    def __call__(self) -> Policy:
        """The current policy."""
        sandbox = self._sandbox()
        policy = Policy(
            mode=self._settings.permission_mode or default_mode(sandbox),
            rules=(*self.fixed, *self._domains, *self._remembered.rules()),
            roots=(*self._roots, *((self._tmp.known,) if self._tmp and self._tmp.known else ())),
            readable=(*_READABLE, *self._shown),
            sandbox=sandbox,
            undo=self._has_undo,
            has_guards=True,
        )
        named = tuple(self._named(policy))
        return msgspec.structs.replace(policy, rules=(*policy.rules, *named)) if named else policy

    def _named(self, policy: Policy) -> Iterator[Rule]:
        """Rules for the files in the machine's `/tmp` that prompts of the user ask for. That a prompt names a file
        answers the question about its place, and no other one.
        """
        for path in self._tmp.writable() if self._tmp else ():
            from bradawl.safety.permissions.unasked_writes import objection_to_write  # few prompts name any

            if not objection_to_write(policy, path):
                pattern = re.escape(path)
                yield Rule("allow", "write", pattern, text=f"Edit(/{path})", source=PROMPT_SOURCE)

    @cached_property
    def _remembered(self) -> "RememberedRules":
        """The user's lasting permissions for this project."""
        from bradawl.app.remembered_rules import RememberedRules

        return RememberedRules(self._settings.home, self._roots[0], self._settings.user_home, self._roots[1:])

    @property
    def has_rules(self) -> bool:
        """Whether the settings hold permission rules, apart from domains."""
        return any(rule.verdict != "domain" for rule in self._settings.rules)

    def refuses_to_read(self, path: str) -> bool:
        """Whether a rule of the settings refuses or asks about reading a path. Does not wait for a sandbox."""
        if not self.has_rules:
            return False
        return any(rule.on == "read" and speaks_of(rule, path) for rule in path_rules(self.fixed))

    def asks_before_reading(self, path: str) -> bool:
        """Whether any rule refuses or asks about reading a path, the built-in ones about keys included."""
        return any(rule.on == "read" and rule.verdict != "allow" and speaks_of(rule, path) for rule in self.fixed)

    def allows_requests_of(self, spec: ToolSpec) -> bool:
        """Whether a rule allows a tool that sends requests at least one host."""
        if any(one.verdict == "domain" for one in self._settings.rules):
            return True
        rules = (*(self.fixed if self.has_rules else ()), *self._remembered.rules())
        return any(
            rule.verdict == "allow"
            and (
                rule.on in ("reach", "connect")
                or (rule.on == "tool" and any(speaks_of(rule, name) for name in (spec.name, *spec.rule_names)))
            )
            for rule in rules
        )

    @property
    def fixed(self) -> tuple[Rule, ...]:
        """The rules that do not change during a session, without domains. Raises `SettingsError` for an invalid rule of
        the user.
        """
        scratch = self._tmp.known if self._tmp else ""
        if self._fixed is None or self._fixed[0] != scratch:
            self._fixed = scratch, self._fixed_with(scratch)
        return self._fixed[1]

    def _fixed_with(self, scratch: str) -> tuple[Rule, ...]:
        from bradawl.safety.permissions.protected_paths import built_in_rules, installation_rules
        from bradawl.safety.permissions.workspace_rules import workspace_rules
        from bradawl.safety.trusted_programs import installation_paths

        settings = self._settings
        built_in = built_in_rules(self._roots, settings.user_home, self._own, self._shown, scratch)
        built_in += tuple(map(_installed, _environments(self._roots)))
        built_in += workspace_rules(self._roots, settings.user_home)
        said = tuple(rule for text in settings.rules if text.verdict != "domain" for rule in _read(text, settings))
        return (*built_in, *installation_rules(installation_paths(self._roots)), *said)

    @cached_property
    def _domains(self) -> tuple[Rule, ...]:
        """Rules for the domains of the setting `network`. The first use reads the settings of the tools in presets."""
        return network_rules(self._settings, self._roots, self._notify)


def network_rules(
    settings: Settings, roots: Sequence[str], notify: Callable[[str], None] = _ignore
) -> tuple[Rule, ...]:
    """Rules for the domains of the setting `network`, with presets replaced by their domains.

    Reads the settings of the tools that presets name, except in `roots`. Raises `SettingsError` for an invalid domain;
    one from a project's file is left out. `notify` is called with each message about a preset.
    """
    from bradawl.safety.permissions.rule_syntax import domain_rule

    return tuple(domain_rule(name, source) for name, source, _ in _named_domains(settings, roots, notify))


def private_hosts(settings: Settings, roots: Sequence[str]) -> frozenset[str]:
    """The hosts, as `NAME` or `NAME:PORT`, whose addresses may belong to a private network.

    These are the hosts that the setting `network` names in full, directly or by a preset. A project's file, rules and
    answers to questions add none: a foreign name may resolve to an address of the user's network.
    """
    from bradawl.safety.permissions.domains import parse_domain

    own = (parse_domain(name) for name, _, is_projects in _named_domains(settings, roots, _ignore) if not is_projects)
    return frozenset(f"{one.name}:{one.port}" if one.port else one.name for one in own if not one.is_below)


def _named_domains(
    settings: Settings, roots: Sequence[str], notify: Callable[[str], None]
) -> Iterator[tuple[str, str, bool]]:
    """Each domain of the setting `network`, its source, and whether that is a project's file."""
    texts = tuple(text for text in settings.rules if text.verdict == "domain")
    if not texts:
        return
    from bradawl.app.settings.network_presets import PRESETS, check_domains, preset_hosts
    from bradawl.app.settings.tool_settings import ToolSettings

    prefixes = (sys.prefix, sys.base_prefix)
    for text in texts:
        try:
            check_domains((text.text,), text.source)
        except SettingsError:
            if text.is_projects:
                continue
            raise
        if text.text in PRESETS:
            source = f"{text.source}, preset {text.text}"
            tools = ToolSettings(settings.environment, settings.user_home, roots, prefixes)
            found = preset_hosts(text.text, tools)
            yield from ((name, source, text.is_projects) for name in found.domains)
            for note in found.notes:
                notify(note)
        else:
            yield text.text, text.source, text.is_projects


def _environments(roots: tuple[str, ...]) -> Iterator[str]:
    """Python environments directly in a workspace, by any name."""
    for root in roots:
        with suppress(OSError), os.scandir(root) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                # Built-in rules cover names with "venv".
                if "venv" not in entry.name and entry.is_dir() and Path(entry.path, "pyvenv.cfg").exists():
                    yield entry.path


def _installed(environment: str) -> Rule:
    return Rule(
        "ask", "write", f"(?i:{re.escape(environment)}/.*)", why="programs and modules installed there run later"
    )


def default_mode(sandbox: Sandbox) -> Mode:
    """The mode if none is chosen: calls that a sandbox contains need no question."""
    return "auto" if sandbox.name else "default"


def _read(text: RuleText, settings: Settings) -> tuple[Rule, ...]:
    from bradawl.safety.permissions.path_globs import Bases
    from bradawl.safety.permissions.rule_syntax import parse_project_rule, parse_rule

    if text.is_projects:
        top = settings.project or settings.cwd  # relative paths in a project's rules start at the project's root
        bases = Bases(text.folder, settings.user_home, top)
        return parse_project_rule(text.text, text.verdict, text.source, bases)[0]
    return parse_rule(text.text, text.verdict, text.source, Bases(text.folder, settings.user_home, settings.cwd))
