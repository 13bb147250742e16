"""Writes the lines of the debug log about a request: time, URL, outcome, shape of the body; never keys or contents.

Values from outside appear only as a number, a length, or a word from a fixed list.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from bradawl.core.deltas import Delta, ReplyEnded, ReplyStarted, StreamFailed, UsageReported
from bradawl.core.errors import Failure
from bradawl.core.http import HttpRequest
from bradawl.core.ports import Clock
from bradawl.providers.codec import Endpoint
from bradawl.providers.hosts import host_of, port_of
from bradawl.providers.protocols import PROTOCOLS
from bradawl.providers.response_reader import CONTENT

_REQUEST_IDS = ("x-request-id", "request-id", "x-generation-id", "x-trace-id")
_ID = r"[A-Za-z0-9_.:-]{1,100}"
_WORD = r"[a-z][a-z_]{1,60}"
_PATH_SEGMENTS = frozenset({"api", "v1", "v1beta", "v4", "openai"}).union(*(one.path.split("/") for one in PROTOCOLS))


class LogLines(Protocol):
    """Receives the lines of one session's debug log."""

    def write(self, fields: Mapping[str, object]) -> None:
        """Write one line."""
        ...


class ExchangeLog:
    """Logs the attempts of one request. Without `lines` it does nothing."""

    def __init__(self, lines: LogLines | None, clock: Clock) -> None:
        self._lines = lines
        self._clock = clock
        self._secrets: set[str] = set()
        self._began_s = 0.0
        self._line: dict[str, object] = {}
        self._deltas: Counter[str] = Counter()

    def began(self, number: int, request: HttpRequest, endpoint: Endpoint) -> None:
        """Log a request before it is sent. From now on the endpoint's key is masked in all lines."""
        if self._lines is None:
            return
        from bradawl.providers.json_shapes import shape_of_body

        if len(endpoint.api_key) >= 4:
            self._secrets.add(endpoint.api_key)
        self._began_s = self._clock.monotonic()
        self._deltas.clear()
        body = b"".join(request.body)
        model = f"{endpoint.provider}/{endpoint.model}"
        sent = {"request": number, "model": model, "url": _place(request.url), "bytes": len(body)}
        self._write("request", {**sent, "body": shape_of_body(body)})
        self._line = {"request": number}

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """Record status and headers of the response."""
        if self._lines is None:
            return
        self._line |= {"status": status, "headers_ms": self._elapsed_ms()}
        found = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), "")
        if re.fullmatch(_ID, found):
            self._line["request_id"] = found

    def took(self, size: int) -> None:
        """Record that `size` bytes of the body have been received so far."""
        if self._lines is not None:
            self._line.setdefault("first_byte_ms", self._elapsed_ms())
            self._line["bytes"] = size

    def error_body(self, body: bytes) -> None:
        """Record the shape of an error document."""
        if self._lines is not None:
            from bradawl.providers.json_shapes import shape_of_body

            self._line |= {"bytes": len(body), "body": shape_of_body(body)}

    def saw(self, delta: Delta) -> None:
        """Record a decoded delta."""
        if self._lines is None:
            return
        self._deltas[type(delta).__name__] += 1
        if isinstance(delta, CONTENT):
            self._line.setdefault("first_content_ms", self._elapsed_ms())
        elif isinstance(delta, UsageReported):
            used = delta.usage
            self._line["usage"] = {name: getattr(used, name) for name in used.__struct_fields__}
        elif isinstance(delta, ReplyStarted) and delta.response_id and re.fullmatch(_ID, delta.response_id):
            self._line["response_id"] = delta.response_id

    def ended(self, end: ReplyEnded | StreamFailed | None) -> None:
        """Log the end of the exchange; None if it was cancelled."""
        if self._lines is None or not self._line:
            return
        line, self._line = self._line, {}
        line |= {"end_ms": self._elapsed_ms(), "deltas": dict(self._deltas)}
        if isinstance(end, ReplyEnded):
            line["stop"] = end.stop
        elif end is not None:
            line["failure"] = _facts(end.failure)
        else:
            line["stop"] = "cancelled"
        if end is not None and end.warnings:
            line["warnings"] = [word if re.fullmatch(_WORD, word) else f"str({len(word)})" for word in end.warnings]
        self._write("response", line)

    def decided(self, what: str, failure: Failure | None = None, delay_s: float | None = None) -> None:
        """Log the reaction to a failure: `retry`, `give_up`, `cool_down`, `new_key` or `new_body`."""
        if self._lines is None:
            return
        line: dict[str, object] = {} if failure is None else {"failure": _facts(failure)}
        if delay_s is not None:
            line["delay_s"] = round(delay_s, 3)
        self._write(what, line)

    def _elapsed_ms(self) -> float:
        return round((self._clock.monotonic() - self._began_s) * 1000, 1)

    def _write(self, event: str, fields: Mapping[str, object]) -> None:
        if self._lines is not None:
            line = {"at_ms": self._clock.now_ms(), "event": event, **fields}
            self._lines.write({name: self._clean(value) for name, value in line.items()})

    def _clean(self, value: object) -> object:
        """Masks a value that contains a key: ids come from the server."""
        is_secret = isinstance(value, str) and any(secret in value for secret in self._secrets)
        return "***" if is_secret else value


def _place(url: str) -> str:
    """Scheme, host and the known segments of the path; the rest of a URL may be secret."""
    scheme, _, rest = url.partition("://")
    port = port_of(url)
    path = rest.partition("?")[0].partition("#")[0].partition("/")[2]
    segments = [segment if segment in _PATH_SEGMENTS else "*" for segment in path.split("/")]
    return f"{scheme}://{host_of(url)}{'' if port is None else f':{port}'}/{'/'.join(segments)}"


def _facts(failure: Failure) -> dict[str, object]:
    """A failure without the server's text."""
    facts: dict[str, object] = {"kind": failure.kind, "retryable": failure.retryable}
    if failure.status is not None:
        facts["status"] = failure.status
    if failure.retry_after_s is not None:
        facts["retry_after_s"] = failure.retry_after_s
    return facts
