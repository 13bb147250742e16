"""Finds the files that git's hooks lead to, and those that hooks and other scripts of the shell run."""

import os
import re
import stat
from collections.abc import Iterator
from typing import Final

from bradawl.safety.git.command_words import files_in
from bradawl.safety.git.small_files import text_in
from bradawl.safety.path_walk import real_path

_MOST_HOOKS: Final = 40
_LARGEST: Final = 262_144
_SETTLED_NS: Final = 50_000_000
_LITERAL: Final = re.compile(r"[\w./+@%:,-]+")
_INSTALLED: Final = re.compile(r"/(?:node_modules|bower_components|site-packages|vendor|\.?v?env|\.tox|\.nox|\.git)/")
_SHELLS: Final = ("sh", "bash", "dash", "ksh", "zsh")

Stamp = tuple[int, ...]


class HookScripts:
    """Reads folders of hooks, and scripts; each is read again when it has changed."""

    def __init__(self) -> None:
        self._listings: dict[str, tuple[Stamp, tuple[str, ...]]] = {}
        self._texts: dict[str, tuple[Stamp, str]] = {}

    def files_run_by(self, folder: str, tree: str) -> Iterator[str]:
        """Hooks in a folder that are links or have hard links, and files that hooks run in the working tree `tree`;
        absolute paths.
        """
        for hook in self._hooks_in(folder):
            if _is_linked(hook):
                yield hook
            yield from self.files_run_by_script(hook, tree)

    def files_run_by_script(self, path: str, tree: str) -> Iterator[str]:
        """Files that a script of the shell runs or reads as code, absolute; nothing for other files.

        Also those that do not exist yet: git would run them once a command has made them. Of packages only existing
        files count, because installing them makes such files.
        """
        real = real_path(path)
        text = self._text(real)
        if not _is_of_shell(text):
            return
        for word in files_in(text, real.rpartition("/")[0]).programs:
            named = os.path.normpath(word if word.startswith("/") else f"{tree}/{word}")
            if _is_file(named) or (_may_be_made(word, named) and not _INSTALLED.search(named[len(tree) :])):
                yield named

    def _hooks_in(self, folder: str) -> tuple[str, ...]:
        try:
            status = os.stat(folder)  # noqa: PTH116 - runs for each repository at each command
        except (OSError, ValueError):
            return ()
        stamp, known = _stamp(status), self._listings.get(folder)
        if known is None or known[0] != stamp:
            known = stamp, _listed(folder)
            if _is_settled(status):
                self._listings[folder] = known
        return known[1]

    def _text(self, path: str) -> str:
        try:
            status = os.lstat(path)
        except (OSError, ValueError):
            return ""
        stamp, known = _stamp(status), self._texts.get(path)
        if known is None or known[0] != stamp:
            known = stamp, (text_in(path, _LARGEST) or "") if stat.S_ISREG(status.st_mode) else ""
            self._texts[path] = known
        return known[1]


def _listed(folder: str) -> tuple[str, ...]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.endswith(".sample"))
    except OSError:
        return ()
    return tuple(f"{folder}/{name}" for name in names[:_MOST_HOOKS])


def _is_of_shell(text: str) -> bool:
    """Whether a text is a script of the shell: git runs a hook without `#!` by the shell, too."""
    if not text or "\0" in text:
        return False
    first = text.partition("\n")[0]
    return not first.startswith("#!") or any(word.rpartition("/")[2] in _SHELLS for word in first[2:].split())


def _is_linked(path: str) -> bool:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISLNK(status.st_mode) or has_hard_links(status)


def has_hard_links(status: os.stat_result) -> bool:
    """Whether a file has more than one name: then a mount over one of them does not keep the content."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _may_be_made(word: str, path: str) -> bool:
    """Whether a word without expansions names a file that does not exist, or is a link to none."""
    if not _LITERAL.fullmatch(word):
        return False
    try:
        os.stat(path)  # noqa: PTH116 - as above
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except (OSError, ValueError):
        return False


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_settled(status: os.stat_result) -> bool:
    import time

    return time.time_ns() - status.st_ctime_ns > _SETTLED_NS
