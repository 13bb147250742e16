"""Mounts covers again in the mount namespaces of running sandboxed programs. Runs stand-alone.

Linux removes a mount when its mount point is deleted or replaced from outside of the namespace. Started as
`python -I -S -c TEXT CONTROL`. Descriptor CONTROL is a socket that receives, per request, a byte and three descriptors:
the mount namespace, a file with the covers, and the socket for the answer. For each request a child process joins the
user namespace that owns the mount namespace, and then the mount namespace; a process can't return from there. The
programs of the namespace have to be stopped meanwhile. Ends when CONTROL is closed at the other end.

The file has a kind and a path for each cover, outermost first, each ended by NUL; the first word is the text of hidden
files. The answer has a path and its state for each cover: `on` (the mount was there), `covered`, `absent`, `link` (it
or a folder above is a link, which a program may have made), or the text of an error.
"""

import ctypes
import fcntl
import os
import re
import signal
import socket
import stat
import sys

# Constants of linux/nsfs.h, sched.h and mount.h.
_GET_OWNING_USER_NAMESPACE = 0xB701
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_READ_ONLY, _NO_SET_USER_ID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE = 1, 2, 4, 32, 4096, 16384
_DETACH = 2
_KEPT = 0x2 | 0x4 | 0x8 | 0x400 | 0x800
"""Options that have the same number in `statvfs` and `mount`; an unprivileged user can't remove them."""
_RELATIVE_TIMES = {"statvfs": 4_096, "mount": 1 << 21}
_SPARE_PLACE = "/dev/shm"  # noqa: S108 - in the sandbox, nothing is covered below it
_MODES = {"secret": 0o444, "empty": 0o444, "unreadable": 0}
_LONGEST_S = 10
_TRIES = 4

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> None:
    """Raise the `OSError` of a failed call of the C library."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source: str, target: str, options: int, kind: str = "", data: str = "") -> None:
    """mount(2). Raises `OSError`."""
    given = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    checked(libc.mount(*given, ctypes.c_ulong(options), data.encode() or None))


def mount_points(own_proc: int) -> set[str]:
    """The mount points of this namespace. `own_proc` is this process's folder in /proc."""
    with os.fdopen(os.open("mountinfo", os.O_RDONLY, dir_fd=own_proc), "rb") as file:
        escaped = [line.split(b" ", 5)[4] for line in file.read().splitlines()]
    return {os.fsdecode(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), each)) for each in escaped}


def bind(path: str, *, read_only: bool) -> None:
    """Mount a path over itself, with the mounts below it."""
    mount(path, path, _BIND | _RECURSIVE)
    if read_only:
        now = os.statvfs(path).f_flag
        kept = now & _KEPT | (_RELATIVE_TIMES["mount"] if now & _RELATIVE_TIMES["statvfs"] else 0)
        mount("none", path, _BIND | _REMOUNT | _READ_ONLY | _NO_SET_USER_ID | _NO_DEVICES | kept)


def hide(path: str, kind: str, text: bytes, *, is_folder: bool) -> None:
    """Mount an empty folder, or a file with no content of the covered one, over a path."""
    options = _READ_ONLY | _NO_SET_USER_ID | _NO_DEVICES
    if is_folder:
        mount("tmpfs", path, options, "tmpfs", f"mode={'0000' if kind == 'unreadable' else '0555'},size=64k")
        return
    mount("tmpfs", _SPARE_PLACE, options & ~_READ_ONLY, "tmpfs", "mode=0700,size=64k")
    try:
        source = f"{_SPARE_PLACE}/file"
        file = os.open(source, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(file, text if kind == "secret" else b"")
        os.fchmod(file, _MODES[kind])
        os.close(file)
        mount(source, path, _BIND)
        mount("none", path, _BIND | _REMOUNT | options)
    finally:
        checked(libc.umount2(os.fsencode(_SPARE_PLACE), _DETACH))


def cover(path: str, kind: str, text: bytes) -> str:
    """Mount one cover. Returns its state."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    if os.path.realpath(path) != path:
        return "link"
    if kind in _MODES:
        hide(path, kind, text, is_folder=stat.S_ISDIR(mode))
    else:
        bind(path, read_only=kind != "write")
    return "covered"


def cover_all(wanted: list[str], text: bytes, own_proc: int) -> list[str]:
    """Mount the covers that are gone. Returns each path and its state."""
    there = mount_points(own_proc)
    answer: list[str] = []
    for kind, path in zip(wanted[::2], wanted[1::2], strict=True):
        answer += (path, "on" if path in there else cover_in_tries(path, kind, text))
    return answer


def cover_in_tries(path: str, kind: str, text: bytes) -> str:
    """As `cover`. Tries again after an error: the path may have been replaced, or deleted, meanwhile."""
    state = ""
    for _ in range(_TRIES):
        try:
            return cover(path, kind, text)
        except (OSError, ValueError) as error:
            state = str(getattr(error, "strerror", "") or error)
    return state


def join(namespace: int) -> int:
    """Join a mount namespace. Returns the folder of this process in the /proc outside of it. Raises `OSError`."""
    own_proc = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
    owner = fcntl.ioctl(namespace, _GET_OWNING_USER_NAMESPACE)
    checked(libc.setns(owner, _NEW_USER))
    checked(libc.setns(namespace, _NEW_MOUNTS))
    return own_proc


def answer(namespace: int, file: int, reply: socket.socket) -> None:
    """Do one request. An answer that is empty says that no cover was examined."""
    with os.fdopen(file, "rb") as given:
        text, *words = given.read().split(b"\0")[:-1]
    said = cover_all([os.fsdecode(each) for each in words], text, join(namespace))
    reply.sendall(b"".join(os.fsencode(each) + b"\0" for each in said))


def serve(control: socket.socket) -> None:
    """Answer requests until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the children
    while True:
        said, descriptors, _, _ = socket.recv_fds(control, 64, 3)
        if not said:
            return
        namespace, file, reply = descriptors
        with socket.socket(fileno=reply) as connection:
            if os.fork() == 0:
                control.close()
                signal.alarm(_LONGEST_S)
                answer(namespace, file, connection)
                os._exit(0)
        os.close(namespace)
        os.close(file)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
