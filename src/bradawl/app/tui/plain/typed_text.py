"""The line that a user has not ended yet, which the terminal holds: taken from it, and given back."""

import contextlib
import os
import sys
import termios
from select import select
from typing import Final

from bradawl.app.tui.plain.lines import is_in_foreground
from bradawl.safety.git.small_files import read_text

_ALLOWS: Final = "/proc/sys/dev/tty/legacy_tiocsti"


def unread_keys(descriptor: int) -> bytes:
    """The input that waits at a terminal, with that of an unfinished line. Empty in the background."""
    data = b""
    with contextlib.suppress(OSError, termios.error):
        if not is_in_foreground(descriptor):
            return b""
        before = termios.tcgetattr(descriptor)
        by_key = [*before]
        by_key[3] = before[3] & ~termios.ICANON  # an unfinished line can't be read otherwise
        by_key[6] = [*before[6]]
        by_key[6][termios.VMIN], by_key[6][termios.VTIME] = 0, 0
        termios.tcsetattr(descriptor, termios.TCSANOW, by_key)
        try:
            while select([descriptor], [], [], 0)[0] and (more := os.read(descriptor, 65_536)):
                data += more
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
    return data


def takes_keys_back() -> bool:
    """Whether keys can be given back to the terminal; Linux allows it from 6.2 on only where it is set up so."""
    said = read_text(_ALLOWS).strip()
    return said == "1" or (not said and (sys.platform != "linux" or int(os.uname().release.split(".")[0]) < 6))


def give_back(descriptor: int, keys: bytes) -> bytes:
    """Type keys at the terminal, which shows them and lets the user edit them. Returns those that it does not take."""
    import fcntl

    for place in range(len(keys)):
        try:
            fcntl.ioctl(descriptor, termios.TIOCSTI, keys[place : place + 1])
        except OSError:
            return keys[place:]
    return b""
