"""Every seam of the house on one page.

`agent` sees the world only through these; adapters live in `providers`, `workspace`,
`session` and `app`, fakes in `testing`. A port has at most four methods.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeVar

import msgspec

from bradawl.core.deltas import Delta
from bradawl.core.effects import Effects
from bradawl.core.events import AgentEnded, Envelope, Event, Live, RequestParams, State
from bradawl.core.messages import Document, Image, Message, Note, Origin, Text, ToolCall, ToolResult
from bradawl.core.permissions import Grant, Request
from bradawl.core.retry import RetryBudget
from bradawl.core.usage import Price

# ------------------------------------------------------------------ showing

Emit = Callable[[Envelope | Live], None]
"""Takes each event as it happens; never blocks, never raises."""

# ------------------------------------------------------------------ model


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as it is shown to a model."""

    name: str
    description: str
    parameters: msgspec.Raw
    """JSON Schema of the arguments, an object."""


class Prefix(msgspec.Struct, frozen=True):
    """What every request of a session begins with."""

    system: str
    tools: tuple[ToolSchema, ...]


class ModelInfo(msgspec.Struct, frozen=True):
    """What is known about a model."""

    origin: Origin
    context_window: int | None = None
    """Tokens; None when nobody has said."""
    price: Price | None = None
    max_output: int | None = None
    """Tokens of the longest reply the model can give; None when nobody has said."""


class Window(msgspec.Struct, frozen=True):
    """How many tokens fit into a model, and who says so."""

    tokens: int
    source: Literal["settings", "server", "assumed"]
    """What is only assumed is for warnings, never a reason to shorten a conversation."""


class ModelSession(Protocol):
    """One conversation with a model. Messages are encoded once, when they are appended."""

    @property
    def info(self) -> ModelInfo:
        """The model that answers the next request."""
        ...

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        ...

    def prefix_hash(self) -> str:
        """sha256 over system, tools and messages as encoded so far; O(1)."""
        ...

    def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Send the request and yield the reply; ends with one `ReplyEnded` or `StreamFailed`.

        Retries by itself only before the first content delta. Closing the iterator closes the connection's stream.
        """
        ...


class Model(Protocol):
    """Something that answers requests; shareable between sessions."""

    @property
    def info(self) -> ModelInfo:
        """What is known about it."""
        ...

    def open(self, prefix: Prefix, session_id: str = "") -> ModelSession:
        """Begin a conversation; its id keeps the requests of a session together at the provider."""
        ...

    async def window(self) -> Window:
        """Its context window; a server on this machine may be asked, once, for a second at most."""
        ...

    async def aclose(self) -> None:
        """Close connections; safe to call twice."""
        ...


class HttpRequest(msgspec.Struct, frozen=True):
    """One request; the body is sent as the concatenation of its pieces."""

    method: Literal["GET", "POST"]
    url: str
    headers: tuple[tuple[str, str], ...]
    body: tuple[bytes, ...] = ()
    connect_timeout_s: float = 10.0
    idle_timeout_s: float = 120.0
    """Longest silence between two bytes, the first included."""

    def __repr__(self) -> str:
        """Without headers, which hold the key."""
        return f"HttpRequest({self.method!r}, {self.url!r})"


class HttpResponse(Protocol):
    """A response whose body is still arriving."""

    @property
    def status(self) -> int:
        """HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, decompressed. Raises `HttpError`."""
        ...


class HttpError(Exception):
    """The exchange broke: `kind` says how, the text says where."""

    def __init__(self, kind: Literal["timeout", "connection"], message: str) -> None:
        super().__init__(message)
        self.kind: Literal["timeout", "connection"] = kind


class Http(Protocol):
    """Sends requests. Redirects are followed only within the same origin, and only those that keep method and body.

    That is 307 and 308, three at most; any other is a response like the rest.
    """

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Open one exchange; leaving the context ends it at once. Raises `HttpError`."""
        ...

    async def aclose(self) -> None:
        """Close kept connections; safe to call twice."""
        ...


# ------------------------------------------------------------------ workspace


class FileContent(msgspec.Struct, frozen=True):
    """A regular file as it was read."""

    path: str
    """Absolute, symlinks resolved."""
    data: bytes
    sha256: str


class FileEntry(msgspec.Struct, frozen=True):
    """One file found by `Files.list`."""

    path: str
    """Absolute."""
    modified_ns: int
    size: int


class Files(Protocol):
    """The files of the workspace."""

    def resolve(self, path: str, cwd: str) -> str:
        """Absolute path with `~` and symlinks resolved; the file need not exist. Raises `ToolError`."""
        ...

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """A whole regular file. Raises `ToolError`: missing, denied, not a regular file, larger than the limit."""
        ...

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Put `data` in place of the file, atomically, creating folders; gives back its sha256.

        With `expected_sha256` the file must still have that content; None means that it must
        not exist. Mode, owner, symlinks and hard links are kept. Raises `ToolError`.
        """
        ...

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Regular files below `root`, ignored ones left out, and whether the limit cut the walk. Raises `ToolError`."""
        ...


class Command(msgspec.Struct, frozen=True):
    """A program to run, or a line for bash."""

    argv: tuple[str, ...]
    cwd: str
    is_shell: bool = False
    """argv has one element, a bash script; its last working directory is reported."""
    timeout_s: float = 120.0
    output_limit_bytes: int = 10_000_000
    """Kept per stream, head and tail; what lies between is counted."""


class CommandResult(msgspec.Struct, frozen=True):
    """How a program ended."""

    exit_code: int | None
    """None when it was ended for its timeout; negative for a signal."""
    stdout: bytes
    stderr: bytes
    dropped_bytes: int = 0
    """Output that was not kept, both streams together."""
    pipe_status: tuple[int, ...] = ()
    """Exit codes of the parts of a shell line's last pipeline."""
    cwd: str | None = None
    """Where a shell line left its working directory; None if it could not be read."""
    seconds: float = 0.0
    ended_background: bool = False
    """Programs it had left running were ended."""


class Processes(Protocol):
    """Programs. Nothing starts without a grant, and nothing outlives its call."""

    async def run(
        self, command: Command, grant: Grant | None, progress: Callable[[bytes], None] | None = None
    ) -> CommandResult:
        """Run to the end; on timeout or cancellation the process group is ended and reaped. Raises `ToolError`."""
        ...


class Checkpoints(Protocol):
    """The state of files before they are changed."""

    async def take(self, paths: tuple[str, ...]) -> str:
        """Save what is there now and give back its reference; durable on return. Raises `ToolError`."""
        ...

    async def restore(self, checkpoint_ref: str) -> tuple[str, ...]:
        """Put it back; gives back the paths that changed. Raises `ToolError`."""
        ...


# ------------------------------------------------------------------ tools


class ToolOutput(msgspec.Struct, frozen=True):
    """What a tool gives back. `full` is the whole text when `parts` show only some of it."""

    parts: tuple[Text | Image | Document, ...]
    full: bytes | None = None
    is_error: bool = False


class CallContext(msgspec.Struct, frozen=True):
    """What one call may use. Before it is allowed `grant` is None and only `files.resolve` is for use."""

    call_id: str
    cwd: str
    files: Files
    processes: Processes
    files_seen: Mapping[str, str]
    """Path to sha256 of what the model last saw."""
    grant: Grant | None
    progress: Callable[[str], None]
    """Shows output while the call runs."""
    change: Callable[[State], None]
    """Records that the session's state changed."""

    def resolve(self, path: str) -> str:
        """Absolute path, relative ones seen from the session's working directory."""
        return self.files.resolve(path, self.cwd)

    def relative(self, path: str) -> str:
        """A path as the model should see it: relative to the working directory where it lies below."""
        root = self.cwd.rstrip("/") + "/"
        return path[len(root) :] if path.startswith(root) else path


P = TypeVar("P", bound=msgspec.Struct)


class Tool(Protocol[P]):
    """An action the model may call. One class, one file; shared by all sessions, so it keeps no state."""

    @property
    def name(self) -> str:
        """As the model sees it; `[a-z0-9_]`, at most 64 characters."""
        ...

    @property
    def params(self) -> type[P]:
        """The struct its arguments are decoded to; field docs become the schema's descriptions.

        The struct's docstring is the tool's description.
        """
        ...

    def effects(self, params: P, context: CallContext) -> Effects:
        """What this call would touch. Must not touch anything itself. Raises `ToolError`."""
        ...

    async def run(self, params: P, context: CallContext) -> ToolOutput:
        """Do it. Raises `ToolError` with what to try instead."""
        ...


class Hook(Protocol):
    """Looks at calls before and after they run."""

    @property
    def name(self) -> str:
        """For the log."""
        ...

    async def before_call(self, call: ToolCall) -> ToolCall | str:
        """The call, amended or not, or a reason to refuse it."""
        ...

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """The result, amended or not."""
        ...


class Spawner(Protocol):
    """Runs sub-agents."""

    async def spawn(self, kind: str, prompt: str, call_id: str) -> tuple[str, AgentEnded]:
        """Run one to its end; gives back its conclusion."""
        ...


# ------------------------------------------------------------------ session


class SessionLog(Protocol):
    """The append-only log of one session; one writer."""

    @property
    def session_id(self) -> str:
        """Its ulid."""
        ...

    def append(self, event: Event, agent: str = "main") -> Envelope:
        """Write one entry at once, without waiting for the disk; never raises for one that refuses."""
        ...

    async def durable(self, entry: Envelope) -> bool:
        """Wait until the entry has reached the disk; false if it could not. Shielded from cancellation."""
        ...

    def close(self) -> bool:
        """Release the file and its lock; true if everything that was appended is on disk. Safe to call twice."""
        ...


class Blobs(Protocol):
    """Bytes named by their sha256."""

    async def put(self, data: bytes) -> str:
        """Store and give back the name; durable on return."""
        ...

    def get(self, ref: str) -> bytes:
        """The bytes. Raises `SessionError` if they are gone or damaged."""
        ...

    def path(self, ref: str) -> str:
        """Where a tool can read them."""
        ...


class OpenSession(msgspec.Struct, frozen=True):
    """A session as the store hands it over: its log, its blobs, and what was already in it."""

    log: SessionLog
    blobs: Blobs
    entries: tuple[Envelope, ...]
    notices: tuple[str, ...] = ()
    """What the user should know, for example that the history can't be saved."""


class SessionStore(Protocol):
    """Where sessions live; bound to one project."""

    def create(self) -> OpenSession:
        """A new, empty session. Where nothing can be written it lives in memory, and says so."""
        ...

    def open(self, session_id: str) -> OpenSession:
        """An existing one, locked for writing. Raises `SessionError`."""
        ...

    def latest(self) -> str | None:
        """Id of the session of this project that was written last."""
        ...


# ------------------------------------------------------------------ people, limits, time


class Question(msgspec.Struct, frozen=True):
    """What the user is asked before a call runs."""

    call: ToolCall
    request: Request
    reason: str


class Answer(msgspec.Struct, frozen=True):
    """The user's word. `by` is `nobody` when there is no one to ask."""

    allowed: bool
    by: Literal["user", "nobody"]
    scope: Literal["once", "session"] = "once"
    message: str = ""
    """Passed on to the model with a refusal."""


class Approver(Protocol):
    """Asks the user."""

    async def ask(self, question: Question) -> Answer:
        """One question at a time per session; cancelled with the turn."""
        ...


class Inbox(Protocol):
    """Notes on their way into a session."""

    def put(self, note: Note) -> None:
        """Queue a note; safe from any task of the session's loop."""
        ...

    def drain(self) -> tuple[Note, ...]:
        """All waiting notes, oldest first."""
        ...


class Ledger(Protocol):
    """Money. A request reserves its worst case first, so that what was spent never passes the cap."""

    def reserve(self, worst_case: float | None) -> bool:
        """Set aside US dollars; false if they do not fit."""
        ...

    def settle(self, reserved: float | None, spent: float | None) -> None:
        """Replace a reservation by what it really cost."""
        ...


class Clock(Protocol):
    """Time."""

    def now_ms(self) -> int:
        """Unix time in milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Fresh names."""

    def ulid(self) -> str:
        """26 characters, sortable by time."""
        ...

    def draw(self) -> float:
        """Uniform in [0, 1)."""
        ...
