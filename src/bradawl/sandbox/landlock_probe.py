"""A program that `landlock` runs in its sandbox: attempts what each guarantee forbids, prints which guarantees fail.

Started stand-alone as `python -I -S -c TEXT FILE FOLDER PID`: a file that must be out of reach, a writable folder, and
a process whose secrets must stay secret. It changes nothing, even if an attempt succeeds. It leaves one process behind.
"""

import contextlib
import ctypes
import errno
import os
import signal
import socket
import sys
from collections.abc import Iterator

libc = ctypes.CDLL(None, use_errno=True)

_SEIZE, _DETACH = 0x4206, 17
_NEW_USER_NAMESPACE = 0x10000000
_GET_NO_NEW_PRIVILEGES = 39
_REFUSED = (errno.EPERM, errno.EACCES)
_PROXY = ("127.0.0.1", 19_080)
_CREATE_RULESET, _LIMITS_TCP_SINCE = 444, 4
_FAST_OPEN, _MULTIPATH = 0x20000000, 262  # MSG_FASTOPEN, IPPROTO_MPTCP


def opens(path: str, flags: int) -> bool:
    """Whether a file can be opened with these flags."""
    try:
        os.close(os.open(path, flags))
    except OSError:
        return False
    return True


def makes(path: str) -> bool:
    """Whether a file can be created; it is removed at once."""
    made = opens(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    if made:
        libc.unlink(path.encode())
    return made


def empties(path: str) -> bool:
    """Whether a file can be truncated by its name, which the first versions of Landlock allowed. The file is empty
    before.
    """
    return libc.truncate(path.encode(), ctypes.c_long(0)) == 0


def connects(family: int, kind: int, protocol: int, address: tuple[str, int] | None = None) -> bool:
    """Whether a socket can be created and, given an address, connected. Nothing needs to listen there."""
    try:
        with socket.socket(family, kind, protocol) as made:
            made.settimeout(0.05)
            if address is not None:
                made.connect(address)
    except OSError as error:
        return error.errno not in (*_REFUSED, errno.EPROTONOSUPPORT, errno.EAFNOSUPPORT)
    return True


def is_open_to_hosts() -> bool:
    """Whether connections are not confined to the proxy, by the kernel and by a supervisor."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    if not connects(socket.AF_INET, socket.SOCK_STREAM, 0):  # no network at all
        return True
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.settimeout(2)
        if version < _LIMITS_TCP_SINCE or made.connect_ex(_PROXY) != 0:
            return True
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.settimeout(0.05)
        sent = 0
        with contextlib.suppress(OSError):
            sent = made.sendto(b"x", _FAST_OPEN, ("127.0.0.1", 9))
        return bool(sent) or listens() or connects(socket.AF_INET, socket.SOCK_STREAM, _MULTIPATH)


def listens() -> bool:
    """Whether a socket can be listened on, and so be connected to from outside."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_STREAM) as made:
        made.listen()
        return True
    return False


def links_in(file: str, folder: str) -> bool:
    """Whether a file from outside can be hard linked into the folder."""
    name = f"{folder}/hard".encode()
    made = libc.link(file.encode(), name) == 0
    libc.unlink(name)
    return made


def writes_through_a_link(file: str, folder: str) -> bool:
    """Whether a symbolic link gives write access to a file outside."""
    name = f"{folder}/soft"
    made = libc.symlink(file.encode(), name.encode()) == 0
    reached = made and opens(name, os.O_WRONLY)
    libc.unlink(name.encode())
    return reached


def changes_mode(file: str) -> bool:
    """Whether the mode of a file outside can be set; it is set to its old value."""
    return libc.chmod(file.encode(), 0o600) == 0


def may_mount(folder: str) -> bool:
    """Whether mount() gets far enough to look for a file system type; the type does not exist."""
    return libc.mount(b"none", folder.encode(), b"none", 0, None) != 0 and ctypes.get_errno() == errno.ENODEV


def reaches_into(process: int) -> bool:
    """Whether a process outside can be traced or signalled."""
    if libc.ptrace(_SEIZE, process, None, None) == 0:
        libc.ptrace(_DETACH, process, None, None)
        return True
    with contextlib.suppress(OSError):
        os.kill(process, 0)
        return True
    return False


def escape() -> None:
    """Start a process in another session, without parents and environment; it keeps the output open."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.pause()
        os._exit(0)
    os.wait()


def found_open(file: str, folder: str, process: int) -> Iterator[str]:
    """Names of the guarantees that do not hold."""
    tries = {
        "write_outside": lambda: opens(file, os.O_WRONLY) or makes(f"{file}.new") or empties(file),
        "chmod_outside": lambda: changes_mode(file),
        "hard_link_in": lambda: links_in(file, folder),
        "symlinked_root": lambda: writes_through_a_link(file, folder),
        "remount": lambda: may_mount(folder),
        "tcp": lambda: connects(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", 9)),
        "udp": lambda: connects(socket.AF_INET, socket.SOCK_DGRAM, 0, ("127.0.0.1", 9)),
        "icmp": lambda: connects(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP),
        "domains": is_open_to_hosts,
        "netlink": lambda: connects(socket.AF_NETLINK, socket.SOCK_RAW, 0),
        "unix_sockets": lambda: connects(socket.AF_UNIX, socket.SOCK_STREAM, 0),
        "abstract_sockets": lambda: connects(socket.AF_UNIX, socket.SOCK_DGRAM, 0),
        "tiocsti": lambda: opens("/dev/tty", os.O_RDWR),
        "proc_root": lambda: opens(f"/proc/{process}/root/etc/passwd", os.O_RDONLY),
        "agent_environ": lambda: opens(f"/proc/{process}/environ", os.O_RDONLY),
        "ptrace": lambda: reaches_into(process),
        "credentials": lambda: opens(file, os.O_RDONLY),
        "no_new_privileges": lambda: libc.prctl(_GET_NO_NEW_PRIVILEGES, 0, 0, 0, 0) != 1,
        "nested_userns": lambda: (
            libc.unshare(_NEW_USER_NAMESPACE) == 0
        ),  # last: afterwards this process would be another user
    }
    return (name for name, succeeds in tries.items() if succeeds())


if __name__ == "__main__":
    escape()
    print("done", *found_open(sys.argv[1], sys.argv[2], int(sys.argv[3])), flush=True)
