"""What a reply is made of while it arrives: the one vocabulary every codec decodes to.

A reply is a row of parts; `index` is a part's place in it. Fragments are for display and for a reply that is cut off;
`PartClosed` carries the final part. Every stream ends with exactly one `ReplyEnded` or `StreamFailed`.
"""

from bradawl.core.errors import Failure
from bradawl.core.messages import Part, StopReason, Value
from bradawl.core.usage import Usage


class ReplyStarted(Value, frozen=True):
    """The provider has begun to answer."""

    response_id: str | None = None
    model: str | None = None


class TextDelta(Value, frozen=True):
    """More text of part `index`."""

    index: int
    text: str


class ThinkingDelta(Value, frozen=True):
    """More reasoning of part `index`."""

    index: int
    text: str


class CallDelta(Value, frozen=True):
    """More of a call: `arguments` is a fragment, id and name as far as they are known."""

    index: int
    call_id: str
    name: str
    arguments: str


class PartClosed(Value, frozen=True):
    """Part `index` is finished as its protocol says; a call in it may run if its status is ok."""

    index: int
    part: Part


class UsageReported(Value, frozen=True):
    """What the provider counted; a later report replaces an earlier one."""

    usage: Usage


class ReplyEnded(Value, frozen=True):
    """The reply is whole."""

    stop: StopReason
    raw_stop: str | None = None
    """The provider's own word."""
    warnings: tuple[str, ...] = ()
    """Oddities of the server, for the debug log."""
    details: str = ""
    """JSON text with what the provider says about the stop, for example why it refused."""


class StreamFailed(Value, frozen=True):
    """The reply broke off, or never began."""

    failure: Failure
    raw_stop: str | None = None
    warnings: tuple[str, ...] = ()
    details: str = ""


class RetryScheduled(Value, frozen=True):
    """The request is sent, or sent again, after `delay_s` seconds; nothing of the reply had been shown."""

    attempt: int
    """Requests made so far; 0 when the first one has to wait."""
    delay_s: float
    failure: Failure


class ToolProgress(Value, frozen=True):
    """Output of a running tool, for the eye only."""

    call_id: str
    text: str


class Notice(Value, frozen=True):
    """A warning for the user, such as a missing sandbox."""

    text: str


Delta = (
    ReplyStarted
    | TextDelta
    | ThinkingDelta
    | CallDelta
    | PartClosed
    | UsageReported
    | ReplyEnded
    | StreamFailed
    | RetryScheduled
)
