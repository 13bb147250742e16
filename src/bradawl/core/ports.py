"""Every seam of the house on one page.

`agent` sees the world only through these; adapters live in `providers`, `workspace`,
`session` and `app`, fakes in `testing`. A port has at most four methods.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeVar

import msgspec

from bradawl.core.deltas import Delta
from bradawl.core.effects import Effects
from bradawl.core.events import AgentEnded, Envelope, Event, Live, RequestParams, State
from bradawl.core.http import HttpRequest
from bradawl.core.messages import Document, Image, Message, Note, Origin, Text, ToolCall, ToolResult
from bradawl.core.permissions import Answer, Choice, Grant, Question
from bradawl.core.retry import RetryBudget
from bradawl.core.rules import Rule
from bradawl.core.usage import Price
from bradawl.core.workspace import Command, CommandResult, FileContent, FileEntry, Job

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

        With `expected_sha256` the file must still have that content; None means that it must not exist. `path` is
        one that `resolve` gave. Mode, owner and hard links are kept. Raises `ToolError`.
        """
        ...

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Regular files below `root`, ignored ones left out, and whether the limit cut the walk. Raises `ToolError`."""
        ...


class Process(Protocol):
    """A program that was started. Who started it ends it: until `wait` has said true, or `end` has returned."""

    async def wait(self, timeout_s: float) -> bool:
        """True once it has ended and its result can be had; false when the time is over first. Cancelling kills it."""
        ...

    async def end(self) -> None:
        """End it with all that it started, and reap it; asks first, and returns after a few seconds at most."""
        ...

    def printed(self) -> tuple[bytes, int]:
        """What it has printed since the last look, both streams as they came, and how much more was left out."""
        ...

    def result(self) -> CommandResult:
        """How it ended; only once it has."""
        ...


class Processes(Protocol):
    """Programs. Nothing starts without a grant, a shell line not without one for its seal. `run` leaves none behind."""

    def seal(self, command: Command) -> str:
        """Names a shell line with all that decides what it would do now: text, folder, variables, sandbox."""
        ...

    async def run(
        self, command: Command, grant: Grant | None, progress: Callable[[bytes], None] | None = None
    ) -> CommandResult:
        """Run to the end; on timeout or cancellation the process group is ended and reaped. Raises `ToolError`."""
        ...

    async def start(
        self, command: Command, grant: Grant | None, progress: Callable[[bytes], None] | None = None
    ) -> Process:
        """Start it and leave it running; its timeout is the caller's to keep. Raises `ToolError`."""
        ...


class Jobs(Protocol):
    """The commands of a session that go on in the background. They end with the session at the latest."""

    def add(self, process: Process, command: str, call_id: str) -> str:
        """Take over a running process; gives back the job's id. The model is told when it ends, or waits for input."""
        ...

    async def read_output(self, job_id: str, wait_s: float = 0.0) -> Job:
        """Wait up to `wait_s` seconds for its end; returns its unread output. Raises `ToolError`: no such job."""
        ...

    async def end(self, job_id: str) -> Job:
        """End it, unless it has ended. Raises `ToolError`: no such job."""
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
    """What a tool gives back; what is longer than its limit the model sees as beginning, end and the path of all."""

    parts: tuple[Text | Image | Document, ...]
    full: bytes | None = None
    """The whole text when `parts` show only some of it."""
    is_error: bool = False
    limit: int | None = 30_000
    """Most characters to show; None for a tool that has seen to it by itself."""
    full_file: str = ""
    """A file with the whole text, handed over instead of `full`."""


class FilesSeen(Protocol):
    """What the model has seen of files."""

    def sha256(self, path: str) -> str | None:
        """Of the content the model last saw; None for a file it has not seen."""
        ...

    def data(self, path: str) -> bytes | None:
        """That content, as long as it is remembered; a resumed session remembers none."""
        ...

    def saw(self, content: FileContent, part: str = "") -> None:
        """The model is about to see this file; `part` names what of it, for `shows`."""
        ...

    def shows(self, content: FileContent, part: str) -> bool:
        """True when the conversation still holds an earlier answer with the same part of the same content."""
        ...


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """What one call may use. Before it is allowed `grant` is None and only `files.resolve` is for use."""

    call_id: str
    cwd: str
    env: Mapping[str, str | None] = {}
    """Variables that earlier commands exported; None for one they unset."""
    files: Files
    processes: Processes
    seen: FilesSeen
    grant: Grant | None
    progress: Callable[[str], None]
    """Shows output while the call runs."""
    change: Callable[[State], None]
    """Records that the session's state changed."""
    jobs: "Jobs | None" = None
    """None where nothing can go on in the background."""
    spawner: "Spawner | None" = None
    """None where no sub-agents can be started."""
    approver: "Approver | None" = None
    permit: Callable[[Effects], Awaitable[None]] | None = None
    """Judges what turns up while the call runs, as a call of its own. Raises `ToolError` if it is refused."""
    rules: tuple[Rule, ...] = ()
    """Rules other than the built-in ones that refuse paths or ask about them: see `core.rules.path_rules`."""

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
        """Run one to its end; gives back its conclusion. Cancelling the caller ends it. Raises `ToolError`."""
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
        """Where a tool can read them. Raises `SessionError` if they are in no file."""
        ...

    async def adopt(self, file: str) -> str:
        """Store what is in a file, which is taken away from its place; gives back the name."""
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


class Approver(Protocol):
    """Asks the user."""

    async def ask(self, question: Question) -> Answer:
        """One question at a time per session; cancelled with the turn."""
        ...

    async def choose(self, choice: Choice) -> str | None:
        """What the user says; None when nobody is there, or nobody wants to answer."""
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
