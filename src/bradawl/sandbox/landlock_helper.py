"""Restricts itself with Landlock and a system call filter, then executes the program. Runs stand-alone.

Started as `python -I -S -c TEXT N`. Descriptor N holds the order: fields separated by NUL. They are `network` or
nothing, the numbers of rules, words and variables, then those themselves; the rest is the filter. A rule is a letter
and a path. The program's own variables must not take effect before the limits: they may tell the dynamic linker what to
load. If a limit can't be set, the program is not started.
"""

import ctypes
import errno
import os
import stat
import struct
import sys

# Constants of linux/landlock.h, prctl.h and capability.h; these system calls have the same numbers on every machine.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH = 1, 1
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER, _DROP_FROM_BOUND = 38, 22, 2, 24
_CAPABILITIES_V3 = 0x20080522
_HIGHEST_CAPABILITY = 63

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_MAKE_DEVICES = 1 << 6 | 1 << 11
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = 0xFFFF & ~_MAKE_DEVICES & ~_IOCTL_DEV
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_RIGHTS = {b"l": _READ_DIR, b"r": _READ, b"w": _WRITE, b"d": _DEVICE}
_BITS_BY_VERSION = (0, 13, 14, 15, 15, 16)

libc = ctypes.CDLL(None, use_errno=True)


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
    scopes = 3 if version >= 6 else 0  # abstract sockets and signals
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    wanted = struct.pack("=QQQ", handled, tcp, scopes)[:size]
    made = must(libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(size), ctypes.c_uint(0)))
    for rule in rules:
        add(made, rule[1:], _RIGHTS[rule[:1]] & handled)
    return made


def add(made: int, path: bytes, rights: int) -> None:
    """Allow access beneath a path. A path that does not exist or can't be reached needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
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
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack(
        "HxxxxxxP" if ctypes.sizeof(ctypes.c_void_p) == 8 else "HxxP", len(code) // 8, ctypes.addressof(held)
    )
    must(libc.prctl(_SET_SECCOMP, _FILTER, program, 0, 0))


def become(argv: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Execute the program in place of this one; returns only by an error."""
    if b"/" in argv[0]:
        os.execve(argv[0], argv, environment)
    os.execvpe(argv[0], argv, environment)


def main(descriptor: int) -> None:
    """Read the order, set the limits, execute the program. Exits with 126 or 127, as shells do, if that fails."""
    with open(descriptor, "rb", buffering=0) as order:
        network, *counts, rest = order.readall().split(b"\0", 4)
    rules, words, variables = map(int, counts)
    *fields, code = rest.split(b"\0", rules + words + variables)
    argv = fields[rules : rules + words]
    environment = dict(each.split(b"=", 1) for each in fields[rules + words :])
    try:
        made = rule_set(fields[:rules], version(), network=bool(network))
        give_up_privileges()
        must(libc.syscall(_RESTRICT_SELF, made, ctypes.c_uint(0)))
        os.close(made)
        load_filter(code)
    except OSError as error:
        end(126, f"the sandbox can't be set up, so nothing was started: {error}")
    try:
        become(argv, environment)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        name = argv[0][:80].decode(errors="replace")
        end(127 if is_missing else 126, f"{name}: {'not found' if is_missing else error.strerror}")


def end(code: int, why: str) -> None:
    """Print the reason and exit without cleanup."""
    os.write(2, f"bradawl: {why}\n".encode(errors="replace"))
    os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
