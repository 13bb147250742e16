"""Supervises one program that Landlock confines: ends its processes, connects its sockets. `landlock_helper` runs it.

All processes whose parents have ended become children of this one, whatever they did with their session, group and
environment. So a process without children is the proof that none is left: it exits then, and only then.

On the socket to the agent `landlock_helper` has written JSON with the PIDs of this process and of the program. Before
it exits, this process writes `e`. A byte from the agent ends all processes at once; if the agent is gone they are
terminated, and killed half a second later.

The kernel asks this process about each `connect` of the program, which Landlock alone would refuse. The only address it
accepts is that of the network proxy. It takes a duplicate of the program's socket and connects that to a listener of
its own, which it opens for this connection; the accepted end goes to the agent. The kernel never continues the
program's own call, so that it makes no difference what the program changes meanwhile.

The program's options of its socket can make the connection fail silently. So each question has a thread of its own, and
the socket does not block: the program could make it block again in between, but then only that thread waits.
"""

import _socket  # `socket` takes long to import
import _thread
import ctypes
import errno
import os
import struct
import time

_ANY_KIND = 0x40000000  # __WALL: also children that don't end with SIGCHLD
_TERMINATE, _KILL = 15, 9
_GRACE_S = 0.5
_PAUSE_S = 0.002
_PROXY = (b"\x7f\0\0\1", 19_080)
_MAPPED = bytes(10) + b"\xff\xff"
_INET, _INET6, _STREAM, _TCP = 2, 10, 1, 6
_LONGEST_ADDRESS = 128
_CONNECT_LIMIT_S = 2.0
_MOST_THREADS = 64
"""Connections at a time; further ones are refused for the moment."""
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_NOTICE = "=QIIiIQ6Q"  # struct seccomp_notif
_OPEN_PIDFD, _GET_FD = 434, 438
_ONE_THREAD = 0o200  # PIDFD_THREAD
_NOWHERE = bytes(16)  # an address of AF_UNSPEC, to which a socket connects to be free again
_DO_NOT_WAIT = 0x40  # MSG_DONTWAIT

libc = ctypes.CDLL(None, use_errno=True)


class Socket(_socket.socket):
    """A socket that is closed at the end of a `with` block."""

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def supervise(program: int, status: int, control: int, is_scoped: bool, network: tuple[int, int]) -> None:
    """Reap until no child is left, then exit. Writes how the program ended to `status`. Does not return.

    `is_scoped`: a signal to all processes reaches only this one's descendants and its parent. `network` are the socket
    to the agent that takes connections, and that from which the descriptor for questions about them comes; or -1 twice.
    """
    _thread.start_new_thread(obey, (control, is_scoped))
    if network[0] >= 0:
        _thread.start_new_thread(answer_connects, network)
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


# ---------------------------------------------------------------------- connections


def must(returned: int) -> int:
    """The return value of a C call. Raises `OSError` if the call failed."""
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


def answer_connects(network: int, channel: int) -> None:
    """Answer the kernel's questions about `connect` until the process ends."""
    with Socket(fileno=channel) as receiving:
        _, messages, _, _ = receiving.recvmsg(1, 64)
    (questions,) = struct.unpack("i", messages[0][2][:4])
    agent = Socket(fileno=network)
    size = struct.calcsize(_NOTICE)
    free = [None] * _MOST_THREADS
    while True:
        notice = ctypes.create_string_buffer(size)  # the kernel wants zeros
        if libc.ioctl(questions, ctypes.c_ulong(_RECEIVE), notice) < 0:
            time.sleep(_PAUSE_S)
            continue
        try:
            free.pop()
        except IndexError:
            send_answer(questions, struct.unpack(_NOTICE, notice.raw)[0], errno.EAGAIN)
            continue
        try:
            _thread.start_new_thread(answer, (agent, questions, notice.raw, free))
        except RuntimeError:  # the program has used up the processes
            answer(agent, questions, notice.raw, free)


def answer(agent: Socket, questions: int, notice: bytes, free: "list[None]") -> None:
    """Answer one question; adds to `free` at the end."""
    key, thread, _, _, _, _, descriptor, address, length, *_ = struct.unpack(_NOTICE, notice)
    try:
        code = connect(agent, questions, key, thread, (descriptor, address, length))
    except OSError as error:
        code = error.errno or errno.EACCES
    except (LookupError, MemoryError, RuntimeError, StopIteration, ValueError, struct.error):
        code = errno.EACCES  # without an answer the program would wait forever
    send_answer(questions, key, code)
    free.append(None)


def send_answer(questions: int, key: int, code: int) -> None:
    """Let a call return with an error number, or 0."""
    libc.ioctl(questions, ctypes.c_ulong(_SEND), ctypes.create_string_buffer(struct.pack("=QqiI", key, 0, -code, 0)))


def connect(agent: Socket, questions: int, key: int, thread: int, arguments: tuple[int, int, int]) -> int:
    """Connect a socket of a thread to the proxy; the error number, or 0. Raises `OSError`."""
    descriptor, place, length = arguments
    pidfd = open_thread(thread)
    try:
        address = read_memory(thread, place, length & 0xFFFFFFFF)
        held = must(libc.syscall(_GET_FD, pidfd, ctypes.c_int(descriptor & 0xFFFFFFFF), ctypes.c_uint(0)))
    finally:
        os.close(pidfd)
    with own_socket(held) as theirs:
        # Valid now: the thread still waits, so both were its own.
        must(libc.ioctl(questions, ctypes.c_ulong(_IS_VALID), struct.pack("=Q", key)))
        if (theirs.family, theirs.type, theirs.proto) not in {(_INET, _STREAM, _TCP), (_INET6, _STREAM, _TCP)}:
            return errno.EACCES
        if refused := why_refused(theirs.family, address):
            return refused
        return connect_to_agent(agent, theirs)


def own_socket(held: int) -> Socket:
    """The socket of a descriptor, which is owned here. Raises `OSError`, after closing it, if it is of something else:
    the end of a pipe that stayed open here would keep the program's readers waiting.
    """
    try:
        return Socket(fileno=held)
    except OSError:
        os.close(held)
        raise


def open_thread(thread: int) -> int:
    """A descriptor of a thread, or before Linux 6.9 of its process. Raises `OSError`."""
    made = libc.syscall(_OPEN_PIDFD, thread, ctypes.c_uint(_ONE_THREAD))
    if made >= 0:
        return made
    with open(f"/proc/{thread}/status", "rb") as file:  # noqa: PTH123 - as above
        process = next(int(line.split()[1]) for line in file if line.startswith(b"Tgid:"))
    return must(libc.syscall(_OPEN_PIDFD, process, ctypes.c_uint(0)))


def read_memory(thread: int, place: int, length: int) -> bytes:
    """Bytes of a thread's memory. Raises `OSError`: EINVAL for a length that no address has, EFAULT if unreadable."""
    if not 2 <= length <= _LONGEST_ADDRESS:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.pread(memory, length, place)
    except (OSError, OverflowError):
        data = b""
    finally:
        os.close(memory)
    if len(data) < length:
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    return data


def why_refused(family: int, address: bytes) -> int:
    """The error number for an address that is not the proxy's, or 0."""
    (kind,) = struct.unpack("=H", address[:2])
    if kind == _INET and len(address) >= 16:
        host = address[4:8]
    elif kind == _INET6 and len(address) >= 24:
        host = address[8:24].removeprefix(_MAPPED)
    else:
        return errno.EAFNOSUPPORT
    if kind != family:
        return errno.EAFNOSUPPORT
    (port,) = struct.unpack("!H", address[2:4])
    if (host, port) == _PROXY:
        return 0
    is_here = host[:1] == b"\x7f" if len(host) == 4 else host == bytes(15) + b"\1"
    return errno.EACCES if is_here else errno.ENETUNREACH


def connect_to_agent(agent: Socket, theirs: Socket) -> int:
    """Connect a TCP socket to a new listener, and send the accepted end to the agent. Returns as `connect` does."""
    try:
        theirs.getpeername()
        is_connected = True
    except OSError:
        is_connected = False
    number = theirs.fileno()
    blocks = os.get_blocking(number)
    with Socket(_INET, _STREAM, 0) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        address = ("127.0.0.1" if theirs.family == _INET else "::ffff:127.0.0.1", listener.getsockname()[1])
        os.set_blocking(number, False)
        try:
            code = theirs.connect_ex(address)
            if is_connected or code not in (0, errno.EINPROGRESS):
                return code
            if not is_accepted(agent, listener, theirs.getsockname()[1]):
                # It would try again later, when the port may be that of another program.
                libc.connect(number, _NOWHERE, len(_NOWHERE))
                return errno.ECONNREFUSED
            return theirs.connect_ex(address) if blocks else code  # for the kernel, the first call has not ended
        finally:
            if blocks:
                os.set_blocking(number, True)


def is_accepted(agent: Socket, listener: Socket, port: int) -> bool:
    """Accept the connection from a port, and send it to the agent; False if that takes too long."""
    until = time.monotonic() + _CONNECT_LIMIT_S
    while (left := until - time.monotonic()) > 0:
        listener.settimeout(left)
        try:
            accepted, peer = listener._accept()  # pyright: ignore[reportAttributeAccessIssue] - of `_socket`
        except TimeoutError:
            return False
        try:
            if peer == ("127.0.0.1", port):  # and no other program of this machine
                return is_sent(agent, accepted, until)
        finally:
            os.close(accepted)
    return False


def is_sent(agent: Socket, accepted: int, until: float) -> bool:
    """Send a connection to the agent; False if it takes none until then."""
    passed = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", accepted))]
    while True:
        try:
            agent.sendmsg([b"c"], passed, _DO_NOT_WAIT)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE_S)
        else:
            return True
