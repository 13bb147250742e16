"""A `Files` port that hides files which permission rules refuse to read, and the names it has for paths."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from bradawl.core.errors import ToolError
from bradawl.core.ports import Files
from bradawl.core.rules import Rule, refuses
from bradawl.core.workspace import FileContent, FileEntry


def ruled(files: Files, rules: tuple[Rule, ...]) -> Files:
    """The port with refused files hidden; `files` itself if no rule refuses reading."""
    return _RuledFiles(files, rules) if rules else files


@runtime_checkable
class NamesPaths(Protocol):
    """`Files` where programs call some paths otherwise, such as those below a `/tmp` of their own."""

    def name_of(self, path: str, /) -> str:
        """How programs call an absolute path; most paths are the same."""
        ...


def names_of(files: Files) -> Callable[[str], str]:
    """The function that returns how programs call an absolute path."""
    return files.name_of if isinstance(files, NamesPaths) else str


class _RuledFiles:
    """`Files` that neither read nor list the files that a rule refuses."""

    def __init__(self, files: Files, rules: tuple[Rule, ...]) -> None:
        self._files = files
        self._rules = rules
        self.resolve = files.resolve
        self.replace = files.replace

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """The content of a file. Raises `ToolError` also for a file that a rule refuses."""
        if refuses(self._rules, "read", path):
            raise ToolError(f"{path} was not read: a permission rule refuses it; do the work without this file")
        return await self._files.read(path, limit_bytes)

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """The files below a folder, without those that a rule refuses."""
        found, is_cut = await self._files.list(root, limit)
        return tuple(entry for entry in found if not refuses(self._rules, "read", entry.path)), is_cut
