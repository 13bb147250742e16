"""What holds for the next call: built-in rules, the settings' and the remembered ones, the mode, the sandbox."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bradawl.app.settings import RuleText, Settings
from bradawl.core.permissions import Mode, Policy, Sandbox
from bradawl.core.rules import Rule

if TYPE_CHECKING:
    from bradawl.app.remembered import Remembered

_READABLE = ("/usr",)
"""What everybody may read and holds nobody's secrets: programs, libraries and their headers."""


_MOST_ENTRIES = 1_000
"""Looked at in a root for environments."""


class Policies:
    """Gives the policy of one workspace, anew for each call."""

    def __init__(
        self,
        settings: Settings,
        roots: tuple[str, ...],
        own: tuple[str, ...],
        blobs: str,
        sandbox: Callable[[], Sandbox],
    ) -> None:
        """`own` are bradawl's folders, `blobs` that of the results the model may read again.

        `sandbox` may wait, the first time.
        """
        self._settings = settings
        self._roots = roots
        self._own = own
        self._blobs = blobs
        self._sandbox = sandbox

    def __call__(self) -> Policy:
        """The policy as it is now."""
        sandbox = self._sandbox()
        return Policy(
            mode=self._settings.permission_mode or default_mode(sandbox),
            rules=(*self.fixed, *self._remembered.rules()),
            roots=self._roots,
            readable=(*_READABLE, *filter(None, (self._blobs,))),
            sandbox=sandbox,
            has_guards=True,
        )

    @cached_property
    def _remembered(self) -> "Remembered":
        """What the user has allowed for good in this project."""
        from bradawl.app.remembered import Remembered

        return Remembered(self._settings.home, self._roots[0], self._settings.user_home, self._roots[1:])

    @property
    def has_rules(self) -> bool:
        """Whether the settings hold any."""
        return bool(self._settings.rules)

    @cached_property
    def fixed(self) -> tuple[Rule, ...]:
        """The rules that no word of the user in this run adds to. Raises `SettingsError` for one nobody can read."""
        from bradawl.safety.permissions.protected_paths import built_in_rules, installation_rules
        from bradawl.safety.trusted_programs import installation_paths

        settings = self._settings
        built_in = built_in_rules(self._roots, settings.user_home, self._own, (self._blobs,))
        built_in += tuple(map(_installed, _environments(self._roots)))
        said = tuple(rule for text in settings.rules for rule in _read(text, settings))
        return (*built_in, *installation_rules(installation_paths(self._roots)), *said)


def _environments(roots: tuple[str, ...]) -> Iterator[str]:
    """Python environments of any name that lie directly in a workspace."""
    for root in roots:
        with suppress(OSError), os.scandir(root) as entries:
            for entry in islice(entries, _MOST_ENTRIES):
                # Names with "venv" are known without a look.
                if "venv" not in entry.name and entry.is_dir() and Path(entry.path, "pyvenv.cfg").exists():
                    yield entry.path


def _installed(environment: str) -> Rule:
    return Rule(
        "ask", "write", f"(?i:{re.escape(environment)}/.*)", why="programs and modules installed there run later"
    )


def default_mode(sandbox: Sandbox) -> Mode:
    """The mode where nobody has chosen one: what a sandbox holds need not be asked about."""
    return "auto" if sandbox.name else "default"


def _read(text: RuleText, settings: Settings) -> tuple[Rule, ...]:
    from bradawl.safety.permissions.path_globs import Bases
    from bradawl.safety.permissions.rules import parse_project_rule, parse_rule

    if text.is_projects:
        top = settings.project or settings.cwd  # a project means its own folders, wherever one starts
        bases = Bases(text.folder, settings.user_home, top)
        return parse_project_rule(text.text, text.verdict, text.source, bases)[0]
    return parse_rule(text.text, text.verdict, text.source, Bases(text.folder, settings.user_home, settings.cwd))
