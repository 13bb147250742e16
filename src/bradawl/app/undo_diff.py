"""Shows changes of files as text: unified diffs, and counts where a diff would be too long or a file is binary."""

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from bradawl.app.git_files import read_whole
from bradawl.checkpoints.record import Change, FileState
from bradawl.core.errors import BradawlError
from bradawl.safety.control_characters import clean, escape

if TYPE_CHECKING:
    from bradawl.checkpoints.store import ContentStore

Compare = Callable[[str, str], tuple[int, int, str]]
"""Compares two texts: lines added, lines removed, and the hunks of a unified diff of limited length."""
_MOST_LINES: Final = 300
"""Lines of all diffs; the files after them are only named."""
_MOST_NAMED: Final = 40
_LARGEST_BYTES: Final = 1_000_000


def shown_path(path: bytes, root: str) -> str:
    """A path for users: relative to the project, with invisible characters and bytes that are not UTF-8 escaped."""
    name = path.decode("utf-8", "backslashreplace")
    prefix = root.rstrip("/") + "/"
    return escape(name.removeprefix(prefix)).replace("\n", "\\n")


def diff_text(changes: Sequence[Change], store: "ContentStore", root: str, compare: Compare) -> str:
    """The changes as one text, at most about 300 lines and the last file; empty for none.

    Contents are read from the store, or from the files as they are now if those are the same.
    """
    lines: list[str] = []
    for count, change in enumerate(changes):
        if len(lines) > _MOST_LINES:
            lines += _named(changes[count:], root)
            break
        lines += _lines_of(change, store, root, compare)
    return "\n".join(lines)


def _named(changes: Sequence[Change], root: str) -> list[str]:
    names = [f"  {shown_path(change.path, root)}: {kind_of(change)}" for change in changes[:_MOST_NAMED]]
    more = len(changes) - len(names)
    return [f"{len(changes)} more files:", *names, *([f"  ... and {more} more"] if more else [])]


def kind_of(change: Change) -> str:
    """What kind of change it is, in a few words."""
    before, after = change.before, change.after
    if before is None or after is None:
        state = after or before
        verb = "new" if before is None else "removed"
        return verb if state is None or state.kind == "file" else f"{verb} {state.kind}"
    if before.kind != after.kind:
        return f"was a {before.kind}, is a {after.kind}"
    if (before.content, before.size, before.target) == (after.content, after.size, after.target):
        return "replaced" if before.mode == after.mode else f"mode {before.mode:04o} -> {after.mode:04o}"
    mode = f", mode {before.mode:04o} -> {after.mode:04o}" if before.mode != after.mode else ""
    return f"changed{mode}"


def _lines_of(change: Change, store: "ContentStore", root: str, compare: Compare) -> list[str]:
    title = f"{shown_path(change.path, root)}: {kind_of(change)}"
    links = _targets(change)
    if links:
        return [title, *links]
    if "file" not in (_kind(change.before), _kind(change.after)) or _same_content(change):
        return [title]
    before, after = content_of(change.path, change.before, store), content_of(change.path, change.after, store)
    if before is None or after is None:
        return [f"{title} ({_sizes(change)}; the content is not available)"]
    texts = text_in(before), text_in(after)
    if texts[0] is None or texts[1] is None:
        return [f"{title} (binary, {_sizes(change)})"]
    added, removed, hunks = compare(texts[0], texts[1])
    return [f"{title} (+{added} -{removed})", *clean(hunks).splitlines()]


def _kind(state: FileState | None) -> str:
    return "" if state is None else state.kind


def _same_content(change: Change) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and before.content == after.content != ""


def _targets(change: Change) -> list[str]:
    lines = []
    if change.before is not None and change.before.kind == "link":
        lines.append(f"-link to {shown_path(change.before.target, '')}")
    if change.after is not None and change.after.kind == "link":
        lines.append(f"+link to {shown_path(change.after.target, '')}")
    return lines


def _sizes(change: Change) -> str:
    sizes = [f"{state.size:,}" for state in (change.before, change.after) if state is not None]
    return f"{' -> '.join(sizes)} bytes"


def content_of(path: bytes, state: FileState | None, store: "ContentStore") -> bytes | None:
    """The content of a file in this state; empty for a missing file, None if it is not available or too large."""
    if state is None or state.kind != "file":
        return b""
    if state.size > _LARGEST_BYTES:
        return None
    try:
        if state.content and store.has(state.content):
            return store.read(state.content)
    except BradawlError:
        return None
    data = read_whole(os.fsdecode(path), _LARGEST_BYTES)
    return data if data is not None and hashlib.sha256(data).hexdigest() == state.content else None


def text_in(data: bytes) -> str | None:
    """The content as text; None if it is binary."""
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
