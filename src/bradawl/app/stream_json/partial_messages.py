"""Replies while they arrive, as the events of the Anthropic Messages API, whatever the provider's own format is."""

from collections.abc import Callable
from typing import Final

import msgspec

from bradawl.app.exit_code import counts
from bradawl.app.json_values import new_uuid, stop_of
from bradawl.app.stream_json.content import TextBlock, ThinkingBlock, ToolUseBlock
from bradawl.app.stream_json.lines import (
    BlockDelta,
    BlockStart,
    BlockStop,
    InputPiece,
    Line,
    LineIds,
    MessageDelta,
    MessageEnd,
    MessageStart,
    MessageStop,
    StartedMessage,
    StreamEvent,
    StreamEventLine,
    TextPiece,
    ThinkingPiece,
)
from bradawl.core.deltas import CallDelta, TextDelta, ThinkingDelta
from bradawl.core.events import (
    AgentSpawned,
    AssistantReplied,
    Envelope,
    Live,
    PrefixOpened,
    ReplyWithdrawn,
    TurnFinished,
)
from bradawl.core.messages import Refusal, Text, Thinking, ToolCall
from bradawl.core.usage import Usage

_MAIN: Final = "main"
Delta = TextDelta | ThinkingDelta | CallDelta


class _Block(msgspec.Struct):
    """A block of a reply that is still arriving."""

    number: int
    """Its place in the message; -1 until it is printed."""
    kind: type[TextDelta] | type[ThinkingDelta] | type[CallDelta]
    call_id: str = ""
    name: str = ""
    waiting: str = ""
    """Arguments that arrived before the name of the call."""


class _Reply:
    """A reply that is still arriving. Blocks may arrive in turns: the calls of a reply do from some servers."""

    def __init__(self, write: Callable[[StreamEvent], None], model: str) -> None:
        self._write = write
        self.id = f"msg_{new_uuid().replace('-', '')}"
        self._blocks: dict[int, _Block] = {}
        """Open blocks by the number of their part."""
        self._count = 0
        write(MessageStart(StartedMessage(id=self.id, model=model)))

    def add(self, delta: Delta) -> None:
        block = self._blocks.get(delta.index)
        if block is None or block.kind is not type(delta):
            ended = [place for place, each in self._blocks.items() if each.kind is not CallDelta or each is block]
            self._close(ended)
            block = self._blocks[delta.index] = _Block(-1, type(delta))
        match delta:
            case TextDelta(_, text):
                self._open(block, TextBlock(""))
                self._write(BlockDelta(block.number, TextPiece(text)))
            case ThinkingDelta(_, text):
                self._open(block, ThinkingBlock(""))
                self._write(BlockDelta(block.number, ThinkingPiece(text)))
            case CallDelta(_, call_id, name, arguments):
                self._call(block, call_id, name, arguments)

    def _call(self, block: _Block, call_id: str, name: str, arguments: str) -> None:
        block.call_id, block.name = call_id or block.call_id, name or block.name
        block.waiting += arguments
        if not block.name:
            return
        self._open(block, ToolUseBlock(block.call_id, block.name, {}))
        if block.waiting:
            self._write(BlockDelta(block.number, InputPiece(block.waiting)))
            block.waiting = ""

    def _open(self, block: _Block, empty: TextBlock | ThinkingBlock | ToolUseBlock) -> None:
        if block.number < 0:
            block.number, self._count = self._count, self._count + 1
            self._write(BlockStart(block.number, empty))

    def _close(self, places: list[int]) -> None:
        for place in places:
            if (block := self._blocks.pop(place)).number >= 0:
                self._write(BlockStop(block.number))

    def add_unseen(self, replied: AssistantReplied) -> None:
        """Add the parts of a reply that arrived as a whole."""
        for index, part in enumerate(() if self._count else replied.message.parts):
            match part:
                case Text(text) | Refusal(text) if text:
                    self.add(TextDelta(index, text))
                case Thinking(text) if text:
                    self.add(ThinkingDelta(index, text))
                case ToolCall(call_id, name, arguments):
                    self.add(CallDelta(index, call_id, name, arguments))
                case _:
                    pass

    def end(self, replied: AssistantReplied | None) -> None:
        """No more arrives. Without a reply what arrived is void."""
        self._close(list(self._blocks))
        if replied is not None:
            self._write(MessageDelta(MessageEnd(stop_of(replied.stop)), counts(replied.usage or Usage())))
        self._write(MessageStop())


class PartialMessages:
    """Prints `stream_event` lines. `emit` is an `Emit`; it must get each event before the line of the whole reply."""

    def __init__(self, ids: Callable[[], LineIds], write: Callable[[Line], None], model: str) -> None:
        """`model`: the name of the model until an event names it."""
        self._ids, self._write_line, self._model = ids, write, model
        self._replies: dict[str, _Reply] = {}
        self._last_ids: dict[str, str] = {}
        self._models: dict[str, str] = {}
        self._parents: dict[str, str] = {}

    def message_id(self, agent: str) -> str:
        """The id of the agent's last message."""
        return self._last_ids.get(agent, "")

    def emit(self, item: Envelope | Live) -> None:
        """Print the part of a reply that arrived."""
        if isinstance(item, Live):
            if isinstance(item.item, TextDelta | ThinkingDelta | CallDelta):
                self._reply(item.agent).add(item.item)
            return
        match item.event:
            case PrefixOpened(model=model):
                self._models[item.agent] = model
            case AgentSpawned(spawned, call_id):
                self._parents[spawned] = call_id
            case AssistantReplied() as replied:
                self._reply(item.agent).add_unseen(replied)
                self._end(item.agent, replied)
            case ReplyWithdrawn() | TurnFinished():
                self._end(item.agent, None)
            case _:
                pass

    def _reply(self, agent: str) -> _Reply:
        if agent not in self._replies:
            reply = _Reply(lambda event: self._write(agent, event), self._models.get(agent, self._model))
            self._replies[agent], self._last_ids[agent] = reply, reply.id
        return self._replies[agent]

    def _end(self, agent: str, replied: AssistantReplied | None) -> None:
        if (reply := self._replies.pop(agent, None)) is not None:
            reply.end(replied)

    def _write(self, agent: str, event: StreamEvent) -> None:
        parent = None if agent == _MAIN else self._parents.get(agent)
        self._write_line(StreamEventLine(event=event, parent_tool_use_id=parent, **self._ids()))
