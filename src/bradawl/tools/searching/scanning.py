"""Searches without ripgrep: files are listed by the workspace and searched by `scan.py`, in processes of their own."""

import asyncio
import base64
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import Command, CommandResult
from bradawl.tools.searching.file_types import is_named
from bradawl.tools.searching.search import Found, Line, Query, by_component, too_slow

_WALK_LIMIT = 200_000
_LARGEST_FILE = 50_000_000
_ARGUMENTS_BYTES = 400_000
_AT_ONCE = 4
_OUTPUT_LIMIT = 8_000_000
_SCAN = str(Path(__file__).with_name("scan.py"))
_BAD_PATTERN = 3  # exit code of that program


async def search(query: Query, names: tuple[str, ...], context: CallContext) -> Found:
    """The search; `names` are patterns one of which a file's name must match, if there are any. Raises `ToolError`."""
    entries, is_cut = await context.files.list(query.root, _WALK_LIMIT)
    notes = (f"[only the first {_WALK_LIMIT:,} files were searched; give a deeper path]",) if is_cut else ()
    entries = tuple(entry for entry in entries if query.includes(entry.path))
    if names and not query.is_file:
        entries = tuple(entry for entry in entries if is_named(names, entry.path))
    small = sorted((entry.path for entry in entries if entry.size <= _LARGEST_FILE), key=by_component)
    if len(small) < len(entries):
        notes = (f"[{len(entries) - len(small)} files larger than 50 MB were not searched]", *notes)
    results = await _all_batches(small, query, context)
    total = sum(_total(result, query) for result in results)
    if query.output_mode == "content":
        lines: list[Line] = []
        for result in results:
            lines += _lines(result) if len(lines) <= query.most_lines else ()
        return Found(lines, {}, 0, total, len(small), notes)
    counts = [each for result in results for each in _counts(result)]
    return Found([], dict(counts[: query.limit]), len(counts), total, len(small), notes)


async def _all_batches(paths: list[str], query: Query, context: CallContext) -> list[CommandResult]:
    """What the program printed of each batch, in order; several run at once."""
    deadline = time.monotonic() + query.timeout_s
    at_once = asyncio.Semaphore(min(os.cpu_count() or 1, _AT_ONCE))

    async def run(batch: list[str]) -> CommandResult | ToolError:
        async with at_once:
            return await _run(batch, query, context, max(deadline - time.monotonic(), 0.1))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(batch)) for batch in _batches(paths)]
    results: list[CommandResult] = []
    for task in tasks:
        if isinstance(result := task.result(), ToolError):
            raise result
        results.append(result)
    return results


async def _run(batch: list[str], query: Query, context: CallContext, timeout_s: float) -> CommandResult | ToolError:
    mode = "lines" if query.output_mode == "content" else "count"
    if query.is_multiline:
        mode = "multiline" if query.output_mode == "content" else "multiline-count"
    options = (query.pattern, mode, str(query.context), str(query.most_lines + 1))
    argv = (sys.executable, "-I", "-S", "-B", _SCAN, *options, *batch)
    command = Command(
        argv, "/", timeout_s=timeout_s, output_limit_bytes=_OUTPUT_LIMIT, is_helper=True, unmoved=tuple(batch)
    )
    try:
        result = await context.processes.run(command, context.grant)
    except ToolError as error:
        return error
    return too_slow(query.timeout_s) if result.exit_code is None else result


def _total(result: CommandResult, query: Query) -> int:
    """How many matched, from the last line. Raises `ToolError` when the search failed."""
    said = result.stderr.decode("utf-8", "replace").strip()
    if result.exit_code == _BAD_PATTERN:
        raise ToolError(
            f"pattern {query.pattern} is not a regular expression: {said}. "
            "Put a backslash before ( ) [ ] { } . * + ? | to search for the character itself"
        )
    last = result.stdout.rstrip(b"\n").rpartition(b"\n")[2]
    if result.exit_code != 0 or not last.isdigit():
        reason = said.partition("\n")[0] or "it said nothing"
        raise ToolError(f"the search failed: {reason}; use bash (grep -rn)")
    return int(last)


def _counts(result: CommandResult) -> list[tuple[str, int]]:
    records = (line.split(b"\0") for line in result.stdout.split(b"\n")[:-2])
    return [(os.fsdecode(base64.b64decode(name)), int(count)) for name, count in records]


def _lines(result: CommandResult) -> Iterator[Line]:
    for record in result.stdout.split(b"\n")[:-2]:
        path, number, matches, text = record.split(b"\0", 3)
        count = 0 if matches == b"-" else int(matches)
        shown = text.decode("utf-8", "replace")
        yield Line(os.fsdecode(base64.b64decode(path)), int(number), shown, matches != b"-", count)


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
