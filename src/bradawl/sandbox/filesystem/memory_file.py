"""Files in memory, which carry data to a program as a descriptor."""

import os


def file_in_memory(name: str, data: bytes) -> int:
    """A descriptor at the beginning of a new file that holds the data; its caller closes it. `name` is seen in /proc
    alone. Raises `OSError`.
    """
    made = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(made, left) :]
        os.lseek(made, 0, os.SEEK_SET)
    except OSError:
        os.close(made)
        raise
    return made
