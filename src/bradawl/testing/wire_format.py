"""What a scripted server must know of a wire format, the other way round from a codec."""

from collections.abc import Callable, Iterator

import msgspec

from bradawl.testing.script import Entry

CREATED = 1_767_225_600
"""When every scripted reply was made, so that equal scripts give equal bytes."""
Json = dict[str, object]

NAME = r"[A-Za-z0-9_-]{1,64}"
"""What every provider takes as the name of a tool."""


class WireRequest(msgspec.Struct, frozen=True):
    """What an answer depends on."""

    model: str
    last_text: str
    """The text after the last reply: the prompt, or all results."""
    is_stream: bool = False
    with_usage: bool = True
    """A streamed reply ends with its token counts, if the script has any."""


class WireFormat(msgspec.Struct, frozen=True):
    """One wire format from the server's side."""

    api: str
    """Its name, as in `Origin.api`."""
    path: str
    """How the paths end on which it is asked."""
    read: Callable[[bytes], WireRequest | str]
    """A request a real server would accept, or why it would not."""
    events: Callable[[Entry, int, WireRequest], Iterator[bytes]]
    """A streamed reply, event by event. The number is the request's, from 1."""
    whole: Callable[[Entry, int, WireRequest], bytes]
    """The same reply as one document."""
    error: Callable[[int, str], bytes]
    """An error document, by HTTP status and message."""


def format_at(path: str) -> WireFormat | None:
    """The format that is spoken at a path, with neither query nor final slash."""
    if path.endswith("/chat/completions"):
        from bradawl.testing.wire import CHAT

        return CHAT
    if path.endswith("/responses"):
        from bradawl.testing.wire_responses import RESPONSES

        return RESPONSES
    if path.endswith("/messages"):
        from bradawl.testing.wire_messages import MESSAGES

        return MESSAGES
    return None


def decoded(body: bytes) -> Json | str:
    """A request's JSON, or why it is none."""
    try:
        return msgspec.json.decode(body, type=Json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"the request can't be read: {error}"


def objects(value: object) -> list[Json]:
    """The objects of a list, and nothing of anything else."""
    if not isinstance(value, list):
        return []
    return [item for item in value if isinstance(item, dict)]
