"""A program that `probe` runs in any sandbox: attempts what each guarantee forbids, prints which guarantees fail.

Started stand-alone as `python -I -S -c TEXT PLACE PID SUM SECRET PORT NAME`: a folder prepared by `probe.py`, the
agent's PID and a checksum of its environment, the secret that no program inside may read, a loopback port on which the
agent listens, and the name of its abstract socket.
"""

import binascii
import ctypes
import errno
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
place, agent, environment = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
secret, port, name = sys.argv[4].encode(), int(sys.argv[5]), sys.argv[6]

_REMOUNT_BIND = 0x1020
_NEW_USER_NAMESPACE = 0x10000000
_TIOCSTI = 0x5412
_NO_NEW_PRIVILEGES = 39
_LONGEST_S = 30  # the agent kills the daemon, unless it is killed itself; SIGALRM ends it then
_DETACH = 17  # PTRACE_DETACH of a process that is not traced: ESRCH, if ptrace is allowed at all


def done(action: Callable[[], object]) -> bool:
    """Whether an action succeeds."""
    try:
        action()
    except OSError:
        return False
    return True


def opens(path: str, flags: int) -> bool:
    """Whether a file can be opened with these flags."""
    return done(lambda: os.close(os.open(path, flags)))


def makes(path: str) -> bool:
    """Whether a file can be created."""
    return opens(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def read(path: str) -> bytes:
    """The beginning of a file; empty if it can't be read."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(opened, 1 << 20)
    except OSError:
        return b""
    finally:
        os.close(opened)


def succeeds(call: Callable[..., int], *paths: str) -> bool:
    """Whether a C function returns 0 for these paths."""
    return call(*(path.encode() for path in paths)) == 0


def reaches(family: int, kind: int, address: tuple[str, int] | str) -> bool:
    """Whether a connection to the agent succeeds. For a datagram, the agent checks whether it arrived."""
    try:
        with socket.socket(family, kind) as made:
            made.settimeout(0.2)
            made.connect(address)
            made.send(b"reached")
    except OSError:
        return False
    return kind == socket.SOCK_STREAM


def opens_socket(family: int, kind: int, protocol: int = 0) -> bool:
    """Whether a socket can be created at all."""
    return done(lambda: socket.socket(family, kind, protocol).close())


def types_into_a_terminal() -> bool:
    """Whether a character can be put into a terminal's input."""
    first, second = os.openpty()
    try:
        return done(lambda: fcntl.ioctl(second, _TIOCSTI, b"x"))
    finally:
        os.close(first)
        os.close(second)


def processes() -> list[str]:
    """The folder of each process in /proc."""
    with os.scandir("/proc") as entries:
        return [entry.path for entry in entries if entry.name.isdigit()]


def reads_the_agent() -> bool:
    """Whether the agent's environment is readable in /proc."""
    found = [read(f"{each}/environ") for each in processes()]
    return any(text and binascii.crc32(text) == environment for text in found)


def reaches_files_through_proc() -> bool:
    """Whether /proc/PID/root of any process leads to a file that can't be read otherwise.

    PIDs do not identify the agent: its PID outside may be that of a process in here.
    """
    key = f"{place}/home/.ssh/key"
    return not tells(key) and any(tells(f"{each}/root{key}") for each in processes())


def tells(path: str) -> bool:
    """Whether a file contains the secret."""
    return secret in read(path)


def signals_the_agent() -> bool:
    """Whether ptrace works, or the agent's PID can be signalled; a low PID may be a process in here."""
    traces = libc.ptrace(_DETACH, os.getpid(), None, None) == 0 or ctypes.get_errno() == errno.ESRCH
    return traces or (agent > 100 and done(lambda: os.kill(agent, 0)))


def escapes() -> bool:
    """Start a daemon outside the process group that keeps the output open; the agent checks whether it is killed."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.alarm(_LONGEST_S)
            signal.pause()
        os._exit(0)
    os.wait()
    return False


ws, outside, linked = f"{place}/ws", f"{place}/outside", f"{place}/linked"
TRIES = {
    "works": lambda: not makes(f"{ws}/made") or not opens("/dev/null", os.O_RDWR) or not makes(f"{ws}/.git/index"),
    "write_outside": lambda: (
        makes(f"{outside}/new")
        or opens(f"{outside}/file", os.O_WRONLY)
        or succeeds(libc.rename, f"{outside}/file", f"{ws}/f")
        or opens("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    ),
    "chmod_outside": lambda: (
        libc.chmod(f"{outside}/file".encode(), 0o600) == 0 or done(lambda: os.utime(f"{outside}/file"))
    ),
    "hard_link_in": lambda: done(lambda: os.link(f"{outside}/file", f"{ws}/hard")),
    "symlinked_root": lambda: opens(f"{ws}/out/file", os.O_WRONLY) or makes(f"{ws}/out/new"),
    "tcp": lambda: reaches(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)),
    "udp": lambda: reaches(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)),
    "icmp": lambda: (
        opens_socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        or opens_socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    ),
    "netlink": lambda: opens_socket(socket.AF_NETLINK, socket.SOCK_RAW) or opens_socket(socket.AF_PACKET, 3),
    "unix_sockets": lambda: opens_socket(socket.AF_UNIX, socket.SOCK_STREAM),
    "abstract_sockets": lambda: reaches(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name),
    "tiocsti": types_into_a_terminal,
    "proc_root": reaches_files_through_proc,
    "agent_environ": reads_the_agent,
    "ptrace": signals_the_agent,
    "credentials": lambda: tells(f"{place}/home/.ssh/key") or tells(f"{ws}/.env") or tells(f"{place}/own/key"),
    "symlinked_git": lambda: succeeds(libc.unlink, f"{linked}/.git") or opens(f"{linked}/data/config", os.O_WRONLY),
    "protected_file": lambda: opens(f"{ws}/.git/config", os.O_WRONLY) or makes(f"{ws}/.git/hooks/post-checkout"),
    "new_protected_file": lambda: (
        succeeds(libc.rmdir, f"{ws}/.mcp.json") or makes(f"{ws}/.mcp.json") or makes(f"{ws}/.vscode/tasks.json")
    ),
    "rename_protected": lambda: (
        succeeds(libc.rename, f"{ws}/.git", f"{ws}/moved")
        or succeeds(libc.rename, f"{ws}/.git/hooks", f"{ws}/.git/moved")
    ),
    "private_tmp": lambda: not makes(os.sep + "tmp/probe"),
    "no_new_privileges": lambda: libc.prctl(_NO_NEW_PRIVILEGES, 0, 0, 0, 0) != 1,
    "remount": lambda: libc.mount(None, b"/", None, _REMOUNT_BIND, None) == 0,
    "nested_userns": lambda: libc.unshare(_NEW_USER_NAMESPACE) == 0,
    "escapees": escapes,
}
print("tried", *(line for line, is_open in TRIES.items() if is_open()), flush=True)
