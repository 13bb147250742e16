"""Searches with ripgrep, 13 or newer.

ripgrep uses several threads and prints files in random order, so the output is collected and sorted here. If it is too
large, a second run counts the matches of each file, a third finds the files that define the name that was searched, and
a fourth prints lines of the most relevant files. The result is therefore always the same, with a known total.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import msgspec

from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command, CommandResult
from bradawl.tools.searching.errors import failure
from bradawl.tools.searching.relevance import definition_pattern, is_definition, ranked, shares
from bradawl.tools.searching.search import LONGEST_TEXT, Line, Query, SearchResult, around, too_slow

_WALK_LIMIT = 200_000
_MUCH = 1_000_000
_MOST = 32_000_000
_POLL_S = 0.02
_RULES = (
    "--no-config",
    "--hidden",
    "--glob=!.git",
    "--glob=!.bradawl-*.tmp",
    "--no-require-git",
    "--no-ignore-dot",
    "--no-ignore-global",
    "--no-ignore-messages",
)
_SEARCH = ("--no-mmap", "--crlf", "--engine=auto")
_SIMPLE_NAME = re.compile(r"[\w.*-]+(?:\{[\w.,-]+\})?")
_BEGIN, _END, _MATCH = (b'{"type":"%s"' % kind for kind in (b"begin", b"end", b"match"))
_COUNTED = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
_SEARCHED = re.compile(rb"^(\d+) files searched\r?$", re.MULTILINE)


class Ripgrep(msgspec.Struct, frozen=True):
    """The program and its working directory, to which the patterns of an ignore file are relative."""

    program: str
    root: str
    is_file: bool
    ignore_file: str | None

    def argv(self, *options: str, files: Iterable[str] = ()) -> tuple[str, ...]:
        """The command line to search below the root, or only in some files there."""
        own = (f"--ignore-file={self.ignore_file}",) if self.ignore_file else ()
        return (self.program, *_RULES, *own, *options, "--", *(files or (self.relative(self.root),)))

    @property
    def cwd(self) -> str:
        """The working directory: above all searched files, so that relative paths can name them."""
        above = self.ignore_file or (self.root if self.is_file else None)
        return str(PurePosixPath(above).parent) if above else self.root

    def relative(self, path: str) -> str:
        """The path relative to the working directory, for the command line."""
        return "./" + path[len(self.cwd.rstrip("/")) + 1 :]

    def absolute(self, path: str) -> str:
        """The absolute path of a path that ripgrep printed."""
        return f"{self.cwd.rstrip('/')}/{path.removeprefix('./')}"


def named(pattern: str) -> tuple[str, ...]:
    """Options that select files by name; empty if ripgrep might interpret the pattern differently."""
    names = [pattern] if "{" in pattern else pattern.split(",")
    if not pattern or not all(map(_SIMPLE_NAME.fullmatch, names)):
        return ()
    # A type, not --glob, which would include ignored files.
    return (*(f"--type-add=only:{name}" for name in names), "--type=only")


async def search(rg: Ripgrep, query: Query, context: CallContext) -> SearchResult:
    """Run the search. Raises `ToolError`, also for a pattern or a type that ripgrep does not understand."""
    if query.output_mode != "content":
        return await _count(rg, query, context)
    argv = rg.argv("--json", *_options(query), *_around(query))
    result, is_whole = await _run(rg, argv, query, context, _MUCH)
    if is_whole:
        return await _all(result, rg, query, context)
    return await _some(await _count(rg, query, context), rg, query, context)


def _options(query: Query) -> tuple[str, ...]:
    typed = _typed(query)
    by_name = () if typed else named(query.include)  # ripgrep would combine two types with `or`
    spanning = ("--multiline", "--multiline-dotall") if query.is_multiline else ()
    return (*_SEARCH, *typed, *by_name, *spanning, f"--regexp={query.pattern}")


def _typed(query: Query) -> tuple[str, ...]:
    return (f"--type={query.file_type}",) if query.file_type else ()


def _around(query: Query) -> tuple[str, ...]:
    return (f"--context={query.context}",) if query.context else ()


async def _run(
    rg: Ripgrep, argv: tuple[str, ...], query: Query, context: CallContext, most: int, files: Iterable[str] = ()
) -> tuple[CommandResult, bool]:
    """The output, and whether it is complete; a process that prints too much is ended."""
    printed = 0

    def count(data: bytes) -> None:
        nonlocal printed
        printed += len(data)

    unmoved = (rg.root, *map(rg.absolute, files))
    command = Command(
        argv, rg.cwd, timeout_s=query.timeout_s, output_limit_bytes=2 * most, is_helper=True, unmoved=unmoved
    )
    process = await context.processes.start(command, context.grant, count)
    polls = int(query.timeout_s / _POLL_S) + 1
    try:
        while not (has_ended := await process.wait(_POLL_S)) and printed <= most and polls:
            polls -= 1
    finally:
        await process.end()
    if not has_ended and not polls:
        raise too_slow(query.timeout_s)
    return process.result(), has_ended and printed <= most


async def _all(result: CommandResult, rg: Ripgrep, query: Query, context: CallContext) -> SearchResult:
    before, _, last = result.stdout.rstrip(b"\n").rpartition(b"\n")
    if b'"type":"summary"' not in last:
        raise await failure(result, rg.program, query, context)
    groups = _groups(before, rg, query)
    searches = msgspec.json.decode(last, type=_Message).data.stats.searches
    searched = searches if groups else await _searched(searches, rg, query, context)
    counts = {group.path: _matches_in(group, query) for group in groups}
    return SearchResult(_lines(groups, query), counts, sum(counts.values()), searched, _notes(result))


async def _searched(searches: int, rg: Ripgrep, query: Query, context: CallContext) -> int:
    """Number of searched files; counted if ripgrep's number includes other files or is missing (13 has none in
    JSON).
    """
    is_exact = not query.include or query.is_file or (named(query.include) and not query.file_type)
    if searches and is_exact and not context.rules:
        return searches
    if query.file_type:
        listed, _ = await _run(rg, rg.argv("--files", "--null", *_typed(query)), query, context, _MOST)
        paths = [rg.absolute(os.fsdecode(path)) for path in listed.stdout.split(b"\0")[:-1]]
    else:
        entries, _ = await context.files.list(query.root, _WALK_LIMIT)
        paths = [entry.path for entry in entries]
    return sum(map(query.includes, paths))


async def _count(rg: Ripgrep, query: Query, context: CallContext) -> SearchResult:
    what = "--count-matches" if query.is_multiline else "--count"
    argv = rg.argv(what, "--null", "--with-filename", "--stats", *_options(query))
    result, is_whole = await _run(rg, argv, query, context, _MOST)
    searched = _SEARCHED.search(result.stdout[-1_000:])
    if is_whole and searched is None:
        raise await failure(result, rg.program, query, context)
    printed: list[tuple[bytes, bytes]] = _COUNTED.findall(result.stdout)
    counted = ((rg.absolute(os.fsdecode(name)), int(count)) for name, count in printed)
    counts = {path: count for path, count in counted if query.includes(path)}
    return SearchResult(
        lines={},
        counts=counts,
        total=sum(counts.values()),
        searched=0 if counts or searched is None else await _searched(int(searched[1]), rg, query, context),
        notes=_notes(result),
        is_partial=not is_whole,
    )


async def _some(counted: SearchResult, rg: Ripgrep, query: Query, context: CallContext) -> SearchResult:
    """Lines of the most relevant files, as many as are shown."""
    defining = await _defining(rg, query, context)
    given = shares(ranked(counted.counts, defining, query.root), counted.counts, query.sample)
    files = [rg.relative(path) for path in given]
    most = max(given.values(), default=1)
    options = ("--json", "--sort=path", f"--max-count={most}", *_options(query), *_around(query))
    result, is_whole = await _run(rg, rg.argv(*options, files=files), query, context, _MOST, files)
    printed = result.stdout if is_whole else result.stdout[: result.stdout.rfind(b"\n", 0, _MOST) + 1]
    return msgspec.structs.replace(counted, lines=_lines(_groups(printed, rg, query), query))


async def _defining(rg: Ripgrep, query: Query, context: CallContext) -> set[str]:
    """Files that define the searched name; none if the pattern is more than a name."""
    pattern = definition_pattern(query.pattern)
    if pattern is None or query.is_file:
        return set()
    argv = rg.argv("--files-with-matches", "--null", *_options(msgspec.structs.replace(query, pattern=pattern)))
    result, _ = await _run(rg, argv, query, context, _MUCH)
    return {rg.absolute(os.fsdecode(name)) for name in result.stdout.split(b"\0")[:-1]}


def _notes(result: CommandResult) -> tuple[str, ...]:
    said = result.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return (f"[not everything could be read: {said}]",) if said else ()


class _Bytes(msgspec.Struct):
    text: str = ""
    raw: bytes = msgspec.field(default=b"", name="bytes")

    def data(self) -> bytes:
        return self.raw or self.text.encode()


class _Span(msgspec.Struct):
    """A range of bytes that matched."""

    start: int
    end: int


class _Stats(msgspec.Struct):
    searches: int = 0


class _Data(msgspec.Struct):
    path: _Bytes = msgspec.field(default_factory=_Bytes)
    lines: _Bytes = msgspec.field(default_factory=_Bytes)
    line_number: int = 0
    submatches: msgspec.Raw = msgspec.Raw(b"[]")
    """Decoded only when needed: there may be many."""
    binary_offset: int | None = None
    stats: _Stats = msgspec.field(default_factory=_Stats)

    def spans(self) -> tuple[_Span, ...]:
        return msgspec.json.decode(self.submatches, type=tuple[_Span, ...])


class _Message(msgspec.Struct):
    """One line of ripgrep's JSON output."""

    type: str
    data: _Data


class _Group(msgspec.Struct, frozen=True):
    """The output for one file, not decoded, because most of it is not shown."""

    path: str
    messages: list[bytes]


def _groups(output: bytes, rg: Ripgrep, query: Query) -> list[_Group]:
    """The files, without binary files and files the query excludes."""
    groups: list[_Group] = []
    messages: list[bytes] = []
    for line in output.split(b"\n"):
        if not line.startswith((_BEGIN, _END)):
            messages.append(line)
        elif line.startswith(_END):
            data = msgspec.json.decode(line, type=_Message).data
            path = rg.absolute(data.path.text or os.fsdecode(data.path.raw))
            if data.binary_offset is None and query.includes(path):
                groups.append(_Group(path, messages))
            messages = []
    return groups


def _matches_in(group: _Group, query: Query) -> int:
    found = [message for message in group.messages if message.startswith(_MATCH)]
    if not query.is_multiline:
        return len(found)
    return sum(len(msgspec.json.decode(message, type=_Message).data.spans()) for message in found)


def _lines(groups: list[_Group], query: Query) -> dict[str, list[Line]]:
    """The lines of each file."""
    decoder = msgspec.json.Decoder(_Message)
    return {
        group.path: [line for message in group.messages for line in _lines_of(decoder.decode(message), query)]
        for group in groups
    }


def _lines_of(message: _Message, query: Query) -> Iterator[Line]:
    data = message.data
    is_match = message.type == "match"
    spans = data.spans() if is_match else ()
    if not query.is_multiline:
        is_defining = any(is_definition(data.lines.data(), span.start, span.end) for span in spans[:1])
        yield Line(data.line_number, _line_text(data), is_match, int(is_match), is_defining)
        return
    place = 0
    for number, line in enumerate(data.lines.data().removesuffix(b"\n").split(b"\n")[: query.most_lines + 1]):
        end = place + len(line) + 1
        text, _ = _decoded(line.removesuffix(b"\r"))
        count = sum(place <= span.start < end for span in spans)
        yield Line(data.line_number + number, around(text, 0, 0), is_match, count)
        place = end


def _line_text(data: _Data) -> str:
    text, codec = _decoded(data.lines.data())
    text = text.removesuffix("\n").removesuffix("\r")
    if len(text) <= LONGEST_TEXT:
        return text
    spans = data.spans()
    span = spans[0] if spans else _Span(0, 0)
    raw = data.lines.data()
    start, end = (len(raw[:place].decode(codec, "replace")) for place in (span.start, span.end))
    return around(text, start, end)


def _decoded(data: bytes) -> tuple[str, str]:
    """The text of a line and its encoding. Like `read_file`, what is not UTF-8 is shown as Latin-1."""
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"
