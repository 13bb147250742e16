"""The request and the error of the port `Http`."""

from typing import Literal

import msgspec


class HttpRequest(msgspec.Struct, frozen=True):
    """An HTTP request; its body is the concatenation of the pieces."""

    method: Literal["GET", "POST"]
    url: str
    headers: tuple[tuple[str, str], ...]
    body: tuple[bytes, ...] = ()
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 120.0
    """Longest wait for the next bytes of the response, the first included."""

    def __repr__(self) -> str:
        """Leaves out the headers, which hold the key."""
        return f"HttpRequest({self.method!r}, {self.url!r})"


class HttpError(Exception):
    """The exchange failed; the text says where."""

    def __init__(self, kind: Literal["timeout", "connection"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["timeout", "connection"] = kind
