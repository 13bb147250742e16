"""What a wire format must be able to do. Pure: bytes in, values out; no socket, no clock."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from bradawl.core.deltas import Delta
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message
from bradawl.core.ports import ModelInfo, Prefix


class ServerEvent(msgspec.Struct, frozen=True):
    """One server-sent event."""

    event: str
    """Its name; empty when the server gave none."""
    data: str


class Endpoint(msgspec.Struct, frozen=True):
    """Where and as whom to speak. `repr` hides the key."""

    provider: str
    base_url: str
    """Without a final slash."""
    model: str
    api_key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    key_name: str = ""
    """Where the user keeps the key, for example `OPENAI_API_KEY`; named when it is refused."""
    key_origin: str = ""
    """`scheme://host:port` the key was configured for; it is sent nowhere else. Empty: that of `base_url`."""

    def __repr__(self) -> str:
        return f"Endpoint({self.provider!r}, {self.base_url!r}, {self.model!r}, api_key=***)"


class RequestEncoder(Protocol):
    """The requests of one conversation. Each message is encoded once."""

    def append(self, message: Message) -> None:
        """Encode a message behind the ones before it."""
        ...

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        """The request's JSON in pieces; nothing is encoded again."""
        ...

    def prefix_hash(self) -> str:
        """sha256 in hex of system, tools and messages as encoded, cache markers and framing left out."""
        ...


class ReplyDecoder(Protocol):
    """One reply. After `ReplyEnded` or `StreamFailed` nothing more comes."""

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Take one event of the stream."""
        ...

    def finish(self) -> Iterable[Delta]:
        """The stream is over; says whether the reply was whole."""
        ...

    def whole(self, body: bytes) -> Iterable[Delta]:
        """A reply that came as one JSON document although a stream was asked for."""
        ...


class Codec(Protocol):
    """A wire format, spoken with one endpoint: what that server turned out to refuse is remembered."""

    api: str
    """Its name, as in `Origin.api`."""

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> RequestEncoder:
        """Begin a conversation with the model of `info`."""
        ...

    def decoder(self) -> ReplyDecoder:
        """Begin to read a reply."""
        ...

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        """URL and headers of a request, credentials included."""
        ...

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """What a response that is not a reply means. Header names are in lower case."""
        ...
