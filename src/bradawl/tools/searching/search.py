"""The query and the result of a search in files."""

from collections.abc import Callable
from typing import Literal

import msgspec

from bradawl.core.errors import ToolError
from bradawl.tools.searching.patterns import compile_glob

OutputMode = Literal["content", "files", "count"]
MOST_LINES = 500
"""Most lines to show, matches and context together."""
MOST_CONTEXT = 20
LONGEST_TEXT = 500
"""Most characters of a line to show."""
DEFAULT_LIMIT = 200
_EXCESS = 5
"""A search whose matches exceed the default limit by a fifth or less shows them all."""


_SAMPLE = 60
"""Of more matches than the default limit so many are shown: the query is too wide, and more of them say no more."""


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
        return max(MOST_LINES, self.limit)

    @property
    def sample(self) -> int:
        """How many matches to show of too many."""
        return _SAMPLE if self.limit == DEFAULT_LIMIT and self.output_mode == "content" else self.limit

    def most_matches(self, total: int) -> int:
        """How many of the matches to show."""
        excess = self.limit // _EXCESS if self.limit == DEFAULT_LIMIT else 0
        return total if total <= self.limit + excess else self.sample

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

    number: int
    text: str
    is_match: bool = True
    matches: int = 1
    """Number of matches that begin in it; 0 for a line of the context or inside a match."""
    is_definition: bool = False
    """It looks as if it defines what was searched."""


class SearchResult(msgspec.Struct, frozen=True):
    """The result of a search."""

    lines: dict[str, list[Line]]
    """Lines by file; if there are very many matches only lines of the most relevant files."""
    counts: dict[str, int]
    """Matches of each file."""
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
