"""Recognizes the states of a file that a restore leaves for a moment, and that remain if it is killed then."""

from collections.abc import Sequence
from typing import Final

from bradawl.checkpoints.record import FileState

_BLOCK_BYTES: Final = 512


def lacks_end(now: bytes, content: bytes) -> bool:
    """Whether a file holds the beginning of a content up to the end of a block, and zeros or nothing instead of the
    rest. A file that ends elsewhere was cut by a program.
    """
    is_cut_by_disk = len(now) == len(content) or (len(now) < len(content) and len(now) % _BLOCK_BYTES == 0)
    return is_cut_by_disk and content.startswith(now.rstrip(b"\0"))


def is_of_both(now: bytes, contents: Sequence[bytes]) -> bool:
    """Whether a file begins like one of two contents and ends like the other."""
    if len(contents) != 2:
        return False
    for new, old in (contents, contents[::-1]):
        same = _common_length(now, new)
        if len(now) in (len(old), max(len(old), same)) and now[same:] == old[same:]:
            return True
    return False


def is_on_the_way(now: FileState | None, one: FileState | None, other: FileState | None) -> bool:
    """Whether a restore leaves a state for a moment between two others, apart from contents in parts."""
    if now is None:
        known = [state for state in (one, other) if state is not None]
        is_removed_first = any(state.identity is not None for state in known)  # what is renamed replaces nothing
        return len(known) == 2 and (is_removed_first or (known[0].kind == "folder") != (known[1].kind == "folder"))
    known = [state for state in (one, other) if state is not None and state.kind == now.kind]
    if now.kind == "folder":
        return any(now.mode & 0o777 == 0o700 or now.mode == state.mode | 0o700 for state in known)
    return has_passing_mode(now, known) and now.content in [state.content for state in known]


def has_passing_mode(now: FileState, known: Sequence[FileState]) -> bool:
    """Whether a file has the mode of one of the states, or the one that it has while it is overwritten."""
    return now.kind == "file" and any(now.mode in (state.mode, state.mode | 0o200) for state in known)


def _common_length(one: bytes, other: bytes) -> int:
    """Number of bytes at the beginning that are the same."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)
