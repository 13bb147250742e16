"""Finds files by name."""

import re
from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, FileEntry, ToolOutput
from bradawl.tools.decoding import presentable
from bradawl.tools.patterns import compile_glob, literal_prefix

_WALK_LIMIT = 200_000
_SHOWN = 100


class GlobParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find files by name, newest first. What git ignores is left out unless the pattern names its folder."""

    pattern: Annotated[str, msgspec.Meta(description="For example src/**/*.{ts,tsx}; **/ is any depth.")]
    path: Annotated[str, msgspec.Meta(description="Folder to look in.")] = "."


class Glob:
    """The tool `glob`."""

    name: str = "glob"
    params: type[GlobParams] = GlobParams

    def effects(self, params: GlobParams, context: CallContext) -> Effects:
        """Reads below the folder the pattern starts from. Raises `ToolError` for a broken pattern or path."""
        return Effects(reads=(_place(params, context)[0],))

    async def run(self, params: GlobParams, context: CallContext) -> ToolOutput:
        """Matching files, newest first, at most 100."""
        root, rest = _place(params, context)
        where = context.resolve(params.path)
        if where != root:
            await context.files.list(where, 0)  # a folder that is missing is told apart from a pattern without matches
        entries, cut = await self._entries(root, where, context)
        if not rest and not any(entry.path == root for entry in entries):
            rest = "**"  # the pattern names a folder: all that is in it
        pattern = compile_glob(rest)
        skip = len(root.rstrip("/")) + 1
        found = [entry for entry in entries if pattern.match(entry.path[skip:])]
        note = f"[the search stopped after {len(entries)} files; give a deeper path]" if cut else ""
        if not found:
            looked = context.relative(root) if root != context.cwd else f"the working directory {root}"
            text = f"No files match {params.pattern}: looked at {len(entries)} files in {looked}. {note}"
            return ToolOutput((Text(text.rstrip()),))
        return ToolOutput((Text(presentable(_listing(found, note, context))),))

    async def _entries(self, root: str, where: str, context: CallContext) -> tuple[tuple[FileEntry, ...], bool]:
        try:
            return await context.files.list(root, _WALK_LIMIT)
        except ToolError:
            if root == where:
                raise
            return (), False


def _place(params: GlobParams, context: CallContext) -> tuple[str, str]:
    """The folder (or file) the pattern starts from, and the part of it that holds wildcards."""
    if not params.pattern:
        raise ToolError("pattern is empty; **/* finds all files")
    prefix, rest = literal_prefix(params.pattern.removeprefix("./"))
    try:
        compile_glob(rest)
    except re.error as error:
        raise ToolError(f"pattern {params.pattern!r} can't be understood: {error}") from None
    base = context.resolve(params.path)
    return (context.files.resolve(prefix, base) if prefix else base), rest


def _listing(found: list[FileEntry], note: str, context: CallContext) -> str:
    found.sort(key=lambda entry: (-entry.modified_ns, entry.path))
    lines = [context.relative(entry.path) for entry in found[:_SHOWN]]
    if len(found) > _SHOWN:
        lines.append(f"[{len(found)} matches, showing first {_SHOWN}]")
    return "\n".join([*lines, *([note] if note else [])])
