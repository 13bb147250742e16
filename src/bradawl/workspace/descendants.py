"""Finds the processes that belong to a command, also those that moved to a session of their own."""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

_PROC = Path("/proc")


class _Process(msgspec.Struct, frozen=True):
    id: int
    parent: int
    group: int


def signal_group(group: int, number: signal.Signals) -> None:
    """Signal everybody in a process group; nobody there is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def signal_all(processes: Iterable[int], number: signal.Signals) -> None:
    """Signal processes that may be gone by now."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def group_lives(group: int) -> bool:
    """True while a process of the group runs; one that is dead and only not reaped yet does not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # someone is in it who runs as another user
    return not _PROC.is_dir() or any(process.group == group for process in _living())


def descendants(ancestor: int, mark: str) -> set[int]:
    """Living processes that descend from `ancestor` or carry `mark` in their environment; none without /proc."""
    living = tuple(_living())
    carried = mark.encode()
    family = {process.id for process in living if process.id != ancestor and _carries(process.id, carried)}
    family.add(ancestor)
    while grown := {process.id for process in living if process.parent in family} - family:
        family |= grown
    return family - {ancestor}


def _living() -> Iterator[_Process]:
    with contextlib.suppress(OSError):
        for folder in _PROC.iterdir():
            if folder.name.isdigit() and (process := _process(folder.name)):
                yield process


def _process(name: str) -> _Process | None:
    try:
        # The name in the second field may hold spaces and brackets; the fields behind it can't.
        state, parent, group = (_PROC / name / "stat").read_bytes().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else _Process(int(name), int(parent), int(group))


def _carries(process: int, mark: bytes) -> bool:
    try:
        return mark in (_PROC / str(process) / "environ").read_bytes()
    except OSError:
        return False
