"""Runs a program on a machine without a sandbox: `refuse_sandbox.py namespaces|landlock|both COMMAND...`.

A seccomp filter refuses new namespaces, which bubblewrap needs, or Landlock, to the program and all programs it
starts. Needs no privileges. Exits with 77 where seccomp filters are not available.
"""

import ctypes
import os
import platform
import struct
import sys

UNAVAILABLE = 77
LANDLOCK = (444, 445, 446)
CLONE3 = 435
NEW_NAMESPACES = 0x7E020000
# The name of the machine for the kernel, `clone` and `unshare`.
MACHINES = {"x86_64": (0xC000003E, 56, 272), "aarch64": (0xC00000B7, 220, 97)}
LOAD, JUMP_IF, JUMP_IF_ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x50001, 0x50026
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2


def instructions(refused: str) -> list[tuple[int, int, int, int]]:
    """Instructions of the filter as (code, jump if true, jump if false, value)."""
    machine, clone, unshare = MACHINES[platform.machine()]
    lines = [(LOAD, 0, 0, MACHINE), (JUMP_IF, 1, 0, machine), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, NUMBER)]
    if refused in ("landlock", "both"):
        for number in LANDLOCK:
            lines += [(JUMP_IF, 0, 1, number), (RETURN, 0, 0, ENOSYS)]
    if refused in ("namespaces", "both"):
        lines += [
            (JUMP_IF, 0, 1, CLONE3),
            (RETURN, 0, 0, ENOSYS),
        ]  # its flags are in memory, where the filter can't read them
        lines += [(JUMP_IF, 1, 0, clone), (JUMP_IF, 0, 3, unshare), (LOAD, 0, 0, FIRST_ARGUMENT)]
        lines += [(JUMP_IF_ANY_BIT, 0, 1, NEW_NAMESPACES), (RETURN, 0, 0, EPERM)]
    return [*lines, (RETURN, 0, 0, ALLOW)]


def load(refused: str) -> None:
    """Load the filter into this process. Raises `OSError` or `KeyError` if that is not possible."""
    lines = instructions(refused)
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    header = struct.pack("HxxxxxxP", len(lines), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SECCOMP, FILTER, header, 0, 0)):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


def main() -> None:
    """Load the filter and execute the program."""
    if len(sys.argv) < 3 or sys.argv[1] not in ("namespaces", "landlock", "both"):
        sys.exit(__doc__)
    try:
        load(sys.argv[1])
    except (OSError, KeyError, AttributeError) as error:
        sys.stderr.write(f"refuse_sandbox: no filter of system calls here: {error!r}\n")
        sys.exit(UNAVAILABLE)
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - the command as given


if __name__ == "__main__":
    main()
