"""In-memory fakes of the ports in `bradawl.core.ports`.

Each follows the contract of its port (see `bradawl.testing.conformance`) and records its calls in public
attributes. The scripted model is in `bradawl.testing.scripted`.
"""

import asyncio
import hashlib
import heapq
import posixpath
from collections.abc import Callable, Iterable, Mapping

import msgspec

from bradawl.core.deltas import Notice
from bradawl.core.effects import Effects
from bradawl.core.errors import SessionBusy, SessionNotFound, ToolError
from bradawl.core.events import AgentEnded, Envelope, Event, Live, PromptSubmitted, TurnReason
from bradawl.core.messages import Text, ToolCall, ToolResult
from bradawl.core.permissions import Answer, Choice, Question
from bradawl.core.ports import CallContext, OpenSession, ToolOutput
from bradawl.core.tools import ToolSpec
from bradawl.core.workspace import Checkpoint, FileContent, FileEntry
from bradawl.session.blobs import MemoryBlobs
from bradawl.session.journal import EntryNumbering, MemoryLog
from bradawl.testing.fake_http import Cut, Reply, ScriptedHttp
from bradawl.testing.fake_processes import ScriptedProcess, ScriptedProcesses

__all__ = [
    "Cut",
    "FakeChanges",
    "FakeClock",
    "FakeHook",
    "FakeIds",
    "FakeSpawner",
    "FakeTool",
    "FakeToolParams",
    "MemoryBlobs",
    "MemoryFiles",
    "MemoryLog",
    "MemoryStore",
    "RecordingEmit",
    "Reply",
    "ScriptedApprover",
    "ScriptedHttp",
    "ScriptedProcess",
    "ScriptedProcesses",
]

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


class FakeClock:
    """`Clock` whose time advances by `advance` only, or with `is_eager` also by each `sleep`, without waiting."""

    def __init__(self, now_ms: int = 1_700_000_000_000, *, is_eager: bool = False) -> None:
        self._start_ms = now_ms
        self._elapsed_s = 0.0
        self._is_eager = is_eager
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self.slept: list[float] = []
        """Seconds of every `sleep`, in order of the calls."""

    def now_ms(self) -> int:
        """The start time plus the advanced time, in milliseconds."""
        return self._start_ms + round(self._elapsed_s * 1000)

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been advanced that far."""
        self.slept.append(seconds)
        if seconds <= 0 or self._is_eager:
            self._elapsed_s += max(0.0, seconds)
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed_s + seconds, len(self.slept), woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Advance the time and wake the sleeping tasks whose time has come."""
        self._elapsed_s += seconds
        while self._sleepers and self._sleepers[0][0] <= self._elapsed_s:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)


class FakeIds:
    """`Ids` that count: the n-th id ends in n. `draws` are repeated cyclically."""

    def __init__(self, draws: Iterable[float] = (0.5,)) -> None:
        self._draws = tuple(draws)
        self._drawn = 0
        self._given = 0

    def ulid(self) -> str:
        """26 characters, each greater than the one before."""
        self._given += 1
        rest, digits = self._given, ""
        while rest:
            rest, digit = divmod(rest, 32)
            digits = _CROCKFORD[digit] + digits
        return "01FAKE" + digits.rjust(20, "0")

    def draw(self) -> float:
        """The next of the given draws."""
        self._drawn += 1
        return self._draws[(self._drawn - 1) % len(self._draws)]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class MemoryFiles:
    """`Files` in memory: absolute paths to bytes. A folder exists if there is a file below it."""

    def __init__(self, files: Mapping[str, bytes] | None = None, home: str = "/home/user") -> None:
        self.files = dict(files or {})
        self._home = home
        self._ages: dict[str, int] = {path: age for age, path in enumerate(self.files)}

    def resolve(self, path: str, cwd: str) -> str:
        """Absolute path, `~` and `..` resolved; there are no symlinks. Raises `ToolError`."""
        if not path or "\0" in path:
            raise ToolError("The path is empty or holds a NUL. Give the path of a file.")
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return posixpath.normpath(posixpath.join(cwd, path))

    async def read(self, path: str, limit_bytes: int) -> FileContent:
        """The file. Raises `ToolError`: missing, a folder, larger than the limit."""
        data = self._data(path)
        if len(data) > limit_bytes:
            raise ToolError(f"{path} has {len(data)} bytes, more than {limit_bytes}. Read a part of it.")
        return FileContent(path, data, _sha256(data))

    def _data(self, path: str) -> bytes:
        if self._is_folder(path):
            raise ToolError(f"{path} is a folder, not a file.")
        if path not in self.files:
            raise ToolError(f"{path} does not exist.")
        return self.files[path]

    def _is_folder(self, path: str) -> bool:
        return any(name.startswith(path.rstrip("/") + "/") for name in self.files)

    async def replace(self, path: str, data: bytes, expected_sha256: str | None) -> str:
        """Compare and swap. Raises `ToolError` if the file's hash is not the expected one."""
        if expected_sha256 is None and path in self.files:
            raise ToolError(f"{path} exists already. Read it first.")
        if expected_sha256 is not None and _sha256(self._data(path)) != expected_sha256:
            raise ToolError(f"{path} has changed since it was read. Read it again.")
        if self._is_folder(path):
            raise ToolError(f"{path} is a folder, not a file.")
        if above := next((name for name in self.files if path.startswith(name + "/")), None):
            raise ToolError(f"{above} is a file, not a folder.")
        self.files[path] = data
        self._ages[path] = max(self._ages.values(), default=0) + 1
        return _sha256(data)

    async def list(self, root: str, limit: int) -> tuple[tuple[FileEntry, ...], bool]:
        """The files below `root`, sorted by path. Raises `ToolError` when there is no such folder."""
        if root in self.files or not (self._is_folder(root) or root == "/"):
            raise ToolError(f"{root} is not a folder.")
        below = sorted(name for name in self.files if name.startswith(root.rstrip("/") + "/"))
        found = tuple(FileEntry(name, self._ages.get(name, 0), len(self.files[name])) for name in below[:limit])
        return found, len(below) > limit


class FakeChanges:
    """`WorkspaceChanges` over `MemoryFiles`: a reference names a call, and `changed` holds what it changed."""

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files
        self._before: dict[str, bytes] = {}
        self._begun: set[str] = set()
        self._ended: list[tuple[str, Checkpoint]] = []
        self.changed: dict[str, dict[str, tuple[bytes | None, bytes | None]]] = {}
        """By reference and path, the content before and after; None for a missing file."""

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        """Remember all files, whatever `paths` are."""
        del paths
        self._before = dict(self._files.files) if not self._begun else self._before
        self._begun.add(call_id)
        return await self.settle(_owner_and_id(call_id)[0])

    def end(self, call_id: str) -> None:
        """Compare all files. Of calls that overlap, the one that ends first is credited with all changes."""
        before, after = self._before, self._files.files
        paths = (path for path in {**before, **after} if before.get(path) != after.get(path))
        owner, bare_id = _owner_and_id(call_id)
        if call_id not in self._begun:
            self._ended.append((owner, Checkpoint(bare_id, "", "What it changed is not known.")))
            return
        self._begun.remove(call_id)
        ref = ""
        if changed := {path: (before.get(path), after.get(path)) for path in paths}:
            ref = f"checkpoint-{bare_id}"
            self.changed[ref] = changed
        self._ended.append((owner, Checkpoint(bare_id, ref)))
        self._before = dict(after)

    async def covers(self) -> bool:
        """True: all files are in memory."""
        return True

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """The checkpoints of the owner's ended calls."""
        found = tuple(each for named, each in self._ended if named == owner)
        self._ended = [(named, each) for named, each in self._ended if named != owner]
        return found


def _owner_and_id(call: str) -> tuple[str, str]:
    owner, _, call_id = call.rpartition("/")
    return owner, call_id


class FakeToolParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool for tests."""

    text: str = ""


class FakeTool:
    """`Tool` that returns `output` and records its arguments."""

    def __init__(self, name: str = "fake", output: str | ToolError = "done", effects: Effects | None = None) -> None:
        self.spec = ToolSpec(name)
        self._output = output
        self._effects = effects or Effects()
        self.calls: list[FakeToolParams] = []

    @property
    def params(self) -> type[FakeToolParams]:
        """A struct with one text."""
        return FakeToolParams

    def effects(self, params: FakeToolParams, context: CallContext) -> Effects:
        """The value given to the constructor."""
        return self._effects

    async def run(self, params: FakeToolParams, context: CallContext) -> ToolOutput:
        """Returns the output given, or raises it if it is an error."""
        self.calls.append(params)
        if isinstance(self._output, ToolError):
            raise self._output
        return ToolOutput((Text(self._output),))


class FakeHook:
    """`Hook` made of two functions; without them it changes nothing."""

    def __init__(
        self,
        before: Callable[[ToolCall], ToolCall | str] | None = None,
        after: Callable[[ToolCall, ToolResult], ToolResult] | None = None,
        name: str = "fake",
    ) -> None:
        self._before = before
        self._after = after
        self._name = name
        self.seen: list[str] = []
        """Ids of the calls, once before and once after each."""

    @property
    def name(self) -> str:
        """The value given to the constructor."""
        return self._name

    async def before_call(self, call: ToolCall) -> ToolCall | str:
        """The first function's result."""
        self.seen.append(call.id)
        return self._before(call) if self._before else call

    async def after_call(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """The second function's result."""
        self.seen.append(call.id)
        return self._after(call, result) if self._after else result


class FakeSpawner:
    """`Spawner` whose sub-agents end at once with the scripted conclusions, in order."""

    def __init__(self, conclusions: Iterable[str] = ("done",), reasons: Iterable[TurnReason] = ()) -> None:
        """`reasons` are the reasons of the ends, in order; after them `completed`."""
        self._conclusions = list(conclusions)
        self._reasons = list(reasons)
        self.spawned: list[tuple[str, str, str]] = []
        """(kind, prompt, call_id) of each."""

    async def spawn(self, kind: str, prompt: str, call_id: str) -> tuple[str, AgentEnded]:
        """The next conclusion. Raises `ToolError` if none is left."""
        self.spawned.append((kind, prompt, call_id))
        if len(self.spawned) > len(self._conclusions):
            raise ToolError(f"Only {len(self._conclusions)} conclusions were scripted.")
        number = len(self.spawned)
        reason = self._reasons[number - 1] if number <= len(self._reasons) else "completed"
        return self._conclusions[number - 1], AgentEnded(f"agent-{number}", reason)


class MemoryStore:
    """`SessionStore` in memory; a closed session can be opened again."""

    def __init__(self, clock: FakeClock | None = None, ids: FakeIds | None = None) -> None:
        self._clock = clock or FakeClock()
        self._ids = ids or FakeIds()
        self._order: list[str] = []
        self.logs: dict[str, MemoryLog] = {}
        """The last log of each session id; its `entries` are the new ones."""
        self.history: dict[str, tuple[Envelope, ...]] = {}
        """The entries of each session id before that log."""
        self.blobs = MemoryBlobs()

    def create(self) -> OpenSession:
        """A new session whose log claims to be saved."""
        return self._hand_over(self._ids.ulid(), ())

    def open(self, session_id: str) -> OpenSession:
        """An existing session. Raises `SessionNotFound`, `SessionBusy`."""
        log = self.logs.get(session_id)
        if log is None or not (self.history[session_id] or log.entries):
            raise SessionNotFound(f"There is no session {session_id}.")
        if not log.is_closed:
            raise SessionBusy(f"Session {session_id} is open in this program. Close it first.")
        return self._hand_over(session_id, (*self.history[session_id], *log.entries))

    def _hand_over(self, session_id: str, entries: tuple[Envelope, ...]) -> OpenSession:
        last = {entry.agent: entry.seq for entry in entries}
        numbering = EntryNumbering(entries[-1].seq + 1 if entries else 0, last)
        log = MemoryLog(session_id, self._clock, numbering, saved=True, on_append=self._order.append)
        self.logs[session_id], self.history[session_id] = log, entries
        return OpenSession(log, self.blobs, entries, read=lambda: (*entries, *log.entries))

    def latest(self) -> str | None:
        """Id of the session written last, of those with a prompt."""
        return next((name for name in reversed(self._order) if any(map(_is_prompt, self._events(name)))), None)

    def _events(self, session_id: str) -> list[Event]:
        return [entry.event for entry in (*self.history[session_id], *self.logs[session_id].entries)]


def _is_prompt(event: Event) -> bool:
    return isinstance(event, PromptSubmitted)


class ScriptedApprover:
    """`Approver` with scripted answers; after them it denies, as without a user (`by="nobody"`)."""

    def __init__(self, answers: Iterable[Answer | bool] = (), words: Iterable[str] = ()) -> None:
        """`words` are the answers to the model's own questions, in order."""
        self._answers = list(answers)
        self._words = list(words)
        self.questions: list[Question] = []
        """The permission questions received."""
        self.choices: list[Choice] = []
        """The model's own questions received."""

    async def ask(self, question: Question) -> Answer:
        """The next answer."""
        self.questions.append(question)
        if len(self.questions) > len(self._answers):
            return Answer(allowed=False, by="nobody")
        answer = self._answers[len(self.questions) - 1]
        return answer if isinstance(answer, Answer) else Answer(allowed=answer, by="user")

    async def choose(self, choice: Choice) -> str | None:
        """The next of `words`; None after them."""
        self.choices.append(choice)
        return self._words.pop(0) if self._words else None


class RecordingEmit:
    """`Emit` that keeps the events."""

    def __init__(self) -> None:
        self.items: list[Envelope | Live] = []

    def __call__(self, item: Envelope | Live) -> None:
        """Keep the event."""
        self.items.append(item)

    @property
    def events(self) -> tuple[Event, ...]:
        """The durable events, without their envelopes."""
        return tuple(item.event for item in self.items if isinstance(item, Envelope))

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the warnings."""
        return tuple(item.item.text for item in self.items if isinstance(item, Live) and isinstance(item.item, Notice))
