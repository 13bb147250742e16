"""Whether git in a folder would start a program, or go elsewhere, because its configuration says so.

Reads the files git would read, and starts nothing. What can't be read, or is read in two ways, counts as configured.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from posixpath import dirname, join, normpath

Read = Callable[[str, int], bytes | None]
"""The whole of a regular file, at most so many bytes; None if there is none or it can't be had so."""

_LONGEST = 200_000
_LONGEST_INDEX = 50_000_000
_DEEPEST = 10
_SYSTEM_FILES = ("/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig", "/usr/etc/gitconfig")
_A_SUBMODULE = b"\x00\x00\xe0\x00"
"""The mode of an entry in the index that is a repository of its own; git looks into it, and obeys what is there."""

# Names that start a program, or lead to other files or machines, when something is only looked at.
_RUNS = (
    r"filter\..*\.(?:clean|smudge|process)|diff\.external|diff\..*\.(?:command|textconv)|merge\..*\.driver"
    r"|core\.(?:fsmonitor|hookspath|sshcommand|gitproxy|worktree|alternaterefscommand|askpass|virtualfilesystem|gvfs)"
    r"|extensions\.partialclone|remote\..*\.(?:promisor|partialclonefilter|uploadpack|vcs)|log\.showsignature"
    r"|trace2\..*|include(?:if\..*)?\..*|uploadpack\..*"
)
# Of a repository, also what would do so only beside an option, or when something is changed.
_RUNS_IN_REPOSITORY = (
    r"core\.(?:attributesfile|pager|editor)|alias\..*|pager\..*|sequence\.editor|gpg\..*|credential\..*|url\..*"
    r"|init\.templatedir|difftool\..*|mergetool\..*|sendemail\..*|protocol\..*|submodule\..*\.url"
)
_NO = frozenset({"false", "no", "off", "0"})
_MAY_BE_NO = frozenset({"core.fsmonitor", "log.showsignature"})
_HARMLESS_VARIABLES = (
    r"GIT_(?:(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|PAGER|EDITOR|SEQUENCE_EDITOR|TERMINAL_PROMPT|OPTIONAL_LOCKS"
    r"|ASKPASS|CONFIG_NOSYSTEM|MERGE_AUTOEDIT|PS1_.*|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|ADVICE)"
)
_SECTION = r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?\][ \t]*'
_NAME = r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?"
_HOOKS = ("post-index-change", "fsmonitor-watchman", "query-watchman")

Entry = tuple[str, str]
"""Name in lower case but for the middle part, and value as it stands."""
Stamp = tuple[int, int, int, int] | None


class GitConfig:
    """Looks at the configuration of git, and remembers what it saw as long as the files stay as they are."""

    def __init__(self, read: Read, environment: Mapping[str, str], home: str) -> None:
        """`environment` is what git gets to see; `home` the user's home folder, empty if nobody's is known."""
        self._read = read
        self._home = home
        self._variables_are_harmless = all(
            re.fullmatch(_HARMLESS_VARIABLES, name) for name in environment if name.startswith("GIT_")
        )
        self._reads_system = environment.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on")
        self._config_home = environment.get("XDG_CONFIG_HOME") or (home and f"{home}/.config")
        self._seen: dict[str, tuple[bool, dict[str, Stamp]]] = {}

    def is_safe(self, folder: str) -> bool:
        """Whether git may look around in a folder: no program is started and no other machine asked. Never raises.

        In a folder that is in no repository git finds nothing to obey.
        """
        if not self._variables_are_harmless:
            return False
        answer, stamps = self._seen.get(folder, (False, {}))
        if not stamps or any(_stamp(path) != stamp for path, stamp in stamps.items()):
            look = _Look(self._read)
            answer = self._judge(look, folder)
            self._seen[folder] = (answer, look.stamps)
        return answer

    def _judge(self, look: "_Look", folder: str) -> bool:
        try:
            places = _repository(look, os.path.realpath(folder))
            if places is None:
                return True
            for file in self._users():
                _check(look, look.entries(file, self._home), _RUNS)
            _check_repository(look, *places)
        except (_Unsure, OSError, ValueError):
            return False
        return True

    def _users(self) -> Iterator[str]:
        if self._reads_system:
            yield from _SYSTEM_FILES
        if self._home:
            yield f"{self._home}/.gitconfig"
        if self._config_home:
            yield f"{self._config_home}/git/config"
            yield f"{self._config_home}/git/attributes"


class _Unsure(Exception):
    """Something is configured, or can't be told; never leaves this file."""


def _stamp(path: str) -> Stamp:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


class _Look:
    """One look at all files; knows which they were."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self.stamps: dict[str, Stamp] = {}

    def exists(self, path: str) -> bool:
        self.stamps[path] = _stamp(path)
        return self.stamps[path] is not None

    def data(self, path: str, limit: int = _LONGEST) -> bytes | None:
        """None if there is no such file. Raises `_Unsure` if it can't be read."""
        if not self.exists(path):
            if os.path.lexists(path):
                raise _Unsure
            return None
        data = self._read(path, limit)
        if data is None:
            raise _Unsure
        return data

    def text(self, path: str) -> str | None:
        data = self.data(path)
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise _Unsure from None

    def entries(self, path: str, home: str = "", depth: int = 0) -> list[Entry]:
        """What a file says; with a `home` also what the files say that it includes, on whatever condition."""
        if path.endswith("/attributes"):
            self.text(path)  # names drivers, which others would have to define
            return []
        text = self.text(path)
        found = [] if text is None else parse(text)
        if found is None or depth > _DEEPEST:
            raise _Unsure
        if not home:
            return found
        return [each for entry in found for each in self._included(entry, path, home, depth)]

    def _included(self, entry: Entry, path: str, home: str, depth: int) -> list[Entry]:
        name, value = entry
        if not re.fullmatch(r"include(?:if\..*)?\.path", name, re.DOTALL):
            return [entry]
        target = value.strip('"')
        if any(mark in target for mark in '"\\%#;') or re.match(r"~[^/]", target):
            raise _Unsure
        target = home + target[1:] if target.startswith("~/") else join(dirname(path), target)
        return self.entries(normpath(target), home, depth + 1)


def parse(text: str) -> list[Entry] | None:
    """Names and values of a configuration file of git, sections in lower case; None for what isn't plain."""
    section = ""
    found: list[Entry] = []
    if "\0" in text or "\r" in text.replace("\r\n", "\n"):
        return None
    if re.search(r"[#;].*\\\r?$", text, re.MULTILINE):
        return None  # a comment never goes on in the next line, though it looks so
    for line in _joined(text.removeprefix("\ufeff")):
        rest = line.strip(" \t")
        if match := re.match(_SECTION, rest):
            section = match[1].lower() + ("" if match[2] is None else "." + re.sub(r"\\(.)", r"\1", match[2]))
            rest = rest[match.end() :]
        if not rest or rest[0] in "#;":
            continue
        match = re.fullmatch(_NAME, rest)
        if match is None or not section:
            return None
        found.append((f"{section}.{match[1].lower()}", (match[2] or "").strip(" \t")))
    return found


def _joined(text: str) -> Iterator[str]:
    """Lines; one that ends with a backslash goes on in the next."""
    waiting = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        waiting += line
        backslashes = len(waiting) - len(waiting.rstrip("\\"))
        if backslashes % 2:
            waiting = waiting[:-1]
            continue
        yield waiting
        waiting = ""
    if waiting:
        yield waiting


def _check(look: _Look, entries: list[Entry], names: str) -> None:
    """Raise `_Unsure` if one of them would start or lead anywhere."""
    for name, value in entries:
        if re.fullmatch(names, name.lower()) and not (name in _MAY_BE_NO and value.strip('"').lower() in _NO):
            raise _Unsure


def _repository(look: _Look, folder: str) -> tuple[str, str] | None:
    """The repository's own folder and the one it shares with its worktrees; None if the folder is in none."""
    while True:
        dot_git = join(folder, ".git")
        if look.exists(dot_git) or os.path.lexists(dot_git):
            return _folders(look, folder, dot_git)
        if all(look.exists(join(folder, name)) for name in ("HEAD", "objects", "refs")):
            raise _Unsure  # a repository without a folder of its own, perhaps brought along by another
        if folder == dirname(folder):
            return None
        folder = dirname(folder)


def _folders(look: _Look, folder: str, dot_git: str) -> tuple[str, str]:
    if Path(dot_git).is_dir():
        if look.exists(join(dot_git, "commondir")):
            raise _Unsure  # only worktrees have one
        return dot_git, dot_git
    said = look.text(dot_git) or ""
    match = re.fullmatch(r"gitdir: ([^\n\0]+)\n?", said)
    if match is None:
        raise _Unsure
    own = normpath(join(folder, match[1]))
    common = look.text(join(own, "commondir"))
    if common is None:
        return own, own
    shared = normpath(join(own, common.rstrip("\n")))
    if dirname(own) != join(shared, "worktrees"):
        raise _Unsure
    return own, shared


def _check_repository(look: _Look, own: str, shared: str) -> None:
    for file in (join(shared, "config"), join(own, "config.worktree")):
        entries = look.entries(file)
        _check(look, entries, _RUNS)
        _check(look, entries, _RUNS_IN_REPOSITORY)
    if any(look.exists(join(shared, "hooks", name)) for name in _HOOKS):
        raise _Unsure
    look.exists(own)  # a new file in it may be another part of the index
    if any(file.name.startswith("sharedindex.") for file in Path(own).iterdir()):
        raise _Unsure
    index = look.data(join(own, "index"), _LONGEST_INDEX)
    if index is not None and _A_SUBMODULE in index:
        raise _Unsure
