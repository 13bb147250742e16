"""Parses the requests that programs send to the proxy, and encodes those it forwards. Strict, bounded and pure.

Two programs that read the same bytes as different requests are a way to smuggle one past a check. So whatever
has more than one reading is refused: folded lines, repeated `Host` or `Content-Length`, lengths beside an encoding.
"""

import re
from typing import Final

import msgspec

from bradawl.sandbox.network.destinations import BadDestination, Destination, parse_authority

LONGEST_HEAD: Final = 65_536
"""Bytes of the request line and all fields."""
_MOST_FIELDS: Final = 200
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_REQUEST_LINE: Final = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}) ([!-~]+) HTTP/1\.([01])")
_STATUS_LINE: Final = re.compile(r"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\r\n\0]*)?")
_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,15}")
_LONGEST_CHUNK_LINE: Final = 17
_HTTP: Final = "http://"
_HOP_BY_HOP: Final = frozenset(
    (
        *("connection", "proxy-connection", "keep-alive", "proxy-authorization", "proxy-authenticate", "te"),
        *("trailer", "upgrade", "http2-settings", "transfer-encoding", "host"),
    )
)
_HTTP_PORT: Final = 80
"""A tunnel there could carry requests for other hosts of the same server, unseen."""
_NOT_NAMED_BY_CONNECTION: Final = frozenset({"host", "content-length", "transfer-encoding"})
_ECHOES: Final = frozenset({"TRACE", "TRACK"})
"""Methods whose answer is the request as the server or a proxy before it received it. The user's own proxy answers by
itself to one with `Max-Forwards: 0`, and what it received contains `Proxy-Authorization`."""
_OK: Final = 200
_SWITCHING: Final = 101

Fields = tuple[tuple[str, str], ...]
"""Names in lower case and values of the fields of a request or response."""


class BadMessage(ValueError):
    """A request or response that is malformed or has more than one reading; its text is the reason."""


class Request(msgspec.Struct, frozen=True):
    """A request to the proxy."""

    method: str
    destination: Destination
    path: str = ""
    """With the query; empty for CONNECT."""
    fields: Fields = ()
    minor_version: int = 1
    """The digit after `HTTP/1.`."""
    length: int = 0
    """Bytes of the body; 0 if it is chunked."""
    is_chunked: bool = False

    @property
    def is_tunnel(self) -> bool:
        """Whether the connection becomes a tunnel, of which the proxy reads nothing."""
        return self.method == "CONNECT"


def parse_request(head: bytes) -> Request:
    """A request from its head, with the empty line at its end. Raises `BadMessage` and `BadDestination`."""
    first, fields = _lines(head)
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise BadMessage("the request line is malformed")
    method, target, minor = found[1], found[2], int(found[3])
    if method.upper() in _ECHOES:
        raise BadMessage(
            f"{method.upper()} is not accepted: its answer repeats the request, with passwords for proxies"
        )
    if method == "CONNECT":
        destination, path = parse_authority(target), ""
        _check_host(fields, destination, default_port=destination.port)
    else:
        destination, path = _split_target(target, method)
        _check_host(fields, destination, default_port=80, is_required=minor == 1)
    length, is_chunked = _body_of(fields, minor)
    if method == "CONNECT" and destination.port == _HTTP_PORT:
        raise BadMessage("CONNECT to port 80 is not accepted: plain HTTP is sent as an absolute http URL")
    if method == "CONNECT" and (length or is_chunked):
        raise BadMessage("CONNECT has no body")
    return Request(method, destination, path, fields, minor, length, is_chunked)


def _lines(head: bytes) -> tuple[str, Fields]:
    """The first line, and the fields."""
    text = head.decode("latin-1")
    if not text.endswith("\r\n\r\n") or len(head) > LONGEST_HEAD:
        raise BadMessage("the head is incomplete or too long")
    first, *rest = text[:-4].split("\r\n")
    if len(rest) > _MOST_FIELDS:
        raise BadMessage("there are too many fields")
    return first, tuple(_field(line) for line in rest)


def _field(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or not _TOKEN.fullmatch(name):
        raise BadMessage("a field is malformed")  # also a folded line, which begins with a blank
    if not _VALUE.fullmatch(value):
        raise BadMessage("a field contains a control character")
    return name.lower(), value.strip("\t ")


def _values(fields: Fields, name: str) -> list[str]:
    return [value for each, value in fields if each == name]


def _split_target(target: str, method: str) -> tuple[Destination, str]:
    if target[: len(_HTTP)].lower() != _HTTP:
        raise BadMessage("the target is not an absolute http URL; https needs CONNECT")
    rest = target[len(_HTTP) :]
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    if "#" in path or "\\" in path:
        raise BadMessage("the target contains a fragment or a backslash")
    if not path.startswith("/"):
        path = "*" if method == "OPTIONS" and not path else f"/{path}"
    return parse_authority(authority, 80), path


def _check_host(fields: Fields, destination: Destination, *, default_port: int, is_required: bool = False) -> None:
    """Raise `BadMessage` unless `Host` names the destination of the target."""
    hosts = _values(fields, "host")
    if len(hosts) > 1 or (is_required and not hosts):
        raise BadMessage("there must be one Host field")
    try:
        agrees = not hosts or parse_authority(hosts[0], default_port) == destination
    except BadDestination:
        agrees = False
    if not agrees:
        raise BadMessage("Host differs from the host of the target")


def _body_of(fields: Fields, minor_version: int) -> tuple[int, bool]:
    """Length of the body, and whether it is chunked instead."""
    lengths, encodings = _values(fields, "content-length"), _values(fields, "transfer-encoding")
    named = {each.strip().lower() for value in _values(fields, "connection") for each in value.split(",")}
    if named & _NOT_NAMED_BY_CONNECTION:
        raise BadMessage("Connection names a field that can't be left out")
    if encodings:
        if lengths or minor_version == 0 or [each.lower() for each in encodings] != ["chunked"]:
            raise BadMessage("the length of the body has more than one reading")
        return 0, True
    if len(lengths) > 1 or (lengths and not _LENGTH.fullmatch(lengths[0])):
        raise BadMessage("the length of the body has more than one reading")
    return (int(lengths[0]) if lengths else 0), False


def forwarded_head(request: Request, *, through_proxy: bool = False, authorization: str = "") -> bytes:
    """The head to send on. `through_proxy` is for another proxy, which gets the absolute URL and `authorization`."""
    named = {each.strip().lower() for value in _values(request.fields, "connection") for each in value.split(",")}
    host, port = request.destination.host, request.destination.port
    authority = host if port == 80 else f"{host}:{port}"
    target = f"{_HTTP}{authority}{request.path.removeprefix('*')}" if through_proxy else request.path
    lines = [f"{request.method} {target} HTTP/1.{request.minor_version}", f"Host: {authority}"]
    lines += [f"{name}: {value}" for name, value in request.fields if name not in _HOP_BY_HOP | named]
    lines += ["Transfer-Encoding: chunked"] * request.is_chunked
    lines += [f"Proxy-Authorization: {authorization}"] * bool(authorization)
    return "\r\n".join((*lines, "Connection: close", "", "")).encode("latin-1")


def response_head(head: bytes) -> tuple[bytes, int]:
    """The head of a response as the client gets it, and its status. The connection is not kept. Raises `BadMessage`."""
    first, fields = _lines(head)
    found = _STATUS_LINE.fullmatch(first)
    if found is None or (status := int(found[1])) == _SWITCHING:
        raise BadMessage("the answer is not one of HTTP/1")
    named = {each.strip().lower() for value in _values(fields, "connection") for each in value.split(",")}
    left_out = {"connection", "keep-alive", "proxy-connection", "upgrade"} | (named - _NOT_NAMED_BY_CONNECTION)
    lines = [first, *(f"{name}: {value}" for name, value in fields if name not in left_out)]
    lines += ["Connection: close"] * (status >= _OK)
    return "\r\n".join((*lines, "", "")).encode("latin-1"), status


class ChunkedBody:
    """Finds the end of a chunked body. Sizes with extensions and trailing fields are refused."""

    def __init__(self) -> None:
        self.has_ended = False
        self._line = b""
        self._left = 0
        """Bytes of the current chunk, with the line end that follows it, that are still to come."""
        self._is_last = False

    def feed(self, data: bytes) -> int:
        """The number of leading bytes of `data` that belong to the body. Raises `BadMessage`."""
        at = 0
        while at < len(data) and not self.has_ended:
            if self._left > 2:
                taken = min(self._left - 2, len(data) - at)
                at += taken
                self._left -= taken
                continue
            at = self._take_line_byte(data, at)
        return at

    def _take_line_byte(self, data: bytes, at: int) -> int:
        self._line += data[at : at + 1]
        if self._left or self._is_last:
            if not b"\r\n".startswith(self._line):
                raise BadMessage("a chunk has no end, or fields follow the last one")
            if self._line == b"\r\n":
                self._line, self._left, self.has_ended = b"", 0, self._is_last
        elif self._line.endswith(b"\n"):
            self._begin_chunk(self._line)
        elif len(self._line) > _LONGEST_CHUNK_LINE:
            raise BadMessage("the size of a chunk is malformed")
        return at + 1

    def _begin_chunk(self, line: bytes) -> None:
        if not line.endswith(b"\r\n") or not _CHUNK_SIZE.fullmatch(line[:-2]):
            raise BadMessage("the size of a chunk is malformed")
        size, self._line = int(line[:-2], 16), b""
        self._is_last = size == 0
        self._left = 0 if self._is_last else size + 2
