"""Searches a workspace for nested repositories and files with keys."""

import contextlib
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.safety.git.tracked_files import is_tracked
from bradawl.safety.path_walk import real_path
from bradawl.safety.permissions.protected_paths import is_secret_name
from bradawl.sandbox.check_failures import is_absent_or_closed
from bradawl.sandbox.discovery.file_tracking import FileTracker, not_examined

_DEPTH: Final = 3
"""Levels below the root at which repositories are searched. Files with keys are searched at any level."""
_FOLDERS: Final = 4_000
_FOLDERS_AT_ONCE: Final = 20_000
_SETTLED_NS: Final = 50_000_000
_FIRST_S: Final = 1.0
_MORE_S: Final = 0.005
"""Seconds for searching further folders: the first time, and with each later command."""
_PASSED_OVER: Final = frozenset(
    (".git", "node_modules", "__pycache__", "site-packages", ".tox", ".nox", ".mypy_cache", ".ruff_cache")
)


class SurveyResult(msgspec.Struct, frozen=True):
    """Absolute paths, nearest to the root first."""

    repositories: tuple[str, ...] = ()
    """Folders below the root that have a `.git` of any kind."""
    secrets: tuple[str, ...] = ()
    """Files with keys, except those that git tracked when they were first seen."""
    closed: tuple[str, ...] = ()
    """Folders of this user that can't be listed or entered, so that their contents are unknown."""
    run_later: tuple[str, ...] = ()
    """Existing files and folders that other programs run later. The survey itself finds none."""
    named: tuple[str, ...] = ()
    """Files and folders that git's configuration names. The survey itself finds none."""
    unsearched: tuple[str, ...] = ()
    """Folders that must be read-only because they could not be searched. The survey itself finds none."""


class _Secret(NamedTuple):
    path: str
    inode: tuple[int, int]


class _Folder(msgspec.Struct, frozen=True):
    changed_ns: int
    inner: tuple[str, ...]
    secrets: tuple[_Secret, ...]
    has_git: bool
    is_closed: bool = False


_CLOSED: Final = _Folder(0, (), (), has_git=True, is_closed=True)
"""A repository may be in it, too."""


class WorkspaceSurvey:
    """Searches a root; at most 4,000 folders each time, and unchanged folders are not read again. Its owner closes it.

    Further folders are searched for files with keys step by step, for one second at first. A file found once is tracked
    wherever it is moved, also into folders that are not searched.

    Files that git tracks are not secret, and git would take the mask for new content. But a program can add a file to
    the index. So a file that was untracked once stays secret, under its path and wherever it is moved.
    """

    def __init__(
        self,
        root: str,
        most_folders: int = _FOLDERS,
        passed_over: frozenset[str] = _PASSED_OVER,
        *,
        follows: bool = False,
        memory: str = "",
    ) -> None:
        """`follows` is for callers that search more than once. `memory` is a file in bradawl's state that outlives the
        session.
        """
        self._memory = Path(memory) if memory else None
        self._remembered: frozenset[str] | None = None
        self.is_truncated = False
        """Whether the last search did not reach all folders."""
        self.is_whole = True
        """Whether all folders have been searched for files with keys, in the last search or an earlier one."""
        self._tracker = FileTracker(root) if follows else None
        self._gradual = _GradualSearch()
        self._rest: list[str] = []
        self._root = root
        self._most_folders = most_folders
        self._passed_over = passed_over
        self._known: dict[str, _Folder] = {}
        self._cached: SurveyResult | None = None
        self._is_caching = False
        self._repositories: dict[str, None] = {}
        self._secret_paths: set[str] = set()
        self._secret_inodes: set[tuple[int, int]] = set()
        self._lock = threading.Lock()
        self._has_begun = False

    def begin(self) -> None:
        """Search for the first time, unless that is done: it takes longer than later. May run in another thread."""
        with self._lock:
            if not self._has_begun:
                self._search()

    @contextlib.contextmanager
    def caching(self) -> Iterator[None]:
        """Search at most once in the body. Only correct while no program runs."""
        self._is_caching = True
        try:
            yield
        finally:
            self._is_caching, self._cached = False, None

    def result(self) -> SurveyResult:
        """The current result. Raises `ToolError` for a folder that can't be examined, and might hold keys."""
        if self._cached is not None:
            return self._cached
        with self._lock:
            found = self._search()
        if self._is_caching:
            self._cached = found
        return found

    def close(self) -> None:
        """Stop tracking, and save which secret files programs added to git's index. Safe to call twice."""
        with self._lock:
            if self._memory is not None:
                self._remember(self._memory)
            if self._tracker:
                self._tracker.close()

    def _search(self) -> SurveyResult:
        self._has_begun = True
        repositories: list[str] = []
        secrets: list[_Secret] = []
        closed: list[str] = []
        known: dict[str, _Folder] = {}
        for depth, path, folder in self._walk(self._most_folders):
            secrets += folder.secrets
            if folder.changed_ns:
                known[path] = folder
            if folder.is_closed:
                closed.append(path)
            if folder.has_git and depth <= _DEPTH and path != self._root:
                repositories.append(path)
        repositories = self._with_known(repositories)
        self._known = known
        if self._tracker is not None and self._rest:
            secrets += self._gradual.continue_search(self._rest, self._passed_over, closed)
            self.is_whole = self._gradual.is_whole
        kept = [each for each in secrets if self._is_secret(each, repositories)]
        kept += self._track(self._tracker, kept) if self._tracker is not None else []
        paths = tuple(dict.fromkeys(each.path for each in kept))
        return SurveyResult(tuple(repositories), paths, tuple(closed))

    def _track(self, followed: FileTracker, kept: list[_Secret]) -> list[_Secret]:
        """Files found earlier that are elsewhere now."""
        for each in kept:
            followed.track(each.path, each.inode)
        moved = [_Secret(path, inode) for path, inode in followed.moved({each.inode for each in kept})]
        for each in moved:
            followed.track(each.path, each.inode)
        return moved

    def _with_known(self, found: Iterable[str]) -> list[str]:
        """Adds repositories found earlier that still exist: programs could create more folders than are searched."""
        there = (path for path in self._repositories if os.path.lexists(f"{path}/.git"))
        self._repositories = dict.fromkeys((*found, *there))
        return list(self._repositories)

    def _is_secret(self, secret: _Secret, repositories: list[str]) -> bool:
        is_known = secret.path in self._secret_paths or secret.inode in self._secret_inodes
        if not is_known and self._is_tracked(secret.path, repositories) and secret.path not in self._known_before():
            return False
        self._secret_paths.add(secret.path)
        self._secret_inodes.add(secret.inode)
        return True

    def _is_tracked(self, path: str, repositories: Iterable[str]) -> bool:
        inside = (folder for folder in (*repositories, self._root) if is_within(path, folder))
        return is_tracked(path, max(inside, key=len, default=self._root))

    def _repositories_above(self, path: str) -> Iterator[str]:
        """Folders between a file and the root that have a `.git` now."""
        while is_within(path := path.rpartition("/")[0], self._root) and path:
            if os.path.lexists(f"{path}/.git"):
                yield path

    def _known_before(self) -> frozenset[str]:
        """Secret files that a program added to git's index in an earlier session."""
        if self._remembered is None:
            self._remembered = frozenset()
            with contextlib.suppress(OSError):
                if self._memory is not None:
                    names = self._memory.read_bytes().split(b"\0")
                    self._remembered = frozenset(map(os.fsdecode, filter(None, names)))
        return self._remembered

    def _remember(self, memory: Path) -> None:
        added = {path for path in self._secret_paths if self._is_tracked(path, self._repositories_above(path))}
        if added - self._known_before():
            self._remembered = self._known_before() | added
            with contextlib.suppress(OSError):
                memory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                memory.write_bytes(b"\0".join(map(os.fsencode, sorted(self._remembered))))

    def _walk(self, left: int, deepest: int = sys.maxsize) -> Iterator[tuple[int, str, _Folder]]:
        level, depth = [self._root], 0
        while level and left and depth <= deepest:
            inner: list[str] = []
            for path in level[:left]:
                if folder := self._examine(path):
                    yield depth, path, folder
                    inner += folder.inner
            self.is_truncated = left < len(level)
            self._rest = [*level[left:], *inner]
            left -= min(left, len(level))
            level, depth = inner, depth + 1
        self.is_truncated = self.is_truncated or bool(level)

    def _examine(self, path: str) -> _Folder | None:
        try:
            status = os.lstat(path)
            known = self._known.get(path)
            if known and known.changed_ns == status.st_ctime_ns:  # programs can set mtime
                return known
            return (
                _examine_folder(path, status, self._passed_over)
                if path != self._root
                else _read(path, status, self._passed_over)
            )
        except OSError as error:
            if is_absent_or_closed(error):
                return None
            raise not_examined(path, error) from error


class _GradualSearch:
    """Searches folders beyond the limit, some at a time; begins again after the last one."""

    def __init__(self) -> None:
        self.is_whole = False
        self._has_begun = False
        self._waiting: deque[str] = deque()

    def continue_search(self, rest: Iterable[str], passed_over: frozenset[str], closed: list[str]) -> list[_Secret]:
        """Continue the search. Returns the files with keys and adds closed folders to `closed`."""
        import time

        secrets: list[_Secret] = []
        until = time.monotonic() + (_MORE_S if self._has_begun else _FIRST_S)
        if not self._waiting:
            self._waiting.extend(rest)
        self._has_begun = True
        while self._waiting and time.monotonic() < until:
            path = self._waiting.popleft()
            try:
                folder = _examine_folder(path, os.lstat(path), passed_over)
            except OSError as error:
                if is_absent_or_closed(error):
                    continue
                self._waiting.append(path)
                break  # the next call tries again
            secrets += folder.secrets
            self._waiting.extend(folder.inner)
            if folder.is_closed:
                closed.append(path)
        self.is_whole = self.is_whole or not self._waiting
        return secrets


def _examine_folder(path: str, status: os.stat_result, passed_over: frozenset[str]) -> _Folder:
    """Examine one folder. Raises `OSError`."""
    if os.access(path, os.R_OK | os.X_OK):
        return _read(path, status, passed_over)
    if status.st_uid == os.geteuid() and stat.S_ISDIR(status.st_mode):
        return _CLOSED  # a program may open it again; it can't open another user's
    raise PermissionError


def _read(path: str, status: os.stat_result, passed_over: frozenset[str]) -> _Folder:
    """Read one folder. One that changed within the clock's resolution is not cached: its next change may not show."""
    import time

    inner: list[str] = []
    secrets: list[_Secret] = []
    has_git = False
    with os.scandir(path) as entries:
        for entry in entries:
            has_git = has_git or entry.name == ".git"
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in passed_over:
                    inner.append(entry.path)
            elif is_secret_name(entry.name) and (secret := _secret(entry)):
                secrets.append(secret)
    changed_ns = status.st_ctime_ns
    is_settled = time.time_ns() - changed_ns > _SETTLED_NS
    return _Folder(changed_ns if is_settled else 0, tuple(inner), tuple(secrets), has_git)


def _secret(entry: "os.DirEntry[str]") -> _Secret | None:
    """The regular file, or the target of a link whose name is that of a file with keys: a link may name any file."""
    path = entry.path
    try:
        if entry.is_symlink():
            path = real_path(path)
            if not is_secret_name(path.rpartition("/")[2]):
                return None
        status = os.lstat(path)
    except OSError as error:
        if is_absent_or_closed(error):
            return None
        raise
    return _Secret(path, (status.st_dev, status.st_ino)) if stat.S_ISREG(status.st_mode) else None


def secrets_below(folder: str) -> tuple[str, ...]:
    """Files with keys below a folder, at any depth; searched now.

    Raises `UnsupportedSyntax` if there are too many folders, or one that can't be examined.
    """
    from bradawl.safety.shell.errors import UnsupportedSyntax  # only commands without a sandbox need it

    survey = WorkspaceSurvey(folder, _FOLDERS_AT_ONCE, frozenset({".git"}))
    try:
        secrets = survey.result().secrets
    except ToolError as error:
        raise UnsupportedSyntax from error
    if survey.is_truncated:
        raise UnsupportedSyntax
    return secrets
