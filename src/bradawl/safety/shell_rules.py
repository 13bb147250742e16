"""What permission rules say of the paths that a line of bash names, or would read below a folder."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from posixpath import join, normpath

from bradawl.core.rules import Rule, Subject, speaks_of
from bradawl.safety.rule_walk import RuledTree, TooMuch
from bradawl.safety.shell_words import NotUnderstood

_MOST_WORDS = 400
_MOST_NAMES = 2_000
_PIECES = re.compile(r"[^\s'\"`$;|&<>(){},=@]+")
_TAKE_FOLDERS = re.compile(
    r"(?:.*/)?(?:tar|zip|7z|cp|mv|ln|rsync|scp|grep|egrep|fgrep|rg|ag|ack|diff|find|fd|ls|tree|du)"
)


class RuledPaths:
    """Rules that refuse paths or ask about them, held against the paths of one line."""

    def __init__(self, rules: tuple[Rule, ...], is_covered: Callable[[], bool] = bool) -> None:
        """`is_covered` tells whether a sandbox keeps programs from all that the rules refuse."""
        self._rules = rules
        self._is_covered = is_covered
        self._tree = RuledTree(rules)

    def speaks(self, on: Subject, path: str) -> bool:
        """Whether a rule speaks of this path."""
        return any(rule.on == on and speaks_of(rule, path) for rule in self._rules)

    def below(self, on: Subject, folder: str, *, also_covered: bool = False) -> tuple[str, ...]:
        """Paths at or below a folder that a rule speaks of; none where a sandbox covers them.

        Raises `NotUnderstood` where that is too much to look through.
        """
        if not any(rule.on == on for rule in self._rules) or (not also_covered and self._is_covered()):
            return ()
        try:
            found = {os.path.realpath(match.path) for match in self._tree.matches(folder) if match.rule.on == on}
        except TooMuch:
            raise NotUnderstood from None
        return tuple(sorted(found))

    def tracked_below(self, folder: str, repository: str) -> tuple[str, ...]:
        """As `below`, of what may not be read, as far as git has it in its index: that no sandbox hides."""
        from bradawl.safety.sandbox.gitdirs import is_tracked, tracks_below

        found = self.below("read", folder, also_covered=True)
        return tuple(path for path in found if is_tracked(path, repository) or tracks_below(path, repository))

    def named(self, text: str, argvs: Iterable[tuple[str, ...]], cwd: str) -> tuple[str, ...]:
        """Existing paths that may not be read and that the words of a text name which is not understood.

        None where a sandbox covers them. A folder counts if its name has a slash in it, or for programs that read
        folders: other programs use such words as names of something else.
        """
        if not any(rule.on == "read" for rule in self._rules) or self._is_covered():
            return ()
        found: dict[str, None] = {}
        for word, takes_folders in self._candidates(text, argvs):
            for path in expanded(normpath(join(cwd, word))):
                is_path = "/" in word and not any(mark in word for mark in "*?[")
                is_named = is_path or takes_folders or not Path(path).is_dir()
                real = os.path.realpath(path)
                if is_named and os.path.lexists(path) and (self.speaks("read", path) or self.speaks("read", real)):
                    found[real] = None
        return tuple(found)

    def _candidates(self, text: str, argvs: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, bool]]:
        left = _MOST_WORDS
        for argv in argvs:
            takes_folders = bool(argv and _TAKE_FOLDERS.fullmatch(argv[0]))
            for word in argv[1:]:
                for piece in dict.fromkeys((word, *_PIECES.findall(word))):
                    if left > 0 and piece and "\0" not in piece:
                        left -= 1
                        yield piece, takes_folders
        for piece in dict.fromkeys(_PIECES.findall(text)[:_MOST_WORDS]):
            yield piece, False


def expanded(pattern: str) -> Iterator[str]:
    """Names that a pattern may stand for, hidden ones among them; the pattern itself where it is none."""
    if not any(mark in pattern for mark in "*?["):
        yield pattern
        return
    found = [""]
    for part in pattern.split("/")[1:]:
        if any(mark in part for mark in "*?["):
            found = [
                f"{folder}/{name}" for folder in found for name in _names(folder or "/") if fnmatchcase(name, part)
            ]
        else:
            found = [f"{folder}/{part}" for folder in found]
        found = found[:_MOST_NAMES]
    yield from found


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except OSError:
        return []
