"""Finds code that the scripts and runners of a line load: files that scripts name, sources and tests below a folder.

An approval for the session covers these contents. If there are too many, or one can't be read, it covers one call only.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from posixpath import dirname, join, normpath
from typing import Final

from bradawl.core.effects import is_within
from bradawl.safety.permissions.protected_paths import system_folders
from bradawl.safety.shell.argv import Argv, name_of, names
from bradawl.safety.shell.executed_files import RunFiles

_MOST_FILES: Final = 1_000
_MOST_FOLDERS: Final = 400
_TOKEN: Final = re.compile(r"(?:\.\./)*[\w@+-][\w@.+-]*(?:/[\w@.+-]+)*")
_CODE: Final = re.compile(
    r".+\.(?:pyw?|pyx|sh|bash|zsh|ksh|fish|[cm]?[jt]sx?|vue|rb|rake|pl|pm|t|php|lua|r|jl|tcl|go|rs|java|kts?|scala|groovy"
    r"|gradle|clj|exs?|erl|hs|ml|swift|dart|cs|fs|vb|c|cc|cpp|cxx|h|hh|hpp|m|mm|zig|nim|d|mk|mak|cmake|bats|awk|sed|ps1|bat)",
    re.IGNORECASE,
)
_SUFFIXES: Final = (
    *("", ".py", "/__init__.py", "/__main__.py", ".sh", ".js", ".mjs", ".cjs", ".ts", ".tsx", "/index.js", "/index.ts"),
    *(".rb", ".pl", ".pm", ".lua", ".php"),
)
_PASSED_OVER: Final = names(
    ".git .hg .svn node_modules __pycache__ .venv venv site-packages .tox .nox .mypy_cache .ruff_cache .pytest_cache"
    " target build dist .gradle .next .cache vendor"
)
_SOURCES: Final = {
    "cargo": r".+\.rs",
    "go": r".+\.go|go\.(?:mod|work)",
    **dict.fromkeys(("pytest", "py.test", "tox", "nox", "unittest", "nose2"), r"(?:test_.*|.*_test|conftest)\.py"),
    **dict.fromkeys(("jest", "vitest", "mocha", "ava"), r".+[._-](?:test|spec)\.[cm]?[jt]sx?"),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew", "sbt"), r".+\.(?:java|kts?|scala|groovy|gradle)"),
    "dotnet": r".+\.(?:cs|fs|vb|csproj|fsproj)",
    "rspec": r".+_spec\.rb|spec_helper\.rb",
    "swift": r".+\.swift",
    "zig": r".+\.zig",
}
"""Patterns for files below the working directory that a runner runs or compiles, by runner."""


class _TooMany(Exception):
    pass


def with_loaded(runs: RunFiles, argvs: Iterable[Argv], cwd: str) -> RunFiles:
    """`runs` with the code that these files load, as far as their texts name it."""
    found = dict.fromkeys(runs.names)
    try:
        found |= dict.fromkeys(islice(_loaded(tuple(runs.names), tuple(argvs), cwd), _MOST_FILES))
    except _TooMany:
        return RunFiles(tuple(found), is_whole=False)
    return RunFiles(tuple(found), runs.is_whole and len(found) < _MOST_FILES)


def _loaded(roots: tuple[str, ...], argvs: tuple[Argv, ...], cwd: str) -> Iterator[str]:
    waiting = [path for path in roots if "/" in path and not _is_system_path(path)]
    known = set(waiting)
    listings = _Listings()
    for pattern in dict.fromkeys(_SOURCES[name] for argv in argvs for name in _runners(argv)):
        yield from _matching_files(cwd, re.compile(pattern))
    for argv in argvs:
        if "-m" in argv[:-1]:
            waiting.append(join(cwd, argv[argv.index("-m") + 1].replace(".", "/")))
    while waiting:
        path = waiting.pop()
        if _kind(path) == "folder":
            found: Iterable[str] = (
                _matching_files(path, _CODE) if path != cwd or _names_working_directory(argvs) else ()
            )
        else:
            found = _named_code(path, cwd, listings)
        for each in found:
            if each not in known:
                known.add(each)
                waiting.append(each)
                yield each


def _runners(argv: Argv) -> Iterator[str]:
    """Names of the runners in a command, also as a module of `python -m`."""
    given = (name_of(argv), *argv[1:][argv[1:].index("-m") + 1 :][:1]) if "-m" in argv[1:-1] else (name_of(argv),)
    yield from (name for name in given if name in _SOURCES)


def _names_working_directory(argvs: Iterable[Argv]) -> bool:
    """Whether an operand is the working directory itself."""
    return any(word in (".", "./") for argv in argvs for word in argv[1:])


def _matching_files(folder: str, pattern: re.Pattern[str]) -> Iterator[str]:
    for looked_at, (top, folders, files) in enumerate(os.walk(folder)):
        folders[:] = [name for name in folders if name not in _PASSED_OVER]
        if looked_at >= _MOST_FOLDERS:
            raise _TooMany
        yield from (join(top, name) for name in files if pattern.fullmatch(name))


def _named_code(path: str, cwd: str, listings: "_Listings") -> Iterator[str]:
    """Code that the text of a script names. Raises `_TooMany` for a script that can't be read."""
    from bradawl.safety.git.small_files import text_in

    real = os.path.realpath(path)
    text = text_in(real)
    if text is None:
        if _kind(real) == "file" and _CODE.fullmatch(real):
            raise _TooMany
        return
    if "\0" in text:
        return
    folders = dict.fromkeys((dirname(path), dirname(real), cwd))
    for token in dict.fromkeys(_TOKEN.findall(text)):
        for folder in folders:
            if listings.may_hold(folder, token):
                yield from _files_of(folder, token)


def _files_of(folder: str, token: str) -> Iterator[str]:
    for name in dict.fromkeys((token, token.replace(".", "/"))):
        for suffix in _SUFFIXES:
            path = normpath(join(folder, name + suffix))
            if _is_code(path):
                yield path


class _Listings:
    """Cached names of the entries of folders, up to the first dot."""

    def __init__(self) -> None:
        self._stems: dict[str, frozenset[str]] = {}

    def may_hold(self, folder: str, token: str) -> bool:
        """Whether a token of a script may name a file in a folder."""
        first = token.partition("/")[0]
        if first in ("..", "."):
            return True
        if folder not in self._stems:
            try:
                with os.scandir(folder or "/") as entries:
                    self._stems[folder] = frozenset(entry.name.partition(".")[0] for entry in entries)
            except OSError:
                self._stems[folder] = frozenset()
        return first.partition(".")[0] in self._stems[folder]


def _is_code(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many are looked at
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(mode) and (bool(mode & 0o111) or _CODE.fullmatch(path) is not None)


def _kind(path: str) -> str:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - many are looked at
    except (OSError, ValueError):
        return ""
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else ""


def _is_system_path(path: str) -> bool:
    return any(is_within(path, folder) for folder in system_folders())
