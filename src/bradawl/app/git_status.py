"""Branch and changed files of a folder for the system prompt, from git, without starting any program of the repository.

git runs with a private repository folder. Its HEAD and configuration are bradawl's; refs, objects, index and ignore
lists are those of the real repository. So git reads no setting of the repository except the copied ones, which name
no program and no file, and there are no hooks. Everything else in a repository is data.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.ports import Processes
from bradawl.core.workspace import Command
from bradawl.safety.git.config import ConfiguredRepository, GitConfig
from bradawl.safety.git.config_file import Entry
from bradawl.safety.git.repository import Repository, UnsupportedRepository, plain_path
from bradawl.safety.name_lists import first_of

_OUTPUT_LIMIT_BYTES: Final = 20_000
_LISTED_CHANGES: Final = 20
_STALE_S: Final = 3600
_NAMES_FROM_OBJECTS: Final = re.compile(r"(?m)^[^AM? !]")
"""Status lines about files that are in the last commit and not in the index: their names come from objects."""
_BRANCH: Final = re.compile(r"ref: refs/heads/(\S{1,200})")
_TRUTHS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "1", "0"})
# Settings that decide which files count as changed, and their allowed values.
_COPIED: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        (
            "filemode",
            "symlinks",
            "ignorecase",
            "precomposeunicode",
            "trustctime",
            "sparsecheckout",
            "sparsecheckoutcone",
        ),
        _TRUTHS,
    ),
    "autocrlf": _TRUTHS | {"input"},
    "eol": frozenset({"lf", "crlf", "native"}),
    "checkstat": frozenset({"default", "minimal"}),
}
_EXTENSIONS: Final = frozenset({"objectformat", "worktreeconfig", "noop", "preciousobjects", "partialclone"})
_OWN_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
)
_SHA256: Final = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
_ENVIRONMENT: Final = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}
_STATUS: Final = ("status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all")


class GitStatus(msgspec.Struct, frozen=True):
    """Call it with a folder to get a line for the prompt; None outside a repository."""

    config: GitConfig
    processes: Processes
    program: str | None
    """Absolute path of git; None if there is no trusted one: the line then has only the branch."""
    private: str
    """A folder that no command can write to; created on first use."""
    timeout_s: float = 0.05
    """Timeout for git; without its answer the line has only the branch."""

    async def __call__(self, folder: str) -> str | None:
        """Branch and changes; without the changes if git is too slow or would read outside the repository."""
        try:
            found = self.config.configured(folder)
            if found is None or not _belongs_to(found, folder):
                return None
        except (UnsupportedRepository, OSError):
            return None
        branch = _branch(found.head)
        if branch is None:
            return None
        status = await self._status(found, folder)
        return f"git: on {branch}" + ("" if status is None else f", {status}")

    async def _status(self, found: ConfiguredRepository, folder: str) -> str | None:
        if self.program is None or not self._is_self_contained(found.repository, folder, has_loose=False):
            return None
        try:
            settings = _settings(found, self.config.ignore_file(found.users))
            argv = (self.program, "--no-pager", *(word for each in settings for word in ("-c", each)), *_STATUS)
            with _private_repository(Path(self.private), found) as place:
                output = await self._run(argv, found.repository, place, folder)
        except (UnsupportedRepository, OSError, ToolError):
            return None
        if output is None or (
            _NAMES_FROM_OBJECTS.search(output) and not self._is_self_contained(found.repository, folder)
        ):
            return None
        return _changes_text(output)

    def _is_self_contained(self, repository: Repository, folder: str, *, has_loose: bool = True) -> bool:
        """True if git reads only the repository: no link in its data, no objects of another one."""
        others = self.config.reads(folder, has_loose=has_loose)
        return others is not None and all(is_within(path, repository.top) for path in others)

    async def _run(self, argv: tuple[str, ...], repository: Repository, place: str, folder: str) -> str | None:
        places = {
            "GIT_DIR": place,
            "GIT_WORK_TREE": repository.top,
            "GIT_OBJECT_DIRECTORY": f"{repository.shared}/objects",
            "GIT_INDEX_FILE": f"{repository.own}/index",
            "HOME": place,
        }
        result = await self.processes.run(
            Command(
                argv,
                folder,
                timeout_s=self.timeout_s,
                output_limit_bytes=_OUTPUT_LIMIT_BYTES,
                env={**_ENVIRONMENT, **places},
                is_helper=True,
            ),
            Grant(),
        )
        return result.stdout.decode("utf-8", "replace") if result.exit_code == 0 else None


def _changes_text(output: str) -> str:
    changes = [line.strip() for line in output.splitlines()]
    return f"changed: {first_of(changes, _LISTED_CHANGES)}" if changes else "nothing changed"


def _belongs_to(found: ConfiguredRepository, folder: str) -> bool:
    """True if the folder is in the repository's work tree: a gitfile must not reveal another repository of the user."""
    repository = found.repository
    if Path(repository.top).stat().st_dev != Path(folder).stat().st_dev:
        return False  # git does not cross file systems
    worktree = _last(found.own, "core.worktree")
    if repository.is_elsewhere:
        return worktree is not None and plain_path(worktree, repository.own) == repository.top
    return worktree is None


def _branch(head: str) -> str | None:
    """`branch NAME`, or `no branch` for a commit; None for any other HEAD, such as that of another ref storage."""
    if not head.startswith("ref:"):
        return "no branch"
    match = _BRANCH.fullmatch(head.rstrip("\n"))
    return f"branch {match[1]}" if match and not match[1].startswith(".") else None


def _last(entries: Iterable[Entry], name: str) -> str | None:
    """The value in force, the last one; empty for a key without a value."""
    values = [entry.value or "" for entry in entries if entry.name == name]
    return values[-1] if values else None


def _settings(found: ConfiguredRepository, ignore_file: str) -> list[str]:
    """The settings that git gets, as `name=value`."""
    settings = [*_OWN_SETTINGS]
    for name, allowed in _COPIED.items():
        value = _last((*found.users, *found.own), f"core.{name}")
        if value is not None and (value or "true").lower() in allowed:
            settings.append(f"core.{name}={value or 'true'}")
    # From the user's configuration only: the repository's could name any file.
    is_file = ignore_file.startswith("/") and "\0" not in ignore_file and _kind(ignore_file, os.stat) == stat.S_IFREG
    return [*settings, f"core.excludesFile={ignore_file if is_file else os.devnull}"]


def _own_config(found: ConfiguredRepository) -> str:
    """The text of the private configuration; empty if none is needed.

    Raises `UnsupportedRepository` for a format that the private repository does not support.
    """
    names = {entry.name.partition(".")[2] for entry in found.own if entry.name.startswith("extensions.")}
    form = _last(found.own, "extensions.objectformat") or "sha1"
    is_bare = _last(found.own, "core.bare") not in (None, "false")
    if is_bare or not names <= _EXTENSIONS or form not in ("sha1", "sha256"):
        raise UnsupportedRepository(found.repository.own)
    return _SHA256 if form == "sha256" else ""


def _kind(path: str, status: Callable[[str], os.stat_result] = os.lstat) -> int:
    try:
        return stat.S_IFMT(status(path).st_mode)
    except (OSError, ValueError):
        return 0


@contextlib.contextmanager
def _private_repository(parent: Path, found: ConfiguredRepository) -> Iterator[str]:
    """A temporary repository folder with links to the real data. Raises `OSError`, `UnsupportedRepository`."""
    repository, config = found.repository, _own_config(found)
    if _kind(f"{repository.own}/index") not in (0, stat.S_IFREG) or _has_index_in_parts(repository):
        raise UnsupportedRepository(repository.own)
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_stale(parent)
    place = parent / os.urandom(8).hex()
    place.mkdir(mode=0o700)
    try:
        (place / "HEAD").write_text(found.head, "utf-8")
        if config:
            (place / "config").write_text(config, "utf-8")
        for name, target in _links(repository):
            (place / name).symlink_to(target)
        yield str(place)
    finally:
        _remove(place)


def _links(repository: Repository) -> Iterator[tuple[str, str]]:
    """Names and targets of the links into the real repository, besides index and objects."""
    yield "refs", f"{repository.shared}/refs"
    for name in ("packed-refs", "shallow"):
        if _kind(f"{repository.shared}/{name}") == stat.S_IFREG:
            yield name, f"{repository.shared}/{name}"
    # A worktree has its own `info` only for a sparse checkout, which then matters more than the ignore list.
    is_sparse = repository.own != repository.shared and _kind(f"{repository.own}/info/sparse-checkout")
    info = f"{repository.own if is_sparse else repository.shared}/info"
    names = ("exclude", "attributes", "sparse-checkout")
    if _kind(info) == stat.S_IFDIR and all(_kind(f"{info}/{name}") in (0, stat.S_IFREG) for name in names):
        yield "info", info


def _has_index_in_parts(repository: Repository) -> bool:
    """True for a split index: git would look for its other part in the private folder and take it for empty."""
    return any(file.name.startswith("sharedindex.") for file in Path(repository.own).iterdir())


def _remove_stale(parent: Path) -> None:
    """Remove what killed runs have left."""
    latest = time.time() - _STALE_S
    for place in parent.iterdir():
        with contextlib.suppress(OSError):
            if place.lstat().st_mtime < latest:
                _remove(place)


def _remove(place: Path) -> None:
    """Remove a private repository: its links, not their targets."""
    with contextlib.suppress(OSError):
        for each in place.iterdir():
            each.unlink()
        place.rmdir()
