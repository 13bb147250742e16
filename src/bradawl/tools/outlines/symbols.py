"""Finds the definitions in the content of a file, whatever its language."""

from bradawl.core.errors import ToolError
from bradawl.tools.outlines.symbol import Symbol
from bradawl.tools.reading.decoding import encoding_of

MOST_BYTES = 4_000_000
"""Largest file whose symbols are searched. It bounds the time, to about a second."""


def symbols_in(data: bytes, path: str) -> tuple[Symbol, ...] | None:
    """The symbols of a file's content in the order of their first lines, an outer one before those in it.

    None for a file that is not text, is larger than `MOST_BYTES`, or is of a language that needs a parser; `path`
    decides the language. Takes about 0.2 s for 1 MB, and survives syntax errors.
    """
    if len(data) > MOST_BYTES or not path.endswith((".py", ".pyi", ".pyw")):
        return None
    try:
        text = encoding_of(data, path).decode(data)
    except ToolError:
        return None
    from bradawl.tools.outlines.python_code import python_symbols

    return python_symbols(text)
