"""Starts a program with Landlock and a system call filter, below a process that supervises it. Runs stand-alone.

`landlock` starts `python -I -S -c` with a line that loads this code and calls `main`. The order consists of fields
separated by NUL: `network`, `domains` or nothing, the numbers of rules, words and variables, then those themselves; the
rest is the filter. A rule is a letter and a path.

There are three processes. The first one, which the agent started, passes on how the program ended. The second one is
the supervisor: the parent of all processes of the program that have lost theirs. The third one restricts itself and
executes the program. The program's own variables must not take effect before the limits: they may tell the dynamic
linker what to load. If a limit can't be set, the program is not started.
"""

import ctypes
import errno
import os
import stat
import struct

TYPE_CHECKING = False  # `typing` takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import NoReturn

# Constants of linux/landlock.h, prctl.h and capability.h; these system calls have the same numbers on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER, _DROP_FROM_BOUND, _ADOPT_ORPHANS = 38, 22, 2, 24, 36
_CAPABILITIES_V3 = 0x20080522
_HIGHEST_CAPABILITY = 63

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MOVE, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15  # move: to another folder (LANDLOCK_ACCESS_FS_REFER)
_MAKE_DEVICES = 1 << 6 | 1 << 11
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = 0xFFFF & ~_MAKE_DEVICES & ~_IOCTL_DEV
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_RIGHTS = {b"l": _READ_DIR, b"r": _READ, b"s": _READ, b"w": _WRITE, b"t": _WRITE, b"d": _DEVICE}
_STEP_BY_STEP = (b"s", b"t")
"""Rules whose paths contain no link: other users may put one there at any moment."""
_NOT_FOLLOWED = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
_BITS_BY_VERSION = (0, 13, 14, 15, 15, 16)

_ABSTRACT_SOCKETS, _SIGNALS = 1, 2  # scopes of Landlock
_SCOPES_SINCE = 6
_NO_CORE = ctypes.c_ulong * 2
_RLIMIT_CORE = 4
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 1 << 3, 1 << 5
_KILL = 9  # `signal` takes long to import
_IGNORED_ABOVE = (1, 2, 3, 15)
"""SIGHUP, SIGINT, SIGQUIT, SIGTERM: they may be sent to the program and must not end the processes above it."""
_IGNORED_BY_PYTHON = (13, 25)
"""SIGPIPE, SIGXFSZ."""
_DEFAULT, _IGNORE = 0, 1

_NOT_SET_UP = "the sandbox can't be set up, so nothing was started"

libc = ctypes.CDLL(None, use_errno=True)
libc.signal.argtypes, libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p


def must(returned: int) -> int:
    """The return value of a C call. Raises `OSError` if the call failed."""
    if returned < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return returned


def version() -> int:
    """Version of Landlock in this kernel; 0 if there is none."""
    return max(0, libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_ASK_VERSION)))


def rule_set(rules: list[bytes], version: int, *, network: bool) -> int:
    """Descriptor of a rule set. Access that no rule allows is refused, as far as this version of Landlock knows it."""
    handled = (1 << _BITS_BY_VERSION[min(version, 5)]) - 1
    tcp = 3 if version >= 4 and not network else 0
    scopes = _ABSTRACT_SOCKETS | _SIGNALS if version >= _SCOPES_SINCE else 0
    size = 24 if version >= _SCOPES_SINCE else 16 if version >= 4 else 8
    wanted = struct.pack("=QQQ", handled, tcp, scopes)[:size]
    made = must(libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(size), ctypes.c_uint(0)))
    for rule in rules:
        kind, path = rule[:1], rule[1:]
        add(made, path, _RIGHTS[kind] & handled, opening=open_step_by_step if kind in _STEP_BY_STEP else open_path)
    return made


def open_path(path: bytes) -> int:
    """A descriptor of a path that may lead through links. Raises `OSError`."""
    return os.open(path, _NOT_FOLLOWED)


def open_step_by_step(path: bytes) -> int:
    """A descriptor of a regular file or a folder to which no link leads. Raises `OSError`."""
    opened = os.open(b"/", _NOT_FOLLOWED)
    *folders, last = path.strip(b"/").split(b"/")
    for name, flags in (*((folder, os.O_DIRECTORY) for folder in folders), (last, 0)):
        above = opened
        try:
            opened = os.open(name, _NOT_FOLLOWED | flags, dir_fd=above)
        finally:
            os.close(above)
    if stat.S_IFMT(os.fstat(opened).st_mode) in (stat.S_IFREG, stat.S_IFDIR):
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def add(made: int, path: bytes, rights: int, *, opening: "Callable[[bytes], int]" = open_path) -> None:
    """Allow access beneath a path. A path that does not exist or can't be reached needs no rule."""
    try:
        place = opening(path)
    except OSError:
        return
    if not stat.S_ISDIR(os.fstat(place).st_mode):
        rights &= _OF_FILES
    if libc.syscall(_ADD_RULE, made, _PATH_BENEATH, struct.pack("=Qi", rights, place), ctypes.c_uint(0)) < 0:
        number = ctypes.get_errno()
        if number != errno.EBADFD:  # not on a file system that Landlock controls
            raise OSError(number, os.strerror(number), path)
    os.close(place)


def give_up_privileges() -> None:
    """Drop all capabilities for good: with them root could read files of others and change its limits."""
    must(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    for capability in range(_HIGHEST_CAPABILITY + 1):
        if libc.prctl(_DROP_FROM_BOUND, capability, 0, 0, 0) < 0:
            break  # not root, or no more capabilities; the capability sets are cleared below
    must(libc.capset(struct.pack("=Ii", _CAPABILITIES_V3, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0)))


def load_filter(code: bytes) -> None:
    """Load the system call filter."""
    program, _held = filter_program(code)
    must(libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))


def load_supervised_filter(code: bytes, passing: int) -> None:
    """Load a filter that asks about connections, and send the descriptor that answers them. Raises `OSError`."""
    import _socket

    number = _SECCOMP[os.uname().machine]
    program, _held = filter_program(code)
    made = must(libc.syscall(number, _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, program))
    sender = _socket.socket(fileno=passing)
    sender.sendmsg([b"f"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", made))])
    sender.close()
    os.close(made)


def filter_program(code: bytes) -> "tuple[bytes, object]":
    """The structure that the kernel takes, and what has to live as long."""
    held = ctypes.create_string_buffer(code, len(code))
    layout = "HxxxxxxP" if ctypes.sizeof(ctypes.c_void_p) == 8 else "HxxP"
    return struct.pack(layout, len(code) // 8, ctypes.addressof(held)), held


def become(argv: list[bytes], environment: dict[bytes, bytes]) -> "NoReturn":
    """Execute the program in place of this one; returns only by an error."""
    if b"/" in argv[0]:
        os.execve(argv[0], argv, environment)
    os.execvpe(argv[0], argv, environment)


class Order:
    """What to start, and within which limits."""

    def __init__(self, text: bytes) -> None:
        """`text` is the order as the module describes it."""
        network, *counts, rest = text.split(b"\0", 4)
        rules, words, variables = map(int, counts)
        *fields, self.filter = rest.split(b"\0", rules + words + variables)
        self.network = network == b"network"
        self.is_proxied = network == b"domains"
        self.rules, self.argv = fields[:rules], fields[rules : rules + words]
        self.environment = dict(each.split(b"=", 1) for each in fields[rules + words :])


def main(supervisor_code: "CodeType | str", text: bytes, control: int, network: int) -> None:
    """Start the supervisor and the program by the order `text`, and end as the program does.

    `control` and `network` are sockets to the agent (see `landlock_supervisor`, whose code or text is the first
    argument); `network` is -1 without a proxy.
    """
    order = Order(text)
    before = {number: libc.signal(number, _IGNORE) for number in _IGNORED_ABOVE}
    reading, writing = os.pipe()
    listening, passing = channel() if order.is_proxied else (-1, -1)
    try:
        is_scoped = scope_signals()
        supervisor = os.fork()
    except OSError as error:
        end(126, f"{_NOT_SET_UP}: {error}")
    if supervisor:
        keep_only(reading)
        end_as_the_program(supervisor, reading, is_scoped=is_scoped)
    try:
        os.setsid()  # a signal to the agent's child and its group spares the supervisor
        must(libc.prctl(_ADOPT_ORPHANS, 1, 0, 0, 0))
        program = os.fork()
    except OSError as error:
        end(126, f"{_NOT_SET_UP}: {error}")
    if not program:
        for each in (control, network, reading, writing, listening):
            if each >= 0:
                os.close(each)
        os.setsid()
        for number, handler in before.items():
            libc.signal(number, handler)
        start(order, passing)
    os.write(control, b'{"child-pid": %d, "group": %d}' % (os.getpid(), program))
    keep_only(control, writing, network, listening)
    names: dict[str, Callable[[int, int, int, bool, tuple[int, int]], None]] = {}
    exec(supervisor_code, names)  # noqa: S102 - a file of bradawl
    names["supervise"](program, writing, control, is_scoped, (network, listening))


def channel() -> tuple[int, int]:
    """Two connected sockets, to pass a descriptor."""
    import _socket  # `socket` takes long to import

    one, other = _socket.socketpair()
    return one.detach(), other.detach()


def scope_signals() -> bool:
    """Enter a Landlock domain that this process, the supervisor and the program share; False if signals reach others.

    A signal that a process of the domain sends to all processes (-1) reaches those of the domain alone, and the
    program can't signal the processes above it: its own domain lies inside.
    """
    must(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if version() < _SCOPES_SINCE:
        return False
    wanted = struct.pack("=QQQ", _MOVE, 0, _SIGNALS)
    made = must(libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(24), ctypes.c_uint(0)))
    add(made, b"/", _MOVE)  # a domain that does not allow it anywhere refuses it everywhere
    must(libc.syscall(_RESTRICT_SELF, made, ctypes.c_uint(0)))
    os.close(made)
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def keep_only(*descriptors: int) -> None:
    """Close all other descriptors: as long as one is open the program's output has no end."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - `pathlib` takes long to import
        if int(name) not in descriptors:
            try:
                os.close(int(name))
            except OSError:  # that of the list itself
                continue


def end_as_the_program(supervisor: int, reading: int, *, is_scoped: bool) -> "NoReturn":
    """Wait for the program's end, then exit with its code or end by its signal. Without a supervisor all ends."""
    said = os.read(reading, 8)
    if len(said) < 8:
        if is_scoped:
            os.kill(-1, _KILL)
        os._exit(137)
    status, is_last = struct.unpack("ii", said)
    if is_last:
        os.waitpid(supervisor, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        libc.setrlimit(_RLIMIT_CORE, _NO_CORE(0, 0))
        if number != _KILL:
            libc.signal(number, _DEFAULT)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 137)


def start(order: Order, passing: int) -> "NoReturn":
    """Set the limits and execute the program. Exits with 126 or 127, as shells do, if that fails."""
    for number in _IGNORED_BY_PYTHON:
        libc.signal(number, _DEFAULT)
    argv = order.argv
    try:
        made = rule_set(order.rules, version(), network=order.network)
        give_up_privileges()
        must(libc.syscall(_RESTRICT_SELF, made, ctypes.c_uint(0)))
        os.close(made)
        if order.is_proxied:
            load_supervised_filter(order.filter, passing)
        else:
            load_filter(order.filter)
    except OSError as error:
        end(126, f"{_NOT_SET_UP}: {error}")
    try:
        become(argv, order.environment)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        name = argv[0][:80].decode(errors="replace")
        end(127 if is_missing else 126, f"{name}: {'not found' if is_missing else error.strerror}")


def end(code: int, why: str) -> "NoReturn":
    """Print the reason and exit without cleanup."""
    os.write(2, f"bradawl: {why}\n".encode(errors="replace"))
    os._exit(code)
