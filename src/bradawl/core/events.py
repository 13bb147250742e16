"""The events of a session's log, the envelope that orders them, and live events that are only shown.

Events compare by value; identity and time are in the `Envelope`. A blob's name is the hex sha256 of its bytes. This is
the session format: new fields need a default, and nothing is renamed.
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
"""`interrupted`: it was started, and how far it came is unknown."""
TurnReason = Literal["completed", "error", "steps", "budget", "time", "limit", "refused", "cancelled", "interrupted"]


class RequestParams(msgspec.Struct, frozen=True, omit_defaults=True):
    """Parameters of a request besides its messages."""

    max_output_tokens: int | None = None
    effort: str | None = None
    answer_schema: str = ""
    """JSON Schema the answer must satisfy, as text; empty for none."""


class Todo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One item of the model's to-do list."""

    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"


class Cwd(Value, frozen=True):
    """The working directory of the session's tools, absolute."""

    path: str


class Env(Value, frozen=True):
    """Variables exported for later commands; None unsets."""

    variables: dict[str, str | None]


class ModeChosen(Value, frozen=True):
    """The permission mode from this entry on."""

    mode: Mode


class ModelChosen(Value, frozen=True):
    """The model from this entry on."""

    provider: str
    model: str
    by_user: bool = False
    """The user chose it for the rest of the session, also for later runs."""
    context_window: int | None = None
    """Tokens, as the user said with the choice; None for what is known of the model."""


class EffortChosen(Value, frozen=True):
    """The effort of requests that the user chose from this entry on; None for that of the settings."""

    effort: str | None


class NameSet(Value, frozen=True):
    """The user's name for the session; empty for none."""

    name: str


class RulesAdded(Value, frozen=True):
    """Permission rules added for the session, and removed again; each is `allow`, `ask` or `deny` and a rule."""

    rules: tuple[str, ...]
    removed: tuple[str, ...] = ()


class TodosSet(Value, frozen=True):
    """The whole to-do list; it replaces the last."""

    todos: tuple[Todo, ...]


class FileSeen(Value, frozen=True):
    """The model saw a file with this content; `part` names the part that its result holds, such as `lines 1-40`."""

    path: str
    sha256: str
    part: str = ""


class TrustSet(Value, frozen=True):
    """Whether the user trusts a folder."""

    path: str
    trusted: bool


class DirsAdded(Value, frozen=True):
    """Folders added to the workspace."""

    paths: tuple[str, ...]


_Chosen = ModeChosen | ModelChosen | EffortChosen | NameSet
State = _Chosen | Cwd | Env | RulesAdded | TodosSet | FileSeen | TrustSet | DirsAdded


class SessionOpened(Value, frozen=True):
    """First entry of a new session."""

    version: int
    project: str
    """Real path of the folder the session belongs to."""
    cwd: str
    bradawl: str = ""
    """Version of the program that wrote it."""


class SessionForked(Value, frozen=True):
    """First entry of a fork: it continues entry `seq` of another session."""

    version: int
    session: str
    seq: int
    project: str = ""
    cwd: str = ""
    bradawl: str = ""


class PrefixOpened(Value, frozen=True):
    """Requests from this entry on begin with this system prompt and these tools."""

    system_ref: str
    tools_ref: str
    provider: str
    model: str
    reason: Literal["start", "model", "compaction", "tools", "changed", "rewound"] = "start"
    """`changed`: the messages sent before would now be encoded differently."""
    first_change: str = ""
    """The first part that differs from earlier requests, for example `system` or `message 3`; empty for none."""


class PromptSubmitted(Value, frozen=True):
    """The user's prompt; begins a turn."""

    parts: tuple[Text | Image | Document, ...]


class NoteQueued(Value, frozen=True):
    """A note waits for the next step."""

    note: Note


class NoteDelivered(Value, frozen=True):
    """The note became part of the last results or prompt."""

    note_id: str


class NoteWithdrawn(Value, frozen=True):
    """The user took the note back before the model saw it."""

    note_id: str


class RequestSent(Value, frozen=True):
    """A request with the transcript up to this entry was sent."""

    step: int
    prefix_hash: str
    params: RequestParams = RequestParams()
    reserved_cost: float | None = None
    estimated_tokens: int = 0
    """Estimate of `shaping.tokens` for the whole request, not calibrated; 0 if there is none."""
    marks: tuple[str, ...] = ()
    """Shortened prefix hashes after each new message; the first request of a prefix begins with the one before any."""


class ReplyWithdrawn(Value, frozen=True):
    """The reply shown so far is void; the request is sent again."""

    step: int
    failure: Failure
    usage: Usage | None = None
    """Of the void reply, which costs all the same."""
    cost: float | None = None


class AssistantReplied(Value, frozen=True):
    """A reply, as it is kept. `cut`: it broke off and was kept because a call of it had started."""

    step: int
    message: Assistant
    stop: StopReason
    cut: bool = False
    usage: Usage | None = None
    cost: float | None = None
    model: str = ""


class CallPrepared(Value, frozen=True):
    """A call was checked. It may precede the entry of its reply, so it holds all it needs."""

    call_id: str
    step: int
    name: str
    raw_arguments: str
    effects: Effects
    parts_before: tuple[Part, ...] = ()
    """Closed parts of the reply before this call, if the reply is not in the log yet."""


class PermissionAsked(Value, frozen=True):
    """The user is asked."""

    call_id: str
    reason: str


class PermissionDecided(Value, frozen=True):
    """The decision about a call."""

    call_id: str
    decision: Literal["allow", "deny"]
    by: Literal["policy", "user", "hook", "nobody"]
    rule: str = ""
    scope: Literal["once", "session", "project"] = "once"


class HookRan(Value, frozen=True):
    """A hook ran."""

    hook: str
    moment: Literal["before_call", "after_call", "prompt", "turn_end"]
    call_id: str = ""
    outcome: Literal["passed", "amended", "blocked", "failed"] = "passed"
    detail: str = ""


class CheckpointTaken(Value, frozen=True):
    """What a call changed in the workspace is known; the files as they were before are saved."""

    call_id: str
    checkpoint_ref: str
    """Name of the change record; empty if it changed nothing."""
    uncovered: str = ""
    """What undo can't restore, and why."""
    is_known: bool = True
    """False if it is not known what it changed, or that could not be saved. A later entry for the call can say it."""


class ToolStarted(Value, frozen=True):
    """From this entry on the call may have had effects."""

    call_id: str
    before: Mapping[str, str] = {}
    """sha256 of each file it may write; empty for one that did not exist."""


class ToolFinished(Value, frozen=True):
    """The result of a call: what the model sees, and the blob with all of it if that was cut."""

    call_id: str
    outcome: Outcome
    shown: tuple[Text | Image | Document, ...]
    full_ref: str | None = None
    has_failed_part: bool = False
    """It succeeded, but a part of what it ran failed, such as a program before the last of a pipeline."""


class ResultAmended(Value, frozen=True):
    """A hook changed a result for the model."""

    call_id: str
    shown: tuple[Text | Image | Document, ...]
    by: str


class StateChanged(Value, frozen=True):
    """The session's state changed."""

    state: State


class ToolsChanged(Value, frozen=True):
    """Tools that were added or removed since the prefix was opened."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class JobStarted(Value, frozen=True):
    """A command continues in the background."""

    job_id: str
    call_id: str
    command: str


class JobEnded(Value, frozen=True):
    """A background command ended; None if its exit code is unknown."""

    job_id: str
    exit_code: int | None = None


class AgentSpawned(Value, frozen=True):
    """A sub-agent began; `Envelope.agent` of its events is `spawned`."""

    spawned: str
    call_id: str
    kind: str
    prompt: str


class AgentEnded(Value, frozen=True):
    """A sub-agent ended."""

    spawned: str
    reason: TurnReason
    usage: Usage | None = None
    cost: float | None = None


PinKind = Literal["request", "instructions", "plan", "todos", "files", "state", "restored"]


class Pin(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text that a compaction keeps word for word, as the model sees it."""

    id: str
    kind: PinKind
    text: str


class Shortened(msgspec.Struct, frozen=True):
    """A result that a compaction shortened: the numbers of its message and of the result, and its text now."""

    message: int
    result: int
    text: str


class Compacted(Value, frozen=True):
    """The transcript is replaced by a shorter one: a message with the pins and the summary, and the latest messages.

    The kept messages lose the model's thinking, which is bound to what was sent before it.
    """

    tier: str
    """`snip`, `summarise`, `collapse`, or `economy` for results that later ones have replaced."""
    covers: int
    """The last seq before it."""
    replacement_ref: str = ""
    """Not used; it is in the first logs of this format."""
    pinned: tuple[str, ...] = ()
    """Ids of the pins that are in the new transcript."""
    pins: tuple[Pin, ...] = ()
    summary: str = ""
    """Without summary and pins there is no new message."""
    kept_from: int = 0
    """Number of the first message that is kept."""
    shortened: tuple[Shortened, ...] = ()
    """Kept results that are shorter now, by their numbers before."""
    dropped: tuple[str, ...] = ()
    """Ids of the pins that are only referred to."""
    record_ref: str = ""
    """Blob with the text of what was taken out; empty if nothing was."""
    usage: Usage | None = None
    """Of the model that wrote the summary."""
    cost: float | None = None
    tokens: tuple[int, int] | None = None
    """Estimated tokens of the transcript before and after."""


class HeadMoved(Value, frozen=True):
    """The conversation (`talk`), the files (`code`) or both return to the state after entry `to`; no entry is lost."""

    to: int
    restore: Literal["code", "talk", "both"]
    checkpoint_ref: str = ""
    """The change record of the files that were restored with it; empty for none."""


class LimitReached(Value, frozen=True):
    """A limit ended the turn: `steps`, `budget`, `time`, or another name where the turn's reason is `limit`."""

    limit: str
    value: float
    maximum: float


class TurnFinished(Value, frozen=True):
    """The turn ended."""

    reason: TurnReason
    failure: Failure | None = None


_OfSessions = SessionOpened | SessionForked | PromptSubmitted | TurnFinished | LimitReached | StateChanged | HeadMoved
_OfContext = PrefixOpened | Compacted | NoteQueued | NoteDelivered | NoteWithdrawn | ToolsChanged
_OfReplies = RequestSent | ReplyWithdrawn | AssistantReplied
_OfCalls = CallPrepared | PermissionAsked | PermissionDecided | HookRan | ToolStarted | ToolFinished | ResultAmended
_OfEffects = CheckpointTaken | JobStarted | JobEnded | AgentSpawned | AgentEnded
Event = _OfSessions | _OfContext | _OfReplies | _OfCalls | _OfEffects


class Envelope(msgspec.Struct, frozen=True):
    """One line of the log."""

    seq: int
    """Position in the file, from 0."""
    parent: int | None
    """The entry before this one on its branch and agent."""
    at: int
    """Unix time in milliseconds; only to be shown."""
    agent: str
    event: Event


class Live(msgspec.Struct, frozen=True):
    """An event that is shown and not stored; it follows entry `after_seq`."""

    agent: str
    after_seq: int
    item: TextDelta | ThinkingDelta | CallDelta | ToolProgress | RetryScheduled | Notice
