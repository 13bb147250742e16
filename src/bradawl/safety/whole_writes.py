"""Writes data whole: a call of the system may write a part, without an error."""

import os


def write_all(file: int, data: bytes | memoryview) -> None:
    """Write all of the data to an open file. Raises `OSError`."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
