"""What an undo that takes long says while it restores files, and where it stops."""

import time
from collections.abc import Callable, Collection
from typing import Final

from bradawl.app.undo_plan import UndoPlan

_QUIET_S: Final = 0.3
"""Seconds that a user waits without a word."""


class RestoreWatch:
    """`should_stop` of `Undo.carry_out`: after 0.3 s it says once that files are restored."""

    def __init__(
        self,
        plan: UndoPlan,
        say: Callable[[str], None],
        has_arrived: Callable[[], bool],
        overwrite: Collection[bytes] = (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`say` shows a text to the user, `has_arrived` tells whether a signal asks for a stop, `overwrite` are the
        conflicts that are restored too.
        """
        self._plan = plan
        self._overwrite = frozenset(overwrite)
        self._say = say
        self._has_arrived = has_arrived
        self._now = now
        self._is_silent = True
        self._began = now()

    def __call__(self) -> bool:
        """Whether to stop before the next file."""
        if self._is_silent and self._now() - self._began > _QUIET_S:
            self._is_silent = False
            self._say(f"Restoring {self._count():,} files; Ctrl+C stops after the present one.")
        return self._has_arrived()

    def _count(self) -> int:
        files = self._plan.files
        all_files = () if files is None else (*files.changes, *files.git)
        return sum(not each.conflict or each.path in self._overwrite for each in all_files)
