"""Files in memory, which carry data to a program as a descriptor."""

import os

from bradawl.safety.whole_writes import write_all


def file_in_memory(name: str, data: bytes) -> int:
    """A descriptor at the beginning of a new file that holds the data; its caller closes it. `name` is seen in /proc
    alone. Raises `OSError`.
    """
    made = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        write_all(made, data)
        os.lseek(made, 0, os.SEEK_SET)
    except OSError:
        os.close(made)
        raise
    return made
