"""Git data that belong to a workspace but lie outside it: those of a linked working tree or of a folder above.

They are not covered. A search reports if they have changed.
"""

import os
from typing import Final

from bradawl.checkpoints.folder import Signature
from bradawl.checkpoints.folder_reader import entry_signature, read_start
from bradawl.checkpoints.gaps import Gaps

_POINTER: Final = b"gitdir: "
_POINTER_BYTES: Final = 4_096
_INDEX: Final = b"index"
_CHANGING: Final = (_INDEX, b"HEAD", b"packed-refs", b"logs/HEAD", b"logs/refs/stash", b"refs/stash")
_STAYS: Final = "Undo leaves its branches, commits and index as they are, so git will show restored files as changed."


class OutsideGit:
    """Watches the git data outside of `roots` that their git would use."""

    def __init__(self, roots: tuple[bytes, ...]) -> None:
        found = {folder for root in roots if (folder := _git_data(root)) is not None}
        self.folders: Final = tuple(sorted(path for path in found if not any(_is_in(path, root) for root in roots)))
        self._seen = self._signatures()

    def update(self) -> None:
        """Take the present state as seen."""
        self._seen = self._signatures()

    def report(self, gaps: Gaps) -> bool:
        """Add a sentence for each folder that has changed since the last call, and take its state as seen.

        True if more than the index has changed, which git also writes when it only looks: a branch or a stash.
        """
        now = self._signatures()
        has_moved = any(now[folder][1:] != self._seen[folder][1:] for folder in self.folders)
        for folder in self.folders:
            if now[folder] != self._seen[folder]:
                shown = folder.decode(errors="backslashreplace")
                gaps.add_sentence(f"The git data in {shown} have changed; they are outside the workspace.")
        if has_moved:
            gaps.add_sentence(_STAYS)
        self._seen = now
        return has_moved

    def _signatures(self) -> dict[bytes, tuple[Signature | None, ...]]:
        return {folder: tuple(_signature(folder + b"/" + name) for name in _CHANGING) for folder in self.folders}


def _git_data(root: bytes) -> bytes | None:
    """The folder with the git data of a root; None if it has none."""
    folder = root
    while not os.path.lexists(entry := folder.rstrip(b"/") + b"/.git"):
        if folder in (b"/", b""):
            return None
        folder = folder.rpartition(b"/")[0] or b"/"
    start = read_start(None, entry, _POINTER_BYTES)
    if start.startswith(_POINTER):
        target = start.removeprefix(_POINTER).partition(b"\n")[0].rstrip(b"\r")
        return os.path.normpath(os.path.join(folder, target))  # noqa: PTH118 - names in bytes
    return os.path.realpath(entry)


def _signature(path: bytes) -> Signature | None:
    try:
        return entry_signature(None, path)
    except OSError:
        return None


def _is_in(path: bytes, root: bytes) -> bool:
    return path.startswith(root.rstrip(b"/") + b"/")
