"""Limits the number of processes in a sandbox with a control group (`pids.max`).

The group is a child of the agent's own group. A thread that starts a program joins the group while it does so, and the
program starts in it: every process is counted from its start. Creating groups needs permission: root usually has it, a
user only where systemd has delegated the group.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

PROCESS_LIMIT: Final = "BRADAWL_PROCESSES"
"""Environment variable with the process limit of a sandboxed shell, which applies and unsets it."""
PROCESSES: Final = 4_096
"""Default limit on processes and threads of a session's programs at a time."""
_NAME: Final = "bradawl-"
_KIND: Final = "pids"
_TRIES: Final = 10
_PAUSE_S: Final = 0.005


class ControlGroup(msgspec.Struct, frozen=True):
    """A control group in which child groups can be created."""

    folder: str
    threads: str
    """Name of the file that takes a thread id."""
    is_unified: bool
    """cgroup version 2, where a group with processes can only have threaded child groups."""


def find_control_group(proc: str = "/proc/self") -> ControlGroup | None:
    """The group of this process, if this user may create groups in it that limit processes. Changes nothing."""
    try:
        groups = Path(f"{proc}/cgroup").read_text("utf-8", "surrogateescape")
        mounts = Path(f"{proc}/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    for line in groups.splitlines():
        _, kinds, path = line.split(":", 2)
        is_unified = not kinds
        if not is_unified and _KIND not in kinds.split(","):
            continue
        folder = _mounted_at(path, mounts, is_unified=is_unified)
        threads = "cgroup.threads" if is_unified else "tasks"
        if (
            folder
            and _is_writable(folder, threads)
            and (not is_unified or _KIND in _words(f"{folder}/cgroup.controllers"))
        ):
            return ControlGroup(folder, threads, is_unified)
    return None


def can_limit_processes() -> bool:
    """Whether processes can be limited here, as far as can be determined without trying."""
    return find_control_group() is not None


class ProcessLimit:
    """A limit on the processes started while `limit_processes` is held. Creates nothing before; its owner calls
    `close`.
    """

    def __init__(self, most: int = PROCESSES) -> None:
        """`most` counts processes and threads."""
        self._most = most
        self._parent: ControlGroup | None = None
        self._group = ""
        self._has_looked = False
        self._has_switched_on = False

    @contextlib.contextmanager
    def limit_processes(self) -> Iterator[None]:
        """Count the processes that this thread starts in the body, and their children. Does nothing without a group."""
        if not self._enter():
            yield
            return
        try:
            yield
        finally:
            self._leave()

    def close(self) -> None:
        """Remove the group. One whose programs are still ending is left for the next start. Safe to call twice."""
        if not self._group or self._parent is None:
            return
        for _ in range(_TRIES):
            if _is_removed(self._group):
                break
            time.sleep(_PAUSE_S)
        if self._has_switched_on and not any(_groups_in(self._parent.folder)):
            with contextlib.suppress(OSError):
                _write(f"{self._parent.folder}/cgroup.subtree_control", f"-{_KIND}")
        self._group, self._has_looked, self._has_switched_on = "", False, False

    # ------------------------------------------------------------------ this thread

    def _enter(self) -> bool:
        if not self._has_looked:
            self._has_looked = True
            self._make()
        if not self._group:
            return False
        try:
            self._move_to(self._group)
        except OSError:  # another agent, which does not see this process, removed the group: create it again, once
            self._make()
            return bool(self._group) and self._is_moved_to(self._group)
        return True

    def _leave(self) -> None:
        if self._parent is not None:
            with contextlib.suppress(OSError):
                self._move_to(self._parent.folder)

    def _move_to(self, group: str) -> None:
        if self._parent is not None:
            _write(f"{group}/{self._parent.threads}", "0")  # 0 means the calling thread

    def _is_moved_to(self, group: str) -> bool:
        try:
            self._move_to(group)
        except OSError:
            return False
        return True

    # ------------------------------------------------------------------ the group

    def _make(self) -> None:
        self._group = ""
        self._parent = parent = find_control_group()
        if parent is None:
            return
        _remove_left_behind(parent.folder)
        group = f"{parent.folder}/{_NAME}{os.getpid()}-{_start_ticks(os.getpid())}-{os.urandom(4).hex()}"
        try:
            Path(group).mkdir(mode=0o700)
            if parent.is_unified:
                self._make_unified(parent, group)
            _write(f"{group}/{_KIND}.max", str(self._most))
        except OSError:
            _is_removed(group)
        else:
            self._group = group

    def _make_unified(self, parent: ControlGroup, group: str) -> None:
        _write(f"{group}/cgroup.type", "threaded")
        control = f"{parent.folder}/cgroup.subtree_control"
        if _KIND not in _words(control):
            _write(control, f"+{_KIND}")
            self._has_switched_on = True


def _mounted_at(path: str, mounts: str, *, is_unified: bool) -> str:
    """Path of a group below the mount that shows it; empty if no mount does."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 3 or "\\" in fields[4]:
            continue
        fits = kind[0] == "cgroup2" if is_unified else kind[0] == "cgroup" and _KIND in kind[2].split(",")
        root = fields[3].rstrip("/")
        if fits and ".." not in path.split("/") and (path == root or path.startswith(f"{root}/")):
            return f"{fields[4]}{path[len(root) :]}".rstrip("/")
    return ""


def _is_writable(folder: str, threads: str) -> bool:
    return os.access(folder, os.W_OK | os.X_OK) and os.access(f"{folder}/{threads}", os.W_OK)


def _words(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").split()
    except OSError:
        return []


def _write(path: str, text: str) -> None:
    held = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(held, text.encode())
    finally:
        os.close(held)


def _groups_in(folder: str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from (entry.path for entry in entries if entry.name.startswith(_NAME))


def _is_removed(group: str) -> bool:
    """Whether the group is gone. The kernel refuses to remove a group that holds a process."""
    try:
        Path(group).rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_left_behind(folder: str) -> None:
    """Remove groups of agents that were killed."""
    for group in _groups_in(folder):
        pid, _, rest = group.rpartition("/")[2].removeprefix(_NAME).partition("-")
        if pid.isdigit() and _start_ticks(int(pid)) != rest.partition("-")[0]:
            _is_removed(group)


def _start_ticks(pid: int) -> str:
    """Start time of a process in clock ticks since boot; empty if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return text.rpartition(b")")[2].split()[19].decode()
