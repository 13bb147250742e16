"""Finds files by name."""

import re
from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, FileEntry, ToolOutput
from bradawl.tools.decoding import presentable
from bradawl.tools.naming import named_as_given, with_suggestion
from bradawl.tools.patterns import compile_glob, literal_prefix

_WALK_LIMIT = 200_000
_SHOWN = 100


class GlobParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find files by name, newest first. What git ignores is left out unless the pattern names its folder."""

    pattern: Annotated[
        str, msgspec.Meta(description="*.py is this folder only, **/*.py any depth; src/**/*.{ts,tsx} works too.")
    ]
    path: Annotated[str, msgspec.Meta(description="Folder to look in.")] = "."


class Glob:
    """The tool `glob`."""

    name: str = "glob"
    params: type[GlobParams] = GlobParams

    def effects(self, params: GlobParams, context: CallContext) -> Effects:
        """Reads below the folder to look in and the one the pattern starts from.

        Raises `ToolError` for a broken pattern or path.
        """
        return Effects(reads=tuple(dict.fromkeys((_place(params, context)[0], context.resolve(params.path)))))

    async def run(self, params: GlobParams, context: CallContext) -> ToolOutput:
        """Matching files, newest first, at most 100; if there are none, those that match deeper down."""
        root, rest = _place(params, context)
        where = context.resolve(params.path)
        with named_as_given(where, params.path, context):
            search = await _search(root, rest, where, context)
        head = ""
        if not search.found and _could_be_deeper(params.pattern):
            search = await _deeper(params.pattern.removeprefix("./").rstrip("/"), where, context)
            head = f"{params.pattern}: none {'here' if where == context.cwd else 'in ' + params.path}; with **/:"
        text = _listing(search, head, context) if search.found else _nothing(search, params, context)
        return ToolOutput((Text(presentable(text)),))


class Search(msgspec.Struct, frozen=True):
    """What one look at a folder gave."""

    root: str
    found: list[FileEntry]
    looked_at: int
    is_cut: bool
    """There were more files than a search looks at."""

    @property
    def note(self) -> str:
        """What to know of a search that was cut; empty for others."""
        return f"[the search stopped after {self.looked_at} files; give a deeper path]" if self.is_cut else ""


async def _search(root: str, rest: str, where: str, context: CallContext) -> Search:
    try:
        entries, is_cut = await context.files.list(root, _WALK_LIMIT)
    except ToolError as error:
        if root == where:
            raise await with_suggestion(error, root, context) from None
        await context.files.list(where, 0)  # a folder that is missing is told apart from a pattern without matches
        return Search(root, [], 0, is_cut=False)
    if not rest and not any(entry.path == root for entry in entries):
        rest = "**"  # the pattern names a folder: all that is in it
    pattern = compile_glob(rest)
    skip = len(root.rstrip("/")) + 1
    return Search(root, [entry for entry in entries if pattern.match(entry.path[skip:])], len(entries), is_cut)


def _could_be_deeper(pattern: str) -> bool:
    return not pattern.startswith(("**/", "/", "~")) and ".." not in pattern.split("/")


async def _deeper(pattern: str, where: str, context: CallContext) -> Search:
    is_literal = not literal_prefix(pattern)[1]
    return await _search(where, f"**/{pattern}{'{,/**}' if is_literal else ''}", where, context)


def _place(params: GlobParams, context: CallContext) -> tuple[str, str]:
    """The folder (or file) the pattern starts from, and the part of it that holds wildcards."""
    if not params.pattern:
        raise ToolError("pattern is empty; **/* finds all files")
    prefix, rest = literal_prefix(params.pattern.removeprefix("./"))
    try:
        compile_glob(rest)
    except re.error as error:
        raise ToolError(f"pattern {params.pattern} can't be understood: {error}") from None
    base = context.resolve(params.path)
    return (context.files.resolve(prefix, base) if prefix else base), rest


def _nothing(search: Search, params: GlobParams, context: CallContext) -> str:
    root = context.relative(search.root) if search.root != context.cwd else f"the working directory {search.root}"
    looked = f"looked at {search.looked_at} file{'' if search.looked_at == 1 else 's'} in {root}"
    is_class = "[" in params.pattern and "\\[" not in params.pattern
    hint = " [...] is one character of those; \\[ is the bracket itself." if is_class else ""
    return f"No files match {params.pattern}: {looked}.{hint} {search.note}".rstrip()


def _listing(search: Search, head: str, context: CallContext) -> str:
    found = sorted(search.found, key=lambda entry: (-entry.modified_ns, entry.path))
    lines = [context.relative(entry.path) for entry in found[:_SHOWN]]
    if head:
        lines = [f"{head} {lines[0]}"] if len(lines) == 1 else [head, *lines]
    if len(found) > _SHOWN:
        lines.append(f"[{len(found)} matches, showing first {_SHOWN}]")
    return "\n".join([*lines, *([search.note] if search.note else [])])
