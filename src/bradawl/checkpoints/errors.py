"""Errors of the content store and of restoring that a caller can act on."""

from typing import Final

from bradawl.core.errors import BradawlError

LOST: Final = "Undo can't restore it: the process that finds changes ended while it ran."
"""What is said of a call that ran then, if nothing was saved."""


class StoreError(BradawlError):
    """The content store can't provide what was asked of it."""


class ContentGone(StoreError):
    """A content or record was never saved, or was dropped to keep the quota."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name[:12]} is not kept any more: undo no longer reaches so far back.")
        self.name = name
        """sha256 in hex."""


class ContentDamaged(StoreError):
    """Saved bytes differ from what was saved, or can't be read."""

    def __init__(self, name: str, file: str) -> None:
        super().__init__(f"The saved content {name[:12]} is damaged in {file}, so undo can't use it.")
        self.name = name
        """sha256 in hex."""


class RestoreRefused(BradawlError):
    """Nothing was restored; the text says why and what to do."""


class RestoreStopped(BradawlError):
    """A restore was stopped before its end. What it had restored stays; its intent is on the disk."""

    def __init__(self, done: int, total: int) -> None:
        super().__init__(f"{done:,} of {total:,} files were restored.")
        self.done = done
        """Number of paths that were restored."""
        self.total = total
        """Number of paths to restore."""
