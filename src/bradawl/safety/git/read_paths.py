"""What git would read besides its own data when it only looks around in a repository.

That is what its settings name, what it borrows objects from, and links in the working tree that older versions follow.
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
"""Where git, too, ends a chain of borrowed objects."""
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
"""The settings in a file and in those it includes; the paths of these are added to the list."""


class GitReads(NamedTuple):
    """What git reads for a folder. All paths are absolute."""

    others: tuple[str, ...] = ()
    """Files and folders that are neither git's own data nor taken from the index."""
    data: tuple[tuple[str, str], ...] = ()
    """Folders of repositories with the roots of their working trees, and folders of objects with none."""
    tracked: tuple[tuple[str, Index], ...] = ()
    """Working trees, and what git has in the index of each."""


class ReadPathFinder:
    """Finds what git would read for one folder, submodules included."""

    def __init__(self, files: GitFiles, settings: Settings, home: str, users: Iterable[Entry] = ()) -> None:
        """`users` are the settings of the user and the system, which may name a file in each working tree."""
        self._files = files
        self._everywhere = [entry.value for entry in users if entry.name in _NAME_A_FILE]
        self._settings = settings
        self._home = home
        self._others: list[str] = []
        self._data: dict[tuple[str, str], None] = {}
        self._tracked: list[tuple[str, Index]] = []

    def find(self, folder: str) -> GitReads:
        """Of an absolute folder free of links. Raises `UnsupportedRepository`, `OSError`, `ValueError`."""
        repository = find_repository(self._files, folder)
        pending = [] if repository is None else [repository]
        for repository in pending:
            pending += self._repository(repository)
            if len(pending) > _MOST_REPOSITORIES:
                raise UnsupportedRepository(folder)
        return GitReads(tuple(dict.fromkeys(self._others)), tuple(self._data), tuple(self._tracked))

    def _repository(self, repository: Repository) -> list[Repository]:
        """Its submodules."""
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
        """A repository elsewhere that does not name the working tree in turn is another's until the rules allow it."""
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
        """The file a setting names."""
        value = entry.value
        if value is None or value.startswith(("%", ":")) or re.match(r"~[^/]", value):
            raise UnsupportedRepository(top)
        if value.startswith("~"):
            if not self._home:
                raise UnsupportedRepository(top)
            return self._home + value[1:]
        return os.path.join(top, value)  # noqa: PTH118 - `..` behind a link is for whoever resolves it

    def _worktrees(self, repository: Repository) -> None:
        """Those that are registered: git reads references where they say that the common ones are."""
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
        """The submodules in the index, and all its parts are kept."""
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
    """Whether the setting `core.worktree` of a repository elsewhere names the working tree it was found from."""
    return bool(worktree) and plain_path(worktree or "", repository.own) == repository.top


def followed_links(tracked: Iterable[tuple[str, Index]], *, is_search: bool) -> list[str]:
    """Tracked files with patterns that are links now, which old versions follow, and folders, which a search does."""
    paths = [
        f"{top}/{name}" for top, index in tracked for name in (*index.patterns, *(index.folders if is_search else ()))
    ]
    return [path for path in paths if os.path.islink(path)]  # noqa: PTH114 - there may be thousands


def modified_secrets(tracked: Iterable[tuple[str, Index]], read: Read) -> Iterator[str]:
    """Tracked files that may hold keys and are not as git has them.

    Who is to see what git has recorded is not to see what was written into the file since, or that an index lists a
    file that nobody has committed.
    """
    for top, index in tracked:
        for name, recorded in index.secrets:
            path = f"{top}/{name}"
            if os.path.lexists(path) and recorded != _hash(read(path, _LARGEST_KEYS), len(recorded)):
                yield path


def _hash(data: bytes | None, length: int) -> bytes:
    """What git calls a file with this content; empty for no file that can be read."""
    from hashlib import sha1, sha256  # few repositories have such a file

    if data is None:
        return b""
    blob = b"blob %d\0%b" % (len(data), data)
    return (sha1(blob, usedforsecurity=False) if length == 20 else sha256(blob)).digest()
