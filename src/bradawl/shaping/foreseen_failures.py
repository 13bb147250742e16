"""Finds calls that can only fail before the user is asked about them, with the check that the tool itself makes."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import AnyTool, CallContext, Files, Params
from bradawl.core.workspace import FileContent, FileEntry


@runtime_checkable
class ForeseesFailure(Protocol):
    """A tool that can tell before a call is allowed whether it can only fail."""

    async def check_can_run(self, params: Params, context: CallContext) -> None:
        """Make the checks of `run` and change nothing. Raises the `ToolError` that `run` would raise."""
        ...


@runtime_checkable
class ForeseesWrites(Protocol):
    """`Files` that can tell whether a file can be written."""

    async def check_writable(self, path: str) -> None:
        """Raises `ToolError` for a resolved path that `replace` can't write now."""
        ...


class FreelyReadFiles:
    """`Files` that reads and lists only what may be read without a question, and writes nothing."""

    def __init__(self, files: Files, may_read: Callable[[str], bool]) -> None:
        self._files, self._may_read = files, may_read
        self.has_withheld = False
        """A file was not read: the check says nothing."""
        self.resolve = files.resolve

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """Raises `ToolError` also for a file about which the user would be asked."""
        self.check_readable(path)
        return await self._files.read(path, limit_bytes)

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Raises `ToolError` also for a folder about which the user would be asked."""
        self.check_readable(root)
        return await self._files.list(root, limit)

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Raises `ToolError`: the call is not allowed yet."""
        del data, expected_sha256
        raise ToolError(f"{path} was not written: the call is not allowed yet")

    def check_readable(self, path: str) -> None:
        """Raises `ToolError` for a path about which the user would be asked."""
        if not self._may_read(path):
            self.has_withheld = True
            raise ToolError(f"{path} is read after the call is allowed")


async def check(
    tool: AnyTool,
    params: Params,
    context: CallContext,
    writes: tuple[str, ...],
    may_read: Callable[[str], bool],
    disk: Files,
) -> None:
    """Raises the `ToolError` with which a call fails whatever the user answers.

    Files are read only where the model may read them without a question: an error can show what is in them. `disk`
    holds the files.
    """
    if not isinstance(tool, ForeseesFailure):
        return
    files = FreelyReadFiles(context.files, may_read)
    try:
        await tool.check_can_run(params, msgspec.structs.replace(context, files=files))
        if tool.spec.kind == "write" and isinstance(disk, ForeseesWrites):
            for path in writes:
                files.check_readable(path)
                await disk.check_writable(path)
    except ToolError:
        if not files.has_withheld:
            raise
