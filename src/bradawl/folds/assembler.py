"""Assembles a reply from the deltas of its stream."""

from typing import assert_never

from bradawl.core.deltas import (
    CallDelta,
    Delta,
    PartClosed,
    ReplyEnded,
    ReplyStarted,
    RetryScheduled,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from bradawl.core.errors import Failure
from bradawl.core.messages import Assistant, Origin, Part, StopReason, Text, Thinking, ToolCall
from bradawl.core.usage import Usage

_Open = tuple[type[Text] | type[Thinking], list[str]]


class Assembler:
    """One reply that is still arriving. Feed it every delta of one stream, in order."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._open: dict[int, _Open] = {}
        self._closed: dict[int, Part] = {}
        self._taken = -1
        self.response_id: str | None = None
        self.model: str | None = None
        self.usage: Usage | None = None
        self.stop: StopReason | None = None
        self.failure: Failure | None = None
        self.warnings: tuple[str, ...] = ()
        self.open_calls: set[int] = set()
        """Part indexes of the calls that have begun and are not closed."""
        self.unfinished: list[str] = []
        """Fragments of arguments of calls that are not closed."""

    def feed(self, delta: Delta) -> None:
        """Add one delta."""
        match delta:
            case TextDelta() | ThinkingDelta():
                self._fragment(delta)
            case CallDelta(index, _, _, arguments):
                if index not in self._closed:
                    self.open_calls.add(index)
                    self.unfinished.append(arguments)
            case PartClosed(index, part):
                self._close(index, part)
            case UsageReported(usage):
                self.usage = usage
            case ReplyStarted(response_id, model):
                self.response_id, self.model = response_id, model
            case ReplyEnded(stop, _, warnings):
                self.stop, self.warnings = stop, warnings
            case StreamFailed(failure, _, warnings):
                self.stop, self.failure, self.warnings = "error", failure, warnings
            case RetryScheduled():
                pass
            case _:
                assert_never(delta)

    def _fragment(self, delta: TextDelta | ThinkingDelta) -> None:
        if not delta.text or delta.index in self._closed:
            return
        kind = Text if isinstance(delta, TextDelta) else Thinking
        self._open.setdefault(delta.index, (kind, []))[1].append(delta.text)

    def _close(self, index: int, part: Part) -> None:
        self._open.pop(index, None)
        self.open_calls.discard(index)
        if not self.open_calls:
            self.unfinished.clear()
        self._closed[index] = part

    @property
    def is_empty(self) -> bool:
        """True while the reply has no content to keep."""
        return not self._closed and not self._open

    @property
    def has_ended(self) -> bool:
        """True once the whole reply has arrived."""
        return self.stop is not None and self.failure is None

    def take_calls(self) -> list[tuple[ToolCall, tuple[Part, ...]]]:
        """The calls closed since the last time, each with the parts between it and the call before.

        In order of their index: a call after an open one is held back.
        """
        limit = min(self.open_calls, default=None)
        ready = sorted(i for i in self._closed if i > self._taken and (limit is None or i < limit))
        taken: list[tuple[ToolCall, tuple[Part, ...]]] = []
        before: list[Part] = []
        for index in ready:
            part = self._closed[index]
            if isinstance(part, ToolCall):
                taken.append((part, tuple(before)))
                before.clear()
                self._taken = index
            else:
                before.append(part)
        return taken

    def reply(self) -> Assistant:
        """The reply so far. Before its end it contains only the closed calls."""
        parts = dict(self._closed)
        for index, (kind, fragments) in self._open.items():
            text = "".join(fragments)
            if text:
                parts[index] = kind(text)
        ordered = tuple(parts[index] for index in sorted(parts))
        return Assistant(ordered, self._origin, complete=self.has_ended, response_id=self.response_id)
