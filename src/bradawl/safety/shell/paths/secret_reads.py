"""Keys of bradawl and of other users, and environments of processes, that a line would read: no mode lets it.

Looks at the words of a line, where no sandbox hides the files. What a program computes can't be seen here.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from itertools import islice, pairwise
from pathlib import Path
from posixpath import basename, join, normpath

import msgspec

from bradawl.core.effects import Effects, is_within
from bradawl.safety.permissions.protected_paths import credentials, never_read, own_folders
from bradawl.safety.shell.argv import Argv, name_of, names
from bradawl.safety.shell.deny.scanner import Seen
from bradawl.safety.shell.glob_expansion import expanded
from bradawl.safety.shell.paths.operand_uses import UNKNOWN_WORD, Use, reads_names, starts_from_input, use_of

_SEPARATORS = re.compile(r"[\s'\"`;|&<>(){}=,@:!%\\]+")
_FOLDERS_OF_HOMES = ("/home", "/Users")
_HOMES_OF_ROOT = ("/root", "/var/root")
_PROC = re.compile(r"/proc/(?:[^/]+/)*?root(?=/|\Z)")
_ITSELF = re.compile(r"/proc/(?:self|thread-self)/")
"""Of the program that looks there: it has its own variables, among which there are no keys of bradawl."""
_MOST_CANDIDATES = 4_000
_LONGEST_WORD = 4_096
_MOST_FOLDERS = 200


class KeptFiles(msgspec.Struct, frozen=True):
    """Files that no mode shows to the model."""

    home: str
    own: tuple[str, ...] = ()
    """bradawl's folders besides those in the home folder."""

    def speaks(self, path: str) -> bool:
        """Whether an absolute path is one of them."""
        if _ITSELF.match(path):
            return False
        return any(re.fullmatch(pattern, path, re.DOTALL) for pattern in never_read(self.home, self.own))

    def below(self, folder: str) -> Iterator[str]:
        """Those that are there and can be read, at or below a folder."""
        if (is_within(folder, "/proc") or folder == "/") and not _ITSELF.match(f"{folder}/"):
            yield join(folder if folder.count("/") > 1 else "/proc/PID", "environ")
        for store in own_folders(self.home, self.own):
            path = join(store, "credentials.toml")
            if is_within(path, folder) and os.access(path, os.R_OK):
                yield path
        for home in self.other_homes(folder):
            yield from (path for path in credentials(home) if is_within(path, folder) and os.access(path, os.R_OK))

    def other_homes(self, folder: str) -> Iterator[str]:
        """Home folders of other users that lie below a folder, or in which it lies."""
        if not self.home:
            return
        yield from (home for home in _HOMES_OF_ROOT if home != self.home and _touch(home, folder))
        for parent in _FOLDERS_OF_HOMES:
            if is_within(parent, folder):
                with suppress(OSError), os.scandir(parent) as entries:
                    yield from [entry.path for entry in entries if entry.path != self.home]
            elif is_within(folder, parent) and not is_within(folder, self.home):
                yield "/".join(folder.split("/")[:3])


def _touch(home: str, folder: str) -> bool:
    return is_within(home, folder) or is_within(folder, home)


def kept_by_effects(kept: KeptFiles, effects: Effects, *, is_covered: Callable[[], bool]) -> str:
    """The first such file that a line which is understood would read, copy, move or delete; empty if there is none."""
    for path in (*effects.writes, *effects.reads):
        if kept.speaks(path):
            return path
    if not _reads_trees(effects):
        return ""
    is_named = any(_is_within_other(path, kept.home) for path in effects.reads)  # a yes would take the cover off
    if is_covered() and not is_named:
        return ""
    return next((path for each in (*effects.reads, *effects.writes) for path in kept.below(each)), "")


def homes_read(kept: KeptFiles, effects: Effects) -> tuple[str, ...]:
    """Home folders of other users below a folder that a line reads as a whole."""
    if not kept.home or not _reads_trees(effects):
        return ()
    above = [path for path in effects.reads if path in ("/", *_FOLDERS_OF_HOMES)]
    return tuple(home for path in above for home in kept.other_homes(path) if Path(home).is_dir())


def _reads_trees(effects: Effects) -> bool:
    return any(name_of(words) in _READ_TREES and _reads_hidden(words) for words in effects.commands)


def _is_within_other(path: str, home: str) -> bool:
    return path.startswith(("/home/", "/Users/", "/root", "/var/root")) and not is_within(path, home)


def kept_by_words(kept: KeptFiles, text: str, argvs: tuple[Argv, ...], seen: Seen, cwd: str) -> str:
    """The same of a line that is not understood, or is read in part."""
    line = _Line(kept, text, tuple(dict.fromkeys(argvs)), seen, cwd)
    try:
        return next(line.found(), "")
    except _TooMuch:
        return "more files than can be looked at, keys perhaps among them"


class _TooMuch(Exception):
    pass


class _Line:
    """Compares the words of one line with the files."""

    def __init__(self, kept: KeptFiles, text: str, argvs: tuple[Argv, ...], seen: Seen, cwd: str) -> None:
        self._kept = kept
        self._text = text
        self._argvs = argvs
        self._seen = seen
        self._bases = dict.fromkeys((cwd, *seen.folders))
        self._passes_on = "$(" in text or "`" in text or any(map(reads_names, argvs))
        self._left = _MOST_CANDIDATES
        for folder in [each for argv in argvs for each in _entered(argv)]:
            self._bases |= dict.fromkeys(normpath(join(base, folder)) for base in tuple(self._bases))

    def found(self) -> Iterator[str]:
        """All files that the words name, or that lie below folders which commands read."""
        from_input = any(map(starts_from_input, self._argvs))
        for argv in self._argvs:
            if name_of(argv) in (_TELL_NO_CONTENT if self._passes_on else _SAY | _TELL_NO_CONTENT):
                continue
            if _shows_environments(argv, self._text):
                yield "/proc/PID/environ"
            for path in self._by_command(argv, use_of(argv, from_input=from_input)):
                if not _leaves_out(argv, path):
                    yield path
        is_seen_through = self._seen.is_whole and not any(map(_runs_code, self._argvs))
        for word in dict.fromkeys((*self._seen.opened, *(() if is_seen_through else self._text.split()))):
            yield from self._named(word, descends=False)

    def _by_command(self, argv: Argv, use: Use) -> Iterator[str]:
        for word in (argv[0], *use.words):
            if not (use.takes_names and " " in word):
                yield from self._named(word, descends=_descends(argv, use))
        if use.here and _reads_hidden(argv):
            yield from (path for base in self._bases for path in self._kept.below(base))
        if use.finds and _hands_on(argv, passes_on=self._passes_on):
            yield from self._found_by(argv)

    def _named(self, word: str, *, descends: bool) -> Iterator[str]:
        for piece in _pieces(word):
            for path in self._paths(piece):
                self._left -= 1
                if self._left < 0:
                    raise _TooMuch
                yield from self._at(path, descends=descends)

    def _at(self, path: str, *, descends: bool) -> Iterator[str]:
        ways = dict.fromkeys((path, normpath("/" + path.lstrip("/"))))
        if os.path.lexists(path):
            ways[_real(path)] = None
        else:
            descends = False
        for each in ways:
            if self._kept.speaks(each):
                yield each
        if descends:
            yield from (found for each in ways for found in self._kept.below(each))

    def _paths(self, piece: str) -> Iterator[str]:
        if piece[:1] == "~" and piece[:2] in ("~", "~/"):
            piece = self._kept.home + piece[1:]
        if piece == UNKNOWN_WORD:
            return
        if match := _PROC.match(piece):
            yield piece[match.end() :] or "/"
        if UNKNOWN_WORD in piece:
            yield from self._ending(piece)
        pattern = piece.replace(UNKNOWN_WORD, "*")
        for base in self._bases:
            path = join(base, pattern)
            is_pattern = any(mark in path for mark in "*?[")
            if not is_pattern or "/proc/" in path:
                yield path
            yield from expanded(path, any_case=True) if is_pattern else ()
            yield from self._behind_links(path)
            if piece[:1] == "/":
                break

    def _behind_links(self, path: str) -> Iterator[str]:
        """Where a path leads through links that the line makes."""
        for link, target in self._seen.links:
            if is_within(normpath(path), link):
                yield from expanded(target + normpath(path)[len(link) :], any_case=True)

    def _ending(self, piece: str) -> Iterator[str]:
        """What a path with an unknown beginning is taken for: bradawl's own files, by their ends."""
        end = piece.rpartition(UNKNOWN_WORD)[2]
        if end == "/environ":
            yield "/proc/PID/environ"
        if end.count("/") > 1:
            yield from (path for path in self._kept.below(self._kept.home or "/") if path.endswith(end))

    def _found_by(self, argv: Argv) -> Iterator[str]:
        """Files whose names `find` hands on to other programs."""
        tests = _tests(argv)
        for start in _starts(argv) or ["."]:
            for top in self._paths(start):
                if top:
                    yield from (path for path in self._kept.below(_real(top)) if _passes(path, tests))


def _real(path: str) -> str:
    """Where a path leads; what belongs to the program that looks there is not followed."""
    if _ITSELF.match(path):
        return path
    try:
        return os.path.realpath(path)
    except OSError:
        return path


# ------------------------------------------------------------------ commands


def _entered(argv: Argv) -> Iterator[str]:
    """Folders into which a command goes, for itself or for those after it."""
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


def _descends(argv: Argv, use: Use) -> bool:
    return use.descends and name_of(argv) in _READ_TREES and _reads_hidden(argv)


def _reads_hidden(argv: Argv) -> bool:
    """Whether a search looks into files whose names begin with a dot, as keys do."""
    if name_of(argv) not in ("rg", "ag", "ack"):
        return True
    return any(re.match(r"-[a-zA-Z]*[u.]|--(?:hid|unr|no-ig)", word) for word in argv[1:])


def _leaves_out(argv: Argv, path: str) -> bool:
    """Whether options of a command leave a file out, or a folder above it."""
    names = [after for word, after in pairwise(argv) if word in ("--exclude", "--exclude-dir", "-x")]
    names += [word.partition("=")[2] for word in argv if word.startswith(("--exclude=", "--exclude-dir="))]
    return any(fnmatchcase(part, name.strip("/")) for name in names for part in path.split("/"))


def _hands_on(argv: Argv, *, passes_on: bool) -> bool:
    started = [name_of((after,)) for word, after in pairwise(argv) if word in _EXECS]
    return passes_on if not started else any(name not in _TELL_NO_CONTENT for name in started)


def _shows_environments(argv: Argv, text: str) -> bool:
    """Whether a command shows variables of other processes, or may stop bradawl and read its memory."""
    if name_of(argv) == "ps":
        return any(re.fullmatch(r"[a-zA-Z]*e[a-zA-Z]*", word) for word in argv[1:2])
    attaches = any(re.match(r"-p|--pid|attach", word) for word in argv[1:]) or name_of(argv) == "gcore"
    return name_of(argv) in _DEBUGGERS and attaches and "PPID" in text


def _runs_code(argv: Argv) -> bool:
    return bool(_INTERPRETERS.fullmatch(name_of(argv)))


def _starts(argv: Argv) -> list[str]:
    if not argv[0].endswith("find"):
        return [word for word in argv[2:] if word[:1] != "-"]
    starts: list[str] = []
    for word in argv[1:]:
        if word[:1] in ("-", "(", "!") and word not in ("-H", "-L", "-P"):
            break
        starts.append(word)
    return [word for word in starts if word[:1] != "-"]


def _tests(argv: Argv) -> list[str]:
    if any(word in ("-o", "-or", ",", "!", "-not", "(", ")") for word in argv):
        return []
    return [after.lower() for word, after in pairwise(argv) if word in ("-name", "-iname")]


def _passes(path: str, tests: list[str]) -> bool:
    return any(
        all(fnmatchcase(name.lower(), test.replace(UNKNOWN_WORD, "*")) for test in tests) for name in _names_at(path)
    )


def _names_at(path: str) -> Iterator[str]:
    """The name of a file or folder, and those of some files below it."""
    yield basename(path)
    for _, folders, files in islice(os.walk(path), _MOST_FOLDERS):
        yield from (*folders, *files)


def _pieces(word: str) -> Iterable[str]:
    """Parts of a word that may be paths: all of it, values, what stands behind an option's letter."""
    if not word or "\0" in word or len(word) > _LONGEST_WORD:
        return ()
    if word[:1] != "-":
        return dict.fromkeys((word, *filter(None, _SEPARATORS.split(word))))
    found = [piece for piece in _SEPARATORS.split(word) if piece[:1] != "-"]
    if word[1:2] != "-" and ("/" in word or "~" in word or "." in word):
        found += [word[place:] for place in range(2, min(len(word), 8))]
    return dict.fromkeys(filter(None, found))


_SAY = names("echo printf : true false export declare local readonly unset type which man whatis kill")
_READ_TREES = names(
    "cp gcp mv gmv ln install rsync scp tar gtar bsdtar zip 7z 7za 7zr cpio pax grep egrep fgrep zgrep rgrep rg ag ack"
    " ugrep diff rclone restic borg duplicity ditto xcp"
)
_TELL_NO_CONTENT = names(
    "ls stat du echo printf basename dirname realpath readlink chmod chown chgrp rm rmdir touch mkdir test [ true"
    " false cd pushd popd"
)
_EXECS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
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
