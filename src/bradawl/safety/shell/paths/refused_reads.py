"""Refused paths that a line may reach through its words, where the line is not understood and no sandbox hides them.

A word counts if it names an existing path that is refused, or a folder above one for a command that descends into it.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from posixpath import basename, dirname, join, normpath

import msgspec

from bradawl.safety.shell.argv import Argv, name_of
from bradawl.safety.shell.created_links import links_made
from bradawl.safety.shell.deny.scanner import Seen
from bradawl.safety.shell.errors import NotUnderstood
from bradawl.safety.shell.glob_expansion import changes_case, expanded
from bradawl.safety.shell.links import Links
from bradawl.safety.shell.path_rules import RuledPaths
from bradawl.safety.shell.paths.operand_uses import (
    UNKNOWN_WORD,
    Use,
    filled,
    lists_below,
    reads_names,
    starts_from_input,
    use_of,
)
from bradawl.safety.shell.paths.printed_paths import Listings

_MOST_PATHS = 20_000
_MOST_BASES = 24
_LONGEST_WORD = 4_096
_SEPARATORS = re.compile(r"[\s'\"`;|&<>(){}=,@:!%]+")
_TEXT = re.compile(r"[^\s'\"`$;|&<>(){},=@]+")
_OF_A_PROCESS = re.compile(r".*/(?:cwd|fd/[^/]+)(?:/|\Z)")
_ROOT_OF_A_PROCESS = re.compile(r".*/root(?:/|\Z)")
_DIRECTORY_STACK = re.compile(r"~[+-]?[0-9]*(?:/|\Z)")
_DECODERS = frozenset({"base64", "base32", "basenc", "xxd", "printf", "openssl", "tr", "rev", "sed", "awk", "python3"})
"""Programs that may print a pattern that no word holds."""
_WALKS = re.compile(r"walk|tree|glob|listdir|scandir|iterdir|readdir|archive|chdir|tarfile|zipfile|cpSync|Dir\b|find")
_TOO_MUCH = "it names more paths than can be compared with the rules that refuse to read; run fewer commands at once"


class Reached(msgspec.Struct, frozen=True):
    """What a line may read."""

    paths: tuple[str, ...] = ()
    danger: str = ""
    """Why it must not run although no path can be named."""


def reached(ruled: RuledPaths, text: str, argvs: tuple[Argv, ...], seen: Seen, cwd: str) -> Reached:
    """All that the words of a line that isn't understood may reach of what must not be read. Never raises."""
    if not ruled.applies("read"):
        return Reached()
    words = _Words(ruled, cwd, (cwd, *seen.folders))
    try:
        words.look(text, argvs, seen)
    except NotUnderstood:
        return Reached(tuple(words.found), _TOO_MUCH)
    return Reached(tuple(words.found))


def _without_ls(text: str, argvs: tuple[Argv, ...]) -> tuple[Argv, ...]:
    """Without words that stand for all names where only `ls` can have printed them: that is told name by name."""
    programs = set(map(name_of, argvs))
    if "ls" not in programs or any(mark in text for mark in "*\\") or not _DECODERS.isdisjoint(programs):
        return argvs
    return tuple(tuple(word for word in argv if word != "*" and word[-2:] != "/*") for argv in argvs)


class _Words:
    """Compares words with the disk."""

    def __init__(self, ruled: RuledPaths, cwd: str, folders: tuple[str, ...]) -> None:
        self.found: dict[str, None] = {}
        self._ruled = ruled
        self._cwd = cwd
        self._bases = dict.fromkeys(folders)
        self._above = [folder for start in folders for folder in (start, *_parents(start))]
        self._left = _MOST_PATHS
        self._below: dict[str, tuple[str, ...]] = {}
        self._links = Links()
        self._any_case = False

    def look(self, text: str, argvs: tuple[Argv, ...], seen: Seen) -> None:
        """Compare all words there are."""
        argvs = _without_ls(text, tuple(dict.fromkeys(argvs)))
        self._any_case = changes_case(text)
        self._learn_folders([*seen.opened, *(word for argv in argvs for word in argv)])
        for link, target in links_made(argvs, tuple(self._bases)):
            self._links.add(link, target)
        from_input = any(map(starts_from_input, argvs))
        passes_on = "$(" in text or "`" in text or any(map(reads_names, argvs))
        for argv in argvs:
            words = filled(argv) if starts_from_input(argv) else argv
            if words:
                self._command(words, use_of(words, from_input=from_input))
                if passes_on and lists_below(words):
                    self._listed()
        if passes_on:
            self._printed(argvs)
        for word in seen.opened:
            self._word(word, descends=False, folder=True)
        if not seen.is_whole:
            for word in dict.fromkeys(text.replace("\\", "").replace("'", "").replace('"', "").split()):
                self._word(word, descends=True, folder=True)
        for piece in dict.fromkeys(_TEXT.findall(text)):
            self._piece(piece, descends=False, folder=False)

    def _learn_folders(self, words: list[str]) -> None:
        """Any folder that is named may become the one from which other words are read."""
        for _ in range(2):
            for word in dict.fromkeys(piece for each in words for piece in _pieces(each)):
                for base in list(self._bases):
                    self._take()
                    path = normpath(join(base, word))
                    if len(self._bases) < _MOST_BASES and Path(path).is_dir():
                        self._bases[path] = None

    def _take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotUnderstood

    def _printed(self, argvs: tuple[Argv, ...]) -> None:
        """Refused files whose names `ls` or git prints for other programs."""
        printing = tuple(argv for argv in argvs if name_of(argv) in ("git", "ls"))
        listings = Listings(printing, tuple(self._bases), self._links, only_files=True)
        for start in listings.starts():
            for path in self._ruled.below("read", start):
                if listings.prints(path):
                    self.found[path] = None

    def _listed(self) -> None:
        """Names of all files below are given to other programs."""
        for base in self._bases:
            self._all_below(base)

    # -------------------------------------------------------------- one command

    def _command(self, argv: Argv, use: Use) -> None:
        if "/" in argv[0]:
            self._word(argv[0], descends=False, folder=False)
        for place, word in enumerate(use.words):
            self._given(use, place, word)
        for base in self._bases if use.here else ():
            self._all_below(base)
        if use.shows_tracked:
            self._tracked(use.words)
        if use.adds:
            self._added(use.words)
        if use.finds:
            self._found_by(argv)

    def _given(self, use: Use, place: int, word: str) -> None:
        if word in (UNKNOWN_WORD, "{}"):
            if use.any_word:
                self._piece("*", descends=True, folder=True)
        elif use.files_only and any(mark in word for mark in "*?["):
            self._files(word)
        else:
            self._word(word, descends=use.descends, folder=use.may_be_folder(place, word), is_code=use.is_code)

    def _word(self, word: str, *, descends: bool, folder: bool, is_code: bool = False) -> None:
        if is_code and " " not in word and "(" not in word:
            is_code = False
        for piece in _pieces(word):
            is_value = piece != word and "=" in word and " " not in word
            is_descent = (bool(_WALKS.search(word)) and piece in (".", "..", "./")) if is_code else descends
            if " " in word and not is_code:
                is_descent = False
            self._piece(piece, descends=is_descent, folder=folder or is_value or (UNKNOWN_WORD in piece))

    def _files(self, word: str) -> None:
        """Files that a pattern stands for; folders among them are not read."""
        for piece in _pieces(word):
            for path in self._paths(piece):
                self._take()
                real = os.path.realpath(path)
                if not Path(real).is_dir() and any(self._ruled.speaks("read", each) for each in (path, real)):
                    self.found |= {real: None} if os.path.lexists(path) else {}

    def _piece(self, piece: str, *, descends: bool, folder: bool) -> None:
        for path in self._paths(piece):
            self._take()
            for real in self._links.places(path):
                if os.path.lexists(real) or os.path.lexists(path):
                    self._place(path, real, is_meant=folder or "/" in piece, descends=descends)

    def _place(self, path: str, real: str, *, is_meant: bool, descends: bool) -> None:
        is_refused = any(self._ruled.speaks("read", each) for each in (path, normpath(path), real))
        if is_refused and (is_meant or not Path(real).is_dir()):
            self.found[real] = None
        elif descends and not is_refused:
            self._all_below(real)

    def _all_below(self, folder: str) -> None:
        if folder not in self._below:
            self._below[folder] = self._ruled.below("read", folder)
        self.found |= dict.fromkeys(self._below[folder])

    def _paths(self, piece: str) -> Iterator[str]:
        """Where a word may lead, from each folder in which the line may be."""
        starts = list(self._bases)
        texts = [piece]
        if match := _DIRECTORY_STACK.match(piece):
            texts.append(piece[match.end() :] or ".")
        if piece.startswith(UNKNOWN_WORD + "/"):
            texts.append(piece[2:] or ".")
            starts += self._above
        for pattern in (_OF_A_PROCESS, _ROOT_OF_A_PROCESS) if "/proc" in piece or "/dev/" in piece else ():
            if match := pattern.match(piece):
                texts.append(piece[match.end() :] or ".")
                starts += ["/"]
        if piece.startswith("//"):
            host, slash, below = piece.lstrip("/").partition("/")
            # Of a URL: the host alone names no path.
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

    def _tracked(self, words: Argv) -> None:
        """What git has recorded, below the paths that the words name, or anywhere."""
        for base in dict.fromkeys(filter(None, map(_repository, self._bases))):
            paths = [normpath(join(self._cwd, word.rpartition(":")[2])) for word in words if word[:1] != "-"]
            there = [path for path in paths if os.path.lexists(path) and path != self._cwd]
            for place in there or [base]:
                self.found |= dict.fromkeys(self._ruled.tracked_below(place, base))

    def _added(self, words: Argv) -> None:
        """What would get into git's index, from where it can be shown."""
        is_forced = any(re.match(r"-[a-zA-Z]*f|--f", word) for word in words)
        is_all = any(re.match(r"-[a-zA-Z]*A|--(?:al|no-ignore-r)|:", word) for word in words)
        names = [word for word in words if word[:1] != "-"]
        for start in [*self._bases, *([_repository(self._cwd) or self._cwd] if is_all else [])]:
            for word in (*names, *(["."] if is_all else [])):
                for top in expanded(normpath(join(start, word.replace(UNKNOWN_WORD, "*")))):
                    self._take()
                    for path in self._ruled.below("read", top):
                        if is_forced or not is_ignored(path):
                            self.found[path] = None

    # -------------------------------------------------------------- find

    def _found_by(self, argv: Argv) -> None:
        """Refused paths whose names are printed, or given to other programs."""
        starts = [word for word in _starts(argv) if word] or ["."]
        tests = _tests(argv)
        for start in starts:
            for top in self._paths(start):
                for path in self._ruled.below("read", os.path.realpath(top)):
                    if _may_print(path, tests, self._ruled):
                        self.found[path] = None


def _starts(argv: Argv) -> list[str]:
    if not argv[0].endswith("find"):
        return [word for word in argv[2:] if word[:1] != "-"]
    starts: list[str] = []
    for word in argv[1:]:
        if word in ("-H", "-L", "-P"):
            continue
        if word[:1] in ("-", "(", "!"):
            break
        starts.append(word)
    return starts


def _tests(argv: Argv) -> list[tuple[str, str]]:
    """Names that all that `find` prints has; none where it can't be told."""
    if not argv[0].endswith("find") or any(word in ("-o", "-or", ",", "!", "-not", "(", ")") for word in argv):
        return []
    return [(word, after) for word, after in pairwise(argv) if word in ("-name", "-iname")]


def _may_print(path: str, tests: list[tuple[str, str]], ruled: RuledPaths) -> bool:
    """Whether a refused path, or one below it, passes."""
    if not tests:
        return True
    names = [basename(path)]
    if Path(path).is_dir():
        left = 5_000
        for _, folders, files in os.walk(path):
            names += [*folders, *files]
            left -= len(folders) + len(files)
            if left < 0:
                return True
    return any(
        all(
            fnmatchcase(name.lower() if kind == "-iname" else name, glob.lower() if kind == "-iname" else glob)
            for kind, glob in tests
        )
        for name in names
    )


# ------------------------------------------------------------------ words and folders


def _pieces(word: str) -> dict[str, None]:
    """Parts of a word that may be paths: all of it, values, what stands behind an option's letter."""
    if not word or "\0" in word or len(word) > _LONGEST_WORD:
        return {}
    found = dict.fromkeys((word, *filter(None, _SEPARATORS.split(word)), *filter(None, word.split("="))))
    if word.startswith("-") and not word.startswith("--") and len(word) > 2:
        found |= dict.fromkeys(word[place:] for place in range(2, min(len(word), 8)))
    if "%" in word:
        from urllib.parse import unquote

        found |= dict.fromkeys(filter(None, _SEPARATORS.split(unquote(word))))
    return found


def _parents(folder: str) -> list[str]:
    found = [folder]
    while dirname(found[-1]) != found[-1]:
        found.append(dirname(found[-1]))
    return found[1:]


def _repository(folder: str) -> str:
    return next((each for each in (folder, *_parents(folder)) if os.path.lexists(join(each, ".git"))), "")


def is_ignored(path: str) -> bool:
    """Whether git's ignore files surely speak of a path: only plain lines, in files that take nothing back."""
    from bradawl.safety.git.small_files import text_in
    from bradawl.safety.git.tracked_files import is_tracked

    top = _repository(path)
    if not top or is_tracked(path, top):
        return False
    parts = path[len(top) + 1 :].split("/")
    files = [join(top, *parts[:depth], ".gitignore") for depth in range(len(parts))]
    texts = [text_in(file) or "" for file in files if os.path.lexists(file)]
    if any(line.lstrip().startswith("!") for text in texts for line in text.splitlines()):
        return False
    first = text_in(files[0]) or "" if os.path.lexists(files[0]) else ""
    wanted = {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)} | set(parts)
    return any(_plain_pattern(line) in wanted for line in first.splitlines())


def _plain_pattern(line: str) -> str:
    return re.sub(r"/(?:\*\*?)?\Z", "", line.strip()).removeprefix("/")
