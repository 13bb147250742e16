"""The server's side of a wire protocol: what a scripted server does with requests, and how it writes replies."""

from collections.abc import Callable, Iterator

import msgspec

from bradawl.testing.script import Entry

CREATED = 1_767_225_600
"""Creation time of every scripted reply, in Unix seconds: equal scripts give equal bytes."""
Json = dict[str, object]

NAME = r"[A-Za-z0-9_-]{1,64}"
"""A regular expression for tool names; every provider accepts these."""


class WireRequest(msgspec.Struct, frozen=True):
    """The part of a request that the answer depends on."""

    model: str
    last_text: str
    """The text after the last reply: the prompt, or all results."""
    is_stream: bool = False
    with_usage: bool = True
    """A streamed reply ends with its token counts, if the script has any."""


class WireFormat(msgspec.Struct, frozen=True):
    """The server's side of one wire protocol, as functions without state."""

    read: Callable[[bytes], WireRequest | str]
    """Decodes a request; gives the reason if a real server would reject it."""
    events: Callable[[Entry, int, WireRequest], Iterator[bytes]]
    """A streamed reply, event by event. The number is the request's, from 1."""
    whole: Callable[[Entry, int, WireRequest], bytes]
    """The same reply as one document."""
    error: Callable[[int, str], bytes]
    """An error document, by HTTP status and message."""


def decoded(body: bytes) -> Json | str:
    """A request's JSON object, or the reason if it is not one."""
    try:
        return msgspec.json.decode(body, type=Json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"the request can't be read: {error}"


def objects(value: object) -> list[Json]:
    """The objects of a list; empty for any other value."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]
