"""Finds secrets that a line would read: keys of bradawl and of other users, and environments of processes.

No mode allows such a line. The words of the line are checked; paths that a program computes are not found.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import pairwise
from posixpath import join, normpath

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.safety.permissions.home_paths import HOME_PARENTS, ROOT_HOMES
from bradawl.safety.permissions.protected_paths import bradawl_folders, credentials, unreadable_patterns
from bradawl.safety.shell.argv import UNKNOWN_WORD, Argv, name_of, names
from bradawl.safety.shell.deny.scanner import ScanResult
from bradawl.safety.shell.glob_expansion import expanded
from bradawl.safety.shell.links import is_folder, resolved
from bradawl.safety.shell.paths.find_arguments import name_tests, passes_name_tests, searched_folders
from bradawl.safety.shell.paths.operand_uses import (
    OperandUse,
    operand_use,
    passes_names_on,
    starts_from_input,
)
from bradawl.safety.shell.paths.word_parts import attached_values, word_parts

_PROC = re.compile(r"/proc/(?:[^/]+/)*?root(?=/|\Z)")
_ITSELF = re.compile(r"/proc/(?:self|thread-self)/")
"""Paths of the reading process itself: its environment contains no keys of bradawl."""
_MOST_CANDIDATES = 4_000


class SecretFiles(msgspec.Struct, frozen=True):
    """The files that no mode shows to the model."""

    home: str
    own: tuple[str, ...] = ()
    """bradawl's folders outside the home folder."""
    scratch: str = ""
    """The part of them that programs of the session call `/tmp`."""

    def matches(self, path: str) -> bool:
        """Whether an absolute path is one of these files."""
        if _ITSELF.match(path):
            return False
        return any(
            re.fullmatch(pattern, path, re.DOTALL) for pattern in unreadable_patterns(self.home, self.own, self.scratch)
        )

    def below(self, folder: str) -> Iterator[str]:
        """Yield those that exist and can be read, at or below a folder."""
        if (is_within(folder, "/proc") or folder == "/") and not _ITSELF.match(f"{folder}/"):
            yield join(folder if folder.count("/") > 1 else "/proc/PID", "environ")
        for store in bradawl_folders(self.home, self.own):
            path = join(store, "credentials.toml")
            if is_within(path, folder) and os.access(path, os.R_OK):
                yield path
        for home in self.other_homes(folder):
            yield from (path for path in credentials(home) if is_within(path, folder) and os.access(path, os.R_OK))

    def other_homes(self, folder: str) -> Iterator[str]:
        """Home folders of other users that are below a folder, or above it."""
        if not self.home:
            return
        yield from (home for home in ROOT_HOMES if home != self.home and _overlap(home, folder))
        for parent in HOME_PARENTS:
            if is_within(parent, folder):
                with suppress(OSError), os.scandir(parent) as entries:
                    yield from [entry.path for entry in entries if entry.path != self.home]
            elif is_within(folder, parent) and not is_within(folder, self.home):
                yield "/".join(folder.split("/")[:3])


def _overlap(home: str, folder: str) -> bool:
    return is_within(home, folder) or is_within(folder, home)


def secret_in_effects(secrets: SecretFiles, effects: Effects, *, is_covered: Callable[[], bool]) -> str:
    """The first secret file that an understood line would read, copy, move or delete; empty if there is none."""
    for path in (*effects.writes, *effects.reads):
        if secrets.matches(path):
            return path
    if not _reads_trees(effects):
        return ""
    is_named = any(
        _is_within_other(path, secrets.home) for path in effects.reads
    )  # the user's consent would lift the sandbox's cover
    if is_covered() and not is_named:
        return ""
    return next((path for each in (*effects.reads, *effects.writes) for path in secrets.below(each)), "")


def other_homes_read(secrets: SecretFiles, effects: Effects) -> tuple[str, ...]:
    """Home folders of other users below a folder that the line reads recursively."""
    if not secrets.home or not _reads_trees(effects):
        return ()
    above = [path for path in effects.reads if path in ("/", *HOME_PARENTS)]
    return tuple(home for path in above for home in secrets.other_homes(path) if is_folder(home))


def _reads_trees(effects: Effects) -> bool:
    return any(name_of(words) in _READ_TREES and _reads_hidden(words) for words in effects.commands)


def _is_within_other(path: str, home: str) -> bool:
    is_in_home = any(path.startswith(f"{parent}/") for parent in HOME_PARENTS)
    return (is_in_home or any(is_within(path, each) for each in ROOT_HOMES)) and not is_within(path, home)


def secret_in_words(secrets: SecretFiles, text: str, argvs: tuple[Argv, ...], seen: ScanResult, cwd: str) -> str:
    """The first secret file that a line which is not understood may reach; empty if there is none."""
    line = _SecretReadFinder(secrets, text, tuple(dict.fromkeys(argvs)), seen, cwd)
    try:
        return next(line.found(), "")
    except _TooManyPaths:
        return "more files than can be checked, possibly with keys among them"


class _TooManyPaths(Exception):
    pass


class _SecretReadFinder:
    """Compares the words of one line with the secret files."""

    def __init__(self, secrets: SecretFiles, text: str, argvs: tuple[Argv, ...], seen: ScanResult, cwd: str) -> None:
        self._secrets = secrets
        self._text = text
        self._argvs = argvs
        self._seen = seen
        self._bases = dict.fromkeys((cwd, *seen.folders))
        self._passes_on = passes_names_on(text, argvs)
        self._left = _MOST_CANDIDATES
        for folder in [each for argv in argvs for each in _entered_folders(argv)]:
            self._bases |= dict.fromkeys(normpath(join(base, folder)) for base in tuple(self._bases))

    def found(self) -> Iterator[str]:
        """Yield the secret files that words name, or that are below folders which commands read."""
        from_input = any(map(starts_from_input, self._argvs))
        for argv in self._argvs:
            if name_of(argv) in (_SHOW_NO_CONTENTS if self._passes_on else _OPEN_NO_OPERANDS | _SHOW_NO_CONTENTS):
                continue
            if _shows_environments(argv, self._text):
                yield "/proc/PID/environ"
            for path in self._from_command(argv, operand_use(argv, from_input=from_input)):
                if not _excludes(argv, path):
                    yield path
        is_seen_through = self._seen.is_whole and not any(map(_runs_code, self._argvs))
        for word in dict.fromkeys((*self._seen.opened, *(() if is_seen_through else self._text.split()))):
            yield from self._from_word(word, descends=False)

    def _from_command(self, argv: Argv, use: OperandUse) -> Iterator[str]:
        for word in (argv[0], *use.words):
            if not (use.takes_names and " " in word):
                yield from self._from_word(word, descends=_descends(argv, use))
        if use.uses_cwd and _reads_hidden(argv):
            yield from (path for base in self._bases for path in self._secrets.below(base))
        if use.lists_names and _passes_contents_on(argv, passes_on=self._passes_on):
            yield from self._from_find(argv)

    def _from_word(self, word: str, *, descends: bool) -> Iterator[str]:
        for piece in _pieces(word):
            for path in self._paths(piece):
                self._left -= 1
                if self._left < 0:
                    raise _TooManyPaths
                yield from self._at_path(path, descends=descends)

    def _at_path(self, path: str, *, descends: bool) -> Iterator[str]:
        ways = dict.fromkeys((path, normpath("/" + path.lstrip("/"))))
        if os.path.lexists(path):
            ways[_real(path)] = None
        else:
            descends = False
        for each in ways:
            if self._secrets.matches(each):
                yield each
        if descends:
            yield from (found for each in ways for found in self._secrets.below(each))

    def _paths(self, piece: str) -> Iterator[str]:
        if piece[:1] == "~" and piece[:2] in ("~", "~/"):
            piece = self._secrets.home + piece[1:]
        if piece == UNKNOWN_WORD:
            return
        if match := _PROC.match(piece):
            yield piece[match.end() :] or "/"
        if UNKNOWN_WORD in piece:
            yield from self._with_ending(piece)
        pattern = piece.replace(UNKNOWN_WORD, "*")
        for base in self._bases:
            path = join(base, pattern)
            is_pattern = any(mark in path for mark in "*?[")
            if not is_pattern or "/proc/" in path:
                yield path
            yield from expanded(path, any_case=True) if is_pattern else ()
            yield from self._through_links(path)
            if piece[:1] == "/":
                break

    def _through_links(self, path: str) -> Iterator[str]:
        """Yield the paths to which links that the line creates lead a path."""
        for link, target in self._seen.links:
            if is_within(normpath(path), link):
                yield from expanded(target + normpath(path)[len(link) :], any_case=True)

    def _with_ending(self, piece: str) -> Iterator[str]:
        """Secret files whose path ends like a word with an unknown beginning."""
        end = piece.rpartition(UNKNOWN_WORD)[2]
        if end == "/environ":
            yield "/proc/PID/environ"
        if end.count("/") > 1:
            yield from (path for path in self._secrets.below(self._secrets.home or "/") if path.endswith(end))

    def _from_find(self, argv: Argv) -> Iterator[str]:
        """Secret files whose names `find` or `fd` passes to other programs."""
        tests = name_tests(argv)
        for start in searched_folders(argv):
            for top in self._paths(start):
                if top:
                    yield from (path for path in self._secrets.below(_real(top)) if passes_name_tests(path, tests))


def _real(path: str) -> str:
    """The real path; links of the reading process itself (`/proc/self`) are not resolved."""
    return path if _ITSELF.match(path) else resolved(path)


# ------------------------------------------------------------------ commands


def _entered_folders(argv: Argv) -> Iterator[str]:
    """The folders that a command changes to, for itself or for later commands."""
    name = name_of(argv)
    if name in ("cd", "pushd"):
        yield from (word.replace(UNKNOWN_WORD, "*") for word in argv[1:2])
    options = _FOLDER_OPTIONS.get(name, ())
    for word, after in pairwise((*argv, "")):
        if word in options:
            yield after.replace(UNKNOWN_WORD, "*")
        for option in options:
            if word.startswith(option) and len(word) > len(option):
                yield word[len(option) :].removeprefix("=").replace(UNKNOWN_WORD, "*")


def _descends(argv: Argv, use: OperandUse) -> bool:
    return use.descends and name_of(argv) in _READ_TREES and _reads_hidden(argv)


def _reads_hidden(argv: Argv) -> bool:
    """Whether the command searches hidden files, as key files are."""
    if name_of(argv) not in ("rg", "ag", "ack"):
        return True
    return any(re.match(r"-[a-zA-Z]*[u.]|--(?:hid|unr|no-ig)", word) for word in argv[1:])


def _excludes(argv: Argv, path: str) -> bool:
    """Whether options of the command exclude a file or a folder above it."""
    names = [after for word, after in pairwise(argv) if word in ("--exclude", "--exclude-dir", "-x")]
    names += [word.partition("=")[2] for word in argv if word.startswith(("--exclude=", "--exclude-dir="))]
    return any(fnmatchcase(part, name.strip("/")) for name in names for part in path.split("/"))


def _passes_contents_on(argv: Argv, *, passes_on: bool) -> bool:
    started = [name_of((after,)) for word, after in pairwise(argv) if word in _EXEC_OPTIONS]
    return passes_on if not started else any(name not in _SHOW_NO_CONTENTS for name in started)


def _shows_environments(argv: Argv, text: str) -> bool:
    """Whether the command shows the environment of other processes, or may attach to bradawl."""
    if name_of(argv) == "ps":
        return any(re.fullmatch(r"[a-zA-Z]*e[a-zA-Z]*", word) for word in argv[1:2])
    attaches = any(re.match(r"-p|--pid|attach", word) for word in argv[1:]) or name_of(argv) == "gcore"
    return name_of(argv) in _DEBUGGERS and attaches and "PPID" in text


def _runs_code(argv: Argv) -> bool:
    return bool(_INTERPRETERS.fullmatch(name_of(argv)))


def _pieces(word: str) -> Iterable[str]:
    """The parts of a word that may be paths; values attached to an option only if the word looks like a path."""
    found = word_parts(word)
    if word[:1] != "-":
        return found
    values = set() if any(mark in word for mark in "/~.") else set(attached_values(word))
    return [piece for piece in found if piece[:1] != "-" and piece not in values]


_OPEN_NO_OPERANDS = names("echo printf : true false export declare local readonly unset type which man whatis kill")
_READ_TREES = names(
    "cp gcp mv gmv ln install rsync scp tar gtar bsdtar zip 7z 7za 7zr cpio pax grep egrep fgrep zgrep rgrep rg ag ack"
    " ugrep diff rclone restic borg duplicity ditto xcp"
)
_SHOW_NO_CONTENTS = names(
    "ls stat du echo printf basename dirname realpath readlink chmod chown chgrp rm rmdir touch mkdir test [ true"
    " false cd pushd popd"
)
_EXEC_OPTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_DEBUGGERS = names("gdb lldb gcore strace ltrace py-spy reptyr")
_FOLDER_OPTIONS = {
    "env": ("-C", "--chdir"),
    "sudo": ("-D", "--chdir"),
    **dict.fromkeys(("git", "make", "gmake", "ninja", "go", "pnpm"), ("-C", "--directory", "--work-tree")),
    **dict.fromkeys(("tar", "gtar", "bsdtar"), ("-C", "--directory")),
}
_INTERPRETERS = re.compile(
    r"(?:python|pypy)[0-9.]*|perl[0-9.]*|ruby[0-9.]*|node(?:js)?|deno|bun|php[0-9.]*|lua[0-9.]*|tclsh|Rscript|[gmn]?awk"
)
