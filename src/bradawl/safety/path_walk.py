"""Resolves a path as the kernel does: component by component, following each symbolic link where it occurs."""

import errno
import os
import stat
from typing import Final

_MOST_LINKS: Final = 40
"""The limit of Linux."""

_TRIES = 1_000


def followed(path: str) -> tuple[str, ...]:
    """Every symbolic link that an absolute path leads through, by its real folder, and last the real path.

    Write access to one of these paths controls where the path leads. `..` is applied to the target of a link, not to
    the text. Missing components are kept. Raises `OSError` for a loop of links.
    """
    pending = path.split("/")[::-1]
    current, links = "/", list[str]()
    while pending:
        part = pending.pop()
        if part in ("", "."):
            continue
        if part == "..":
            current = current.rpartition("/")[0] or "/"
            continue
        place = f"{current.rstrip('/')}/{part}"
        target = _target(place)
        if target is None:
            current = place
            continue
        links.append(place)
        if len(links) > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if target.startswith("/"):
            current = "/"
        pending += target.split("/")[::-1]
    return (*links, current)


def _target(place: str) -> str | None:
    """The target of a symbolic link; None for anything else."""
    try:
        if not stat.S_ISLNK(os.lstat(place).st_mode):
            return None
        return os.readlink(place)  # noqa: PTH115 - pathlib takes ten times as long, and this runs at each start
    except OSError:
        return None


def real_path(path: str | os.PathLike[str]) -> str:
    """As `os.path.realpath`, repeated if it raises `OSError` because a link is replaced meanwhile."""
    for _ in range(_TRIES):
        try:
            return os.path.realpath(path)
        except OSError:
            continue
    return os.path.realpath(path)
