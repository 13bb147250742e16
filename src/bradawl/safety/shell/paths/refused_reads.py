"""Finds paths a line may read against a rule, where the line is not understood and no sandbox runs it.

A word counts if it names an existing denied path, or a folder above one and the command descends into folders.
"""

import os
import re
from collections.abc import Iterator
from posixpath import dirname, join, normpath

from bradawl.safety.git.tracked_files import repository_root
from bradawl.safety.ignore_files import is_ignored_by_git
from bradawl.safety.shell.argv import UNKNOWN_WORD, Argv, name_of
from bradawl.safety.shell.created_links import links_of_line
from bradawl.safety.shell.deny.scanner import ScanResult
from bradawl.safety.shell.errors import UnsupportedSyntax
from bradawl.safety.shell.glob_expansion import expanded, ignores_case
from bradawl.safety.shell.links import Links, is_folder, resolved
from bradawl.safety.shell.path_rules import PathRules
from bradawl.safety.shell.paths.find_arguments import name_tests, passes_name_tests, searched_folders
from bradawl.safety.shell.paths.operand_uses import (
    OperandUse,
    lists_files_below,
    operand_use,
    passes_names_on,
    starts_from_input,
    with_unknown_words,
)
from bradawl.safety.shell.paths.printed_paths import Listings
from bradawl.safety.shell.paths.refused_paths import RefusedPaths, too_many_paths
from bradawl.safety.shell.paths.word_parts import word_parts

_MOST_PATHS = 20_000
_MOST_BASES = 24
_WORD_PART = re.compile(r"[^\s'\"`$;|&<>(){},=@]+")
_PROCESS_FOLDER = re.compile(r".*/(?:cwd|fd/[^/]+)(?:/|\Z)")
_PROCESS_ROOT = re.compile(r".*/root(?:/|\Z)")
_DIRECTORY_STACK = re.compile(r"~[+-]?[0-9]*(?:/|\Z)")
_DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "printf", "openssl", "tr", "rev", "sed", "awk", "python3"})
"""Programs whose output may contain a pattern that no word of the line contains."""
_WALKS = re.compile(r"walk|tree|glob|listdir|scandir|iterdir|readdir|archive|chdir|tarfile|zipfile|cpSync|Dir\b|find")


def refused_reads(
    path_rules: PathRules, text: str, argvs: tuple[Argv, ...], seen: ScanResult, cwd: str
) -> RefusedPaths:
    """Find the denied paths that the words of a line may reach. Never raises."""
    if not path_rules.applies("read"):
        return RefusedPaths()
    words = _RefusedReadFinder(path_rules, cwd, (cwd, *seen.folders))
    try:
        words.find(text, argvs, seen)
    except UnsupportedSyntax:
        return RefusedPaths(tuple(words.found), too_many_paths("read"))
    return RefusedPaths(tuple(words.found))


def _without_ls(text: str, argvs: tuple[Argv, ...]) -> tuple[Argv, ...]:
    """The commands without words such as `*` that stand for output of `ls`, which is determined name by name."""
    programs = set(map(name_of, argvs))
    if "ls" not in programs or any(mark in text for mark in "*\\") or not _DECODERS.isdisjoint(programs):
        return argvs
    return tuple(tuple(word for word in argv if word != "*" and word[-2:] != "/*") for argv in argvs)


class _RefusedReadFinder:
    """Compares the words of a line with the paths that rules deny."""

    def __init__(self, path_rules: PathRules, cwd: str, folders: tuple[str, ...]) -> None:
        self.found: dict[str, None] = {}
        self._path_rules = path_rules
        self._cwd = cwd
        self._bases = dict.fromkeys(folders)
        self._above = [folder for start in folders for folder in (start, *_parents(start))]
        self._left = _MOST_PATHS
        self._below: dict[str, tuple[str, ...]] = {}
        self._links = Links()
        self._any_case = False

    def find(self, text: str, argvs: tuple[Argv, ...], seen: ScanResult) -> None:
        """Check all words of the line."""
        argvs = _without_ls(text, tuple(dict.fromkeys(argvs)))
        self._any_case = ignores_case(text)
        self._learn_folders([*seen.opened, *(word for argv in argvs for word in argv)])
        self._links = links_of_line(argvs, tuple(self._bases))
        from_input = any(map(starts_from_input, argvs))
        passes_on = passes_names_on(text, argvs)
        for argv in argvs:
            words = with_unknown_words(argv) if starts_from_input(argv) else argv
            if words:
                self._check_command(words, operand_use(words, from_input=from_input))
                if passes_on and lists_files_below(words):
                    self._record_listed()
        if passes_on:
            self._check_printed(argvs)
        for word in seen.opened:
            self._check_word(word, descends=False, folder=True)
        if not seen.is_whole:
            for word in dict.fromkeys(text.replace("\\", "").replace("'", "").replace('"', "").split()):
                self._check_word(word, descends=True, folder=True)
        for piece in dict.fromkeys(_WORD_PART.findall(text)):
            self._check_piece(piece, descends=False, folder=False)

    def _learn_folders(self, words: list[str]) -> None:
        """Add every folder that a word names to the possible working directories."""
        for _ in range(2):
            for word in dict.fromkeys(piece for each in words for piece in _pieces(each)):
                for base in list(self._bases):
                    self._count_path()
                    path = normpath(join(base, word))
                    if len(self._bases) < _MOST_BASES and is_folder(path):
                        self._bases[path] = None

    def _count_path(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UnsupportedSyntax

    def _check_printed(self, argvs: tuple[Argv, ...]) -> None:
        """Check denied files whose names `ls` or git prints for other commands."""
        printing = tuple(argv for argv in argvs if name_of(argv) in ("git", "ls"))
        listings = Listings(printing, tuple(self._bases), self._links, only_files=True)
        for start in listings.starts():
            for path in self._path_rules.below("read", start):
                if listings.prints(path):
                    self.found[path] = None

    def _record_listed(self) -> None:
        """Record the denied paths below all working directories, whose names are passed to other programs."""
        for base in self._bases:
            self._record_all_below(base)

    # -------------------------------------------------------------- one command

    def _check_command(self, argv: Argv, use: OperandUse) -> None:
        if "/" in argv[0]:
            self._check_word(argv[0], descends=False, folder=False)
        for place, word in enumerate(use.words):
            self._check_operand(use, place, word)
        for base in self._bases if use.uses_cwd else ():
            self._record_all_below(base)
        if use.shows_tracked:
            self._check_tracked(use.words)
        if use.adds_to_index:
            self._check_added(use.words)
        if use.lists_names:
            self._check_find(argv)

    def _check_operand(self, use: OperandUse, place: int, word: str) -> None:
        if word in (UNKNOWN_WORD, "{}"):
            if use.any_word:
                self._check_piece("*", descends=True, folder=True)
        elif use.files_only and any(mark in word for mark in "*?["):
            self._check_files(word)
        else:
            self._check_word(word, descends=use.descends, folder=use.may_be_folder(place, word), is_code=use.is_code)

    def _check_word(self, word: str, *, descends: bool, folder: bool, is_code: bool = False) -> None:
        if is_code and " " not in word and "(" not in word:
            is_code = False
        for piece in _pieces(word):
            is_value = piece != word and "=" in word and " " not in word
            is_descent = (bool(_WALKS.search(word)) and piece in (".", "..", "./")) if is_code else descends
            if " " in word and not is_code:
                is_descent = False
            self._check_piece(piece, descends=is_descent, folder=folder or is_value or (UNKNOWN_WORD in piece))

    def _check_files(self, word: str) -> None:
        """Check the files that a pattern matches; folders among the matches are not read."""
        for piece in _pieces(word):
            for path in self._paths(piece):
                self._count_path()
                real = resolved(path)
                if not is_folder(real) and any(self._path_rules.matches("read", each) for each in (path, real)):
                    self.found |= {real: None} if os.path.lexists(path) else {}

    def _check_piece(self, piece: str, *, descends: bool, folder: bool) -> None:
        for path in self._paths(piece):
            self._count_path()
            for real in self._links.real_paths(path):
                if os.path.lexists(real) or os.path.lexists(path):
                    self._check_path(path, real, may_be_folder=folder or "/" in piece, descends=descends)

    def _check_path(self, path: str, real: str, *, may_be_folder: bool, descends: bool) -> None:
        is_refused = any(self._path_rules.matches("read", each) for each in (path, normpath(path), real))
        if is_refused and (may_be_folder or not is_folder(real)):
            self.found[real] = None
        elif descends and not is_refused:
            self._record_all_below(real)

    def _record_all_below(self, folder: str) -> None:
        if folder not in self._below:
            self._below[folder] = self._path_rules.below("read", folder)
        self.found |= dict.fromkeys(self._below[folder])

    def _paths(self, piece: str) -> Iterator[str]:
        """The paths that a word may mean, from each possible working directory."""
        starts = list(self._bases)
        texts = [piece]
        if match := _DIRECTORY_STACK.match(piece):
            texts.append(piece[match.end() :] or ".")
        if piece.startswith(UNKNOWN_WORD + "/"):
            texts.append(piece[2:] or ".")
            starts += self._above
        for pattern in (_PROCESS_FOLDER, _PROCESS_ROOT) if "/proc" in piece or "/dev/" in piece else ():
            if match := pattern.match(piece):
                texts.append(piece[match.end() :] or ".")
                starts += ["/"]
        if piece.startswith("//"):
            host, slash, below = piece.lstrip("/").partition("/")
            # In a URL the host alone names no path.
            texts += [f"/{each}" for each in (f"{host}{slash}{below}", below) if each]
        for text in texts:
            for start in dict.fromkeys(starts):
                raw = join(start, text.replace(UNKNOWN_WORD, "*"))
                yield from expanded(normpath(raw), self._links, any_case=self._any_case)
                if ".." in text and not any(mark in text for mark in "*?[$"):
                    yield raw
                if text.startswith("/"):
                    break

    # -------------------------------------------------------------- git

    def _check_tracked(self, words: Argv) -> None:
        """Record denied paths that git tracks: below the paths among the words, or in the whole repository."""
        for base in dict.fromkeys(filter(None, map(repository_root, self._bases))):
            paths = [normpath(join(self._cwd, word.rpartition(":")[2])) for word in words if word[:1] != "-"]
            there = [path for path in paths if os.path.lexists(path) and path != self._cwd]
            for place in there or [base]:
                self.found |= dict.fromkeys(self._path_rules.tracked_below(place, base))

    def _check_added(self, words: Argv) -> None:
        """Record denied paths that would be added to the index, from where git can show them."""
        is_forced = any(re.match(r"-[a-zA-Z]*f|--f", word) for word in words)
        is_all = any(re.match(r"-[a-zA-Z]*A|--(?:al|no-ignore-r)|:", word) for word in words)
        names = [word for word in words if word[:1] != "-"]
        for start in [*self._bases, *([repository_root(self._cwd) or self._cwd] if is_all else [])]:
            for word in (*names, *(["."] if is_all else [])):
                for top in expanded(normpath(join(start, word.replace(UNKNOWN_WORD, "*")))):
                    self._count_path()
                    for path in self._path_rules.below("read", top):
                        if is_forced or not is_ignored_by_git(path):
                            self.found[path] = None

    # -------------------------------------------------------------- find

    def _check_find(self, argv: Argv) -> None:
        """Record denied paths whose names `find` or `fd` passes to other programs."""
        tests = name_tests(argv)
        for start in filter(None, searched_folders(argv)):
            for top in self._paths(start):
                for path in self._path_rules.below("read", resolved(top)):
                    if passes_name_tests(path, tests):
                        self.found[path] = None


# ------------------------------------------------------------------ words and folders


def _pieces(word: str) -> dict[str, None]:
    """As `word_parts`, also of the word after percent-decoding."""
    found = word_parts(word)
    if "%" in word and found:
        from urllib.parse import unquote

        found |= dict.fromkeys(filter(None, word_parts(unquote(word))))
    return found


def _parents(folder: str) -> list[str]:
    found = [folder]
    while dirname(found[-1]) != found[-1]:
        found.append(dirname(found[-1]))
    return found[1:]
