"""Which files git reads outside its own data when it only inspects a repository.

These are files that settings name, object stores of other repositories, and links that older versions of git follow.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from bradawl.safety.git.config_file import Entry
from bradawl.safety.git.index import Index, read_index
from bradawl.safety.git.repository import GitFiles, Read, Repository, UnsupportedRepository, find_repository, plain_path
from bradawl.safety.path_walk import followed

LONGEST_INDEX: Final = 50_000_000
_DEEPEST: Final = 5
"""Git itself stops at this depth of borrowed object stores."""
_LARGEST_KEYS: Final = 1_000_000
_MOST_REPOSITORIES: Final = 500
_NAME_A_FILE: Final = frozenset(
    {"blame.ignorerevsfile", "mailmap.file", "diff.orderfile", "core.excludesfile", "core.attributesfile"}
    | {"format.signaturefile", "gpg.ssh.allowedsignersfile", "gpg.ssh.revocationfile", "fsck.skiplist"}
    | {"fetch.fsck.skiplist", "receive.fsck.skiplist"}
)
_FOLLOWED: Final = (".gitattributes", ".gitignore", ".gitmodules", ".mailmap")
"""Git follows links of these names up to version 2.31."""
_CHAIN: Final = re.compile(r"(?:[0-9a-f]{40,64}\n)*")
Settings = Callable[[GitFiles, str, list[str]], Iterable[Entry]]
"""The settings of a file and of those it includes; their paths are appended to the list."""


class GitReads(NamedTuple):
    """What git reads for a folder. All paths are absolute."""

    others: tuple[str, ...] = ()
    """Files and folders outside git's own data and the index."""
    data: tuple[tuple[str, str], ...] = ()
    """Pairs of a git directory and the root of its working tree, or of an object store and ""."""
    tracked: tuple[tuple[str, Index], ...] = ()
    """Pairs of a working tree and its index."""


class ReadPathFinder:
    """Finds what git would read for a folder and its submodules."""

    def __init__(self, files: GitFiles, settings: Settings, home: str, users: Iterable[Entry] = ()) -> None:
        """`users` are the settings of the user and the system. They may name files in each working tree."""
        self._files = files
        self._everywhere = [entry.value for entry in users if entry.name in _NAME_A_FILE]
        self._settings = settings
        self._home = home
        self._others: list[str] = []
        self._data: dict[tuple[str, str], None] = {}
        self._tracked: list[tuple[str, Index]] = []

    def find(self, folder: str) -> GitReads:
        """`folder` is absolute and contains no links. Raises `UnsupportedRepository`, `OSError`, `ValueError`."""
        repository = find_repository(self._files, folder)
        pending = [] if repository is None else [repository]
        for repository in pending:
            pending += self._repository(repository)
            if len(pending) > _MOST_REPOSITORIES:
                raise UnsupportedRepository(folder)
        return GitReads(tuple(dict.fromkeys(self._others)), tuple(self._data), tuple(self._tracked))

    def _repository(self, repository: Repository) -> list[Repository]:
        """Add what git reads for one repository, and return its submodules."""
        entries = list(self._settings(self._files, f"{repository.shared}/config", self._others))
        entries += self._settings(self._files, f"{repository.own}/config.worktree", self._others)
        self._working_tree(repository, entries)
        self._others += [self._named(entry, repository.top) for entry in entries if entry.name in _NAME_A_FILE]
        self._others += [f"{repository.top}/{value}" for value in self._everywhere if value and value[0] not in "/~%:"]
        self._others += self._links(repository.top)
        self._data[repository.shared, repository.top] = None
        self._worktrees(repository)
        self._objects(f"{repository.shared}/objects", 0)
        return self._submodules(repository, self._index(repository, entries))

    def _working_tree(self, repository: Repository, entries: Iterable[Entry]) -> None:
        """Require that a git directory elsewhere names this working tree. If it names none, it needs permission as
        another path.
        """
        said = [entry.value for entry in entries if entry.name == "core.worktree"]
        if not said and repository.is_elsewhere:
            self._others.append(repository.own)
        elif said and not (repository.is_elsewhere and points_back(repository, said[-1])):
            raise UnsupportedRepository(repository.own)

    def _links(self, top: str) -> Iterator[str]:
        for path in (f"{top}/{name}" for name in _FOLLOWED):
            kind = self._files.kind(path)
            if kind == stat.S_IFLNK:
                yield path
            elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise UnsupportedRepository(path)

    def _named(self, entry: Entry, top: str) -> str:
        """The file that a setting names."""
        value = entry.value
        if value is None or value.startswith(("%", ":")) or re.match(r"~[^/]", value):
            raise UnsupportedRepository(top)
        if value.startswith("~"):
            if not self._home:
                raise UnsupportedRepository(top)
            return self._home + value[1:]
        return os.path.join(top, value)  # noqa: PTH118 - keeps `..`, which applies to the target of a link before it

    def _worktrees(self, repository: Repository) -> None:
        """Check the registered worktrees: git reads references from the git directory that they name."""
        place = f"{repository.shared}/worktrees"
        if self._files.kind(place) != stat.S_IFDIR:
            return
        for name in os.listdir(place):  # noqa: PTH208 - names are enough
            common = f"{place}/{name}/commondir"
            if self._files.kind(common) and (self._files.text(common) or "").rstrip("\n") != "../..":
                raise UnsupportedRepository(common)

    def _objects(self, objects: str, depth: int) -> None:
        chain = self._files.text(f"{objects}/info/commit-graphs/commit-graph-chain")
        if depth > _DEEPEST or not _CHAIN.fullmatch(chain or ""):
            raise UnsupportedRepository(objects)
        for line in (self._files.text(f"{objects}/info/alternates") or "").split("\n"):
            if not line or line.startswith("#"):
                continue
            if line.startswith('"') or "\0" in line:
                raise UnsupportedRepository(objects)
            *links, place = followed(os.path.join(objects, line))  # noqa: PTH118 - as above
            if any(not self._files.exists(link) for link in links) or self._files.kind(place) != stat.S_IFDIR:
                raise UnsupportedRepository(objects)
            self._others.append(place)
            if (place, "") not in self._data:
                self._data[place, ""] = None
                self._objects(place, depth + 1)

    def _index(self, repository: Repository, entries: Iterable[Entry]) -> Iterator[str]:
        """Record all parts of the index, and yield the submodules in it."""
        self._files.exists(repository.own)  # a new file in it may be another part
        form = [entry.value for entry in entries if entry.name == "extensions.objectformat"]
        hash_length = 32 if form and form[-1] == "sha256" else 20
        names = os.listdir(repository.own)  # noqa: PTH208 - names are enough
        for name in ("index", *(name for name in names if name.startswith("sharedindex."))):
            path = f"{repository.own}/{name}"
            if self._files.kind(path) not in (0, stat.S_IFREG):
                raise UnsupportedRepository(path)
            data = self._files.data(path, LONGEST_INDEX)
            if data is not None:
                index = read_index(data, hash_length)
                self._tracked.append((repository.top, index))
                yield from index.submodules

    def _submodules(self, repository: Repository, names: Iterable[str]) -> list[Repository]:
        found = list[Repository]()
        for name in names:
            folder = f"{repository.top}/{name}"
            if not self._files.kind(f"{folder}/.git"):
                continue
            submodule = find_repository(self._files, plain_path(folder, "/"))
            if submodule is not None:
                found.append(submodule)
        return found


def points_back(repository: Repository, worktree: str | None) -> bool:
    """Whether `core.worktree` of a git directory elsewhere names the working tree from which it was found."""
    return bool(worktree) and plain_path(worktree or "", repository.own) == repository.top


def followed_links(tracked: Iterable[tuple[str, Index]], *, is_search: bool) -> list[str]:
    """Tracked pattern files that are links now (old versions follow them), and for a search also such folders."""
    paths = [
        f"{top}/{name}" for top, index in tracked for name in (*index.patterns, *(index.folders if is_search else ()))
    ]
    return [path for path in paths if os.path.islink(path)]  # noqa: PTH114 - there may be thousands


def modified_secrets(tracked: Iterable[tuple[str, Index]], read: Read) -> Iterator[str]:
    """Tracked key files that differ from the index.

    Permission to see the committed version does not cover the changes since, nor a file that only the index lists.
    """
    for top, index in tracked:
        for name, recorded in index.secrets:
            path = f"{top}/{name}"
            if os.path.lexists(path) and recorded != _hash(read(path, _LARGEST_KEYS), len(recorded)):
                yield path


def _hash(data: bytes | None, length: int) -> bytes:
    """Git's object name of this content; empty if the file could not be read."""
    from hashlib import sha1, sha256  # few repositories have such a file

    if data is None:
        return b""
    blob = b"blob %d\0%b" % (len(data), data)
    return (sha1(blob, usedforsecurity=False) if length == 20 else sha256(blob)).digest()
