"""Whether git's configuration makes it start a program, or contact another machine, in a folder.

Reads the files that git would read, and starts nothing. A file that can't be read, or is ambiguous, counts as unsafe.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from posixpath import dirname
from typing import NamedTuple

from bradawl.safety.git.config_file import Entry, parse, verifies_signatures
from bradawl.safety.git.data_check import GitDataCheck
from bradawl.safety.git.read_paths import LONGEST_INDEX, GitReads, ReadPathFinder, followed_links, modified_secrets
from bradawl.safety.git.repository import (
    GitFiles,
    Read,
    Repository,
    Stamp,
    UnsupportedRepository,
    find_repository,
    stamp,
)

_DEEPEST = 10
_SYSTEM_FILES = ("/etc/gitconfig", "/usr/local/etc/gitconfig", "/opt/homebrew/etc/gitconfig", "/usr/etc/gitconfig")
_A_SUBMODULE = b"\x00\x00\xe0\x00"
"""The mode of a submodule's entry in the index. Git looks into the submodule and obeys its configuration."""

_HAS_FOLDERS = b"sdir\x00\x00\x00\x00"
"""Marks a sparse index, whose folders git reads from objects on demand. They may contain submodules."""

# Settings that start a program, or lead to other files or machines, during a read. The configuration of a submodule
# counts where a diff or a search descends into it.
_RUNS = (
    r"filter\..*\.(?:clean|smudge|process)|diff\.external|diff\..*\.(?:command|textconv)|merge\..*\.driver"
    r"|core\.(?:fsmonitor|hookspath|sshcommand|gitproxy|worktree|alternaterefscommand|askpass|virtualfilesystem|gvfs)"
    r"|extensions\.partialclone|remote\..*\.(?:promisor|partialclonefilter|uploadpack|vcs)|log\.showsignature"
    r"|trace2\..*|include(?:if\..*)?\..*|uploadpack\..*|hook\..*"
    r"|diff\.submodule|status\.submodulesummary|submodule\.recurse"
)
# In a repository, also settings that do so only with certain options, or during a change.
_RUNS_IN_REPOSITORY = (
    r"core\.(?:attributesfile|pager|editor)|alias\..*|pager\..*|sequence\.editor|gpg\..*|credential\..*|url\..*"
    r"|init\.templatedir|difftool\..*|mergetool\..*|sendemail\..*|protocol\..*|submodule\..*"
)
_SHOWN_FORMATS = r"format\.pretty|pretty\..*|(?:branch|tag)\.sort"
_NO = frozenset({"false", "no", "off", "0"})
_MAY_BE_NO = frozenset({"core.fsmonitor", "log.showsignature", "status.submodulesummary", "submodule.recurse"})
_HARMLESS_VARIABLES = (
    r"GIT_(?:(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|PAGER|EDITOR|SEQUENCE_EDITOR|TERMINAL_PROMPT|OPTIONAL_LOCKS"
    r"|ASKPASS|CONFIG_NOSYSTEM|MERGE_AUTOEDIT|PS1_.*|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|ADVICE)"
)
_HOOKS = ("post-index-change", "fsmonitor-watchman", "query-watchman")


class ConfiguredRepository(NamedTuple):
    """A repository with the settings that apply to it."""

    repository: Repository
    head: str
    """The text of HEAD."""
    own: tuple[Entry, ...]
    """Settings of the repository's own files."""
    users: tuple[Entry, ...]
    """Settings of the system and of the user."""


class GitConfig:
    """Checks git's configuration. Answers are cached until one of the files that were read changes."""

    def __init__(self, read: Read, environment: Mapping[str, str], home: str) -> None:
        """`environment` is what git would receive. `home` is the user's home folder, empty if unknown."""
        self._read = read
        self._home = home
        self._variables_are_harmless = all(
            re.fullmatch(_HARMLESS_VARIABLES, name) for name in environment if name.startswith("GIT_")
        )
        self._reads_system = environment.get("GIT_CONFIG_NOSYSTEM", "").lower() not in ("1", "true", "yes", "on")
        self._config_home = environment.get("XDG_CONFIG_HOME") or (home and f"{home}/.config")
        self._seen: dict[str, tuple[bool, dict[str, Stamp]]] = {}
        self._reads: dict[str, tuple[GitReads | None, dict[str, Stamp]]] = {}
        self._data = GitDataCheck()

    def is_safe(self, folder: str) -> bool:
        """Whether reading with git in a folder starts no program and contacts no other machine. Never raises.

        Outside a repository only the user's configuration applies. `reads` tells what git reads.
        """
        if not self._variables_are_harmless:
            return False
        try:
            folder = os.path.realpath(folder)
        except (OSError, ValueError):
            return False
        answer, stamps = self._seen.get(folder, (False, {}))
        if _is_outdated(stamps):
            files = GitFiles(self._read)
            answer = self._is_safe_now(files, folder)
            self._seen[folder] = (answer, files.stamps)
        return answer and self.reads(folder) is not None

    def reads(
        self, folder: str, *, is_search: bool = False, shows_keys: bool = False, has_loose: bool = True
    ) -> tuple[str, ...] | None:
        """Paths that git reads in a folder, besides its own data and the working tree; None if they can't be
        determined.

        They can't if git's data contain anything that git does not create: links, or an index with paths outside. Never
        raises.

        `is_search`: the contents of tracked files are searched.
        `shows_keys`: git shows files of the working tree, and no sandbox hides key files. Modified key files count.
        `has_loose`: False skips loose objects (outside packs), whose check takes most of the time.
        """
        try:
            folder = os.path.realpath(folder)
            found = self._found(folder)
            if found is None:
                return None
            for place, tree in found.data:
                self._data.check(place, tree, has_loose=has_loose)
            keys = modified_secrets(found.tracked, self._read) if shows_keys else ()
            return (*found.others, *followed_links(found.tracked, is_search=is_search), *keys)
        except (UnsupportedRepository, OSError, ValueError):
            return None

    def _found(self, folder: str) -> GitReads | None:
        found, stamps = self._reads.get(folder, (None, {}))
        if _is_outdated(stamps):
            files = GitFiles(self._read)
            try:
                found = ReadPathFinder(files, self._settings, self._home, self._users_entries_if_known(files)).find(
                    folder
                )
            except (UnsupportedRepository, OSError, ValueError):
                found = None
            self._reads[folder] = (found, files.stamps)
        return found

    def configured(self, folder: str) -> ConfiguredRepository | None:
        """The repository of a folder with its settings; None if there is none. Raises `UnsupportedRepository`."""
        files = GitFiles(self._read)
        try:
            repository = find_repository(files, os.path.realpath(folder))
            if repository is None:
                return None
            head = files.text(f"{repository.own}/HEAD") or ""
            own = tuple(_repository_entries(files, repository))
        except (OSError, ValueError) as error:
            raise UnsupportedRepository(folder) from error
        return ConfiguredRepository(repository, head, own, self._users_entries_if_known(files))

    def ignore_file(self, users: Iterable[Entry]) -> str:
        """The path of the user's global ignore file; empty if none can exist."""
        said = [value for name, value in users if name == "core.excludesfile" and value]
        if said:
            return self._home + said[-1][1:] if said[-1].startswith("~/") else said[-1]
        return f"{self._config_home}/git/ignore" if self._config_home else ""

    def _is_safe_now(self, files: GitFiles, folder: str) -> bool:
        try:
            repository = find_repository(files, folder)
            _check(self._users_entries(files), _RUNS)
            if self._config_home:
                files.text(
                    f"{self._config_home}/git/attributes"
                )  # names filter drivers, which only another file can define
            if repository is not None:
                _check_repository(files, repository)
        except (UnsupportedRepository, OSError, ValueError):
            return False
        return True

    def _users_entries_if_known(self, files: GitFiles) -> tuple[Entry, ...]:
        """As `_users_entries`; empty if they can't be determined."""
        try:
            return tuple(self._users_entries(files))
        except (UnsupportedRepository, OSError, ValueError):
            return ()

    def _users_entries(self, files: GitFiles) -> Iterator[Entry]:
        for path in self._users_files():
            yield from self._with_included(files, path, 0)

    def _users_files(self) -> Iterator[str]:
        if self._reads_system:
            yield from _SYSTEM_FILES
        if self._config_home:
            yield f"{self._config_home}/git/config"
        if self._home:
            yield f"{self._home}/.gitconfig"

    def _with_included(
        self, files: GitFiles, path: str, depth: int, included: list[str] | None = None
    ) -> Iterator[Entry]:
        """The settings of a file and of all files that it includes, on whatever condition.

        The paths of included files are appended to `included`.
        """
        if depth > _DEEPEST:
            raise UnsupportedRepository(path)
        for entry in _entries(files, path):
            if re.fullmatch(r"include(?:if\..*)?\.path", entry.name, re.DOTALL):
                target = self._included(entry, path)
                if included is not None:
                    included.append(target)
                yield from self._with_included(files, target, depth + 1, included)
            else:
                yield entry

    def _settings(self, files: GitFiles, path: str, included: list[str]) -> Iterator[Entry]:
        """The settings of a repository's file, with those it includes."""
        return self._with_included(files, path, 0, included)

    def _included(self, entry: Entry, path: str) -> str:
        target = entry.value or ""
        if not target or target.startswith("%") or re.match(r"~[^/]", target):
            raise UnsupportedRepository(path)
        if target.startswith("~/"):
            return self._home + target[1:]
        return target if target.startswith("/") else f"{dirname(path)}/{target}"


def _entries(files: GitFiles, path: str) -> list[Entry]:
    text = files.text(path)
    found = [] if text is None else parse(text)
    if found is None:
        raise UnsupportedRepository(path)
    return found


def _repository_entries(files: GitFiles, repository: Repository) -> list[Entry]:
    return [*_entries(files, f"{repository.shared}/config"), *_entries(files, f"{repository.own}/config.worktree")]


def _check(entries: Iterable[Entry], names: str) -> None:
    """Raise `UnsupportedRepository` if a setting whose name matches would start a program."""
    for name, value in entries:
        if re.fullmatch(_SHOWN_FORMATS, name, re.DOTALL) and verifies_signatures(value or ""):
            raise UnsupportedRepository(name)
        is_no = name in _MAY_BE_NO and value is not None and value.lower() in _NO
        if re.fullmatch(names, name.lower(), re.DOTALL) and not is_no:
            raise UnsupportedRepository(name)


def _is_outdated(stamps: Mapping[str, Stamp]) -> bool:
    return not stamps or any(stamp(path) != before for path, before in stamps.items())


def _check_repository(files: GitFiles, repository: Repository) -> None:
    # `read_paths` checks which working tree a repository elsewhere belongs to.
    entries = [
        entry
        for entry in _repository_entries(files, repository)
        if not (repository.is_elsewhere and entry.name == "core.worktree")
    ]
    _check(entries, f"{_RUNS}|{_RUNS_IN_REPOSITORY}")
    if any(files.exists(f"{repository.shared}/hooks/{name}") for name in _HOOKS):
        raise UnsupportedRepository("hooks")
    files.exists(repository.own)  # a new file in it may be another part of the index
    if any(file.name.startswith("sharedindex.") for file in Path(repository.own).iterdir()):
        raise UnsupportedRepository("index")
    index = files.data(f"{repository.own}/index", LONGEST_INDEX)
    if index is not None and (_A_SUBMODULE in index or _HAS_FOLDERS in index):
        raise UnsupportedRepository("index")
