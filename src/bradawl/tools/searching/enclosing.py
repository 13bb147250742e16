"""Finds the definitions around the matches of a search, for results with few matches."""

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.searching.search import SearchResult

_MOST_MATCHES = 40
"""A name and its lines cost about 35 bytes a match. For few matches that is less than the read it may save."""
_MOST_FILES = 8
_MOST_BYTES = 400_000
"""Bytes of all files together; bounds the time, to about 0.1 s."""


async def symbols_around(found: SearchResult, context: CallContext) -> dict[str, tuple[Symbol, ...]]:
    """The symbols of each file with matches; none for many matches, for large files and for unknown languages."""
    if found.total > _MOST_MATCHES or len(found.lines) > _MOST_FILES:
        return {}
    from bradawl.tools.outlines.symbols import symbols_in

    symbols: dict[str, tuple[Symbol, ...]] = {}
    left = _MOST_BYTES
    for path in sorted(found.lines):
        if symbols_in(b"", path) is None:
            continue
        try:
            data = (await context.files.read(path, left)).data
        except ToolError:  # larger, or changed since the search
            continue
        left -= len(data)
        symbols[path] = symbols_in(data, path) or ()
    return symbols
