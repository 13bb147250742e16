"""Messages between an agent and its search process: msgpack, each after its length in four bytes, big-endian.

The process works on requests in the order in which they arrive.
"""

import msgspec

LENGTH_BYTES = 4
LONGEST_FRAME = 64_000_000
"""Bytes. A longer frame is a defect of the other side."""


class Open(msgspec.Struct, frozen=True, array_like=True, tag="open"):
    """The first request: the workspace to watch."""

    roots: tuple[str, ...]
    folder: str
    """Where contents, change records and the saved index are kept; created when needed."""
    own: tuple[str, ...]
    """Folders of bradawl, which no search enters."""
    uses_index: bool = True
    """Start from the index that an earlier process saved."""
    sandbox_state: str = ""
    """Folder with the records of sandboxes; empty for none."""


class Begin(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """Save the state before a call. Answered by `Ready`."""

    number: int
    call_id: str
    paths: tuple[str, ...] | None
    """None: the call may change any file."""
    until: float
    """When the call starts at the latest: a time of the system's monotonic clock, which all processes share."""


class End(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """Search for what a call changed. Answered by `Found`.

    A call that was not begun is one that ran when an earlier agent ended, or when the process ended before this one.
    """

    call_id: str
    was_lost: bool = False
    """True in the latter case: its agent is this one."""


class Settle(msgspec.Struct, frozen=True, array_like=True, tag="settle"):
    """Answered by `Ready` after the searches of all ended calls."""

    number: int


class Cover(msgspec.Struct, frozen=True, array_like=True, tag="cover"):
    """Does undo cover all files? Answered by `Ready`, after the first search; if not, after a `Warn` that says why."""

    number: int
    until: float
    """When to answer at the latest: a time of the system's monotonic clock."""


class Received(msgspec.Struct, frozen=True, array_like=True, tag="received"):
    """The last request of an agent that ends in order. Without it, a later agent can ask for the results again."""

    count: int
    """Number of `Found` that the agent has taken over."""


class Ready(msgspec.Struct, frozen=True, array_like=True, tag="ready"):
    """The answer to `Begin`, `Settle` and `Cover`."""

    number: int
    covers: bool = False
    """The answer to `Cover`."""


class Found(msgspec.Struct, frozen=True, array_like=True, tag="found"):
    """What a call changed. A call has several of them if it overlaps with others."""

    call_id: str
    ref: str
    """Name of the change record; empty if it changed nothing."""
    uncovered: str
    answers_end: bool
    """False: found at the begin of another call, while this one runs."""
    is_known: bool = True
    """False if it is not known what the call changed, or its changes could not be saved."""


class Warn(msgspec.Struct, frozen=True, array_like=True, tag="warn"):
    """A warning for the user."""

    text: str


class Failed(msgspec.Struct, frozen=True, array_like=True, tag="failed"):
    """The last message: the process ends because of a defect or an error that it can't handle."""

    why: str


Request = Open | Begin | End | Settle | Cover | Received
Reply = Ready | Found | Warn | Failed

_encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def frame(message: Request | Reply) -> bytes:
    """The message with its length in front."""
    data = _encode(message)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def take_frames(buffer: bytearray) -> list[bytes]:
    """Remove the complete frames from a buffer and return their messages. Raises `ValueError` for a length too big."""
    found: list[bytes] = []
    start = 0
    while len(buffer) - start >= LENGTH_BYTES:
        size = int.from_bytes(buffer[start : start + LENGTH_BYTES], "big")
        if size > LONGEST_FRAME:
            raise ValueError(f"a message of {size} bytes")
        if len(buffer) - start - LENGTH_BYTES < size:
            break
        found.append(bytes(buffer[start + LENGTH_BYTES : start + LENGTH_BYTES + size]))
        start += LENGTH_BYTES + size
    del buffer[:start]
    return found
