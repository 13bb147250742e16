"""Turns the events of a session into lines: replies, results of calls, compactions, retries, warnings, the mode."""

import time
from collections.abc import Callable
from typing import Final

from bradawl.app.exit_code import counts
from bradawl.app.json_values import new_uuid, stop_of
from bradawl.app.stream_json.content import ToolResultBlock, reply_blocks, result_content
from bradawl.app.stream_json.lines import (
    ApiRetry,
    AssistantLine,
    CompactBoundary,
    CompactMetadata,
    Line,
    LineIds,
    Message,
    NoticeLine,
    ResultMessage,
    Status,
    ToolResultLine,
)
from bradawl.app.stream_json.mode_names import mode_name
from bradawl.app.stream_json.partial_messages import PartialMessages
from bradawl.app.stream_json.task_lines import TaskLines
from bradawl.core.deltas import Notice, RetryScheduled
from bradawl.core.events import (
    AssistantReplied,
    Compacted,
    Envelope,
    Live,
    ModeChosen,
    PromptSubmitted,
    ReplyWithdrawn,
    StateChanged,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import calls_of
from bradawl.core.usage import Usage

_MAIN: Final = "main"


class _Calls:
    """The calls of one agent: a result is held until the reply with its call is printed."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.held: dict[str, ToolFinished] = {}

    def replied(self, call_ids: list[str]) -> list[ToolFinished]:
        """The results to print after a reply with these calls."""
        found = [self.held[each] for each in call_ids if each in self.held]
        self.open = set(call_ids) - {each.call_id for each in found}
        self.held.clear()
        return found

    def finished(self, event: ToolFinished) -> bool:
        """Whether the result can be printed now."""
        if event.call_id in self.open:
            self.open.remove(event.call_id)
            return True
        self.held[event.call_id] = event
        return False


class EventLines:
    """Prints the lines of a session's events. `emit` is an `Emit`."""

    def __init__(
        self,
        write: Callable[[Line], None],
        *,
        model: str = "",
        is_partial: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`model`: its name until an event names it. `is_partial`: also print replies while they arrive."""
        self._write, self._monotonic = write, monotonic
        self.session_id = ""
        self._partial = PartialMessages(self._ids, write, model) if is_partial else None
        self._calls: dict[str, _Calls] = {}
        self._tasks = TaskLines(self._ids, write, monotonic)
        self._turn_is_open = False

    def agent_of(self, call_id: str) -> str:
        """The sub-agent whose open call this is; empty for a call of the main agent."""
        return next((name for name, calls in self._calls.items() if call_id in calls.open and name != _MAIN), "")

    def emit(self, item: Envelope | Live) -> None:
        """Print the lines of one event, if it has any."""
        if self._partial is not None:
            self._partial.emit(item)
        if isinstance(item, Live):
            self._live(item)
            return
        match item.event:
            case AssistantReplied():
                self._replied(item.agent, item.event)
            case ToolFinished() as finished:
                if self._calls_of(item.agent).finished(finished):
                    self._finished(item.agent, finished)
            case ReplyWithdrawn():
                self._calls_of(item.agent).held.clear()
            case PromptSubmitted() | TurnFinished():
                self._turn(item)
            case Compacted(tokens=tokens):
                before, after = tokens or (0, 0)
                data = CompactMetadata("auto" if self._turn_is_open else "manual", before, after)
                self._write(CompactBoundary(compact_metadata=data, **self._ids()))
            case StateChanged(ModeChosen(mode)) if item.agent == _MAIN:
                self._write(Status(permission_mode=mode_name(mode), **self._ids()))
            case _:
                self._tasks.emit(item)

    def _ids(self) -> LineIds:
        return {"session_id": self.session_id, "uuid": new_uuid()}

    def _calls_of(self, agent: str) -> _Calls:
        return self._calls.setdefault(agent, _Calls())

    def _parent(self, agent: str) -> str | None:
        return None if agent == _MAIN else self._tasks.call_of(agent)

    def _live(self, item: Live) -> None:
        match item.item:
            case Notice(text):
                self._write(NoticeLine(text=text, **self._ids()))
            case RetryScheduled(attempt, delay_s, failure):
                line = ApiRetry(
                    attempt=attempt,
                    retry_delay_ms=round(delay_s * 1000),
                    error_status=failure.status,
                    error=str(failure),
                    **self._ids(),
                )
                self._write(line)
            case _:
                pass

    def _turn(self, item: Envelope) -> None:
        if item.agent == _MAIN:
            self._turn_is_open = isinstance(item.event, PromptSubmitted)
        self._calls_of(item.agent).held.clear()

    def _replied(self, agent: str, event: AssistantReplied) -> None:
        message = event.message
        usage = counts(event.usage or Usage())
        line = AssistantLine(
            message=Message(
                id=self._partial.message_id(agent) if self._partial else f"msg_{new_uuid().replace('-', '')}",
                model=event.model or message.origin.model,
                content=reply_blocks(message.parts),
                stop_reason=stop_of(event.stop),
                usage=usage,
            ),
            parent_tool_use_id=self._parent(agent),
            **self._ids(),
        )
        self._write(line)
        calls = calls_of(message)
        self._tasks.replied(agent, event)
        for finished in self._calls_of(agent).replied([call.id for call in calls]):
            self._finished(agent, finished)

    def _finished(self, agent: str, event: ToolFinished) -> None:
        block = ToolResultBlock(event.call_id, result_content(event.shown), event.outcome != "ok")
        line = ToolResultLine(
            message=ResultMessage(content=(block,)), parent_tool_use_id=self._parent(agent), **self._ids()
        )
        self._write(line)
