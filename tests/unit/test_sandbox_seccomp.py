"""The seccomp programs refuse and allow the intended system calls on each processor."""

import errno
import struct

import pytest

from bradawl.sandbox.seccomp import filter_for, is_known

KILL, ALLOW = 0x80000000, 0x7FFF0000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers of the same calls on both: socket, socketpair, ioctl, clone, unshare, ptrace, mount, bpf, read.
CALLS = {
    "x86_64": {
        "socket": 41,
        "socketpair": 53,
        "ioctl": 16,
        "clone": 56,
        "unshare": 272,
        "ptrace": 101,
        "mount": 165,
        "bpf": 321,
        "read": 0,
        "keyctl": 250,
        "process_vm_readv": 310,
        "userfaultfd": 323,
    },
    "aarch64": {
        "socket": 198,
        "socketpair": 199,
        "ioctl": 29,
        "clone": 220,
        "unshare": 97,
        "ptrace": 117,
        "mount": 40,
        "bpf": 280,
        "read": 63,
        "keyctl": 219,
        "process_vm_readv": 270,
        "userfaultfd": 282,
    },
}
UNIX, INET, INET6, NETLINK, PACKET, VSOCK = 1, 2, 10, 16, 17, 40
STREAM, DATAGRAM, RAW, CLOSE_ON_EXEC = 1, 2, 3, 0o2000000


def run(program: bytes, number: int, *arguments: int, machine: str) -> int:
    """The verdict of a seccomp program, by an interpreter of the few BPF instructions it uses."""
    values = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", number, MACHINES[machine], 0, *values)
    lines = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x54:
                accumulator &= value
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                return value


@pytest.fixture(params=MACHINES)
def machine(request):
    return request.param


def judged(call: str, *arguments: int, machine: str, internet=False, streams_only=False) -> int:
    program = filter_for(internet, machine, streams_only=streams_only)
    return run(program, CALLS[machine][call], *arguments, machine=machine)


def test_every_jump_ends_in_the_program(machine):
    for internet in (True, False):
        program = filter_for(internet, machine=machine)
        for at, (code, yes, no, _) in enumerate(struct.iter_unpack("=HBBI", program)):
            assert code == 6 or at + 1 + max(yes, no) < len(program) // 8


@pytest.mark.parametrize("call", ["ptrace", "mount", "bpf", "keyctl", "process_vm_readv", "userfaultfd"])
def test_system_calls_that_no_program_needs_are_refused(machine, call):
    for internet in (True, False):
        assert judged(call, machine=machine, internet=internet) == EPERM


def test_calls_on_resources_shared_without_namespaces_are_refused_only_there(machine):
    refused = (30, 31, 66, 69, 241) if machine == "x86_64" else (196, 195, 191, 189, 181)
    limits = 302 if machine == "x86_64" else 261
    apart, beside = filter_for(False, machine=machine), filter_for(False, machine=machine, sees_others=True)
    for number in refused:
        assert run(apart, number, machine=machine) == ALLOW
        assert run(beside, number, machine=machine) == EPERM
    assert run(beside, limits, 0, machine=machine) == run(apart, limits, 77, machine=machine) == ALLOW
    assert run(beside, limits, 77, machine=machine) == EPERM
    for at, (code, yes, no, _) in enumerate(struct.iter_unpack("=HBBI", beside)):
        assert code == 6 or at + 1 + max(yes, no) < len(beside) // 8


def test_ordinary_calls_are_allowed(machine):
    assert judged("read", machine=machine) == ALLOW
    assert judged("socketpair", UNIX, STREAM, machine=machine) == ALLOW


@pytest.mark.parametrize("flags", [0, 0o4000, 0o2000000, 0o2004000])
def test_pairs_of_datagram_sockets_are_refused_because_they_can_be_connected_anew(machine, flags):
    stream, datagram, raw, packets = 1, 2, 3, 5
    for kind in (stream, packets):
        assert judged("socketpair", UNIX, kind | flags, machine=machine) == ALLOW
    for kind in (datagram, raw):
        assert judged("socketpair", UNIX, kind | flags, machine=machine) == EPERM


@pytest.mark.parametrize("family", [0, INET, INET6, NETLINK, PACKET, 30, VSOCK, 43])
def test_pairs_of_other_families_than_unix_are_refused(machine, family):
    for kind in (STREAM, 5):  # TIPC (30) has both, on the network of the machine where there is no namespace
        assert judged("socketpair", family, kind, machine=machine) == EPERM
        assert judged("socketpair", family, kind, machine=machine, internet=True) == EPERM


@pytest.mark.parametrize("family", [UNIX, INET, INET6, NETLINK, PACKET, VSOCK, 38])
def test_without_network_no_socket_can_be_created(machine, family):
    for kind in (STREAM, DATAGRAM, RAW):
        assert judged("socket", family, kind, machine=machine) == EPERM


def test_with_network_internet_sockets_can_be_created_and_no_others(machine):
    found = [judged("socket", family, DATAGRAM, machine=machine, internet=True) for family in (INET, INET6)]
    assert found == [ALLOW] * 2
    for family in (UNIX, NETLINK, PACKET, VSOCK):
        for kind in (STREAM, DATAGRAM, RAW):
            assert judged("socket", family, kind, machine=machine, internet=True) == EPERM


def test_streams_only_permits_stream_sockets_with_any_flags(machine):
    def can_create(family: int, kind: int) -> int:
        return judged("socket", family, kind, machine=machine, internet=True, streams_only=True)

    assert [can_create(INET, STREAM), can_create(INET6, STREAM | CLOSE_ON_EXEC)] == [ALLOW] * 2
    assert [
        can_create(INET, DATAGRAM),
        can_create(INET, RAW),
        can_create(INET6, DATAGRAM | CLOSE_ON_EXEC),
        can_create(UNIX, STREAM),
    ] == [EPERM] * 4


def test_pushing_input_into_a_terminal_is_refused_and_other_ioctls_are_allowed(machine):
    assert judged("ioctl", 0, 0x5412, machine=machine) == EPERM
    assert judged("ioctl", 0, 0x1_0000_5412, machine=machine) == EPERM  # the kernel uses the low half only
    assert judged("ioctl", 0, 0x541C, machine=machine) == EPERM
    assert judged("ioctl", 0, 0x5413, machine=machine) == ALLOW


def test_new_namespaces_are_refused_and_new_processes_allowed(machine):
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert judged("clone", flag | 17, machine=machine) == EPERM
        assert judged("unshare", flag, machine=machine) == EPERM
    assert judged("clone", 17, machine=machine) == ALLOW
    assert judged("unshare", 0x400, machine=machine) == ALLOW
    assert run(filter_for(False, machine=machine), 435, machine=machine) == ENOSYS


def test_calls_in_the_abi_of_another_processor_kill_the_program(machine):
    program = filter_for(True, machine=machine)
    other = next(each for each in MACHINES if each != machine)
    assert run(program, 0, machine=other) == KILL
    if machine == "x86_64":
        assert run(program, 0x40000000 | 41, UNIX, machine=machine) == KILL


def test_an_unknown_processor_is_an_error():
    assert not is_known("riscv64")
    with pytest.raises(KeyError):
        filter_for(False, machine="riscv64")


MODES = {
    "x86_64": {
        "open": (2, 2),
        "openat": (257, 3),
        "creat": (85, 1),
        "chmod": (90, 1),
        "fchmod": (91, 1),
        "mknod": (133, 1),
        "mknodat": (259, 2),
        "fchmodat": (268, 2),
        "fchmodat2": (452, 2),
    },
    "aarch64": {"openat": (56, 3), "fchmod": (52, 1), "mknodat": (33, 2), "fchmodat": (53, 2), "fchmodat2": (452, 2)},
}
"""Number, and which argument is the mode."""


def test_no_file_gets_the_set_user_id_bit(machine):
    program = filter_for(False, machine=machine)
    for name, (number, at) in MODES[machine].items():
        arguments = [0] * 6
        if name.startswith("open"):
            arguments[at - 1] = 0o101
        for mode, expected in ((0o4755, EPERM), (0o104000, EPERM), (0o2755, ALLOW), (0o755, ALLOW)):
            arguments[at] = mode
            assert run(program, number, *arguments, machine=machine) == expected, (name, oct(mode))
    number, at = MODES[machine]["openat"]
    assert run(program, number, 0, 0, 0o200000, 0o4755, machine=machine) == ALLOW  # a folder: no mode is given
    assert run(program, number, 0, 0, 0o20200001, 0o4755, machine=machine) == EPERM  # a file without a name
    assert run(program, 437, machine=machine) == ENOSYS


# ------------------------------------------------------------------ connections that a supervisor makes

NOTIFY = 0x7FC00000
CONNECTING = {
    "x86_64": {"connect": 42, "listen": 50, "setsockopt": 54, "sendto": 44, "sendmsg": 46, "sendmmsg": 307},
    "aarch64": {"connect": 203, "listen": 201, "setsockopt": 208, "sendto": 206, "sendmsg": 211, "sendmmsg": 269},
}


def supervised(call: str, *arguments: int, machine: str) -> int:
    number = (CALLS[machine] | CONNECTING[machine])[call]
    return run(filter_for(machine=machine, sees_others=True, supervised=True), number, *arguments, machine=machine)


@pytest.mark.parametrize(
    ("call", "arguments", "verdict"),
    [
        ("connect", (3, 1 << 40, 16), NOTIFY),
        ("listen", (3, 1), EPERM),
        ("socket", (INET, STREAM, 0), ALLOW),
        ("socket", (INET6, STREAM | CLOSE_ON_EXEC, 6), ALLOW),
        ("socket", (INET, STREAM, 262), EPERM),
        ("socket", (INET, STREAM, 132), EPERM),
        ("socket", (INET, DATAGRAM, 0), EPERM),
        ("socket", (INET, RAW, 6), EPERM),
        ("socket", (UNIX, STREAM, 0), EPERM),
        ("socket", (VSOCK, STREAM, 0), EPERM),
        ("sendto", (3, 0, 0, 0x4000), ALLOW),
        ("sendto", (3, 0, 0, 0x20004000), EPERM),
        ("sendmsg", (3, 0, 0x20000000), EPERM),
        ("sendmsg", (3, 0, 0, 0x20000000), ALLOW),
        ("sendmmsg", (3, 0, 1, 0x20000000), EPERM),
        ("setsockopt", (3, 6, 1), ALLOW),
        ("setsockopt", (3, 6, 30), EPERM),
        ("setsockopt", (3, 6, 31), EPERM),
        ("setsockopt", (3, 0, 4), EPERM),
        ("setsockopt", (3, 1, 25), EPERM),
        ("setsockopt", (3, 1, 9), ALLOW),
        ("setsockopt", (3, 41, 26), ALLOW),
        ("bpf", (), EPERM),
        ("read", (), ALLOW),
    ],
)
def test_a_supervisor_is_asked_to_connect_and_no_other_way_is_left(machine, call, arguments, verdict):
    assert supervised(call, *arguments, machine=machine) == verdict


def test_without_a_supervisor_no_call_asks_one(machine):
    for number in CONNECTING[machine].values():
        assert run(filter_for(True, machine, streams_only=True), number, 3, 6, 30, machine=machine) == ALLOW
