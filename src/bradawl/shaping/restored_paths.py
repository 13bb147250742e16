"""Describes files that the sandbox put back."""

from collections.abc import Callable
from typing import Final

_NAMED: Final = 10
_NOT_PUT_BACK: Final = " (could not be put back: "
_NOT_CHECKED: Final = " (could not be checked: "
"""The remark of a sandbox on a path that it could not examine."""


_PUT_BACK: Final = "put back as they were, because commands may not change them"
_FOR_MODEL: Final = (
    _PUT_BACK,
    "CHANGED, though commands may not change them; tell the user to look at them before anything else runs",
    "NOT CHECKED: a command may have left something there that git or other programs run; tell the user to run"
    " none there before the next command, which checks again, or to look at them first",
)
_FOR_USER: Final = (
    _PUT_BACK,
    "CHANGED, though commands may not change them; look at them before you run anything else",
    "NOT CHECKED: a command may have left something there that git or other programs run; run none there before the"
    " next command, which checks again, or look at them first",
)


def restored_lines(
    restored: tuple[str, ...], quoted: Callable[[str], str], *, for_user: bool = False
) -> tuple[str, ...]:
    """What became of the paths of `CommandResult.restored`, one line for each outcome; `quoted` escapes a path."""
    failed = tuple(each for each in restored if _NOT_PUT_BACK in each)
    unchecked = tuple(each for each in restored if _NOT_CHECKED in each)
    done = tuple(each for each in restored if each not in (*failed, *unchecked))
    outcomes = zip(_FOR_USER if for_user else _FOR_MODEL, (done, failed, unchecked), strict=True)
    return tuple(f"{what}: {first_paths(paths, quoted)}" for what, paths in outcomes if paths)


def first_paths(paths: tuple[str, ...], quoted: Callable[[str], str]) -> str:
    """The first ten of some paths, in one line."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(quoted, paths[:_NAMED])) + more
