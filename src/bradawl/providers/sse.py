"""Decodes server-sent events from bytes, with tolerance for common server errors. Sans-I/O.

Follows the WHATWG event-stream grammar, and also accepts events separated by a single newline, a field
named `error`, a bare JSON body, and a last event without its blank line.
"""

import json
from typing import NoReturn

import msgspec

from bradawl.providers.codec import ServerEvent

EVENT_LIMIT_BYTES = 16 * 1024 * 1024
STREAM_LIMIT_BYTES = 256 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class StreamTooLarge(Exception):
    """An event or a whole stream exceeds the size limit."""


def _is_complete(data: str) -> bool:
    if data.startswith("[DONE]"):
        return True
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return _is_lenient_json(data)
    return True


def _is_lenient_json(data: str) -> bool:
    """Servers send lone surrogates, NaN and control characters, which msgspec rejects."""
    try:
        json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


class SseDecoder:
    """Decodes one stream. `feed` and, at the end, `close` return the finished events in order.

    Raises `StreamTooLarge` beyond the limits. Time is linear in the bytes, however they are split.
    """

    def __init__(
        self, event_limit_bytes: int = EVENT_LIMIT_BYTES, stream_limit_bytes: int = STREAM_LIMIT_BYTES
    ) -> None:
        self._event_limit = event_limit_bytes
        self._room = stream_limit_bytes
        self._line = bytearray()
        self._at_start = True
        self._after_cr = False
        self._name = ""
        self._data: list[str] = []
        self._bare: list[str] = []
        self._size = 0
        self._granted = self._left = min(event_limit_bytes, stream_limit_bytes)

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Decode the next bytes."""
        events: list[ServerEvent] = []
        self._left -= len(chunk)
        if self._left >= 0 and not (b"\n" in chunk or b"\r" in chunk or self._after_cr):
            self._line += chunk
            return events
        self._take_lines(chunk, events)
        self._renew()
        return events

    def _renew(self) -> None:
        """Compute how many bytes may follow before the limits are checked again."""
        self._room -= self._granted - self._left
        self._granted = self._left = min(self._room, self._event_limit - self._size - len(self._line))
        if self._left < 0:
            self._refuse()

    def _refuse(self) -> NoReturn:
        what = "The reply" if self._room < 0 else "One event of the reply"
        raise StreamTooLarge(f"{what} is larger than any honest one; reading it was given up.")

    def _take_lines(self, chunk: bytes, events: list[ServerEvent]) -> None:
        if self._after_cr:
            self._after_cr = not chunk
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if chunk.startswith(b"data: ", start) and chunk.startswith(b"\n", end + 1) and self._may_begin(end - start):
                self._take_event(chunk[start + 6 : end], events)
                start = end + 2
                continue
            self._line += chunk[start:end]
            self._take_line(events)
            start = end + 1
        self._line += chunk[start:]

    def _may_begin(self, size: int) -> bool:
        """True if no event is pending that the next line would belong to."""
        return not (self._line or self._data or self._bare or self._at_start) and size <= self._event_limit

    def _take_event(self, line: bytes, events: list[ServerEvent]) -> None:
        """Fast path: an event whose lines are all in one chunk."""
        data = line.decode("utf-8", "replace")
        if data and not data.isspace():
            events.append(ServerEvent(self._name, data))
        self._name = ""

    def close(self) -> list[ServerEvent]:
        """End of the stream; an unfinished event counts only if it is complete JSON."""
        events: list[ServerEvent] = []
        if self._line:
            self._take_line(events)
        events.extend(event for event in self._pending() if _is_complete(event.data))
        self._reset()
        return events

    def _take_line(self, events: list[ServerEvent]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
        elif line.startswith(b"data:"):
            self._add_data(line[5:], events)
        elif not line.startswith(b":"):
            self._take_field(line, events)

    def _take_field(self, line: bytes, events: list[ServerEvent]) -> None:
        field, _, value = line.partition(b":")
        if field == b"event":
            self._dispatch_if_complete(events)
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif field == b"error":
            self._dispatch_if_complete(events)
            self._name = "error"
            self._add_data(value, events)
        elif field == b"data":
            self._add_data(value, events)
        elif self._bare or line.lstrip()[:1] in (b"{", b"["):
            self._keep(self._bare, line)

    def _add_data(self, value: bytes, events: list[ServerEvent]) -> None:
        self._dispatch_if_complete(events)
        self._keep(self._data, value.removeprefix(b" "))

    def _keep(self, lines: list[str], line: bytes) -> None:
        self._size += len(line)
        if self._size > self._event_limit:
            self._refuse()
        lines.append(line.decode("utf-8", "replace"))

    def _dispatch_if_complete(self, events: list[ServerEvent]) -> None:
        """Some servers separate events by one newline: a line with complete JSON ends the event."""
        # Only a single line is tried: otherwise data in many lines would be parsed again with each line.
        if len(self._data) == 1 and _is_complete(self._data[0]):
            self._dispatch(events)

    def _dispatch(self, events: list[ServerEvent]) -> None:
        events.extend(self._pending())
        self._reset()

    def _pending(self) -> list[ServerEvent]:
        lines = self._data or self._bare
        data = "\n".join(lines)
        if not data.strip():
            return []
        if len(lines) > 1 and not _is_complete(data) and all(map(_is_complete, lines)):
            return [ServerEvent(self._name, line) for line in lines]
        return [ServerEvent(self._name, data)]

    def _reset(self) -> None:
        self._name = ""
        self._data = []
        self._bare = []
        self._size = 0
