"""Where instruction files can be: the folders and names that are looked at, and whether they changed. Opens no file."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

NAMES: Final = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md")
"""Names of instruction files in a folder; the first one with text counts."""
_OF_OTHERS: Final = frozenset(
    {"node_modules", "vendor", "vendored", "third_party", "site-packages", "venv", ".venv", "dist", "build", "target"}
)
"""Folders below a project with files that others wrote or programs made."""
_MOST_FOLDERS: Final = 40
"""Folders on the way to one file that are looked at."""

Stamp = tuple[int, int, int]
"""Time of the last change in nanoseconds, size, inode."""


class Place(NamedTuple):
    """A folder whose instruction files count together: the first name with text."""

    paths: tuple[str, ...]
    """The possible files, absolute, the preferred first."""
    root: str
    """The project that the files must lie in, a real path; empty for the user's own files."""
    is_trusted: bool
    """What they say is instructions, otherwise it is material."""

    @property
    def folder(self) -> str:
        """The folder that they are for."""
        return folder_of(self.paths[0])


def place_in(folder: str, root: str, *, is_trusted: bool) -> Place:
    """The place of a project's folder."""
    base = folder.rstrip("/")
    return Place(tuple(f"{base}/{name}" for name in NAMES), root, is_trusted)


def users_place(config_home: str, user_home: str) -> Place:
    """The place of the user's own file: bradawl's, else the one for all agents, else that of Claude."""
    own = (f"{config_home}/{name}" for name in NAMES[:2]) if config_home else ()
    shared = (f"{user_home}/.config/AGENTS.md", f"{user_home}/.claude/CLAUDE.md") if user_home else ()
    return Place((*own, *shared), "", is_trusted=True)


def project_of(folder: str) -> str:
    """The nearest folder upwards that has a `.git`, or the folder itself; trust applies to it."""
    for above in (folder, *map(str, Path(folder).parents)):
        if os.path.lexists(f"{above.rstrip('/')}/.git"):
            return above
    return folder


def folders_between(top: str, folder: str) -> tuple[str, ...]:
    """The folders from `top` down to `folder`, both included; empty if it does not lie below."""
    base = top.rstrip("/")
    if folder != top and not folder.startswith(f"{base}/"):
        return ()
    parts = folder[len(base) :].strip("/").split("/") if folder != top else []
    steps = ("/".join((base, *parts[:count])) for count in range(1, len(parts) + 1))
    return (top, *steps)[-_MOST_FOLDERS:]


def folder_of(path: str) -> str:
    """The folder that an instruction file is for: `.claude/CLAUDE.md` is for the folder above."""
    folder = path.rpartition("/")[0]
    return (folder.removesuffix("/.claude") if path.endswith("/.claude/CLAUDE.md") else folder) or "/"


def is_instruction_file(path: str) -> bool:
    """Whether a path has the name of an instruction file; those that are imported have any name."""
    return any(path.endswith(f"/{name}") for name in NAMES)


def is_of_others(folder: str, top: str) -> bool:
    """Whether a folder below a project's top holds files of others, such as `node_modules`."""
    return not _OF_OTHERS.isdisjoint(folder[len(top) :].split("/"))


def folder_at(path: str) -> str:
    """A path itself if it is a folder, otherwise the folder that it is in."""
    return path if Path(path).is_dir() else path.rpartition("/")[0] or "/"


def exist(places: Iterable[Place]) -> bool:
    """Whether any of the possible files is there."""
    return any(os.path.lexists(path) for place in places for path in place.paths)


def stamps_of(paths: Iterable[str]) -> dict[str, Stamp]:
    """The stamp of each file that is there."""
    return dict(_stamps(paths))


def _stamps(paths: Iterable[str]) -> Iterator[tuple[str, Stamp]]:
    for path in paths:
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            continue
        if not stat.S_ISDIR(found.st_mode):
            yield path, (found.st_mtime_ns, found.st_size, found.st_ino)
