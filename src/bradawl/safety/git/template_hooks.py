"""Recognizes hooks that git or git-lfs itself puts into a new repository."""

import contextlib
import os
import re
from typing import Final

from bradawl.core.effects import is_within
from bradawl.safety.git.named_paths import NamedPaths
from bradawl.safety.git.small_files import read_bytes
from bradawl.safety.path_walk import real_path

_DEFAULTS: Final = (
    "/usr/share/git-core/templates",
    "/usr/local/share/git-core/templates",
    "/opt/homebrew/share/git-core/templates",
)
_LARGEST: Final = 262_144
_MOST: Final = 40
_TEXT: Final = rb'"(?:[\w ,.;:\'/()%-]|\\n)*"'
"""Text between quotation marks in which the shell expands nothing."""
_LFS: Final = re.compile(
    rb"#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 \|\| \{ (?:echo >&2 %b|printf >&2 %b %b); exit 2; \}\n"
    rb'git lfs ([a-z-]+) "\$@"\n?' % (_TEXT, _TEXT, _TEXT)
)
"""The hooks that `git lfs install` writes, in its versions 2 and 3."""
_LFS_HOOKS: Final = frozenset((b"pre-push", b"post-checkout", b"post-commit", b"post-merge"))


class TemplateHooks:
    """The hooks of the user's template for new repositories (`init.templateDir`), read once."""

    def __init__(self, roots: tuple[str, ...], home: str) -> None:
        """A template in one of `roots` does not count: programs can change it."""
        self._roots = roots
        self._home = home
        self._hooks: dict[str, bytes] | None = None

    def read(self) -> None:
        """Read the template. Call before a program has run: later changes do not count."""
        if self._hooks is None:
            self._hooks = {}
            with contextlib.suppress(OSError):
                folder = real_path(self._folder())
                if not any(is_within(folder, root) for root in self._roots):
                    self._hooks = _hooks_in(f"{folder}/hooks")

    def is_hook_of_git(self, name: str, content: bytes) -> bool:
        """Whether a hook of a new repository equals that of the template, or is one that git-lfs writes."""
        lfs = _LFS.fullmatch(content)
        if lfs is not None:
            return lfs[1] in _LFS_HOOKS and os.fsencode(name) == lfs[1]
        return bool(content) and (self._hooks or {}).get(name) == content

    def _folder(self) -> str:
        named = NamedPaths(self._home).folders_of_user("init.templatedir")
        return named[-1] if named else next(filter(os.path.isdir, _DEFAULTS), _DEFAULTS[0])


def _hooks_in(folder: str) -> dict[str, bytes]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.endswith(".sample"))
    except OSError:
        return {}
    return {name: read_bytes(f"{folder}/{name}", _LARGEST) for name in names[:_MOST]}
