"""Supervises one program that Landlock confines: reaps and ends its processes. `landlock_helper` runs the text.

All processes whose parents have ended become children of this one, whatever they did with their session, group and
environment. So a process without children is the proof that none is left: it exits then, and only then.

On the socket to the agent `landlock_helper` has written JSON with the PIDs of this process and of the program. Before
it exits, this process writes `e`. A byte from the agent ends all processes at once; if the agent is gone they are
terminated, and killed half a second later.
"""

import _thread
import os
import struct
import time

_ANY_KIND = 0x40000000  # __WALL: also children that don't end with SIGCHLD
_TERMINATE, _KILL = 15, 9
_GRACE_S = 0.5
_PAUSE_S = 0.002


def supervise(program: int, status: int, control: int, is_scoped: bool) -> None:
    """Reap until no child is left, then exit. Writes how the program ended to `status`. Does not return.

    `is_scoped`: a signal to all processes reaches only this one's descendants and its parent.
    """
    _thread.start_new_thread(obey, (control, is_scoped))
    while True:
        try:
            pid, code = os.waitpid(-1, _ANY_KIND)
            if pid == program:
                os.write(status, struct.pack("ii", code, not has_children()))
        except ChildProcessError:
            break
        except OSError:  # the process that waits for the status was killed
            continue
    try:
        os.write(control, b"e")
    finally:
        os._exit(0)


def has_children() -> bool:
    """Whether a child is left, zombies included."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG | _ANY_KIND)
    except ChildProcessError:
        return False
    return True


def obey(control: int, is_scoped: bool) -> None:
    """Wait for the agent's order to end all processes, or for its end. Returns never."""
    try:
        is_ordered = bool(os.read(control, 1))
    except OSError:
        is_ordered = False
    if not is_ordered:
        signal_all(_TERMINATE, is_scoped)
        time.sleep(_GRACE_S)
    while True:  # `supervise` ends the process
        signal_all(_KILL, is_scoped)
        time.sleep(_PAUSE_S)


def signal_all(number: int, is_scoped: bool) -> None:
    """Signal all descendants. With `is_scoped` none of them can be starting a process that escapes."""
    for pid in (-1,) if is_scoped else descendants():
        try:
            os.kill(pid, number)
        except OSError:  # it has ended
            continue


def descendants() -> list[int]:
    """PIDs of all descendants."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - `pathlib` takes long to import
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
    found = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= grown
    return sorted(found - {os.getpid()})
