"""Tells whether the text of an edit is in the file already, so that nothing is left to change."""

from bradawl.core.ports import CallContext
from bradawl.tools.editing.file_text import encodings_of, file_text_of
from bradawl.tools.editing.plan import Change

_READ_LIMIT = 50_000_000
_LEAST_LETTERS = 3


async def is_made(path: str, change: Change, context: CallContext | None) -> bool:
    """Whether the new text stands in the file once, as whole lines, and the old one nowhere.

    A new text that is a part of the old one says nothing. Without a context the file is not read. Raises `ToolError`
    for a file that can't be read.
    """
    old, new = (_lines(text) for text in (change.old, change.new))
    if old == new:
        return True
    if context is None or sum(map(str.isalnum, change.new)) < _LEAST_LETTERS or "\n".join(new) in "\n".join(old):
        return False
    content = await context.files.read(context.resolve(path), _READ_LIMIT)
    text = file_text_of(content.data, encodings_of(content.data, change.old, path)[0]).text
    found = f"\n{text.replace(chr(13), '')}\n"
    return change.old not in found and found.count("\n".join(["", *new, ""])) == 1


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").strip("\n").split("\n")
