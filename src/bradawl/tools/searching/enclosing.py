"""Finds the definitions around the matches of a search, for results with few matches."""

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.searching.search import SearchResult

_MOST_MATCHES = 40
"""A name and its lines cost about 35 bytes a match. For few matches that is less than the read it may save."""
_MOST_FILES = 8
_MOST_PROGRAMS = 3
_MOST_MATCHES_PARSED = 20
"""Of languages other than Python each file costs the start of a program."""
_MOST_BYTES = 400_000
"""Bytes of all files together; bounds the time, to about 0.1 s."""


async def symbols_around(found: SearchResult, context: CallContext) -> dict[str, tuple[Symbol, ...]]:
    """The symbols of each file with matches; none for many matches, for large files and for unknown languages."""
    if found.total > _MOST_MATCHES or len(found.lines) > _MOST_FILES:
        return {}
    from bradawl.tools.outlines.languages import language_of, symbols_of
    from bradawl.tools.outlines.symbols import symbols_in

    symbols: dict[str, tuple[Symbol, ...]] = {}
    left = _MOST_BYTES
    programs = _MOST_PROGRAMS if found.total <= _MOST_MATCHES_PARSED else 0
    for path in sorted(found.lines):
        if symbols_in(b"", path) is None:
            if not programs or language_of(path) is None:
                continue
            programs -= 1
        try:
            content = await context.files.read(path, left)
        except ToolError:  # larger, or changed since the search
            continue
        left -= len(content.data)
        symbols[path] = await symbols_of(content, context) or ()
    return symbols
