"""Finds lines by regular expression."""

import base64
import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from bradawl.core.effects import Effects
from bradawl.core.errors import ToolError
from bradawl.core.messages import Text
from bradawl.core.ports import CallContext, Command, CommandResult, ToolOutput
from bradawl.tools.decoding import presentable
from bradawl.tools.naming import named_as_given, with_suggestion
from bradawl.tools.patterns import compile_glob
from bradawl.tools.scan import LONGEST_TEXT, around

_SHOWN = 200
_MOST_LINES = 500
_MOST_CONTEXT = 20
_WALK_LIMIT = 100_000
_LARGEST_FILE = 50_000_000
_ARGUMENTS_BYTES = 400_000
_OUTPUT_LIMIT = 8_000_000
_RG = (
    "--json",
    "--no-config",
    "--no-mmap",
    "--crlf",
    "--hidden",
    "--glob=!.git",
    "--glob=!.bradawl-*.tmp",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-global",
    "--sort=path",
    "--engine=auto",
)
_SCAN = str(Path(__file__).with_name("scan.py"))
_BAD_PATTERN = 3  # exit code of that program
_SIMPLE_INCLUDE = re.compile(r"[\w.*-]+(?:\{[\w.,-]+\})?")
_SLOWER = "[ripgrep is not installed: this search was slower]"


class GrepParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Find lines by regular expression, in a folder (without what git ignores) or a file. Shows path:line: text."""

    pattern: Annotated[str, msgspec.Meta(description="Looked for in one line at a time.")]
    path: Annotated[str, msgspec.Meta(description="Folder or file.")] = "."
    include: Annotated[str, msgspec.Meta(description="Only files so named, for example *.{ts,tsx}")] = ""
    context: Annotated[int, msgspec.Meta(description="Lines to show around each match, at most 20.")] = 0


class Line(msgspec.Struct, frozen=True):
    """A line that matched, or one around it."""

    path: str
    number: int
    text: str
    is_match: bool = True


class Found(msgspec.Struct, frozen=True):
    """What a search gave."""

    lines: list[Line]
    total: int
    """Lines that matched."""
    searched: int
    """Files that were searched."""
    notes: tuple[str, ...] = ()


class Grep:
    """The tool `grep`."""

    name: str = "grep"
    params: type[GrepParams] = GrepParams

    def __init__(self, rg: str | None, timeout_s: float = 30.0) -> None:
        """`rg` is the path of ripgrep; without it files are searched by a slower program of our own.

        A search that takes longer than `timeout_s` is ended: patterns can be made that run for ever.
        """
        self._rg = rg
        self._timeout_s = timeout_s

    def effects(self, params: GrepParams, context: CallContext) -> Effects:
        """Reads below `path`. Raises `ToolError` for arguments that make no sense, as a pattern of two lines."""
        if not params.pattern:
            raise ToolError("pattern is empty; give a regular expression, or use glob to list files")
        if "\n" in params.pattern or "\0" in params.pattern:
            raise ToolError(
                "pattern holds a line break or NUL; grep looks at one line at a time, so search for one line"
            )
        if params.context < 0:
            raise ToolError(f"context is a number of lines, from 0 to {_MOST_CONTEXT}; it was {params.context}")
        _check_include(params.include)
        return Effects(reads=(context.resolve(params.path),))

    async def run(self, params: GrepParams, context: CallContext) -> ToolOutput:
        """Matching lines, sorted by path, at most 200 with the total told."""
        (root,) = self.effects(params, context).reads
        with named_as_given(root, params.path, context):
            await _check_root(root, context)
        found = await self._ripgrep(self._rg, root, params, context) if self._rg else None
        if found is None:
            found = await self._scan(root, params, context)
        return ToolOutput((Text(presentable(_shown(found, root, params, context))),))

    async def _ripgrep(self, rg: str, root: str, params: GrepParams, context: CallContext) -> Found | None:
        """The search by ripgrep; None when it does not understand the pattern."""
        only: tuple[str, ...] = ()
        if _SIMPLE_INCLUDE.fullmatch(params.include):
            only = (f"--type-add=only:{params.include}", "--type=only")
        around_it = (f"--context={_context(params)}",) if params.context else ()
        argv = (rg, *_RG, *only, *around_it, f"--regexp={params.pattern}", "--", root)
        command = Command(argv, "/", timeout_s=self._timeout_s, output_limit_bytes=_OUTPUT_LIMIT)
        result = await context.processes.run(command, context.grant)
        if result.exit_code is None:
            raise _too_slow(self._timeout_s)
        messages = tuple(_messages(result.stdout))
        if not messages or messages[-1].type != "summary":
            return None
        lines = list(_lines(messages))
        if params.include:
            lines = [line for line in lines if _included(params.include, root, line.path)]
        stats = messages[-1].data.stats
        total = stats.matched_lines if result.dropped_bytes else sum(line.is_match for line in lines)
        searched = stats.searches
        if not lines and params.include and not only:  # ripgrep looked at more files than were asked for
            entries, _ = await context.files.list(root, _WALK_LIMIT)
            searched = sum(_included(params.include, root, entry.path) for entry in entries)
        notes = (f"[not everything could be read: {_first_line(result.stderr)}]",) if result.stderr.strip() else ()
        return Found(lines, total, searched, notes)

    async def _scan(self, root: str, params: GrepParams, context: CallContext) -> Found:
        """The same search by our own program, in batches of as many files as its arguments can name."""
        notes = () if self._rg else (_SLOWER,)
        entries, cut = await context.files.list(root, _WALK_LIMIT)
        if cut:
            notes = (f"[only the first {_WALK_LIMIT:,} files were searched; give a deeper path]", *notes)
        wanted = [entry for entry in entries if _included(params.include, root, entry.path)]
        small = sorted((entry.path for entry in wanted if entry.size <= _LARGEST_FILE), key=_by_component)
        if len(small) < len(wanted):
            notes = (f"[{len(wanted) - len(small)} files larger than 50 MB were not searched]", *notes)
        deadline = time.monotonic() + self._timeout_s
        lines: list[Line] = []
        total = 0
        for batch in _batches(small):
            argv = (sys.executable, "-I", "-S", "-B", _SCAN, params.pattern, str(_context(params)), *batch)
            timeout_s = max(deadline - time.monotonic(), 0.1)
            command = Command(argv, "/", timeout_s=timeout_s, output_limit_bytes=_OUTPUT_LIMIT)
            result = await context.processes.run(command, context.grant)
            if result.exit_code is None:
                raise _too_slow(self._timeout_s)
            room = (_MOST_LINES if params.context else _SHOWN) - len(lines)
            found, count = _scanned(result, params, max(room, 0))
            lines += found
            total += count
        return Found(lines, total, len(small), notes)


class _Bytes(msgspec.Struct):
    text: str = ""
    raw: bytes = msgspec.field(default=b"", name="bytes")

    def string(self) -> str:
        return self.text or os.fsdecode(self.raw)


class _Span(msgspec.Struct):
    """Bytes of a line that matched."""

    start: int
    end: int


class _Stats(msgspec.Struct):
    searches: int = 0
    matched_lines: int = 0


class _Data(msgspec.Struct):
    path: _Bytes = msgspec.field(default_factory=_Bytes)
    lines: _Bytes = msgspec.field(default_factory=_Bytes)
    line_number: int = 0
    submatches: msgspec.Raw = msgspec.Raw(b"[]")
    """Looked into only where they are needed: they can be many."""
    binary_offset: int | None = None
    stats: _Stats = msgspec.field(default_factory=_Stats)


class _Message(msgspec.Struct):
    """One line of ripgrep's JSON output."""

    type: str
    data: _Data


def _messages(output: bytes) -> Iterator[_Message]:
    decoder = msgspec.json.Decoder(_Message)
    for line in output.splitlines():
        with contextlib.suppress(msgspec.DecodeError):  # where the middle of very much output is missing
            yield decoder.decode(line)


def _lines(messages: tuple[_Message, ...]) -> Iterator[Line]:
    binary = {m.data.path.string() for m in messages if m.type == "end" and m.data.binary_offset is not None}
    for message in messages:
        if message.type in {"match", "context"}:
            data = message.data
            path = data.path.text or data.path.string()
            if path not in binary:
                yield Line(path, data.line_number, _line_text(data), message.type == "match")


def _line_text(data: _Data) -> str:
    text = data.lines.text or data.lines.raw.decode("utf-8", "replace")
    text = text.removesuffix("\n").removesuffix("\r")
    if len(text) <= LONGEST_TEXT:
        return text
    spans = msgspec.json.decode(data.submatches, type=tuple[_Span, ...])
    span = spans[0] if spans else _Span(0, 0)
    raw = data.lines.raw or text.encode()
    start, end = (len(raw[:place].decode("utf-8", "replace")) for place in (span.start, span.end))
    return around(text, start, end)


def _scanned(result: CommandResult, params: GrepParams, most: int) -> tuple[list[Line], int]:
    """At most so many of the lines that were printed, and how many matched."""
    if result.exit_code == _BAD_PATTERN:
        reason = result.stderr.decode("utf-8", "replace").strip()
        raise ToolError(
            f"pattern {params.pattern} is not a regular expression: {reason}. "
            "Put a backslash before ( ) [ ] { } . * + ? | to search for the character itself"
        )
    *matches, count = result.stdout.split(b"\n")[:-1] or [b""]
    if result.exit_code != 0 or not count.isdigit():
        raise ToolError(f"the search failed: {_first_line(result.stderr) or 'it said nothing'}; use bash (grep -rn)")
    lines: list[Line] = []
    for match in matches[:most]:
        path, number, kind, text = match.split(b"\0", 3)
        shown = text.decode("utf-8", "replace")
        lines.append(Line(os.fsdecode(base64.b64decode(path)), int(number), shown, kind == b"match"))
    return lines, int(count)


def _batches(paths: list[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for path in paths:
        batch.append(path)
        size += len(path) * 4 + 9  # in the worst encoding, with its place in the table of arguments
        if size > _ARGUMENTS_BYTES:
            yield batch
            batch, size = [], 0
    yield batch  # also when there are no files: a pattern that is wrong is always told


def _by_component(path: str) -> list[str]:
    return path.split("/")


def _too_slow(timeout_s: float) -> ToolError:
    return ToolError(
        f"the search took more than {timeout_s:.0f} s and was ended; give a deeper path or an include, "
        "or a pattern without nested repetition"
    )


def _first_line(data: bytes) -> str:
    return data.decode("utf-8", "replace").strip().partition("\n")[0]


async def _check_root(root: str, context: CallContext) -> None:
    """Says what is wrong with a path that can't be searched."""
    try:
        await context.files.list(root, 0)
    except ToolError as error:
        raise await with_suggestion(error, root, context) from None


def _context(params: GrepParams) -> int:
    return min(params.context, _MOST_CONTEXT)


def _check_include(include: str) -> None:
    try:
        _included(include, "", "/name")
    except re.error as error:
        raise ToolError(f"include {include} can't be understood: {error}; an example is *.py") from None


def _included(include: str, root: str, path: str) -> bool:
    """Whether a file's name, or for a pattern with a slash its path, is one that was asked for."""
    if not include or path == root:
        return True
    pattern = f"{{{include}}}" if "," in include and "{" not in include else include
    if "/" not in pattern:
        return bool(compile_glob(pattern).match(path.rpartition("/")[2]))
    if pattern.startswith("/"):
        return bool(compile_glob(pattern).match(path))
    below = path[len(root.rstrip("/")) + 1 :]
    return bool(compile_glob("**/" + pattern.removeprefix("./")).match(below))


def _shown(found: Found, root: str, params: GrepParams, context: CallContext) -> str:
    order = {path: _by_component(path) for path in {line.path for line in found.lines}}
    lines = sorted(found.lines, key=lambda line: (order[line.path], line.number))
    lines = _first(lines, _context(params))
    shown = list(_printed(lines, params, context))
    matches = sum(line.is_match for line in lines)
    if not shown:
        shown = [_nothing(found.searched, root, params, context)]
    elif found.total > matches:
        shown.append(f"[{found.total} matches, showing the first {matches}; narrow with path or include]")
    if params.context > _MOST_CONTEXT:
        shown.append(f"[context is at most {_MOST_CONTEXT}]")
    return "\n".join([*shown, *found.notes])


def _first(lines: list[Line], around_each: int) -> list[Line]:
    """As many as are shown, without lines around a match that is not."""
    matches = 0
    last = 0
    for place, line in enumerate(lines[:_MOST_LINES]):
        if line.is_match:
            matches += 1
            if matches > _SHOWN:
                break
            last = place
    match = lines[last] if lines else None
    tail = (line for line in lines[last + 1 : _MOST_LINES] if not line.is_match)
    kept = [line for line in tail if match and line.path == match.path and line.number <= match.number + around_each]
    return lines[: last + 1] + kept


def _printed(lines: list[Line], params: GrepParams, context: CallContext) -> Iterator[str]:
    """As grep prints them: `path:3: match`, `path-4- line around it`, and `--` where lines are left out."""
    before: Line | None = None
    for line in lines:
        if params.context and before and (before.path, before.number + 1) != (line.path, line.number):
            yield "--"
        before = line
        mark = ":" if line.is_match else "-"
        yield f"{context.relative(line.path)}{mark}{line.number}{mark} {line.text}"


def _nothing(searched: int, root: str, params: GrepParams, context: CallContext) -> str:
    where = context.relative(root) if root != context.cwd else f"the working directory {root}"
    only = f" named {params.include}" if params.include else ""
    hint = "; grep looks at one line at a time" if "\\n" in params.pattern else ""
    if "\\|" in params.pattern:
        hint += "; alternation is |; \\| is a literal bar"
    files = f"{searched} file{'' if searched == 1 else 's'}"
    return f"No matches for {params.pattern}: searched {files}{only} in {where}{hint}"
