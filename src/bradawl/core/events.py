"""The durable events of a session, the envelope that places them, and what is only shown.

Identity and time live in the `Envelope`, so events compare by value. A blob is named by
the sha256 of its bytes, in hex. New fields get a default; nothing here is ever renamed.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from bradawl.core.deltas import CallDelta, Notice, RetryScheduled, TextDelta, ThinkingDelta, ToolProgress
from bradawl.core.effects import Effects
from bradawl.core.errors import Failure
from bradawl.core.messages import Assistant, Document, Image, Note, Part, StopReason, Text, Value
from bradawl.core.permissions import Mode
from bradawl.core.usage import Usage

FORMAT_VERSION = 1

Outcome = Literal["ok", "error", "refused", "cancelled", "interrupted"]
"""`interrupted`: it was started and nobody knows how far it came."""
TurnReason = Literal["completed", "error", "steps", "budget", "time", "refused", "cancelled", "interrupted"]


class RequestParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a request asks for beyond the messages."""

    max_output_tokens: int | None = None
    effort: str | None = None
    answer_schema: str = ""
    """JSON Schema, as text, that the answer must satisfy; empty when any text will do."""


class Todo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the model's plan."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class Cwd(Value, frozen=True):
    """The working directory of the session's tools, absolute."""

    path: str


class Env(Value, frozen=True):
    """Variables exported for later commands; None unsets."""

    variables: dict[str, str | None]


class ModeChosen(Value, frozen=True):
    """The permission mode from here on."""

    mode: Mode


class ModelChosen(Value, frozen=True):
    """The model that answers from here on."""

    provider: str
    model: str


class RulesAdded(Value, frozen=True):
    """Permission rules in force from here on."""

    rules: tuple[str, ...]


class TodosSet(Value, frozen=True):
    """The whole plan as it now stands."""

    todos: tuple[Todo, ...]


class FileSeen(Value, frozen=True):
    """The model has seen this file with this content."""

    path: str
    sha256: str


class TrustSet(Value, frozen=True):
    """The user's word on a folder."""

    path: str
    trusted: bool


class DirsAdded(Value, frozen=True):
    """Further folders that belong to the workspace."""

    paths: tuple[str, ...]


State = Cwd | Env | ModeChosen | ModelChosen | RulesAdded | TodosSet | FileSeen | TrustSet | DirsAdded


class SessionOpened(Value, frozen=True):
    """First line of a new session."""

    version: int
    project: str
    """Real path of the folder the session belongs to."""
    cwd: str
    bradawl: str = ""
    """Version of the program that wrote it."""


class SessionForked(Value, frozen=True):
    """First line of a fork: everything up to (session, seq) comes from there."""

    version: int
    session: str
    seq: int
    project: str = ""
    cwd: str = ""
    bradawl: str = ""


class PrefixOpened(Value, frozen=True):
    """From here on requests begin with this system prompt and these tools."""

    system_ref: str
    tools_ref: str
    provider: str
    model: str
    reason: Literal["start", "model", "compaction", "tools", "changed"] = "start"
    """`changed`: what was sent before would be encoded differently now."""
    first_change: str = ""
    """What no longer equals the requests before, for example `system` or `message 3`; empty when nothing was sent."""


class PromptSubmitted(Value, frozen=True):
    """The user's prompt; a turn begins."""

    parts: tuple[Text | Image | Document, ...]


class NoteQueued(Value, frozen=True):
    """A note waits for the next step boundary."""

    note: Note


class NoteDelivered(Value, frozen=True):
    """From here on the model sees the note, inside the last results or prompt."""

    note_id: str


class RequestSent(Value, frozen=True):
    """A request left for the model; what is in the transcript now is what it holds."""

    step: int
    prefix_hash: str
    params: RequestParams = RequestParams()
    reserved_cost: float | None = None
    estimated_tokens: int = 0
    """What `shaping.tokens` makes of the whole request, before any calibration; 0 when nobody has looked."""
    marks: tuple[str, ...] = ()
    """The beginnings of the prefix hashes after each message that is new in it, the last one's included. The first
    request of a prefix begins with the hash before any message."""


class ReplyWithdrawn(Value, frozen=True):
    """What was shown of the current reply does not count: the request is made again."""

    step: int
    failure: Failure
    usage: Usage | None = None
    """Of what had come; it was paid for all the same."""
    cost: float | None = None


class AssistantReplied(Value, frozen=True):
    """The reply as it is kept. `cut`: it broke off and was kept because a call of it had started."""

    step: int
    message: Assistant
    stop: StopReason
    cut: bool = False
    usage: Usage | None = None
    cost: float | None = None
    model: str = ""


class CallPrepared(Value, frozen=True):
    """A call is known, well-formed and judged. Self-contained: it may stand before its reply does."""

    call_id: str
    step: int
    name: str
    raw_arguments: str
    effects: Effects
    parts_before: tuple[Part, ...] = ()
    """Closed parts of the reply before this call, while the reply itself is not yet logged."""


class PermissionAsked(Value, frozen=True):
    """Somebody is being asked."""

    call_id: str
    reason: str


class PermissionDecided(Value, frozen=True):
    """How it was decided, and by whom."""

    call_id: str
    decision: Literal["allow", "deny"]
    by: Literal["policy", "user", "hook", "nobody"]
    rule: str = ""
    scope: Literal["once", "session", "project"] = "once"


class HookRan(Value, frozen=True):
    """A hook looked at a call."""

    hook: str
    moment: Literal["before_call", "after_call", "prompt", "turn_end"]
    call_id: str = ""
    outcome: Literal["passed", "amended", "blocked", "failed"] = "passed"
    detail: str = ""


class CheckpointTaken(Value, frozen=True):
    """The files a call may change were saved first."""

    call_id: str
    checkpoint_ref: str


class ToolStarted(Value, frozen=True):
    """The effect may happen from here on."""

    call_id: str
    before: Mapping[str, str] = {}
    """sha256 of each file it may write, as it was; empty for one that was not there."""


class ToolFinished(Value, frozen=True):
    """The answer to a call; `shown` is what the model sees, `full_ref` the whole of it if that was cut."""

    call_id: str
    outcome: Outcome
    shown: tuple[Text | Image | Document, ...]
    full_ref: str | None = None


class ResultAmended(Value, frozen=True):
    """A hook changed what the model sees of a result."""

    call_id: str
    shown: tuple[Text | Image | Document, ...]
    by: str


class StateChanged(Value, frozen=True):
    """Something the session remembers."""

    state: State


class ToolsChanged(Value, frozen=True):
    """Tools that came or went since the prefix was opened."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class JobStarted(Value, frozen=True):
    """A command goes on in the background."""

    job_id: str
    call_id: str
    command: str


class JobEnded(Value, frozen=True):
    """A background command is over; None means nobody saw how."""

    job_id: str
    exit_code: int | None = None


class AgentSpawned(Value, frozen=True):
    """A sub-agent begins; its events carry its id as `agent`."""

    spawned: str
    call_id: str
    kind: str
    prompt: str


class AgentEnded(Value, frozen=True):
    """A sub-agent is done."""

    spawned: str
    reason: TurnReason
    usage: Usage | None = None
    cost: float | None = None


class Compacted(Value, frozen=True):
    """Forget the chain above `covers`; start from the replacement."""

    tier: str
    covers: int
    """The last seq that is no longer shown to the model."""
    replacement_ref: str
    pinned: tuple[str, ...] = ()


class HeadMoved(Value, frozen=True):
    """The conversation goes on after `to`; what lies between stays in the log."""

    to: int
    restore: Literal["code", "talk", "both"]


class LimitReached(Value, frozen=True):
    """A bound the user set ended the turn."""

    limit: Literal["steps", "budget", "time"]
    value: float
    maximum: float


class TurnFinished(Value, frozen=True):
    """The turn is over."""

    reason: TurnReason
    failure: Failure | None = None


Event = (
    SessionOpened
    | PrefixOpened
    | PromptSubmitted
    | NoteQueued
    | NoteDelivered
    | RequestSent
    | ReplyWithdrawn
    | AssistantReplied
    | CallPrepared
    | PermissionAsked
    | PermissionDecided
    | HookRan
    | CheckpointTaken
    | ToolStarted
    | ToolFinished
    | ResultAmended
    | StateChanged
    | ToolsChanged
    | JobStarted
    | JobEnded
    | AgentSpawned
    | AgentEnded
    | Compacted
    | HeadMoved
    | SessionForked
    | LimitReached
    | TurnFinished
)


class Envelope(msgspec.Struct, frozen=True):
    """One line of the journal."""

    seq: int
    """Place in the file, from 0."""
    parent: int | None
    """The entry this one continues on its branch and agent."""
    at: int
    """Unix time in milliseconds; for people, never for order."""
    agent: str
    event: Event


class Live(msgspec.Struct, frozen=True):
    """Something to show now and forget; it follows entry `after_seq`."""

    agent: str
    after_seq: int
    item: TextDelta | ThinkingDelta | CallDelta | ToolProgress | RetryScheduled | Notice
