"""Decides quickly which names of a project git ignores, for the overview in the system prompt.

Most patterns of a `.gitignore` are a name or an ending. They are looked up; only the others are compiled, which takes
as long as listing a small project.
"""

import os
import re
import stat

from bradawl.workspace.folder_walk import own_ignore_file
from bradawl.workspace.gitignore import RuleSet, parse_rules

_LARGEST_BYTES = 100_000
_MOST_FOLDERS_ABOVE = 20
_SPECIAL = re.compile(r"[*?\[\\]")


class IgnoredNames:
    """The rules of one ignore file. `folder` is the one that they are relative to."""

    def __init__(self, folder: str, text: str) -> None:
        self._start = len(folder.rstrip("/")) + 1
        self._names: dict[str, list[int]] = {}
        self._endings: dict[str, list[int]] = {}
        self._paths: dict[str, list[int]] = {}
        self._others: list[tuple[int, RuleSet]] = []
        self._negated: set[int] = set()
        self._only_folders: set[int] = set()
        for number, line in enumerate(text.removeprefix("\ufeff").split("\n")):
            self._add(folder, number, line.rstrip("\r"))

    def _add(self, folder: str, number: int, line: str) -> None:
        pattern = line.rstrip(" ")
        if not pattern or pattern.startswith("#"):
            return
        if _SPECIAL.search(pattern.removeprefix("!").removeprefix("*.")) or pattern.removeprefix("!").startswith("/*."):
            if rules := parse_rules(folder, line):
                self._others.append((number, rules))
            return
        if pattern.startswith("!"):
            self._negated.add(number)
            pattern = pattern[1:]
        if pattern.endswith("/"):
            self._only_folders.add(number)
            pattern = pattern.rstrip("/")
        if pattern.startswith("*.") and "/" not in pattern:
            self._endings.setdefault(pattern[1:], []).append(number)
        elif "/" in pattern:
            self._paths.setdefault(pattern.removeprefix("/"), []).append(number)
        else:
            self._names.setdefault(pattern, []).append(number)

    def verdict(self, path: str, name: str, *, is_folder: bool) -> bool | None:
        """True: ignored. False: a negated rule keeps it. None: no rule matches. `path` is absolute."""
        best, is_ignored = -1, None
        for number in self._found(path, name):
            if number > best and (is_folder or number not in self._only_folders):
                best, is_ignored = number, number not in self._negated
        for number, rules in self._others:
            if number > best and (verdict := rules.verdict(path, is_folder=is_folder)) is not None:
                best, is_ignored = number, verdict
        return is_ignored

    def _found(self, path: str, name: str) -> list[int]:
        found = self._names.get(name, [])
        if self._paths and (at := self._paths.get(path[self._start :])):
            found = found + at
        if self._endings:
            place = name.find(".")
            while place >= 0:
                if at := self._endings.get(name[place:]):
                    found = found + at
                place = name.find(".", place + 1)
        return found


def is_ignored(chain: tuple[IgnoredNames, ...], path: str, name: str, *, is_folder: bool) -> bool:
    """Whether a path is ignored. `chain` is ordered outermost first; the innermost rules with a match decide."""
    for rules in reversed(chain):
        if (verdict := rules.verdict(path, name, is_folder=is_folder)) is not None:
            return verdict
    return False


def rules_in(folder: str) -> tuple[IgnoredNames, ...]:
    """The rules of the `.gitignore` of a folder, if it has one."""
    text = beginning_of(f"{folder.rstrip('/')}/.gitignore")
    return (IgnoredNames(folder, text),) if text else ()


def rules_above(folder: str) -> tuple[IgnoredNames, ...]:
    """The rules of the folders above, up to the top of the repository, after those of the `.bradawlignore`."""
    if own := own_ignore_file(folder):
        return (IgnoredNames(own.rpartition("/")[0], beginning_of(own)), *_git_rules_above(folder))
    return _git_rules_above(folder)


def _git_rules_above(folder: str) -> tuple[IgnoredNames, ...]:
    chain: tuple[IgnoredNames, ...] = ()
    for _ in range(_MOST_FOLDERS_ABOVE):
        if folder == "/" or os.path.lexists(f"{folder}/.git"):
            return chain
        folder = folder.rpartition("/")[0] or "/"
        chain = rules_in(folder) + chain
    return ()


def beginning_of(path: str, most: int = _LARGEST_BYTES) -> str:
    """The first bytes of a regular file as text; empty if it can't be read."""
    return bytes_of(path, most).decode("utf-8", "replace")


def bytes_of(path: str, most: int, *, follows_links: bool = True) -> bytes:
    """The first bytes of a regular file; empty if it can't be read."""
    links = 0 if follows_links else os.O_NOFOLLOW
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | links)  # not blocked by a pipe of that name
    except OSError:
        return b""
    try:
        return os.read(opened, most) if stat.S_ISREG(os.fstat(opened).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(opened)
