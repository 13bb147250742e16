"""Times of files, of which file systems such as tmpfs and Btrfs keep more seconds than 64 bits hold nanoseconds."""

from typing import Final

NS_BITS: Final = (1 << 63) - 1
"""A time in ns `&` this fits a record in msgpack. It tells times apart, and does not order those out of range."""
