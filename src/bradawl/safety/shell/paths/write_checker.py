"""Resolves the words that name what a line changes, and checks the paths against protection and rules."""

import os
import re
from collections.abc import Iterator
from posixpath import basename, dirname, join, normpath

from bradawl.safety.shell.argv import UNKNOWN_WORD
from bradawl.safety.shell.errors import UnsupportedSyntax
from bradawl.safety.shell.glob_expansion import expanded, ignores_case, is_pattern, matches_hidden
from bradawl.safety.shell.links import Links, is_folder
from bradawl.safety.shell.paths.file_changes import Changes
from bradawl.safety.shell.paths.word_parts import is_readable, word_parts
from bradawl.safety.shell.paths.write_protection import WriteProtection

_MOST_BASES = 24
_MOST_PATHS = 20_000
_SEPARATORS = re.compile("[=,:@]")


class ProtectedPath(Exception):
    """A line would change something that no mode allows; the text is the reason. Caught in `refused_writes`."""


class WriteChecker:
    """Checks words against the protected paths, from each possible working directory."""

    def __init__(self, text: str, folders: tuple[str, ...], protected: WriteProtection) -> None:
        self.found: dict[str, None] = {}
        """Paths that a rule of the user matches."""
        self.protected = protected
        self.links = Links()
        self.bases = dict.fromkeys(folders)
        self.touched: dict[str, None] = {}
        """Paths that the line writes, before links are resolved."""
        self._any_case = ignores_case(text)
        self._hidden = matches_hidden(text)
        self._left = _MOST_PATHS

    def raise_if(self, why: str) -> None:
        """Raise `ProtectedPath` unless the reason is empty."""
        if why:
            raise ProtectedPath(why)

    def _count_path(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UnsupportedSyntax

    def learn_folders(self, words: tuple[str, ...]) -> None:
        """Add the folders that `cd` or an option names to the possible working directories."""
        for word in words:
            for path in list(self.paths(word)):
                if len(self.bases) < _MOST_BASES and any(map(is_folder, self.links.real_paths(path))):
                    self.bases[path] = None

    def paths(self, word: str, *, hidden: bool = False) -> Iterator[str]:
        """The paths that a word may mean, from each possible working directory; links are not resolved.

        `hidden`: patterns also match names that begin with a dot.
        """
        if not is_readable(word):
            return
        for base in tuple(self.bases):
            raw = join(base, word)
            self._count_path()
            if is_pattern(raw):
                pattern = raw if ".." in word else normpath(raw)
                hidden = hidden or self._hidden
                yield from expanded(pattern, self.links, any_case=self._any_case, hidden=hidden)
            else:
                yield raw
            if word.startswith("/"):
                return

    def check_path(self, path: str, *, is_device: bool = True) -> None:
        """Check one path that is written."""
        self.touched[normpath(path)] = None
        for place in dict.fromkeys((*self.links.real_paths(path), normpath(path))):
            self._count_path()
            self.raise_if(self.protected.write_refusal(place, is_device=is_device))
            if self.protected.has_rule(place):
                self.found[place] = None

    def check_file(self, word: str) -> None:
        """Check a word that names a file to be written, created or removed."""
        if word == "-":
            return
        for path in self.paths(word):
            self.check_path(path)
        self._check_guessed(word)

    def _check_guessed(self, word: str) -> None:
        """Check every existing path that fits a partly unknown word, against the user's rules only."""
        if UNKNOWN_WORD not in word or not re.search(r"[\w-]", word.replace(UNKNOWN_WORD, "")):
            return
        for path in self.paths(word.replace(UNKNOWN_WORD, "*"), hidden=True):
            self.found |= {place: None for place in self.links.real_paths(path) if self.protected.has_rule(place)}

    def check_tree(self, word: str, changes: Changes) -> None:
        """Check a word whose path is changed with everything below it."""
        if changes.removes and is_pattern(basename(word)):
            for folder in self.paths(dirname(word) or "."):
                for place in self.links.real_paths(folder):
                    self.raise_if(self.protected.emptying_refusal(place, basename(word)))
        for path in self.paths(word):
            for place in self.links.real_paths(path):
                if changes.removes:
                    self.raise_if(self.protected.removal_refusal(place))
                for each in self.protected.rule_paths_below(place):
                    has_suffix = not changes.suffixes or each.endswith(changes.suffixes) or is_folder(each)
                    fits_index = changes.tracked is None or self.protected.is_tracked(each) == changes.tracked
                    self.found |= {each: None} if has_suffix and fits_index else {}

    def check_word(self, word: str, *, descends: bool = False) -> None:
        """Check a word of which any part may be a path that is changed."""
        if word[:1] == "@":
            for path in self.paths(word[1:]):
                for target in self.protected.named_in_patch(path):
                    self.check_file(target)
            return
        for piece in _pieces(word):
            self._check_guessed(piece)
            for path in self.paths(piece):
                for place in self.links.real_paths(path):
                    self._count_path()
                    self.raise_if(self.protected.write_refusal(place, is_device=False))
                    is_named = "/" in piece or "." in piece or os.path.lexists(place)
                    if is_named and self.protected.has_rule(place):
                        self.found[place] = None
                    elif descends and self.protected.has_rules and is_folder(place):
                        self.found |= dict.fromkeys(self.protected.rule_paths_below(place))

    def check_existing(self, path: str) -> None:
        """Check one existing path that is changed, certainly or possibly."""
        self.raise_if(self.protected.write_refusal(path))
        if self.protected.has_rule(path):
            self.found[path] = None


def _pieces(word: str) -> dict[str, None]:
    """As `word_parts`, but a word with blanks is one path or none."""
    if any(char.isspace() for char in word):
        return {word: None} if is_readable(word) else {}
    return word_parts(word, separators=_SEPARATORS, most_letters=6)
