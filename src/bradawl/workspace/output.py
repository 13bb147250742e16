"""Keeps the beginning and the end of a stream of any length."""


class HeadAndTail:
    """Bytes as they come; past the limit the middle is dropped and counted. Holds at most about 1.5 times the limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_limit = limit_bytes // 2
        self._tail_limit = limit_bytes - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        self._trimmed = 0

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        excess = len(self._tail) - self._tail_limit
        if excess > self._tail_limit // 2:  # not at each piece: moving the tail costs its length
            self._trim(excess)

    def _trim(self, excess: int) -> None:
        del self._tail[:excess]
        self._trimmed += excess

    def kept(self) -> tuple[bytes, int]:
        """What was kept, and how many bytes are missing between its two halves."""
        excess = len(self._tail) - self._tail_limit
        if excess > 0:
            self._trim(excess)
        return bytes(self._head + self._tail), self._trimmed
