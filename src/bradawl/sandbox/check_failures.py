"""Runs the parts of the check after a command so that a failure of one part neither ends the others nor goes unsaid."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeVar

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError

NOT_CHECKED: Final = "(could not be checked: "
"""Marks paths in `CommandResult.restored` that were not compared."""
KILLED: Final = "bradawl was killed while a command ran"
_ABSENT: Final = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG))
_REFUSED: Final = frozenset((errno.EACCES, errno.EPERM))

T = TypeVar("T")


class CheckFailures:
    """The paths that a check could not examine, and the reasons."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def attempt(self, path: str, part: Callable[[], T], default: T) -> T:
        """The result of `part`; if it raises any `Exception`, `default`, and `path` counts as not checked."""
        try:
            return part()
        except Exception as error:
            self.add(path, error)
            return default

    def add(self, path: str, error: Exception | str) -> None:
        """Count a path as not checked. The first reason is kept."""
        self._reasons.setdefault(path, error if isinstance(error, str) else reason_of(error))

    def update(self, other: "CheckFailures") -> None:
        """Add the failures of another check."""
        for path, reason in other._reasons.items():
            self.add(path, reason)

    def forget(self, restored: Iterable[str]) -> None:
        """Remove paths that were restored, or lie in a folder that was moved away."""
        done = frozenset(restored)
        gone = tuple(path for path in done if not os.path.lexists(path))
        self._reasons = {
            path: reason
            for path, reason in self._reasons.items()
            if path not in done and not any(is_within(path, folder) for folder in gone)
        }

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, in the order of their failures."""
        return tuple(self._reasons)

    def reason(self, path: str) -> str:
        """Why a path was not checked. Raises `KeyError` if it was."""
        return self._reasons[path]

    def remarks(self) -> tuple[str, ...]:
        """Each path with its reason, for `CommandResult.restored`."""
        return tuple(f"{path} {NOT_CHECKED}{reason})" for path, reason in self._reasons.items())


class IncompleteCheckError(Exception):
    """Raised at the end of an iteration that skipped what it could not determine."""

    def __init__(self, failures: CheckFailures) -> None:
        super().__init__(", ".join(failures.remarks()))
        self.failures = failures


def in_parts(*parts: Callable[[], Iterable[T]]) -> Callable[[], Iterator[T]]:
    """A function that yields the items of all parts, also after one has failed.

    Its iterator raises `IncompleteCheckError` at the end if one has.
    """

    def items() -> Iterator[T]:
        failures = CheckFailures()
        for part in parts:
            yield from drained(part, failures)
        if failures.paths:
            raise IncompleteCheckError(failures)

    return items


def for_each(paths: Iterable[str], part: Callable[[str], Iterable[T]]) -> Iterator[T]:
    """The items that `part` gives for each path, also after one has failed.

    Raises `IncompleteCheckError` at the end if one has.
    """
    failures = CheckFailures()
    for path in paths:
        yield from drained(partial(part, path), failures, path)
    if failures.paths:
        raise IncompleteCheckError(failures)


def drained(part: Callable[[], Iterable[T]], failures: CheckFailures, path: str = "/") -> list[T]:
    """The items of a part up to its first exception, which is added to `failures`."""
    found: list[T] = []

    def drain() -> None:
        try:
            found.extend(part())
        except IncompleteCheckError as error:
            failures.update(error.failures)

    failures.attempt(path, drain, None)
    return found


def still_not_checked(failures: CheckFailures) -> ToolError:
    """The refusal to start a program while the check of an earlier one is incomplete."""
    path = failures.paths[0]
    return ToolError(
        f"nothing can run in the sandbox: what an earlier command did in {path} could not be checked: "
        f"{failures.reason(path)}. Move it out of the workspace, or ask to run without the sandbox"
    )


def reason_of(error: Exception) -> str:
    """A short description of an error."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}"[:200] if str(error) else type(error).__name__


def is_absent(error: OSError) -> bool:
    """Whether an error says that a path leads to nothing that git could open either."""
    return error.errno in _ABSENT


def is_absent_or_closed(error: OSError) -> bool:
    """As `is_absent`, or that this user may not open it."""
    return error.errno in _ABSENT | _REFUSED


def ending(path: str, *parts: Callable[[], tuple[str, ...] | None]) -> Callable[[], tuple[str, ...]]:
    """A function that calls all parts and returns the restored paths that they name.

    If a part fails, the rest is called all the same, and a remark on `path` is returned as well.
    """

    def run() -> tuple[str, ...]:
        failures = CheckFailures()
        restored = [each for part in parts for each in failures.attempt(path, part, ()) or ()]
        return (*restored, *failures.remarks())

    return run
