"""Runs parts of tests in a forked process with fewer rights, because permissions don't apply to root."""

import ctypes
import os
import traceback
from collections.abc import Callable

NOBODY = 65534
_CAPABILITIES_V3 = 0x20080522
_DAC_CAPABILITIES = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, of linux/capability.h."""


def as_owner(act: Callable[[], object]) -> None:
    """Run `act` without the capabilities that override file modes. Fails if `act` raises."""
    _in_fork(_drop_dac_capabilities, act)


def as_plain_user(act: Callable[[], object]) -> None:
    """Run `act` as the user nobody, or as this user if that is not root. Fails if `act` raises."""
    _in_fork(_become_nobody, act)


def _in_fork(prepare: Callable[[], None], act: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            prepare()
            act()
            code = 0
        except Exception:  # noqa: BLE001 - printed for the test's output
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _drop_dac_capabilities() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, sets) == 0
    for place in range(3):
        sets[place] &= ~_DAC_CAPABILITIES
    assert libc.capset(header, sets) == 0


def _become_nobody() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
