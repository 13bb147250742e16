"""Checks before a change: the model knows the content that the change applies to, and the path was allowed."""

from collections.abc import Sequence

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.ports import CallContext
from bradawl.core.workspace import FileContent
from bradawl.tools.editing.diffs import Difference, change_between, equal_blocks
from bradawl.tools.editing.matching import find_exactly, line_number
from bradawl.tools.editing.plan import Change
from bradawl.tools.editing.seen_lines import is_whole, lines_of, part_after, seen_of
from bradawl.tools.reading.decoding import Encoding, encoding_of


def check_unchanged(content: FileContent, context: CallContext) -> None:
    """Raises `ToolError` if the model has seen the file, but not with this content; the error shows what changed. If it
    shows all of it, the content counts as seen.
    """
    if context.seen.sha256(content.path) is None or context.seen.parts(content):
        return
    shown = context.relative(content.path)
    before = context.seen.data(content.path)
    start = f"{shown} has changed since you last saw it; nothing was written."
    if before is None:
        raise ToolError(f"{start} read_file it again, then repeat the change on what it is now")
    try:
        change = _change(before, content.data, shown)
    except ToolError:
        raise ToolError(f"{start} It is not text any more; examine it with bash") from None
    changes = change.text or "(only its line ends, its mark or its encoding)"
    if not change.is_whole:
        raise ToolError(
            f"{start} What changed:\n{changes}\nread_file it again, then repeat the change on what it is now"
        )
    context.seen.saw(content, _part_with_change(before, content, context, is_shown=True))
    raise ToolError(f"{start} What changed:\n{changes}\nRepeat the change if it still fits, or adapt it to this")


class Known(msgspec.Struct, frozen=True):
    """What the model knows of a file's content when its edits are made."""

    parts: frozenset[str] = frozenset()
    """Names of the parts it has seen; none for a file it has not seen."""
    elsewhere: str = ""
    """For the result: what changed in other lines since it saw the file; the parts hold with this text only."""


def known_for(edits: Sequence[Change], content: FileContent, context: CallContext) -> Known:
    """What the model knows of the content. Raises `ToolError` as `check_unchanged` does if the content has changed,
    unless all edits match exactly, in lines that are as the model saw them.
    """
    if context.seen.sha256(content.path) is None or context.seen.parts(content):
        return Known(context.seen.parts(content))
    before, shown = context.seen.data(content.path), context.relative(content.path)
    if before is None or not _are_apart(before, content.data, edits, shown):
        check_unchanged(content, context)
        return Known()
    change = _change(before, content.data, shown)
    rest = "" if change.is_whole else "\n(read_file shows the rest)"
    return Known(
        frozenset([_part_with_change(before, content, context, is_shown=change.is_whole)]),
        f"{shown} has also changed elsewhere since you last saw it, and keeps that:\n{change.text}{rest}",
    )


def check_all_seen(content: FileContent, context: CallContext) -> None:
    """Raises `ToolError` if the model has seen only some lines of the content: to replace it would lose the others."""
    parts = context.seen.parts(content)
    lines = lines_of(content.data, content.path)
    unseen = [] if is_whole(parts) else sorted({*range(1, len(lines) + 1)} - seen_of(parts))
    if unseen:
        shown, count = context.relative(content.path), len(lines) - len(unseen)
        what = f"{count:,} of {len(lines):,} lines" if count else f"parts of {len(lines):,} lines"
        raise ToolError(
            f"you have seen {what} of {shown}; nothing was written. read_file the rest (from offset={unseen[0]}) "
            "before you overwrite it, or change parts of it with edit_file"
        )


def _change(before: bytes, after: bytes, shown: str) -> Difference:
    return change_between(*(encoding_of(data, shown).decode(data) for data in (before, after)))


def _part_with_change(before: bytes, content: FileContent, context: CallContext, *, is_shown: bool) -> str:
    last = FileContent(content.path, before, context.seen.sha256(content.path) or "")
    lines = (lines_of(data, content.path) for data in (before, content.data))
    return part_after(context.seen.parts(last), *lines, is_shown=is_shown)


def _are_apart(before: bytes, after: bytes, edits: Sequence[Change], shown: str) -> bool:
    """Whether each edit matches exactly what it matched before, in lines that did not change."""
    try:
        old, new = (encoding_of(data, shown) for data in (before, after))
    except ToolError:
        return False
    blocks = equal_blocks(lines_of(before, shown), lines_of(after, shown))
    kept = [range(j, j + size + 1) for _, j, size in blocks]

    def is_apart(edit: Change) -> bool:
        spans = _spans(after, edit, new)
        if not spans or len(spans) != len(_spans(before, edit, old)) or (len(spans) > 1 and not edit.replace_all):
            return False
        return old == new and all(any(first in each and last in each for each in kept) for first, last in spans)

    return all(map(is_apart, edits))


def _spans(data: bytes, edit: Change, encoding: Encoding) -> list[tuple[int, int]]:
    """The exact matches: for each the number of lines before it, and of those up to its end."""
    matches = find_exactly(data, edit.old, encoding) if edit.old else ()
    firsts = [line_number(data, match, encoding) - 1 for match in matches]
    count = edit.old.removesuffix("\n").count("\n") + 1
    return [(first, first + count) for first in firsts]


def allowed_path(given: str, context: CallContext) -> str:
    """The path that `given` resolves to. Raises `ToolError` if the call was not allowed to write it."""
    path = context.resolve(given)
    granted = context.grant.writable if context.grant is not None else ()
    if granted and not any(path == place or path.startswith(place.rstrip("/") + "/") for place in granted):
        raise ToolError(
            f"{given} leads to {path} now, which is not where it led when the call was allowed; nothing was written"
        )
    return path
