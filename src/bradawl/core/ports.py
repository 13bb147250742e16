"""The ports: protocols through which `agent` uses models, files, processes, tools, logs and people.

Adapters are in `providers`, `workspace`, `session` and `app`, fakes in `testing`. A port has at most four methods.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeVar

import msgspec

from bradawl.core.arguments import Arguments
from bradawl.core.deltas import Delta
from bradawl.core.effects import Effects
from bradawl.core.events import AgentEnded, Envelope, Event, Live, RequestParams, State
from bradawl.core.http import HttpRequest
from bradawl.core.messages import Document, Image, Message, Note, Origin, Text, ToolCall, ToolResult
from bradawl.core.permissions import Answer, Choice, Grant, Question
from bradawl.core.retry import RetryBudget
from bradawl.core.rules import Rule
from bradawl.core.tools import JsonParams, ToolSpec
from bradawl.core.usage import Price
from bradawl.core.workspace import Checkpoint, Command, CommandResult, FileContent, FileEntry, Job

Emit = Callable[[Envelope | Live], None]
"""Receives each event as it happens; must not block or raise."""
Progress = Callable[[bytes], None]
"""Receives output of a program as it arrives."""
Permit = Callable[[Effects], Awaitable[None]]
"""Judges effects found while a call runs, as if they were a call. Raises `ToolError` if they are refused."""


class ToolSchema(msgspec.Struct, frozen=True):
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: msgspec.Raw
    """JSON Schema of the arguments, which are an object."""


class Prefix(msgspec.Struct, frozen=True):
    """The unchanging beginning of the requests of a session."""

    system: str
    tools: tuple[ToolSchema, ...]


class ModelInfo(msgspec.Struct, frozen=True):
    """Properties of a model."""

    origin: Origin
    context_window: int | None = None
    """Tokens; None if unknown."""
    price: Price | None = None
    max_output: int | None = None
    """Tokens of its longest reply; None if unknown."""


class Window(msgspec.Struct, frozen=True):
    """The context window of a model, and where the figure comes from."""

    tokens: int
    source: Literal["settings", "server", "assumed"]
    """An `assumed` window only causes warnings; it never shortens a conversation."""


class ModelSession(Protocol):
    """One conversation with a model. A message is encoded once, when it is appended."""

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
        """Send the request and yield the reply, which ends with one `ReplyEnded` or `StreamFailed`.

        It retries only before the first content delta. Closing the iterator closes the stream.
        """
        ...


class Model(Protocol):
    """Answers requests; sessions may share it."""

    @property
    def info(self) -> ModelInfo:
        """Its properties."""
        ...

    def open(self, prefix: Prefix, session_id: str = "") -> ModelSession:
        """Begin a conversation; providers may use the id to recognise requests of one session."""
        ...

    async def window(self) -> Window:
        """Its context window; may ask a local server once, for at most a second."""
        ...

    async def aclose(self) -> None:
        """Close connections; may be called twice."""
        ...


class HttpResponse(Protocol):
    """A response whose body is still arriving."""

    @property
    def status(self) -> int:
        """HTTP status code."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers; names are in lower case."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The decompressed body as it arrives. Raises `HttpError`."""
        ...


class Http(Protocol):
    """Sends requests. Follows at most three redirects, only 307 and 308, and only within the same origin."""

    def stream(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a request; leaving the context ends the exchange. Raises `HttpError`."""
        ...

    async def aclose(self) -> None:
        """Close connections; may be called twice."""
        ...


class Files(Protocol):
    """The files of the workspace."""

    def resolve(self, path: str, cwd: str) -> str:
        """Absolute path with `~` and symlinks resolved; the file need not exist. Raises `ToolError`."""
        ...

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """A whole regular file. Raises `ToolError` if it is missing, denied, not regular or larger than the limit."""
        ...

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Write `data` to a resolved path atomically, creating folders; returns its sha256. Raises `ToolError`.

        It must still have the content of `expected_sha256`, or not exist if None. Mode, owner and hard links are kept.
        """
        ...

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """Regular files below `root` that are not ignored, and whether the limit was hit. Raises `ToolError`."""
        ...


class Process(Protocol):
    """A started program. Its owner ends it, unless `wait` has returned true."""

    async def wait(self, timeout_s: float) -> bool:
        """True once it has ended; false after `timeout_s` seconds. Cancellation kills it."""
        ...

    async def end(self) -> None:
        """Terminate it with all its children, then kill what is left; returns after a few seconds at most."""
        ...

    def printed(self) -> tuple[bytes, int]:
        """Output of both streams since the last call, and the number of bytes left out."""
        ...

    def result(self) -> CommandResult:
        """Its result; only after it has ended."""
        ...


class Processes(Protocol):
    """Starts programs. Each needs a grant, and a shell line one for its seal. `run` leaves no process behind."""

    def seal(self, command: Command) -> str:
        """Digest of a shell line and everything that determines its effect: text, folder, variables, sandbox."""
        ...

    async def run(
        self, command: Command, grant: Grant | None, progress: Progress | None = None, permit: Permit | None = None
    ) -> CommandResult:
        """Run to the end; timeout and cancellation end the process group. Raises `ToolError`."""
        ...

    async def start(
        self, command: Command, grant: Grant | None, progress: Progress | None = None, permit: Permit | None = None
    ) -> Process:
        """Start a program and leave it running; the caller enforces the timeout. Raises `ToolError`."""
        ...


class Jobs(Protocol):
    """The background commands of a session. They end with it at the latest."""

    def add(self, process: Process, command: str, call_id: str, ran_s: float = 0.0) -> str:
        """Own a process that has run for `ran_s` seconds; returns the job's id. Its end and questions send notes."""
        ...

    async def read_output(self, job_id: str, wait_s: float = 0.0) -> Job:
        """Wait up to `wait_s` seconds for its end; returns its unread output. Raises `ToolError` for an unknown job."""
        ...

    async def end(self, job_id: str) -> Job:
        """End it if it still runs. Raises `ToolError` for an unknown job."""
        ...

    def times_asked(self) -> int:
        """How often the user asked to move running commands to the background."""
        ...


class WorkspaceChanges(Protocol):
    """Saves files before calls change them, and finds what each changed. A call is named `OWNER/ID` or `ID`."""

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        """Save the state before a call that may change `paths`, or any file if None. Raises `ToolError`.

        Waits for the searches of ended calls, and returns the checkpoints of the same owner.
        """
        ...

    def end(self, call_id: str) -> None:
        """Search for what the call changed, in the background. A call not begun is one of an interrupted session."""
        ...

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """Wait for the searches of ended calls; returns the owner's checkpoints, one at least for each such call."""
        ...

    async def covers(self) -> bool:
        """Whether undo can bring back all files. Waits for the first search, for at most two seconds."""
        ...


class ToolOutput(msgspec.Struct, frozen=True):
    """A tool's result. Of a text over `limit` the model sees the beginning, the end and the path of the whole."""

    parts: tuple[Text | Image | Document, ...]
    full: bytes | None = None
    """The whole text if `parts` hold only some of it."""
    is_error: bool = False
    limit: int | None = 30_000
    """Most characters to show; None if the tool limits its output itself."""
    full_file: str = ""
    """A file with the whole text, instead of `full`; the caller takes ownership."""
    has_failed_part: bool = False
    """The call succeeded, but a part of what it ran failed: it does not count as a check of the work."""


class FilesSeen(Protocol):
    """Remembers which contents of files the model has seen, of any time, and which results it can still read."""

    def sha256(self, path: str) -> str | None:
        """Digest of the content the model last saw; None if it has not seen the file."""
        ...

    def data(self, path: str) -> bytes | None:
        """The content the model last saw; None if it is not kept, as in a resumed session."""
        ...

    def saw(self, content: FileContent, part: str = "") -> None:
        """Record that the model sees this content; `part` names what the result holds, "" for all."""
        ...

    def parts(self, content: FileContent, *, held: bool = False) -> frozenset[str]:
        """Names of the parts it has seen of this content, "" for all; with `held`, those that a result still shows."""
        ...


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """The services for one call. For `Tool.effects`, `grant` is None and only `files.resolve` may be used."""

    call_id: str
    cwd: str
    project: str = ""
    """The folder in which the session began; empty if that is not known."""
    env: Mapping[str, str | None] = {}
    """Variables exported by earlier commands; None for one they unset."""
    files: Files
    processes: Processes
    seen: FilesSeen
    grant: Grant | None
    progress: Callable[[str], None]
    """Shows output while the call runs."""
    change: Callable[[State], None]
    jobs: "Jobs | None" = None
    spawner: "Spawner | None" = None
    """None if no sub-agents can be started; `jobs` likewise."""
    approver: "Approver | None" = None
    permit: Permit | None = None
    rules: tuple[Rule, ...] = ()
    """Rules about paths; see `core.rules.path_rules`."""
    messages: Callable[[], Sequence[Message]] = tuple
    """The messages that the model sees, up to the reply with this call."""
    name_of: Callable[[str], str] = str

    def resolve(self, path: str) -> str:
        """Absolute path; relative paths start at the working directory."""
        return self.files.resolve(path, self.cwd)

    def relative(self, path: str) -> str:
        """A path for the model: as programs call it, and relative if it lies below the working directory."""
        return self.name_of(path).removeprefix(self.name_of(self.cwd).rstrip("/") + "/")


Params = msgspec.Struct | Arguments
"""Decoded arguments of a call: the tool's struct, or a dict if its parameters are a JSON Schema."""
P = TypeVar("P", contravariant=True)


class Tool(Protocol[P]):
    """An action the model may call. All sessions share it, so it keeps no state."""

    @property
    def spec(self) -> ToolSpec:
        """Its name and what it is."""
        ...

    @property
    def params(self) -> type[msgspec.Struct] | JsonParams:
        """The struct of its arguments, whose docstring is the tool's description; or a JSON Schema."""
        ...

    def effects(self, params: P, context: CallContext) -> Effects:
        """The effects of this call; must not touch anything itself. Raises `ToolError`."""
        ...

    async def run(self, params: P, context: CallContext) -> ToolOutput:
        """Make the call. Raises `ToolError`, whose text says what to try instead."""
        ...


AnyTool = Tool[Params]


class Hook(Protocol):
    """Inspects calls before and after they run."""

    @property
    def name(self) -> str:
        """For the log."""
        ...

    async def before_call(self, call: ToolCall) -> ToolCall | str:
        """Returns the call, its arguments changed or not, or the reason to refuse it. Raising refuses it too."""
        ...

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Returns the result, its parts changed or not. Raising withholds it from the model."""
        ...


class Spawner(Protocol):
    """Runs sub-agents."""

    async def spawn(self, kind: str, prompt: str, call_id: str) -> tuple[str, AgentEnded]:
        """Run a sub-agent to its end; returns its conclusion. Cancelling the caller ends it. Raises `ToolError`."""
        ...


class SessionLog(Protocol):
    """The append-only log of one session. It has one writer."""

    @property
    def session_id(self) -> str:
        """Its ulid."""
        ...

    def append(self, event: Event, agent: str = "main") -> Envelope:
        """Write one entry without waiting for the disk; does not raise if the disk fails."""
        ...

    async def durable(self, entry: Envelope) -> bool:
        """Wait until the entry is on disk; false if that failed. Shielded from cancellation."""
        ...

    def close(self) -> bool:
        """Release the file and its lock; true if all entries are on disk. May be called twice."""
        ...


class Blobs(Protocol):
    """Stores bytes under their sha256."""

    async def put(self, data: bytes) -> str:
        """Store bytes; returns their name. Durable on return."""
        ...

    def get(self, ref: str) -> bytes:
        """The bytes. Raises `SessionError` if they are missing or damaged."""
        ...

    def path(self, ref: str) -> str:
        """The file that holds them. Raises `SessionError` if there is none."""
        ...

    async def adopt(self, file: str) -> str:
        """Store the content of a file and remove the file; returns the name."""
        ...


class OpenSession(msgspec.Struct, frozen=True):
    """A session as the store opens it."""

    log: SessionLog
    blobs: Blobs
    entries: tuple[Envelope, ...]
    notices: tuple[str, ...] = ()
    """Messages for the user, for example that the history can't be saved."""
    read: Callable[[], tuple[Envelope, ...]] | None = None
    """Reads all entries again, with those appended since; may raise `SessionError`. None: no rewinding."""
    records: Blobs | None = None
    """For what compactions take out, which no command may read; None for `blobs`."""


class SessionStore(Protocol):
    """Opens the sessions of one project."""

    def create(self) -> OpenSession:
        """A new session; kept in memory, with a notice, if nothing can be written."""
        ...

    def open(self, session_id: str) -> OpenSession:
        """An existing session, locked for writing. Raises `SessionError`."""
        ...

    def latest(self) -> str | None:
        """Id of the session that was written last; None if there is none."""
        ...


class Approver(Protocol):
    """Asks the user."""

    async def ask(self, question: Question) -> Answer:
        """Ask whether a call may run. One question at a time per session; cancelled with the turn."""
        ...

    async def choose(self, choice: Choice) -> str | None:
        """The user's answer to a question of the model; None if there is none."""
        ...


class Inbox(Protocol):
    """Notes waiting for the model."""

    def put(self, note: Note) -> None:
        """Queue a note; safe from any task of the session's loop."""
        ...

    def drain(self) -> tuple[Note, ...]:
        """All waiting notes, oldest first."""
        ...


class Clock(Protocol):
    """Tells the time and waits."""

    def now_ms(self) -> int:
        """Unix time in milliseconds."""
        ...

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait this many seconds."""
        ...


class Ids(Protocol):
    """Generates unique ids and random numbers."""

    def ulid(self) -> str:
        """26 characters, sortable by time."""
        ...

    def draw(self) -> float:
        """A random number, uniform in [0, 1)."""
        ...
