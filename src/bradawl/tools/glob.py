"""The tool `glob`: finds files by name."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import Command, FileEntry
from bradawl.tools.reading.decoding import presentable
from bradawl.tools.reading.path_errors import named_as_given, on_one_line, with_suggestion
from bradawl.tools.searching.patterns import compile_glob, literal_prefix

if TYPE_CHECKING:
    from bradawl.tools.searching.ripgrep import Ripgrep

_WALK_LIMIT = 200_000
_FEW = 300
"""Number of files that are checked without starting a program."""
_SHOWN = 100
_TIMEOUT_S = 60.0
_OUTPUT_LIMIT = 2_000_000
_NEWEST = str(Path(__file__).parent / "searching" / "newest.py")


class GlobParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find files by name, newest first; ignored ones only if the pattern names their folder."""

    pattern: Annotated[str, msgspec.Meta(description="*.py: this folder only; src/**/*.{ts,tsx}: any depth.")]
    path: str = "."


class Glob:
    """The tool `glob`."""

    spec: ToolSpec = ToolSpec("glob", rule_names=("Read", "Glob"), read_rules="exact", shows=("pattern",))
    params: type[GlobParams] = GlobParams

    def __init__(self, rg: str | None = None, ignore_file: Callable[[str], str | None] = lambda _: None) -> None:
        """`rg` is the path of ripgrep; without it large folders take longer, and the search of very large ones is cut.
        `ignore_file` returns the `.bradawlignore` that applies to a folder.
        """
        self._rg = rg
        self._ignore_file = ignore_file
        self.is_listed = True
        """False: calls are answered, but requests do not offer the tool."""

    def effects(self, params: GlobParams, context: CallContext) -> Effects:
        """Reads below the searched folder and the folder the pattern starts from. Raises `ToolError` for an invalid
        pattern or path.
        """
        return Effects(reads=tuple(dict.fromkeys((_place(params, context)[0], context.resolve(params.path)))))

    async def run(self, params: GlobParams, context: CallContext) -> ToolOutput:
        """Matching files, newest first, at most 100; if there are none, matches in deeper folders."""
        root, rest = _place(params, context)
        where = context.resolve(params.path)
        with named_as_given(where, params.path, context):
            search = await self._search(root, rest, where, context)
        head = ""
        if not search.total and _could_be_deeper(params.pattern):
            search = await self._deeper(params.pattern.removeprefix("./").rstrip("/"), where, context)
            head = f"{params.pattern}: none {'here' if where == context.cwd else 'in ' + params.path}; with **/:"
        text = _listing(search, head, context) if search.total else _nothing(search, params, context)
        return ToolOutput((Text(presentable(text)),), limit=None)

    async def _search(self, root: str, rest: str, where: str, context: CallContext) -> "GlobResult":
        try:
            # ripgrep does not know the rules that refuse paths; the list leaves those paths out.
            entries, is_cut = await context.files.list(root, _FEW if self._rg and not context.rules else _WALK_LIMIT)
        except ToolError as error:
            if root == where:
                raise await with_suggestion(error, root, context) from None
            await context.files.list(where, 0)  # a missing folder is a different error from a pattern without matches
            return GlobResult(root, (), 0, 0, is_cut=False)
        if not rest and not any(entry.path == root for entry in entries):
            rest = "**"  # the pattern names a folder: everything in it
        if is_cut and self._rg and not context.rules:
            from bradawl.tools.searching.ripgrep import Ripgrep

            return await _newest(Ripgrep(self._rg, root, False, self._ignore_file(root)), rest, context)
        return _chosen(root, rest, entries, is_cut)

    async def _deeper(self, pattern: str, where: str, context: CallContext) -> "GlobResult":
        is_literal = not literal_prefix(pattern)[1]
        return await self._search(where, f"**/{pattern}{'{,/**}' if is_literal else ''}", where, context)


class GlobResult(msgspec.Struct, frozen=True):
    """The result of a search for files."""

    root: str
    newest: tuple[str, ...]
    """Absolute paths of the files to show, newest first."""
    total: int
    searched: int
    is_cut: bool
    """The folder has more files than a search reads."""

    @property
    def note(self) -> str:
        """A note about an incomplete search; empty for a complete one."""
        return f"[the search stopped after {self.searched} files; give a deeper path]" if self.is_cut else ""


def _chosen(root: str, rest: str, entries: tuple[FileEntry, ...], is_cut: bool) -> GlobResult:
    pattern = compile_glob(rest)
    skip = len(root.rstrip("/")) + 1
    found = [entry for entry in entries if pattern.match(entry.path[skip:])]
    found.sort(key=lambda entry: (-entry.modified_ns, entry.path))
    return GlobResult(root, tuple(entry.path for entry in found[:_SHOWN]), len(found), len(entries), is_cut)


async def _newest(rg: "Ripgrep", rest: str, context: CallContext) -> GlobResult:
    """Search with ripgrep, which lists candidates; a helper program reads their times and selects the newest."""
    names, is_exact = _names(rest)
    regex = "" if is_exact else compile_glob(rest).pattern
    found = await _listed(rg, regex, names, context)
    if not found.total and names:  # the message also says how many files were searched
        found = msgspec.structs.replace(found, searched=(await _listed(rg, "(?!)", (), context)).searched)
    return found


def _names(rest: str) -> tuple[tuple[str, ...], bool]:
    """Options that select files by the last part of a pattern, and whether they express the whole pattern."""
    from bradawl.tools.searching.ripgrep import named

    folders, _, name = rest.rpartition("/")
    if "**" in name or ("," in name and "{" not in name) or not (chosen := named(name)):
        return (), rest == "**"
    if not folders:
        return (*chosen, "--max-depth=1"), True
    return chosen, folders == "**"


async def _listed(rg: "Ripgrep", regex: str, names: tuple[str, ...], context: CallContext) -> GlobResult:
    skip = len(rg.relative(rg.root).rstrip("/")) + 1
    program = (sys.executable, "-I", "-S", "-B", _NEWEST, str(_SHOWN), regex, str(skip))
    argv = (*program, *rg.argv("--files", "--null", *names))
    command = Command(
        argv, rg.cwd, timeout_s=_TIMEOUT_S, output_limit_bytes=_OUTPUT_LIMIT, is_helper=True, unmoved=(rg.root,)
    )
    result = await context.processes.run(command, context.grant)
    if result.exit_code is None:
        raise ToolError(f"the search took more than {_TIMEOUT_S:.0f} s and was ended; give a deeper path")
    if result.exit_code:
        reason = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ToolError(f"the search failed: {reason}; use bash (find)")
    listed, found, *newest = result.stdout.split(b"\0")[:-1]
    paths = tuple(rg.absolute(os.fsdecode(path)) for path in newest)
    return GlobResult(rg.root, paths, int(found), int(listed), is_cut=False)


def _could_be_deeper(pattern: str) -> bool:
    return not pattern.startswith(("**/", "/", "~")) and ".." not in pattern.split("/")


def _place(params: GlobParams, context: CallContext) -> tuple[str, str]:
    """The folder (or file) the pattern starts from, and the part of the pattern that has wildcards."""
    if not params.pattern:
        raise ToolError("pattern is empty; **/* finds all files")
    prefix, rest = literal_prefix(params.pattern.removeprefix("./"))
    try:
        compile_glob(rest)
    except re.error as error:
        raise ToolError(f"pattern {params.pattern} can't be understood: {error}") from None
    base = context.resolve(params.path)
    return (context.files.resolve(prefix, base) if prefix else base), rest


def _nothing(search: GlobResult, params: GlobParams, context: CallContext) -> str:
    root = (
        context.relative(search.root)
        if search.root != context.cwd
        else f"the working directory {context.name_of(search.root)}"
    )
    looked = f"searched {search.searched} file{'' if search.searched == 1 else 's'} in {on_one_line(root)}"
    is_class = "[" in params.pattern and "\\[" not in params.pattern
    hint = " [...] is one character of those; \\[ is the bracket itself." if is_class else ""
    return f"No files match {params.pattern}: {looked}.{hint} {search.note}".rstrip()


def _listing(search: GlobResult, head: str, context: CallContext) -> str:
    lines = [on_one_line(context.relative(path)) for path in search.newest]
    if head:
        lines = [f"{head} {lines[0]}"] if len(lines) == 1 else [head, *lines]
    if search.total > len(search.newest):
        lines.append(f"[{search.total} matches, showing first {len(search.newest)}]")
    return "\n".join([*lines, *([search.note] if search.note else [])])
