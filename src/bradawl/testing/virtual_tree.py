"""A tree of files that need not exist, over the real one: resolves paths and links without touching any."""

import re
import stat
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from posixpath import basename, dirname, join
from typing import Final, Literal

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.workspace import FileContent, FileEntry
from bradawl.safety.shell.allow.folder_listing import entries
from bradawl.workspace.files import LocalFiles

Kind = Literal["file", "folder", "device", "missing", "unknown"]
"""`device`: neither file nor folder. `unknown`: outside of the assumed project, and not on this machine."""

_MOST_LINKS: Final = 40
_A_DESCRIPTOR: Final = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/.*)|/proc/[^/]+/(?:task/[^/]+/)?fd/.*", re.DOTALL)
# Entries of an ordinary project; every other ordinary name counts as a file in it.
_FOLDERS: Final = (
    *(".git", ".git/hooks", ".git/info", ".git/objects", ".git/refs", ".github", "src", "tests", "test", "docs", "lib"),
    *("scripts", "examples", "config", "build", "dist", "node_modules"),
)
_FILES: Final = (
    *(
        ".git/HEAD",
        ".git/config",
        ".git/index",
        ".gitignore",
        ".env",
        "README.md",
        "LICENSE",
        "Makefile",
        "pyproject.toml",
    ),
    *("setup.cfg", "package.json", "src/a.py", "src/b.py", "tests/test_a.py", "docs/index.md", "lib/a.py"),
)
_PLAIN: Final = frozenset(" ._-+@#$&()[]{},=!'^")


class Overlay(msgspec.Struct, frozen=True):
    """Files that are assumed in addition to the existing ones."""

    project: str = ""
    """A folder that does not exist, treated as an ordinary clean git repository."""
    links: Mapping[str, str] = {}
    """Targets of symlinks by the absolute paths of the links."""


class VirtualTree:
    """`Files` without contents: `resolve` works as in `LocalFiles`; reading, writing and listing raise `ToolError`."""

    def __init__(self, home: str, overlay: Overlay) -> None:
        """`home` replaces `~`; empty if there is no home folder."""
        self._home = home
        self._overlay = overlay
        self._real = LocalFiles(home or None)
        folders = {overlay.project, *(f"{overlay.project}/{name}" for name in _FOLDERS)} if overlay.project else set()
        for link in overlay.links:
            while (link := dirname(link)) != "/":
                folders.add(link)
        self._folders = frozenset(folders)
        files = (f"{overlay.project}/{name}" for name in _FILES) if overlay.project else ()
        self._names = frozenset({*folders, *files, *overlay.links})

    # -------------------------------------------------------------- as `Files`

    def resolve(self, path: str, cwd: str) -> str:
        """The real path. Raises `ToolError` for an invalid path, and for one that stands for an open file."""
        try:
            self._real.resolve(path, cwd)
        except ToolError as error:
            if not isinstance(error.__cause__, OSError):  # an unreadable link, such as another user's in /proc
                raise
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return self._followed(path, join(cwd, path).split("/")[::-1])

    def _followed(self, path: str, rest: list[str]) -> str:
        """Resolve the links; `rest` are the remaining parts, the next one last."""
        place, links = "", 0
        while rest:
            part = rest.pop()
            if part in ("", "."):
                continue
            if part == "..":
                place = place.rpartition("/")[0]
                continue
            place = f"{place}/{part}"
            if _A_DESCRIPTOR.fullmatch(place):
                raise ToolError(f"{path} stands for an open file of one process; give the file's path")
            if (target := self._target(place)) is None:
                continue
            links += 1
            if links > _MOST_LINKS:
                raise ToolError(f"{path}: links lead in a circle; check the path")
            rest += reversed(target.split("/"))
            place = "" if target.startswith("/") else place.rpartition("/")[0]
        return place or "/"

    def _target(self, place: str) -> str | None:
        if (target := self._overlay.links.get(place)) is not None:
            return target
        try:
            return str(Path(place).readlink())
        except OSError:
            return None

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """Nothing can be read. Raises `ToolError`."""
        raise ToolError(f"{path} can't be read: calls are judged here, not made ({limit_bytes} bytes)")

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Nothing can be written. Raises `ToolError`."""
        raise ToolError(f"{path} can't be written: calls are judged here, not made ({len(data)} bytes)")

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Nothing can be listed. Raises `ToolError`."""
        raise ToolError(f"{root} can't be listed: calls are judged here, not made ({limit} files)")

    # -------------------------------------------------------------- what is there

    def kind(self, place: str) -> Kind:
        """The kind of file at an absolute path without links."""
        if place in self._folders:
            return "folder"
        try:
            mode = Path(place).lstat().st_mode
        except OSError:
            return self._assumed(place)
        if stat.S_ISDIR(mode):
            return "folder"
        return "file" if stat.S_ISREG(mode) else "device"

    def _assumed(self, place: str) -> Kind:
        if is_within(place, "/dev"):
            return "device"
        project = self._overlay.project
        if not project or not is_within(place, project):
            return "unknown"
        return "file" if all(map(_is_ordinary, place[len(project) + 1 :].split("/"))) else "missing"

    def entries(self, folder: str) -> dict[str, bool] | None:
        """Names in a folder, True for symlinks; None for any other path. Raises like `folder_listing.entries`."""
        found = entries(folder)
        if found is None and folder not in self._folders:
            return None
        here = {basename(name): name in self._overlay.links for name in self._names if dirname(name) == folder}
        return {**here, **(found or {})}


def _is_ordinary(name: str) -> bool:
    """Whether an ordinary project may have a file of this name. False for a disguised path, such as `%2e%2e`."""
    if not name.strip(".") or name.startswith("~") or re.search(r"%[0-9a-fA-F]{2}", name):
        return False
    return all(char in _PLAIN or unicodedata.category(char)[0] in "LMN" for char in name)


def links_in(setup: str, project: str, home: str) -> dict[str, str] | None:
    """The symlinks that one or several `ln -s TARGET LINK` would make in a folder; None for other commands."""
    links: dict[str, str] = {}
    for command in re.split(r"\s*(?:&&|;|\n)\s*", setup.strip()):
        words = [re.sub(r"^~(?=/|$)", lambda _: home, word) for word in command.split()]
        if len(words) != 4 or words[0] != "ln" or words[1] not in ("-s", "-sf", "-sfn", "-sn", "-sT"):
            return None
        if any(set(word) & set("'\"\\$`*?[]{}()<>|&!#~") for word in words[2:]):
            return None
        tree = VirtualTree("", Overlay(project, links))
        name = words[3].rstrip("/")
        folder = tree.resolve(dirname(name) or ".", project)
        place = f"{folder.rstrip('/')}/{basename(name)}"
        if tree.kind(place) == "folder" and words[1] in ("-s", "-sf"):
            place = f"{place}/{basename(words[2].rstrip('/'))}"
        links[place] = words[2]
    return links
