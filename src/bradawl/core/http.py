"""What goes through the port `Http`."""

from typing import Literal

import msgspec


class HttpRequest(msgspec.Struct, frozen=True):
    """One request; the body is sent as the concatenation of its pieces."""

    method: Literal["GET", "POST"]
    url: str
    headers: tuple[tuple[str, str], ...]
    body: tuple[bytes, ...] = ()
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 120.0
    """Longest silence between two bytes, the first included."""

    def __repr__(self) -> str:
        """Without headers, which hold the key."""
        return f"HttpRequest({self.method!r}, {self.url!r})"


class HttpError(Exception):
    """The exchange broke: `kind` says how, the text says where."""

    def __init__(self, kind: Literal["timeout", "connection"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["timeout", "connection"] = kind
