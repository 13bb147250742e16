"""Opens listening sockets inside the network namespaces of sandboxed programs. Runs stand-alone.

Started as `python -I -S -c TEXT CONTROL PORT`. Descriptor CONTROL is a socket that receives, per request, the PID of a
process in the namespace and one descriptor: the socket for the answer. The answer is the listening socket, or a text
that says why there is none. For each request a child process joins the user namespace that owns the network namespace,
and then the network namespace; a process can't return from there. Ends when CONTROL is closed at the other end.
"""

import ctypes
import fcntl
import os
import signal
import socket
import sys
from pathlib import Path

# Constants of linux/nsfs.h, sched.h and in.h.
_GET_OWNING_USER_NAMESPACE = 0xB701
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000
_FREE_BIND = 15
_BACKLOG = 1_024
_LONGEST_S = 5

libc = ctypes.CDLL(None, use_errno=True)


def join(namespace: int, kind: int) -> None:
    """Move this process into a namespace. Raises `OSError`."""
    if libc.setns(namespace, kind) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def listening_socket(pid: int, port: int) -> socket.socket:
    """A listening socket on 127.0.0.1 in the network namespace of a process. Raises `OSError`."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if os.fstat(network).st_ino == Path("/proc/self/ns/net").stat().st_ino:
        raise OSError("the process has no network namespace of its own")
    owner = fcntl.ioctl(network, _GET_OWNING_USER_NAMESPACE)
    join(owner, _NEW_USER)
    join(network, _NEW_NETWORK)
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.IPPROTO_IP, _FREE_BIND, 1)  # the launcher may not have set up the loopback interface yet
    made.bind(("127.0.0.1", port))
    made.listen(_BACKLOG)
    return made


def answer(reply: socket.socket, pid: int, port: int) -> None:
    """Send the listening socket or the reason why there is none."""
    try:
        made = listening_socket(pid, port)
    except OSError as error:
        reply.send((error.strerror or str(error)).encode("utf-8", "replace"))
    else:
        socket.send_fds(reply, [b"ok"], [made.fileno()])


def serve(control: socket.socket, port: int) -> None:
    """Answer requests until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the children
    while True:
        said, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not said:
            return
        with socket.socket(fileno=descriptors[0]) as reply:
            if os.fork() == 0:
                signal.alarm(_LONGEST_S)
                answer(reply, int(said), port)
                os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
