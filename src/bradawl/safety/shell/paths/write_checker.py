"""Where the words of a line lead that name what it changes, and whether that is protected."""

import os
import re
from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath

from bradawl.safety.shell.errors import NotUnderstood
from bradawl.safety.shell.glob_expansion import changes_case, expanded, is_pattern, shows_hidden
from bradawl.safety.shell.links import Links, is_folder
from bradawl.safety.shell.paths.file_changes import Changes
from bradawl.safety.shell.paths.operand_uses import UNKNOWN_WORD
from bradawl.safety.shell.paths.write_protection import Protected

_MOST_BASES = 24
_MOST_PATHS = 20_000
_LONGEST_WORD = 4_096


class ProtectedPath(Exception):
    """Something would be changed that no mode lets a line change; its text says why. Never leaves the room."""


class WrittenPaths:
    """Compares words with what is protected, from each folder in which the line may be."""

    def __init__(self, text: str, folders: tuple[str, ...], protected: Protected) -> None:
        self.found: dict[str, None] = {}
        """Paths of which the user's rules speak."""
        self.protected = protected
        self.links = Links()
        self.bases = dict.fromkeys(folders)
        self.touched: dict[str, None] = {}
        """Paths that the line writes, as they are named."""
        self._any_case = changes_case(text)
        self._hidden = shows_hidden(text)
        self._left = _MOST_PATHS

    def stop_if(self, why: str) -> None:
        """Nothing more is looked for where there is a reason. Raises `ProtectedPath`."""
        if why:
            raise ProtectedPath(why)

    def _take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotUnderstood

    def learn_folders(self, words: tuple[str, ...]) -> None:
        """Folders that the line goes to, by `cd` or by an option."""
        for word in words:
            for path in list(self.paths(word)):
                if len(self.bases) < _MOST_BASES and any(map(is_folder, self.links.places(path))):
                    self.bases[path] = None

    def paths(self, word: str, *, hidden: bool = False) -> Iterator[str]:
        """Where a word may lead, from each folder in which the line may be; not yet followed.

        `hidden`: its stars also stand for a leading dot.
        """
        if not word or "\0" in word or len(word) > _LONGEST_WORD:
            return
        for base in tuple(self.bases):
            raw = join(base, word)
            self._take()
            if is_pattern(raw):
                pattern = raw if ".." in word else normpath(raw)
                hidden = hidden or self._hidden
                yield from expanded(pattern, self.links, any_case=self._any_case, hidden=hidden)
            else:
                yield raw
            if word.startswith("/"):
                return

    def path(self, path: str, *, is_device: bool = True) -> None:
        """One path that is written to."""
        self.touched[normpath(path)] = None
        for place in dict.fromkeys((*self.links.places(path), normpath(path))):
            self._take()
            self.stop_if(self.protected.why(place, is_device=is_device))
            if self.protected.is_ruled(place):
                self.found[place] = None

    def file(self, word: str) -> None:
        """A word that names a file that is written, created or removed."""
        if word == "-":
            return
        for path in self.paths(word):
            self.path(path)
        self._guessed(word)

    def _guessed(self, word: str) -> None:
        """A word with a part that is not known may be any existing path that fits; only rules are held against it."""
        if UNKNOWN_WORD not in word or not re.search(r"[\w-]", word.replace(UNKNOWN_WORD, "")):
            return
        for path in self.paths(word.replace(UNKNOWN_WORD, "*"), hidden=True):
            self.found |= {place: None for place in self.links.places(path) if self.protected.is_ruled(place)}

    def tree(self, word: str, changes: Changes) -> None:
        """What lies below a path is changed, too."""
        if changes.removes and is_pattern(basename(word)):
            for folder in self.paths(dirname(word) or "."):
                for place in self.links.places(folder):
                    self.stop_if(self.protected.why_emptied(place, basename(word)))
        for path in self.paths(word):
            for place in self.links.places(path):
                if changes.removes:
                    self.stop_if(self.protected.why_removed(place))
                for each in self.protected.ruled_below(place):
                    is_meant = not changes.suffixes or each.endswith(changes.suffixes) or is_folder(each)
                    is_theirs = changes.tracked is None or self.protected.is_tracked(each) == changes.tracked
                    self.found |= {each: None} if is_meant and is_theirs else {}

    def loose(self, word: str, *, descends: bool = False) -> None:
        """A word of which any part may be a path that is changed."""
        if word[:1] == "@":
            for path in self.paths(word[1:]):
                for target in self.protected.named_in_patch(path):
                    self.file(target)
            return
        for piece in _pieces(word):
            self._guessed(piece)
            for path in self.paths(piece):
                for place in self.links.places(path):
                    self._take()
                    self.stop_if(self.protected.why(place, is_device=False))
                    is_named = "/" in piece or "." in piece or os.path.lexists(place)
                    if is_named and self.protected.is_ruled(place):
                        self.found[place] = None
                    elif descends and self.protected.has_rules and is_folder(place):
                        self.found |= dict.fromkeys(self.protected.ruled_below(place))

    def meet(self, path: str) -> None:
        """One existing path that is surely or maybe changed."""
        self.stop_if(self.protected.why(path))
        if self.protected.is_ruled(path):
            self.found[path] = None


def _pieces(word: str) -> dict[str, None]:
    """Parts of a word that may be paths; a word with blanks is one path or none."""
    if not word or "\0" in word or len(word) > _LONGEST_WORD:
        return {}
    if any(char.isspace() for char in word):
        return {word: None}
    found = dict.fromkeys((word, *filter(None, re.split(r"[=,:@]", word)), *filter(None, word.partition("=")[2:])))
    if re.match(r"-[a-zA-Z]", word) and len(word) > 2:
        found |= dict.fromkeys(word[place:] for place in range(2, min(len(word), 6)))
    return found
