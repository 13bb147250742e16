"""The interface of a wire protocol's codec. Codecs are sans-I/O: bytes in, values out; no socket, no clock."""

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
    """Empty when the server sent no `event` field."""
    data: str


def event_of_body(body: bytes) -> ServerEvent:
    """A reply that came as one document, as the event that a decoder is fed."""
    return ServerEvent("", body.decode("utf-8", "replace").removeprefix("\ufeff"))


class Endpoint(msgspec.Struct, frozen=True):
    """Address and credentials of a model's server. `repr` hides the key."""

    provider: str
    base_url: str
    """Without a final slash."""
    model: str
    api_key: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    key_name: str = ""
    """The environment variable or file entry of the key, for messages, for example `OPENAI_API_KEY`."""
    key_origin: str = ""
    """The only origin, `scheme://host:port`, that the key is sent to. Empty: the origin of `base_url`."""

    def __repr__(self) -> str:
        return f"Endpoint({self.provider!r}, {self.base_url!r}, {self.model!r}, api_key=***)"


class RequestEncoder(Protocol):
    """Encodes the requests of one conversation, each message once."""

    def append(self, message: Message) -> None:
        """Encode the next message of the conversation."""
        ...

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        """The request's JSON in pieces; encoded messages are reused."""
        ...

    def prefix_hash(self) -> str:
        """sha256 in hex of system, tools and messages as encoded, without cache markers and framing."""
        ...


class ReplyDecoder(Protocol):
    """Decodes one reply. `ReplyEnded` or `StreamFailed` is its last delta."""

    def feed(self, event: ServerEvent) -> Iterable[Delta]:
        """Decode one event of the stream."""
        ...

    def finish(self) -> Iterable[Delta]:
        """End of the stream; the deltas tell whether the reply was complete."""
        ...

    def whole(self, body: bytes) -> Iterable[Delta]:
        """Decode a reply that came as one JSON document although a stream was requested."""
        ...


class Codec(Protocol):
    """A wire protocol as spoken with one server. It remembers the fields that the server has refused."""

    api: str
    """The protocol's name, as in `Origin.api`."""

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> RequestEncoder:
        """An encoder for a new conversation with the model of `info`."""
        ...

    def decoder(self) -> ReplyDecoder:
        """A decoder for one reply."""
        ...

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        """URL and headers of a request, credentials included."""
        ...

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """The failure that an error response stands for. Header names are in lower case."""
        ...
