"""Finds the processes that belong to a command, also those that moved to a session of their own."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

_PROC = Path("/proc")
_LAST_ID = "/proc/sys/kernel/ns_last_pid"
_FEW = 64
_STAT_BYTES = 1_024
_PIECE = 131_072
_LOOKS = 4
_LOOK_AGAIN_S = 0.0005
_STOPPED = b"TtZXx"
_THREADS = 17  # the field of a process's state that counts its threads


class ProcessState(msgspec.Struct, frozen=True):
    """A process as it was seen: the id of its parent, and the states of its threads, a letter each."""

    parent: int
    states: bytes

    @property
    def is_stopped(self) -> bool:
        """Whether none of its threads can run before it is signalled; so is one that has ended."""
        return not self.states.strip(_STOPPED)

    @property
    def is_waiting(self) -> bool:
        """Whether a thread waits in the kernel and can't be stopped yet."""
        return b"D" in self.states


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
    return not _PROC.is_dir() or any(process.group == group for process in _living(_ids()))


def ids_since(process: int) -> range | None:
    """The ids given out after that of `process`; None when that can't be told.

    Only for a process so young that the ids can't have gone round since.
    """
    try:
        last = int(_read(_LAST_ID, 64))
    except (OSError, ValueError):
        return None
    return range(process + 1, last + 1) if last >= process else None


def living(processes: Iterable[int]) -> set[int]:
    """Those of some ids that are processes which run."""
    return {process.id for process in _living(processes)}


def call_processes(mark: str, root: int | None = None, among: range | None = None) -> set[int]:
    """Living processes that carry `mark` in their environment or descend from `root` or from one that carries it.

    `root` itself is left out. `among` are the ids to look at, None for all. None without /proc.
    """
    running = tuple(_living(_ids(among)))
    carried = mark.encode()
    found = {process.id for process in running if process.id != root and _carries(process, carried)}
    if root is not None:
        found.add(root)
    while grown := {process.id for process in running if process.parent in found} - found:
        found |= grown
    return found - {root}


def tree(root: int) -> dict[int, ProcessState]:
    """All that descend from a process, by their ids; a process that ends meanwhile may be in there or not.

    Children are read before the states of their parent: who ends in between is not found stopped.
    """
    found: dict[int, ProcessState] = {}
    left = [(root, 0)]
    while left:
        process, parent = left.pop()
        children = _children(process)
        if process != root and (member := _process_state(process, parent)):
            found[process] = member
        left += [(child, process) for child in children if child not in found and child != root]
    return found


def process_states(processes: Iterable[int]) -> dict[int, ProcessState]:
    """How some processes are; without those that are gone."""
    seen = ((process.id, _process_state(process.id, process.parent)) for process in _living(processes))
    return {each: member for each, member in seen if member}


def command_line(process: int) -> bytes:
    """Its arguments, each with a NUL after it; empty if it is gone or is just replacing its program."""
    try:
        return _read(f"/proc/{process}/cmdline", _PIECE)
    except OSError:
        return b""


def children(process: int) -> set[int]:
    """The ids of its children."""
    return set(_children(process))


def _children(process: int) -> list[int]:
    try:
        read = [_read(f"/proc/{process}/task/{thread}/children", _PIECE) for thread in _threads(process)]
    except FileNotFoundError:
        if _PROC.joinpath("thread-self/children").exists():
            return []  # it has ended
        return [each.id for each in _living(_ids()) if each.parent == process]  # a kernel without these lists
    except OSError:
        return []
    return [int(each) for each in b" ".join(read).split()]


def _process_state(process: int, parent: int) -> ProcessState | None:
    """One of whose threads one has just ended counts as running, so that it is looked at again."""
    try:
        threads = _threads(process)
    except OSError:
        return None
    states = b""
    for thread in threads:
        try:
            states += _read(f"/proc/{process}/task/{thread}/stat", _STAT_BYTES).rpartition(b")")[2].split()[0]
        except (OSError, IndexError):
            states += b"R"
    return ProcessState(parent, states)


def _threads(process: int) -> list[str]:
    return os.listdir(f"/proc/{process}/task")  # noqa: PTH208 - names alone


def _ids(among: range | None = None) -> Iterable[int]:
    if among is not None and len(among) <= _FEW:
        return among
    try:
        with os.scandir(_PROC) as entries:
            ids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return ()
    return ids if among is None else (process for process in ids if process in among)


def _living(ids: Iterable[int]) -> Iterator[_Process]:
    return (process for each in ids if (process := _process(each)))


def _process(process: int) -> _Process | None:
    try:
        # The name in the second field may hold spaces and brackets; the fields behind it can't.
        fields = _read(f"/proc/{process}/stat", _STAT_BYTES).rpartition(b")")[2].split()
        state, parent, group = fields[:3]
        # Where only the first thread has ended, the process looks dead and runs on.
        is_dead = state in {b"Z", b"X"} and int(fields[_THREADS]) <= 1
    except (OSError, ValueError, IndexError):
        return None
    return None if is_dead else _Process(process, int(parent), int(group))


def _carries(process: _Process, mark: bytes) -> bool:
    """Of a process that is just replacing its program the environment is empty for an instant: then look again."""
    if process.group == 0:
        return False  # a thread of the kernel, or one from outside
    with contextlib.suppress(OSError):
        for _ in range(_LOOKS):
            if environment := _read(f"/proc/{process.id}/environ", _PIECE):
                return mark in environment
            time.sleep(_LOOK_AGAIN_S)
    return False


def _read(path: str, piece: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, piece)
        while len(data) >= piece and (more := os.read(descriptor, piece)):
            data += more
        return data
    finally:
        os.close(descriptor)
