"""Changes of files for terminals that draw them: how many lines they add and remove, and the texts before and after."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bradawl.app.symbols import Symbols
from bradawl.app.terminal_user import FileDiff
from bradawl.app.text_layout import cells, pad
from bradawl.app.undo_diff import Compare, content_of, diff_text, kind_of, shown_path, text_in
from bradawl.checkpoints.record import Change, ChangeRecord, FileState
from bradawl.checkpoints.restore_plan import is_git_data

if TYPE_CHECKING:
    from bradawl.app.undo import Undo
    from bradawl.checkpoints.store import ContentStore

Counts = tuple[int, int]
"""Lines added and removed."""
_MOST_BYTES: Final = 8_000_000
"""Of contents that are compared for one list or one difference: a second or two at most."""
_MOST_LISTED: Final = 12
_WIDEST_NAME: Final = 48


class Comparison:
    """Compares the contents of changes; each pair once, and in all up to so many bytes."""

    def __init__(self, store: "ContentStore", root: str, compare: Compare, most_bytes: int = _MOST_BYTES) -> None:
        self._store, self._compare = store, compare
        self.root = root
        self._left = most_bytes
        self._known: dict[tuple[str, str], Counts | None] = {}

    def lines_of(self, change: Change) -> Counts | None:
        """The lines that a change of a file adds and removes; None if that is not known, as for a binary file."""
        key = _content(change.before), _content(change.after)
        if key not in self._known:
            texts = self.texts_of(change)
            self._known[key] = None if texts is None else self._compare(*texts)[:2]
        return self._known[key]

    def texts_of(self, change: Change) -> tuple[str, str] | None:
        """The texts of a file before and after a change; None if it is no text, or too long."""
        states = change.before, change.after
        if not all(each is None or each.kind == "file" for each in states):
            return None
        self._left -= sum(each.size for each in states if each is not None)
        if self._left < 0:
            return None
        before, after = (content_of(change.path, each, self._store) for each in states)
        if before is None or after is None:
            return None
        old, new = text_in(before), text_in(after)
        return None if old is None or new is None else (old, new)

    def drawn(self, changes: Sequence[Change]) -> list[str | FileDiff]:
        """The changes as differences of texts; what can't be drawn has a line that says what it is."""
        shown: list[str | FileDiff] = []
        for change in changes:
            name = shown_path(change.path, self.root)
            texts = self.texts_of(change)
            if self._left < 0:
                shown.append(f"{name}: {kind_of(change)} (so much has changed that this is not compared)")
            elif texts is None or texts[0] == texts[1]:
                shown.append(diff_text([change], self._store, self.root, self._compare))
            else:
                added, removed, _ = self._compare(*texts)
                shown.append(FileDiff(f"{name}: {kind_of(change)} (+{added} -{removed})", name, *texts))
        return shown


def comparison_of(undo: "Undo") -> Comparison:
    """Compares the contents of an undo's changes."""
    return Comparison(undo.store, undo.root, undo.compare)


def _content(state: FileState | None) -> str:
    return "" if state is None else state.content or f"not saved {state.kind} {state.identity}"


class ChangesSince:
    """The changes of a growing number of calls as one, from the latest call back to earlier ones."""

    def __init__(self) -> None:
        self._states: dict[bytes, tuple[FileState | None, FileState | None]] = {}

    def add_earlier(self, record: ChangeRecord) -> None:
        """Add the changes of a call that ended before those that were added."""
        for each in reversed(record.changes):
            after = self._states[each.path][1] if each.path in self._states else each.after
            self._states[each.path] = each.before, after

    @property
    def changes(self) -> list[Change]:
        """The first state before and the last after of each path, where they differ; sorted by path."""
        found = sorted(self._states.items())
        return [Change(path, *states) for path, states in found if states[0] != states[1]]


def changes_at(changes: Sequence[Change], name: str, root: str) -> tuple[Change, ...]:
    """The changes of a file, or of what is in a folder; `name` is relative to the project, or as lists show it."""
    wanted = os.fsencode(os.path.normpath(Path(root, name)))
    below = wanted.rstrip(b"/") + b"/"
    return tuple(
        each
        for each in changes
        if each.path == wanted or each.path.startswith(below) or shown_path(each.path, root) == name
    )


def files_in(changes: Iterable[Change], root: str) -> tuple[list[Change], int]:
    """The changes of files and links outside of git's data, and how many there are of git's data."""
    top = os.fsencode(root)
    files = [each for each in changes if "folder" not in (_kind(each.before), _kind(each.after))]
    own = [each for each in files if not is_git_data(each.path, top)]
    return own, len(files) - len(own)


def _kind(state: FileState | None) -> str:
    return "" if state is None else state.kind


def counts_text(changes: Iterable[Change], comparison: Comparison, symbols: Symbols) -> str:
    """`3 files +40 -2`, or `no files`."""
    files, git = files_in(changes, comparison.root)
    if not files:
        return "git's data" if git else "no files"
    known = [counts for each in files if (counts := comparison.lines_of(each)) is not None]
    added, removed = (sum(each[side] for each in known) for side in (0, 1))
    lines = f" +{added} {symbols.minus}{removed}" if added or removed else ""
    return f"{len(files):,} file{'' if len(files) == 1 else 's'}{lines}"


def summary_text(changes: Sequence[Change], comparison: Comparison, symbols: Symbols) -> str:
    """The number of changed files and lines, and below it the first files, each with its own."""
    files, git = files_in(changes, comparison.root)
    lines = [counts_text(changes, comparison, symbols)] if files else []
    shown = files[:_MOST_LISTED]
    names = [shown_path(each.path, comparison.root) for each in shown]
    column = min(max(map(cells, names), default=0), _WIDEST_NAME)
    for name, each in zip(names, shown, strict=True):
        lines.append(f"  {pad(name, column)}  {_change_text(each, comparison, symbols)}")
    if more := len(files) - len(shown):
        lines.append(f"  ... and {more:,} more")
    if git:
        lines.append(f"Data of git: {git:,} file{'' if git == 1 else 's'}")
    return "\n".join(lines)


def _change_text(change: Change, comparison: Comparison, symbols: Symbols) -> str:
    kind = kind_of(change)
    counts = comparison.lines_of(change)
    if counts is None:
        return kind
    lines = f"+{counts[0]} {symbols.minus}{counts[1]}"
    return lines if kind == "changed" else f"{lines}  {kind}"
