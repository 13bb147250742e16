"""Files and folders that git's configuration names, and from which git runs programs or reads further settings."""

import os
import re
import shlex
import stat
from collections.abc import Iterable, Iterator

from bradawl.core.effects import is_within
from bradawl.safety.git.config_file import Entry, parse
from bradawl.safety.git.separate_data import data_folder
from bradawl.safety.git.small_files import text_in
from bradawl.safety.path_walk import real_path

_DEEPEST = 4
_MOST = 40
_INCLUDE = re.compile(r"include(?:if\..*)?\.path", re.DOTALL)
_PROGRAM = re.compile(
    r"filter\..*\.(?:clean|smudge|process)|diff\..*\.(?:command|textconv)|diff\.external|merge\..*\.driver"
    r"|core\.(?:sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|pager\..*|alias\..*"
    r"|gpg\.(?:.*\.)?program|credential\.(?:.*\.)?helper|(?:diff|merge)tool\..*\.(?:cmd|path)"
    r"|uploadpack\.packobjectshook",
    re.DOTALL,
)
"""Settings whose value is a command line or a program."""
_INTERPRETER = re.compile(r"(?:ba|da|k|z)?sh|python[\d.]*|node|perl|ruby|php|env")
_SWITCHES = frozenset(("", "true", "false", "yes", "no", "on", "off", "0", "1"))

Stamp = tuple[int, ...]


class NamedPaths:
    """Reads configuration files; a file is read again when it has changed."""

    def __init__(self, home: str) -> None:
        """`home` is the user's home folder, empty if unknown."""
        self._home = home
        self._entries: dict[str, tuple[Stamp, tuple[Entry, ...]]] = {}

    def of_user(self) -> tuple[str, ...]:
        """The user's configuration files that apply in every repository."""
        names = (".config/git/config", ".gitconfig") if self._home else ()
        return tuple(real_path(f"{self._home}/{name}") for name in names)  # often links to a folder of settings

    def within(self, root: str, tree: str, configs: tuple[str, ...]) -> tuple[str, ...]:
        """Absolute paths below `root`, existing or not, that the files `configs` and the user's name.

        They are `core.hooksPath`, `core.fsmonitor`, included files, and programs of filters, aliases and so on. `tree`
        is the working tree to which relative paths belong. Folders that contain the working tree are left out. At most
        40.
        """
        found: dict[str, None] = {}
        for config in (*self.of_user(), *configs):
            for path in self._named(config, tree, 0):
                if path != root and is_within(path, root) and not is_within(tree, path):
                    found[path] = None
        return tuple(found)[:_MOST]

    def _named(self, config: str, tree: str, depth: int) -> Iterator[str]:
        for name, value in self._read(config):
            text = value or ""
            if _INCLUDE.fullmatch(name) and text:
                included = self._absolute(text, config.rpartition("/")[0])
                yield included
                if depth < _DEEPEST:
                    yield from self._named(included, tree, depth + 1)
            elif name == "core.hookspath" and text:
                yield self._absolute(text, tree)
            elif name == "core.fsmonitor" and text.lower() not in _SWITCHES:
                yield self._absolute(text.split()[0] if text.split() else text, tree)
            elif _PROGRAM.fullmatch(name):
                yield from filter(_is_no_folder, (self._absolute(word, tree) for word in _programs(text)))

    def _absolute(self, text: str, folder: str) -> str:
        if text.startswith("~/"):
            text = f"{self._home}{text[1:]}"
        above, _, name = (text if text.startswith("/") else f"{folder}/{text}").rstrip("/").rpartition("/")
        return os.path.normpath(f"{real_path(above or '/')}/{name}")

    def _read(self, config: str) -> tuple[Entry, ...]:
        try:
            status = os.lstat(config)
        except (OSError, ValueError):
            return ()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._entries.get(config)
        if known is None or known[0] != stamp:
            known = stamp, tuple(parse(text_in(config) or "") or ())
            self._entries[config] = known
        return known[1]


def _is_no_folder(path: str) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return True


def _programs(line: str) -> Iterator[str]:
    """The program of a command line, and the script that it gives to an interpreter, if they are paths."""
    try:
        words = shlex.split(line.removeprefix("!"))
    except ValueError:
        words = line.removeprefix("!").split()
    for word in words:
        if "/" in word:
            yield word
        elif _INTERPRETER.fullmatch(word) is None and not word.startswith("-"):
            return
        if _INTERPRETER.fullmatch(word.rpartition("/")[2]) is None and not word.startswith("-"):
            return


def named_by_config(named: NamedPaths, root: str, trees: Iterable[str]) -> tuple[str, ...]:
    """As `NamedPaths.within` for the configuration of several working trees; data folders of git are left out."""
    found: dict[str, None] = {}
    for tree in trees:
        data = data_folder(f"{tree}/.git")
        configs = (f"{tree}/.git/config", f"{tree}/.git/config.worktree", *((f"{data}/config",) if data else ()))
        found |= dict.fromkeys(named.within(root, tree, configs))
    return tuple(path for path in found if "/.git/" not in path)
