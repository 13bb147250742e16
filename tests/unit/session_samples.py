"""One sample of every event, part and state, for tests of saved sessions."""

from bradawl.core.effects import UNKNOWN, Effects
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    CallPrepared,
    CheckpointTaken,
    Compacted,
    Cwd,
    DirsAdded,
    EffortChosen,
    Env,
    Event,
    FileSeen,
    HeadMoved,
    HookRan,
    JobEnded,
    JobStarted,
    LimitReached,
    ModeChosen,
    ModelChosen,
    NameSet,
    NoteDelivered,
    NoteQueued,
    NoteWithdrawn,
    PermissionAsked,
    PermissionDecided,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestParams,
    RequestSent,
    ResultAmended,
    RulesAdded,
    SessionForked,
    SessionOpened,
    StateChanged,
    Todo,
    TodosSet,
    ToolFinished,
    ToolsChanged,
    ToolStarted,
    TrustSet,
    TurnFinished,
)
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Opaque,
    Origin,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from bradawl.core.usage import Usage

REF = "c0" * 32
ORIGIN = Origin("openai_chat", "openai", "gpt-x")
OVERLOADED = Failure("overloaded", "busy", retryable=True, status=529, code="x", retry_after_s=1.5, request_id="r")
PARTS: tuple[Part, ...] = (
    Thinking("hm", "c2ln", redacted=False, provider_data='{"type":"thinking","n":1.5}'),
    Text("Grüße \U0001f600 \u2028 \x00\n"),
    ToolCall("c1", "bash", '{"command": "ls"}', signature="s", provider_data="[1,2]"),
    ToolCall("c2", "bash", '{"command"', status="truncated"),
    Image("image/png", b"\x00\xff\x10"),
    Document("application/pdf", b"%PDF", "a.pdf"),
    Refusal("no"),
    Opaque('{"type":"later"}'),
)
SHOWN = (Text("a\nb"), Image("image/png", b"\x89"), Document("text/plain", b"x"))
STATES = (
    Cwd("/home/me/project/src"),
    Env({"A": "1", "B": None}),
    ModeChosen("bypass"),
    ModelChosen("openai", "gpt-y"),
    RulesAdded(("bash(git status)",)),
    TodosSet((Todo("one", "completed"), Todo("two"))),
    FileSeen("/home/me/project/a.py", REF),
    TrustSet("/home/me/project", trusted=True),
    DirsAdded(("/srv",)),
)
CHOICES: tuple[Event, ...] = (
    SessionOpened(1, "/home/me/project", "/home/me/project", "0.1.0"),
    StateChanged(ModelChosen("openai", "gpt-y", by_user=True)),
    StateChanged(EffortChosen("high")),
    StateChanged(EffortChosen(None)),
    StateChanged(NameSet("the parser")),
    StateChanged(RulesAdded(("deny Bash(rm:*)",), ("allow Bash(ls)",))),
    PromptSubmitted((Text("Go on."),)),
    NoteQueued(Note("n2", "Wait.", "user")),
    NoteWithdrawn("n2"),
)
"""The events of the third saved session, with states that the first one does not have."""
SUB_AGENT: tuple[Event, ...] = (PromptSubmitted((Text("look around"),)), TurnFinished("completed"))
"""What the sub-agent `scout` logs right after it was spawned."""
EVENTS: tuple[Event, ...] = (
    SessionOpened(1, "/home/me/project", "/home/me/project", "0.1.0"),
    PrefixOpened(REF, REF, "openai", "gpt-x"),
    PromptSubmitted((Text("Fix the bug."), Image("image/png", b"\x89PNG"), Document("application/pdf", b"%PDF"))),
    NoteQueued(Note("n1", "by the way", "user")),
    RequestSent(1, "ab" * 32, RequestParams(1000, "high"), 0.25),
    ReplyWithdrawn(1, OVERLOADED),
    CallPrepared("c1", 1, "bash", '{"command": "ls"}', UNKNOWN, PARTS[:2]),
    AssistantReplied(1, Assistant(PARTS, ORIGIN, False, "r1"), "tool_use", True, Usage(1, 2, 3, 4, 1), 0.01, "gpt-x"),
    PermissionAsked("c1", "it changes something"),
    PermissionDecided("c1", "allow", "user", "bash", "session"),
    HookRan("lint", "before_call", "c1", "amended", "added -l"),
    CheckpointTaken("c1", REF),
    ToolStarted("c1"),
    ToolFinished("c1", "ok", SHOWN, REF),
    ResultAmended("c1", SHOWN[:1], "lint"),
    ToolFinished("c2", "refused", (Text("not whole"),)),
    *(StateChanged(state) for state in STATES),
    ToolsChanged(("mcp_x",), ("mcp_y",)),
    JobStarted("j1", "c1", "make watch"),
    JobEnded("j1", -15),
    AgentSpawned("scout", "c1", "explore", "look around"),
    AgentEnded("scout", "completed", Usage(5, 6), 0.5),
    NoteDelivered("n1"),
    Compacted("summary", 12, REF, ("n1",)),
    LimitReached("budget", 1.25, 1.0),
    HeadMoved(2, "both"),
    CallPrepared("c3", 2, "edit", "{}", Effects(("/a",), ("/b",), (("ls", "-l"),), ("h",), True, True, ("cwd",))),
    TurnFinished("error", Failure("server", "it broke", hint="Try again.")),
)
FORK: tuple[Event, ...] = (
    SessionForked(1, "01GOLDEN000000000000000001", 24, "/home/me/project", "/home/me/project", "0.1.0"),
    PromptSubmitted((Text("And now differently."),)),
)
