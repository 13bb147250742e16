"""Pieces of a model's reply while it arrives, as every codec decodes them.

A reply is a sequence of parts, and `index` is a part's place. Fragments are shown and kept for a reply that breaks off;
`PartClosed` carries the finished part. A stream ends with exactly one `ReplyEnded` or `StreamFailed`.
"""

from bradawl.core.errors import Failure
from bradawl.core.messages import Part, StopReason, Value
from bradawl.core.usage import Usage


class ReplyStarted(Value, frozen=True):
    """The provider began to answer."""

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
    """More of a call: `arguments` is a fragment; id and name are empty while unknown."""

    index: int
    call_id: str
    name: str
    arguments: str


class PartClosed(Value, frozen=True):
    """Part `index` is finished by the rules of its protocol; a call with status `ok` may run."""

    index: int
    part: Part


class UsageReported(Value, frozen=True):
    """Tokens as the provider counted them; a later report replaces an earlier one."""

    usage: Usage


class ReplyEnded(Value, frozen=True):
    """The reply is complete."""

    stop: StopReason
    raw_stop: str | None = None
    """The provider's own stop reason."""
    warnings: tuple[str, ...] = ()
    """Deviations of the server from its protocol, for the debug log."""
    details: str = ""
    """JSON text of the provider about the stop, for example why it refused."""


class StreamFailed(Value, frozen=True):
    """The reply broke off or did not begin."""

    failure: Failure
    raw_stop: str | None = None
    warnings: tuple[str, ...] = ()
    details: str = ""


class RetryScheduled(Value, frozen=True):
    """The request will be sent, or sent again, in `delay_s` seconds; nothing of the reply was shown."""

    attempt: int
    """Requests made so far; 0 if the first has to wait."""
    delay_s: float
    failure: Failure


class ToolProgress(Value, frozen=True):
    """Output of a running tool, only to be shown."""

    call_id: str
    text: str


class Notice(Value, frozen=True):
    """A warning for the user, such as a missing sandbox."""

    text: str


_OfContent = TextDelta | ThinkingDelta | CallDelta | PartClosed
Delta = ReplyStarted | _OfContent | UsageReported | ReplyEnded | StreamFailed | RetryScheduled
