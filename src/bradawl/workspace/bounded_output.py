"""Keeps the beginning and the end of a byte stream of any length."""

from collections import deque

_MERGED = 65_536


class HeadAndTail:
    """A byte stream of which the middle is dropped and counted beyond a limit. Holds little more than the limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_limit = limit_bytes // 2
        self._tail_limit = limit_bytes - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytearray] = deque()
        self._tail_size = 0
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Append the next piece."""
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) > self._tail_limit:  # more than the whole tail: replace it
            self._dropped += self._tail_size + len(data) - self._tail_limit
            self._tail.clear()
            self._tail_size = 0
            data = data[len(data) - self._tail_limit :]
        if data:
            self._append(data)

    def _append(self, data: bytes) -> None:
        if self._tail and len(self._tail[-1]) + len(data) <= _MERGED:
            self._tail[-1] += data
        else:
            self._tail.append(bytearray(data))
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            dropped = len(self._tail.popleft())
            self._tail_size -= dropped
            self._dropped += dropped

    def kept(self) -> tuple[bytes, int]:
        """The kept bytes, and the number of bytes dropped between their two halves."""
        excess = max(0, self._tail_size - self._tail_limit)
        tail = b"".join(self._tail)
        return bytes(self._head) + tail[excess:], self._dropped + excess

    def take(self) -> tuple[bytes, int]:
        """The kept bytes and the number of dropped ones, as `kept`; starts anew."""
        kept = self.kept()
        self._head.clear()
        self._tail.clear()
        self._tail_size = self._dropped = 0
        return kept
