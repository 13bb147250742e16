"""Builds the system call filter (seccomp, classic BPF) that every sandbox loads.

The filter refuses calls that programs of a workspace do not need and that would weaken the sandbox. It allows all
others: it is a second line of defense. Numbers are those of Linux' unistd.h, audit.h, seccomp.h, sched.h and socket.h.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import msgspec

_LOAD, _AND, _JUMP_IF, _JUMP_IF_AT_LEAST, _JUMP_IF_ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_KILL, _ALLOW, _ERRNO, _NOTIFY = 0x80000000, 0x7FFF0000, 0x00050000, 0x7FC00000
_EPERM, _ENOSYS = 1, 38
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`; arguments have 8 bytes
_FIRST, _SECOND, _THIRD, _FOURTH = 16, 24, 32, 40  # the low half of each argument
_NEW_NAMESPACES = 0x7E020000
_TYPE_INTO_A_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, and TIOCLINUX, which pastes
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCKET_TYPES, _STREAM, _PACKETS = 0xF, 1, 5
_TCP = 6
_FAST_OPEN = 0x20000000  # MSG_FASTOPEN, which connects
_ROUTING_OPTIONS: Final = {0: (4, 50), 1: (25, 62), _TCP: (30, 31)}
"""Options by level with which a connection could leave by another way than its address says, or later: IP_OPTIONS,
IP_UNICAST_IF; SO_BINDTODEVICE, SO_BINDTOIFINDEX; TCP_FASTOPEN_CONNECT, TCP_ULP."""
_X32 = 0x40000000

_REFUSED_ON_X86_64: Final = (
    "ptrace=101 syslog=103 uselib=134 pivot_root=155 adjtimex=159 chroot=161 acct=163 settimeofday=164 mount=165 "
    "umount2=166 swapon=167 swapoff=168 reboot=169 iopl=172 ioperm=173 init_module=175 delete_module=176 "
    "quotactl=179 nfsservctl=180 lookup_dcookie=212 clock_settime=227 kexec_load=246 add_key=248 request_key=249 "
    "keyctl=250 perf_event_open=298 fanotify_init=300 open_by_handle_at=304 clock_adjtime=305 setns=308 "
    "process_vm_readv=310 process_vm_writev=311 kcmp=312 finit_module=313 kexec_file_load=320 bpf=321 "
    "userfaultfd=323 vhangup=153"
)
"""Calls and their numbers."""
_REFUSED_ON_AARCH64: Final = (
    "ptrace=117 syslog=116 pivot_root=41 adjtimex=171 chroot=51 acct=89 settimeofday=170 mount=40 umount2=39 "
    "swapon=224 swapoff=225 reboot=142 init_module=105 delete_module=106 quotactl=60 nfsservctl=42 "
    "lookup_dcookie=18 clock_settime=112 kexec_load=104 add_key=217 request_key=218 keyctl=219 "
    "perf_event_open=241 fanotify_init=262 open_by_handle_at=265 clock_adjtime=266 setns=268 process_vm_readv=270 "
    "process_vm_writev=271 kcmp=272 finit_module=273 kexec_file_load=294 bpf=280 userfaultfd=282 vhangup=58"
)
"""The same calls; uselib, iopl and ioperm do not exist on this processor."""
_REFUSED_EVERYWHERE: Final = (
    "io_uring_setup=425 io_uring_enter=426 io_uring_register=427 open_tree=428 move_mount=429 fsopen=430 "
    "fsconfig=431 fsmount=432 fspick=433 pidfd_getfd=438 mount_setattr=442 quotactl_fd=443 open_tree_attr=467"
)
"""Newer calls, which have the same number on all processors."""
_CLONE3 = 435
_OPENAT2 = 437
_SET_USER_ID = 0o4000
_CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE; without them the kernel ignores the mode, and it may be anything
_MODES_ON_X86_64: Final = "2/2/1 85/1 90/1 91/1 133/1 257/3/2 259/2 268/2 452/2"
"""open, creat, chmod, fchmod, mknod, openat, mknodat, fchmodat, fchmodat2: number, which argument is the mode (from 0),
and which the flags that say whether it counts."""
_MODES_ON_AARCH64: Final = "33/2 52/1 53/2 56/3/2 452/2"
"""mknodat, fchmod, fchmodat, openat, fchmodat2."""
_SHARED_ON_X86_64: Final = (
    "shmget=29 shmat=30 shmctl=31 semget=64 semop=65 semctl=66 msgget=68 msgsnd=69 msgrcv=70 msgctl=71 "
    "semtimedop=220 mq_open=240 mq_unlink=241"
)
"""Calls for objects shared with the user's other programs, which need a namespace for IPC otherwise."""
_SHARED_ON_AARCH64: Final = (
    "shmget=194 shmat=196 shmctl=195 semget=190 semop=193 semctl=191 msgget=186 msgsnd=189 msgrcv=188 msgctl=187 "
    "semtimedop=192 mq_open=180 mq_unlink=181"
)


class _ConnectingCalls(msgspec.Struct, frozen=True):
    """Numbers of the calls that connect a socket, or decide how."""

    connect: int
    listen: int
    setsockopt: int
    sending: tuple[tuple[int, int], ...]
    """Of sendto, sendmsg, sendmmsg: the number, and the offset of the flags."""


class _Machine(msgspec.Struct, frozen=True):
    """System call numbers of one kind of processor."""

    name: int
    socket: int
    socketpair: int
    ioctl: int
    clone: int
    unshare: int
    prlimit: int
    refused: str
    modes: str
    shared: str
    connecting: "_ConnectingCalls"
    has_x32: bool = False


_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        41,
        53,
        16,
        56,
        272,
        302,
        _REFUSED_ON_X86_64,
        _MODES_ON_X86_64,
        _SHARED_ON_X86_64,
        _ConnectingCalls(42, 50, 54, ((44, _FOURTH), (46, _THIRD), (307, _FOURTH))),
        has_x32=True,
    ),
    "aarch64": _Machine(
        0xC00000B7,
        198,
        199,
        29,
        220,
        97,
        261,
        _REFUSED_ON_AARCH64,
        _MODES_ON_AARCH64,
        _SHARED_ON_AARCH64,
        _ConnectingCalls(203, 201, 208, ((206, _FOURTH), (211, _THIRD), (269, _FOURTH))),
    ),
}


class _Program:
    """Instructions, with labels for jump targets further down."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str, str, int]] = []
        self._places: dict[str, int] = {}

    def add(self, code: int, value: int, yes: str = "", no: str = "") -> None:
        self._lines.append((code, yes, no, value))

    def place(self, name: str) -> None:
        self._places[name] = len(self._lines)

    def encoded(self) -> bytes:
        return b"".join(
            struct.pack("=HBBI", code, self._distance(yes, here), self._distance(no, here), value)
            for here, (code, yes, no, value) in enumerate(self._lines, start=1)
        )

    def _distance(self, name: str, here: int) -> int:
        return self._places[name] - here if name else 0


@lru_cache(maxsize=8)
def filter_for(
    internet: bool = False,
    machine: str = "",
    *,
    streams_only: bool = False,
    sees_others: bool = False,
    supervised: bool = False,
) -> bytes:
    """The filter as the kernel takes it: an array of `struct sock_filter`.

    `internet` allows internet sockets, and `streams_only` restricts them to TCP. Of Unix sockets only connected pairs
    are allowed, and none of datagrams. `sees_others` is for programs without namespaces: it refuses shared memory,
    semaphores, message queues, and limits of other processes. `supervised` allows TCP sockets that a supervisor
    connects: `connect` asks it, and every other way to connect or to be connected to is refused. `machine` is the kind
    of processor; by default this
    machine's. Raises `KeyError` for an unknown one.
    """
    numbers = _MACHINES[machine or _this_machine()]
    program = _Program()
    program.add(_LOAD, _MACHINE)
    program.add(_JUMP_IF, numbers.name, no="kill")
    program.add(_LOAD, _NUMBER)
    if numbers.has_x32:
        program.add(_JUMP_IF_AT_LEAST, _X32, yes="kill")
    program.add(_JUMP_IF, numbers.socketpair, yes="pair")
    for number, name in ((numbers.socket, "socket"), (numbers.ioctl, "ioctl"), (numbers.clone, "namespaces")):
        program.add(_JUMP_IF, number, yes=name)
    program.add(_JUMP_IF, numbers.unshare, yes="namespaces")
    for number in (
        _CLONE3,
        _OPENAT2,
    ):  # their flags lie in memory, which a filter can't read; after ENOSYS programs use the older call
        program.add(_JUMP_IF, number, yes="unknown")
    modes = [tuple(map(int, each.split("/"))) for each in numbers.modes.split(" ")]
    for number, *_ in modes:
        program.add(_JUMP_IF, number, yes=f"mode of {number}")
    if sees_others:
        program.add(_JUMP_IF, numbers.prlimit, yes="limits")
    if supervised:
        _ask_about_connections(program, numbers.connecting)
    shared = f" {numbers.shared}" if sees_others else ""
    for number in _numbers_in(f"{numbers.refused} {_REFUSED_EVERYWHERE}{shared}"):
        program.add(_JUMP_IF, number, yes="refuse")
    program.add(_RETURN, _ALLOW)
    _refuse_set_user_id(program, modes)
    if supervised:
        _check_connections(program, numbers.connecting)
    _check_sockets(program, internet=internet or supervised, streams_only=streams_only, tcp_only=supervised)
    _check_arguments(program)
    return program.encoded()


def _numbers_in(calls: str) -> list[int]:
    return sorted(int(each.partition("=")[2]) for each in calls.split(" "))


def _ask_about_connections(program: _Program, calls: _ConnectingCalls) -> None:
    program.add(_JUMP_IF, calls.connect, yes="ask")
    program.add(_JUMP_IF, calls.listen, yes="refuse")
    program.add(_JUMP_IF, calls.setsockopt, yes="option")
    for number, flags in calls.sending:
        program.add(_JUMP_IF, number, yes=f"flags at {flags}")


def _check_connections(program: _Program, calls: _ConnectingCalls) -> None:
    for flags in sorted({flags for _, flags in calls.sending}):
        program.place(f"flags at {flags}")
        program.add(_LOAD, flags)
        program.add(_JUMP_IF_ANY_BIT, _FAST_OPEN, yes="refuse", no="allow")
    program.place("option")
    program.add(_LOAD, _SECOND)
    for level in _ROUTING_OPTIONS:
        program.add(_JUMP_IF, level, yes=f"options of {level}")
    program.add(_RETURN, _ALLOW)
    for level, options in _ROUTING_OPTIONS.items():
        program.place(f"options of {level}")
        program.add(_LOAD, _THIRD)
        for option in options:
            program.add(_JUMP_IF, option, yes="refuse")
        program.add(_RETURN, _ALLOW)
    program.place("ask")
    program.add(_RETURN, _NOTIFY)


def _check_sockets(program: _Program, *, internet: bool, streams_only: bool, tcp_only: bool) -> None:
    program.place("pair")  # a datagram socket can leave its pair, and send to any socket in the file system
    program.add(_LOAD, _FIRST)
    program.add(_JUMP_IF, _AF_UNIX, no="refuse")  # TIPC, which leads to other machines, has pairs, too
    program.add(_LOAD, _SECOND)
    program.add(_AND, _SOCKET_TYPES)
    program.add(_JUMP_IF, _STREAM, yes="allow")
    program.add(_JUMP_IF, _PACKETS, yes="allow", no="refuse")
    program.place("socket")
    program.add(_LOAD, _FIRST)
    for family in (_AF_INET, _AF_INET6) if internet else ():
        program.add(_JUMP_IF, family, yes="internet")
    program.add(_RETURN, _ERRNO | _EPERM)
    program.place("internet")
    if tcp_only:
        program.add(_LOAD, _THIRD)
        program.add(_JUMP_IF, 0, yes="stream")
        program.add(_JUMP_IF, _TCP, yes="stream", no="refuse")  # not MPTCP, SCTP or SMC
        program.place("stream")
    if streams_only or tcp_only:
        program.add(_LOAD, _SECOND)
        program.add(_AND, _SOCKET_TYPES)
        program.add(_JUMP_IF, _STREAM, yes="allow", no="refuse")
    else:
        program.add(_RETURN, _ALLOW)


def _refuse_set_user_id(program: _Program, modes: Iterable[tuple[int, ...]]) -> None:
    """Refuse to set the set-user-ID bit: a program with it would run with this user's rights when others start it."""
    for number, mode, *flags in modes:
        program.place(f"mode of {number}")
        for each in flags:
            program.add(_LOAD, _ARGUMENTS + 8 * each)
            program.add(_JUMP_IF_ANY_BIT, _CREATES, no="allow")
        program.add(_LOAD, _ARGUMENTS + 8 * mode)
        program.add(_JUMP_IF_ANY_BIT, _SET_USER_ID, yes="refuse", no="allow")


def _check_arguments(program: _Program) -> None:
    program.place("ioctl")
    program.add(_LOAD, _SECOND)
    for request in _TYPE_INTO_A_TERMINAL:
        program.add(_JUMP_IF, request, yes="refuse")
    program.add(_RETURN, _ALLOW)
    program.place("limits")
    program.add(_LOAD, _FIRST)
    program.add(_JUMP_IF, 0, yes="allow", no="refuse")  # 0 is the calling process itself
    program.place("namespaces")
    program.add(_LOAD, _FIRST)
    program.add(_JUMP_IF_ANY_BIT, _NEW_NAMESPACES, yes="refuse")
    program.place("allow")
    program.add(_RETURN, _ALLOW)
    program.place("refuse")
    program.add(_RETURN, _ERRNO | _EPERM)
    program.place("unknown")
    program.add(_RETURN, _ERRNO | _ENOSYS)
    program.place("kill")
    program.add(_RETURN, _KILL)


def is_known(machine: str = "") -> bool:
    """Whether there is a filter for this kind of processor."""
    return (machine or _this_machine()) in _MACHINES


def _this_machine() -> str:
    import os

    return os.uname().machine
