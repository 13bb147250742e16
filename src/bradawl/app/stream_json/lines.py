"""The lines that `--output-format stream-json` prints. `docs/stream-json.schema.json` is made from these classes."""

from typing import Final, Literal, TypedDict

import msgspec

from bradawl.app.exit_code import Result, TokenCounts
from bradawl.app.json_values import Stop
from bradawl.app.stream_json.content import ReplyBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

TaskStatus = Literal["completed", "failed", "stopped"]
Mode = Literal["default", "acceptEdits", "plan", "auto", "bypassPermissions"]


class LineIds(TypedDict):
    """The fields that every line of a session has."""

    session_id: str
    uuid: str


class ServerState(msgspec.Struct, frozen=True):
    """The name and state of an MCP server."""

    name: str
    status: str


class Init(msgspec.Struct, frozen=True, kw_only=True, rename={"permission_mode": "permissionMode"}):
    """The first line of each turn: what it runs with."""

    type: Literal["system"] = "system"
    subtype: Literal["init"] = "init"
    cwd: str
    model: str
    """`provider/model`."""
    tools: tuple[str, ...]
    """The tools that the model is told of, by bradawl's names."""
    mcp_servers: tuple[ServerState, ...] = ()
    permission_mode: Mode
    slash_commands: tuple[str, ...]
    agents: tuple[str, ...] = ()
    """Kinds of sub-agents."""
    skills: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    output_style: Literal["default"] = "default"
    bradawl_version: str
    claude_code_version: str
    """The version of Claude Code whose form of the stream this is; its SDK asks for it."""
    session_id: str
    uuid: str


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of the model."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: tuple[ReplyBlock, ...]
    stop_reason: Stop | None
    stop_sequence: None = None
    usage: TokenCounts


class AssistantLine(msgspec.Struct, frozen=True, kw_only=True):
    """A whole reply, of the model or of a sub-agent."""

    type: Literal["assistant"] = "assistant"
    message: Message
    parent_tool_use_id: str | None
    """The call that started the sub-agent; null for the main agent."""
    session_id: str
    uuid: str


class ResultMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one call, as a message of the Messages API."""

    role: Literal["user"] = "user"
    content: tuple[ToolResultBlock, ...]


class ToolResultLine(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call."""

    type: Literal["user"] = "user"
    message: ResultMessage
    parent_tool_use_id: str | None
    session_id: str
    uuid: str


class RepeatedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message from stdin, as it came."""

    role: Literal["user"] = "user"
    content: str | tuple[dict[str, object], ...]


class ReplayLine(msgspec.Struct, frozen=True, kw_only=True, rename={"is_replay": "isReplay"}):
    """A message from stdin when its turn begins; with `--replay-user-messages`. `uuid` is that of the message."""

    type: Literal["user"] = "user"
    message: RepeatedMessage
    parent_tool_use_id: None = None
    is_replay: Literal[True] = True
    session_id: str
    uuid: str


class StartedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A reply of which nothing has arrived."""

    id: str
    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    model: str
    content: tuple[ReplyBlock, ...] = ()
    stop_reason: None = None
    stop_sequence: None = None
    usage: TokenCounts = TokenCounts()


class MessageStart(msgspec.Struct, frozen=True, tag="message_start"):
    """A reply begins."""

    message: StartedMessage


class BlockStart(msgspec.Struct, frozen=True, tag="content_block_start"):
    """A block begins, empty."""

    index: int
    content_block: TextBlock | ThinkingBlock | ToolUseBlock


class TextPiece(msgspec.Struct, frozen=True, tag="text_delta"):
    """More text."""

    text: str


class ThinkingPiece(msgspec.Struct, frozen=True, tag="thinking_delta"):
    """More reasoning."""

    thinking: str


class InputPiece(msgspec.Struct, frozen=True, tag="input_json_delta"):
    """More of the text of a call's arguments."""

    partial_json: str


class BlockDelta(msgspec.Struct, frozen=True, tag="content_block_delta"):
    """More of a block."""

    index: int
    delta: TextPiece | ThinkingPiece | InputPiece


class BlockStop(msgspec.Struct, frozen=True, tag="content_block_stop"):
    """A block is complete."""

    index: int


class MessageEnd(msgspec.Struct, frozen=True):
    """How a reply ended."""

    stop_reason: Stop | None
    stop_sequence: None = None


class MessageDelta(msgspec.Struct, frozen=True, tag="message_delta"):
    """A reply is complete."""

    delta: MessageEnd
    usage: TokenCounts


class MessageStop(msgspec.Struct, frozen=True, tag="message_stop"):
    """No more events of a reply. Without `message_delta` before it the reply is void and is asked for again."""


StreamEvent = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop


class StreamEventLine(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a reply that is still arriving; with `--include-partial-messages`."""

    type: Literal["stream_event"] = "stream_event"
    event: StreamEvent
    parent_tool_use_id: str | None
    session_id: str
    uuid: str


class CompactMetadata(msgspec.Struct, frozen=True):
    """What a compaction did. Tokens are estimates."""

    trigger: Literal["auto", "manual"]
    pre_tokens: int
    post_tokens: int


class CompactBoundary(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation was compacted."""

    type: Literal["system"] = "system"
    subtype: Literal["compact_boundary"] = "compact_boundary"
    compact_metadata: CompactMetadata
    session_id: str
    uuid: str


class TaskUsage(msgspec.Struct, frozen=True):
    """What a sub-agent has used so far."""

    total_tokens: int
    tool_uses: int
    duration_ms: int


class TaskStarted(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent or a background command began."""

    type: Literal["system"] = "system"
    subtype: Literal["task_started"] = "task_started"
    task_id: str
    tool_use_id: str
    description: str
    task_type: Literal["local_agent", "local_bash"]
    session_id: str
    uuid: str


class TaskProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent has made a step."""

    type: Literal["system"] = "system"
    subtype: Literal["task_progress"] = "task_progress"
    task_id: str
    tool_use_id: str
    description: str
    usage: TaskUsage
    last_tool_name: str | None
    session_id: str
    uuid: str


class TaskNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A sub-agent or a background command ended."""

    type: Literal["system"] = "system"
    subtype: Literal["task_notification"] = "task_notification"
    task_id: str
    tool_use_id: str | None
    status: TaskStatus
    output_file: Literal[""] = ""
    summary: str
    usage: TaskUsage | msgspec.UnsetType = msgspec.UNSET
    session_id: str
    uuid: str


class ApiRetry(msgspec.Struct, frozen=True, kw_only=True):
    """A request failed and is sent again after `retry_delay_ms`."""

    type: Literal["system"] = "system"
    subtype: Literal["api_retry"] = "api_retry"
    attempt: int
    retry_delay_ms: int
    error_status: int | None
    error: str
    session_id: str
    uuid: str


class Status(msgspec.Struct, frozen=True, kw_only=True, rename={"permission_mode": "permissionMode"}):
    """The permission mode has changed."""

    type: Literal["system"] = "system"
    subtype: Literal["status"] = "status"
    status: None = None
    permission_mode: Mode
    session_id: str
    uuid: str


class NoticeLine(msgspec.Struct, frozen=True, kw_only=True):
    """A warning for the user, which stderr has too."""

    type: Literal["system"] = "system"
    subtype: Literal["notice"] = "notice"
    text: str
    session_id: str
    uuid: str


class SessionState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether more turns follow. Only where the variable `CLAUDE_CODE_SDK_READS_SESSION_STATE` asks for it."""

    type: Literal["system"] = "system"
    subtype: Literal["session_state_changed"] = "session_state_changed"
    state: Literal["running", "requires_action", "idle"]
    sdk_host_only: Literal[True] = True
    session_id: str
    uuid: str


class CanUseTool(msgspec.Struct, frozen=True, kw_only=True):
    """Asks the program that started bradawl whether a call may run."""

    subtype: Literal["can_use_tool"] = "can_use_tool"
    tool_name: str
    """bradawl's name of the tool; `network` for a connection of a running command."""
    input: dict[str, object]
    permission_suggestions: tuple[dict[str, object], ...] = ()
    blocked_path: str | None = None
    decision_reason: str
    description: str
    """What the call would touch, in lines."""
    tool_use_id: str
    agent_id: str | msgspec.UnsetType = msgspec.UNSET


class ControlRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to the program that started bradawl."""

    type: Literal["control_request"] = "control_request"
    request_id: str
    request: CanUseTool


class ControlCancel(msgspec.Struct, frozen=True, kw_only=True):
    """The request needs no answer any more: the turn was interrupted."""

    type: Literal["control_cancel_request"] = "control_cancel_request"
    request_id: str


class Success(msgspec.Struct, frozen=True, tag_field="subtype", tag="success"):
    """A request was carried out."""

    request_id: str
    response: dict[str, object]


class Error(msgspec.Struct, frozen=True, tag_field="subtype", tag="error"):
    """A request was not carried out."""

    request_id: str
    error: str


class ControlResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request from stdin."""

    type: Literal["control_response"] = "control_response"
    response: Success | Error


_OF_SYSTEM: Final = (
    *(Init, Status, NoticeLine, SessionState, CompactBoundary, ApiRetry),
    *(TaskStarted, TaskProgress, TaskNotification),
)
_OF_CONTROL: Final = (ControlRequest, ControlCancel, ControlResponse)
LINES: Final = (AssistantLine, ToolResultLine, ReplayLine, StreamEventLine, *_OF_SYSTEM, *_OF_CONTROL, Result)
"""All kinds of lines."""
_Task = TaskStarted | TaskProgress | TaskNotification
_System = Init | Status | NoticeLine | SessionState | CompactBoundary | ApiRetry | _Task
_Message = AssistantLine | ToolResultLine | ReplayLine | StreamEventLine
Line = _Message | _System | ControlRequest | ControlCancel | ControlResponse | Result
