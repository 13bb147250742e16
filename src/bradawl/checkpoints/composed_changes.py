"""Composes change records: what several of them together make of each path."""

from collections.abc import Callable, Sequence

import msgspec

from bradawl.checkpoints.file_states import is_same
from bradawl.checkpoints.record import ChangeRecord, FileState


class ComposedChange(msgspec.Struct, frozen=True):
    """What undoing several records makes of one path."""

    wanted: FileState | None
    """The state to restore: before the oldest record."""
    expected: FileState | None
    """The state after the newest record."""
    is_changed_between: bool = False
    """Between two of the records the path changed without a record."""


IsSame = Callable[[bytes, FileState | None, FileState | None], bool]
"""Whether two states of a path are the same for the user."""


def _is_same_state(_path: bytes, one: FileState | None, other: FileState | None) -> bool:
    return is_same(one, other)


def compose(records: Sequence[ChangeRecord], is_same: IsSame = _is_same_state) -> dict[bytes, ComposedChange]:
    """For each path the state before all records and the state after them. The newest record comes first.

    `is_same` decides whether the state after one record and the one before the next show a change in between.
    """
    composed: dict[bytes, ComposedChange] = {}
    for record in records:
        for change in record.changes:
            newer = composed.get(change.path)
            if newer is None:
                composed[change.path] = ComposedChange(change.before, change.after)
            else:
                is_between = newer.is_changed_between or not is_same(change.path, change.after, newer.wanted)
                composed[change.path] = ComposedChange(change.before, newer.expected, is_between)
    return composed
