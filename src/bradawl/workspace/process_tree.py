"""Finds all processes of a command in /proc, also those in other sessions, and signals them."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

_PROC = Path("/proc")
_LAST_ID = "/proc/sys/kernel/ns_last_pid"
_FEW = 64
_STAT_BYTES = 1_024
_PIECE = 131_072
_LOOKS = 4
_LOOK_AGAIN_S = 0.0005
_KILL_ROUNDS = 200
_KILL_POLL_S = 0.001
_STOPPED = b"TtZXx"
_THREADS = 17  # index of the field that counts threads


class ProcessState(msgspec.Struct, frozen=True):
    """Parent PID of a process, and the states of its threads, one letter each."""

    parent: int
    states: bytes

    @property
    def is_stopped(self) -> bool:
        """Whether all its threads are stopped or have ended."""
        return not self.states.strip(_STOPPED)

    @property
    def is_stopped_or_waiting(self) -> bool:
        """As `is_stopped`, with threads in an uninterruptible wait: those stop before they go on in the program."""
        return not self.states.strip(_STOPPED + b"D")

    @property
    def is_waiting(self) -> bool:
        """Whether a thread is in an uninterruptible wait and can't be stopped yet."""
        return b"D" in self.states


class _Process(msgspec.Struct, frozen=True):
    id: int
    parent: int
    group: int


def signal_group(group: int, number: signal.Signals) -> None:
    """Signal all processes of a group; an empty group is not an error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def signal_processes(processes: Iterable[int], number: signal.Signals) -> frozenset[int]:
    """Signal processes, which may have ended. Returns those that this user may not signal."""
    refused: list[int] = []
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            refused.append(process)
    return frozenset(refused)


def kill_all(processes: set[int], remaining: Callable[[], set[int]]) -> frozenset[int]:
    """Kill processes, and those that `remaining` finds then, until none is left. Blocks meanwhile.

    Returns those that could not be killed: of other users, or waiting in the kernel.
    """
    refused = frozenset[int]()
    for _ in range(_KILL_ROUNDS):  # a process that forked meanwhile is found in the next round
        if not processes:
            break
        refused |= signal_processes(processes, signal.SIGKILL)
        time.sleep(_KILL_POLL_S)
        processes = (running(processes) | remaining()) - refused
    return refused | processes


def group_is_running(group: int) -> bool:
    """Whether a process of the group runs; zombies do not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it holds a process of another user
    return not _PROC.is_dir() or bool(group_members(group))


def group_members(group: int) -> set[int]:
    """PIDs of the running processes of a group. Empty without /proc."""
    return {process.id for process in _running(_ids()) if process.group == group}


def pids_since(process: int) -> range | None:
    """The range of PIDs given out after that of `process`; None if it can't be determined.

    Only valid for a young process: PIDs must not have wrapped around since.
    """
    try:
        last = int(_read(_LAST_ID, 64))
    except (OSError, ValueError):
        return None
    return range(process + 1, last + 1) if last >= process else None


def running(processes: Iterable[int]) -> set[int]:
    """The PIDs among `processes` that are running processes."""
    return {process.id for process in _running(processes)}


def call_processes(mark: str, root: int | None = None, among: range | None = None) -> set[int]:
    """Running processes with `mark` in their environment, and descendants of these or of `root`.

    `root` itself is left out. `among` limits the PIDs to examine; None means all. Empty without /proc.
    """
    running = tuple(_running(_ids(among)))
    carried = mark.encode()
    found = {process.id for process in running if process.id != root and _carries(process, carried)}
    if root is not None:
        found.add(root)
    while grown := {process.id for process in running if process.parent in found} - found:
        found |= grown
    return found - {root}


def descendants(root: int) -> dict[int, ProcessState]:
    """States of all descendants of a process by PID. A process that ends meanwhile may be missing.

    Children are read before their parent's state: a parent that ends in between is not found stopped.
    """
    found: dict[int, ProcessState] = {}
    left = [(root, 0)]
    while left:
        process, parent = left.pop()
        child_pids = _child_pids(process)
        if process != root and (member := _process_state(process, parent)):
            found[process] = member
        left += [(child, process) for child in child_pids if child not in found and child != root]
    return found


def process_states(processes: Iterable[int]) -> dict[int, ProcessState]:
    """States of some processes by PID, without those that have ended."""
    seen = ((process.id, _process_state(process.id, process.parent)) for process in _running(processes))
    return {each: member for each, member in seen if member}


def command_line(process: int) -> bytes:
    """Its arguments, each ended by NUL; empty if it has ended or is just executing another program."""
    try:
        return _read(f"/proc/{process}/cmdline", _PIECE)
    except OSError:
        return b""


def program_name(process: int) -> str:
    """The name of its program, as far as the kernel keeps it; empty if it has ended. Programs choose it themselves."""
    try:
        return _read(f"/proc/{process}/comm", _STAT_BYTES).decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return ""


def child_pids(process: int) -> set[int]:
    """PIDs of its children."""
    return set(_child_pids(process))


def _child_pids(process: int) -> list[int]:
    try:
        read = [_read(f"/proc/{process}/task/{thread}/children", _PIECE) for thread in _threads(process)]
    except FileNotFoundError:
        if _PROC.joinpath("thread-self/children").exists():
            return []  # the process has ended
        return [each.id for each in _running(_ids()) if each.parent == process]  # a kernel without these files
    except OSError:
        return []
    return [int(each) for each in b" ".join(read).split()]


def _process_state(process: int, parent: int) -> ProcessState | None:
    """A thread that ends meanwhile counts as running, so that the process is examined again."""
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


def _running(ids: Iterable[int]) -> Iterator[_Process]:
    return (process for each in ids if (process := _process(each)))


def _process(process: int) -> _Process | None:
    try:
        # The second field, the name, may hold spaces and brackets; later fields can't.
        fields = _read(f"/proc/{process}/stat", _STAT_BYTES).rpartition(b")")[2].split()
        state, parent, group = fields[:3]
        # A process whose first thread has ended looks dead but may run on.
        is_dead = state in {b"Z", b"X"} and int(fields[_THREADS]) <= 1
    except (OSError, ValueError, IndexError):
        return None
    return None if is_dead else _Process(process, int(parent), int(group))


def _carries(process: _Process, mark: bytes) -> bool:
    """Whether its environment holds the mark. It is empty for an instant while the process executes a program:
    retry.
    """
    if process.group == 0:
        return False  # a kernel thread, or a process outside this PID namespace
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
