"""The query and the result of a search in files, and the text that shows the result to the model."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.tools.reading.path_errors import on_one_line
from bradawl.tools.searching.patterns import compile_glob

OutputMode = Literal["content", "files", "count"]
MOST_LINES = 500
"""Most lines to show, matches and context together."""
MOST_CONTEXT = 20
LONGEST_TEXT = 500
"""Most characters of a line to show."""
_MOST_CHARACTERS = 50_000
_MOST_OF_PATTERN = 500


def _leaves_nothing_out(_: str) -> bool:
    return False


class Query(msgspec.Struct, frozen=True):
    """A search."""

    pattern: str
    root: str
    """Absolute; a folder or a file."""
    is_file: bool
    output_mode: OutputMode
    limit: int
    """Most matches, or files, to show."""
    context: int
    """Lines to show before and after each match."""
    is_multiline: bool
    include: str
    file_type: str
    timeout_s: float
    leaves_out: Callable[[str], bool] = _leaves_nothing_out
    """True for the path of a file whose lines are not shown."""

    @property
    def most_lines(self) -> int:
        """Most lines that may be shown."""
        return max(MOST_LINES, self.limit) if self.context or self.is_multiline else self.limit

    def includes(self, path: str) -> bool:
        """Whether the query includes a file, by its name or, for a pattern with a slash, by its path."""
        if path == self.root:
            return True
        return not self.leaves_out(path) and (not self.include or is_included(self.include, self.root, path))


def around(line: str, start: int, end: int) -> str:
    """The text to show of a line: of a long one at most `LONGEST_TEXT` characters around the match from `start` to
    `end`.
    """
    if len(line) <= LONGEST_TEXT:
        return line
    first = start - max(LONGEST_TEXT - (end - start), 0) // 2
    first = max(min(first, len(line) - LONGEST_TEXT), 0)
    last = first + LONGEST_TEXT
    return f"{'...' if first else ''}{line[first:last]}{'...' if last < len(line) else ''}"


class Line(msgspec.Struct, frozen=True):
    """A line that matched, or a line of its context."""

    path: str
    number: int
    text: str
    is_match: bool = True
    matches: int = 1
    """Number of matches that begin in it; 0 for a line of the context or inside a match."""


class SearchResult(msgspec.Struct, frozen=True):
    """The result of a search."""

    lines: list[Line]
    counts: dict[str, int]
    """Matches per shown file, in order, for the modes without lines."""
    files: int
    """Files with matches."""
    total: int
    """Number of matches; without `is_multiline` of matching lines."""
    searched: int
    """Number of searched files; known if nothing was found."""
    notes: tuple[str, ...] = ()
    is_partial: bool = False
    """There may be more matches than `total`."""


def is_included(include: str, root: str, path: str) -> bool:
    """Whether a path matches a pattern for names. Raises `re.error`."""
    pattern = f"{{{include}}}" if "," in include and "{" not in include else include
    if "/" not in pattern:
        return bool(compile_glob(pattern).match(path.rpartition("/")[2]))
    if pattern.startswith("/"):
        return bool(compile_glob(pattern).match(path))
    below = path[len(root.rstrip("/")) + 1 :]
    return bool(compile_glob("**/" + pattern.removeprefix("./")).match(below))


def by_component(path: str) -> str:
    """Sort key of a path that keeps the files of a folder together."""
    return path.replace("/", "\0")


def too_slow(timeout_s: float) -> ToolError:
    """The error for a search that took too long."""
    return ToolError(
        f"the search took more than {timeout_s:.0f} s and was ended; give a deeper path or an include, "
        "or a pattern without nested repetition"
    )


def shown(found: SearchResult, query: Query, where: str, context: CallContext) -> str:
    """The result as text for the model; `where` names the searched place."""
    if not found.total:
        text = [_nothing(found.searched, query, where)]
    elif query.output_mode == "content":
        text = list(_content(found, query, context))
    else:
        text = list(_files(found, query, context))
    return "\n".join([*text, *found.notes])


def _files(found: SearchResult, query: Query, context: CallContext) -> Iterator[str]:
    lines = (_file(path, count, query, context) for path, count in found.counts.items())
    listed = list(_within(lines, _MOST_CHARACTERS))
    yield from listed
    rest = f", showing the first {len(listed)}; narrow with path or include" if len(listed) < found.files else ""
    more = "more than " if found.is_partial else ""
    yield f"[{more}{_number(found.total, 'match', 'matches')} in {_number(found.files, 'file', 'files')}{rest}]"


def _file(path: str, count: int, query: Query, context: CallContext) -> str:
    name = on_one_line(context.relative(path))
    return name if query.output_mode == "files" else f"{name}: {count}"


def _within(lines: Iterable[str], most: int) -> Iterator[str]:
    for line in lines:
        most -= len(line) + 1
        if most < 0:
            return
        yield line


def _content(found: SearchResult, query: Query, context: CallContext) -> Iterator[str]:
    order = {path: by_component(path) for path in {line.path for line in found.lines}}
    lines = sorted(found.lines, key=lambda line: (order[line.path], line.number))
    lines = _first(_that_fit(lines), query)
    yield from _printed(lines, query, context)
    count = sum(line.matches for line in lines)
    if found.is_partial:
        yield f"[more than {found.total} matches, showing the first {count}; narrow with path or include]"
    elif found.total > count:
        yield f"[{found.total} matches, showing the first {count}; narrow with path or include]"


def _that_fit(lines: list[Line]) -> list[Line]:
    room = _MOST_CHARACTERS
    for place, line in enumerate(lines):
        room -= len(line.path) + len(line.text) + 10
        if room < 0 and place:
            return lines[:place]
    return lines


def _first(lines: list[Line], query: Query) -> list[Line]:
    """The lines to show, without lines around matches that are not shown."""
    matches = last = 0
    for place, line in enumerate(lines[: query.most_lines]):
        if line.is_match:
            matches += line.matches
            if matches > query.limit and line.matches and matches > line.matches:
                break
            last = place
    match = lines[last] if lines else None
    tail = (line for line in lines[last + 1 : query.most_lines] if not line.is_match)
    kept = [line for line in tail if match and line.path == match.path and line.number <= match.number + query.context]
    return lines[: last + 1] + kept


def _printed(lines: list[Line], query: Query, context: CallContext) -> Iterator[str]:
    """The lines in grep's format: `path:3: match`, `path-4- context`, and `--` where lines are left out."""
    names = {path: on_one_line(context.relative(path)) for path in {line.path for line in lines}}
    before: Line | None = None
    for line in lines:
        if query.context and before and (before.path, before.number + 1) != (line.path, line.number):
            yield "--"
        before = line
        mark = ":" if line.is_match else "-"
        yield f"{names[line.path]}{mark}{line.number}{mark} {line.text}"


def _nothing(searched: int, query: Query, where: str) -> str:
    named = f" named {query.include}" if query.include else ""
    typed = f" of type {query.file_type}" if query.file_type else ""
    return (
        f"No matches for {_beginning(query.pattern)}: searched {_number(searched, 'file', 'files')}{named}{typed} "
        f"in {where}{_hint(query)}"
    )


def _beginning(pattern: str) -> str:
    return pattern if len(pattern) <= _MOST_OF_PATTERN else f"{pattern[:_MOST_OF_PATTERN]}..."


def _hint(query: Query) -> str:
    is_split = "\\n" in query.pattern and not query.is_multiline
    hint = "; grep searches one line at a time unless multiline=true" if is_split else ""
    return hint + ("; alternation is |; \\| is a literal bar" if "\\|" in query.pattern else "")


def _number(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
