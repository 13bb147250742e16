"""The work of a session of any length, and the model that does it: each reply says something and makes one call."""

import hashlib
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bradawl.core.deltas import Delta, StreamFailed
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Message, Origin
from bradawl.core.ports import ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget
from bradawl.providers.encoding import encode_json
from bradawl.testing.script import Entry, ScriptedCall, ScriptedUsage
from bradawl.testing.scripted import deltas_of

KINDS = ("read", "edit", "bash", "grep", "long output", "write", "failure", "part")
"""Kinds of steps, which alternate."""
EVERY_FACT = 40
"""Steps from one fact to the next."""
_FILES = 40
_FUNCTIONS = 24
_BYTES_PER_TOKEN = 3.6
"""As this model counts: other than bradawl estimates, so that the estimate is corrected."""
_ROWS = 120
_SAID = (
    "The scale functions of this module multiply by a constant.",
    "I make the smallest change that is needed.",
    "The count of lines should not have changed.",
    "Let me see where else these functions are used.",
    "The report shows which rows are slow.",
    "I keep a note of what this module does.",
    "The old name may still be used, so I look for it.",
    "The middle of the module is what matters here.",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One reply of the model and the one call in it."""

    text: str
    tool: str
    arguments: dict[str, object]


def fact(number: int) -> str:
    """What step `number` states and no result repeats; empty if it states nothing."""
    return f"service_{number} listens on port {20_000 + number}" if number % EVERY_FACT == 0 else ""


def step(number: int) -> Step:
    """The step with this number, from 0."""
    group, kind = divmod(number, len(KINDS))
    module, revision = group % _FILES, group // _FILES
    path = f"pkg/module_{module}.py"
    tool, arguments = _calls(number, module, revision, path)[kind]
    stated = f" I decided that {fact(number)}, because the port before is taken." if fact(number) else ""
    return Step(f"Step {number}, {path}. {_SAID[kind]}{stated}", tool, arguments)


def _calls(number: int, module: int, revision: int, path: str) -> list[tuple[str, dict[str, object]]]:
    old, new = f"EDITS = {revision}\n", f"EDITS = {revision + 1}\n"
    rows = f'for row in $(seq {_ROWS}); do echo "row $row of report {number} took $((row * 7 % 90)) ms"; done'
    return [
        ("read_file", {"file_path": path}),
        ("edit_file", {"file_path": path, "old_string": old, "new_string": new}),
        ("bash", {"command": f"wc -l {path}; echo step {number}"}),
        ("grep", {"pattern": f"def scale_{module}_1", "path": "pkg"}),
        ("bash", {"command": rows}),
        (
            "write_file",
            {"file_path": f"notes/note_{number}.md", "content": f"# {path}\n\nEdited {revision + 1} times.\n"},
        ),
        ("bash", {"command": f"ls old_name_{number}"}),
        ("read_file", {"file_path": path, "offset": 20, "limit": 30}),
    ]


def prepare(folder: Path) -> None:
    """Write the project into an empty folder. Raises `OSError`."""
    package = folder / "pkg"
    package.mkdir(parents=True)
    (folder / "notes").mkdir()
    for module in range(_FILES):
        functions = (
            f'def scale_{module}_{factor}(x):\n    """Give {factor} times x."""\n    return x * {factor}\n\n\n'
            for factor in range(_FUNCTIONS)
        )
        (package / f"module_{module}.py").write_text("EDITS = 0\n\n\n" + "".join(functions))


def is_done(folder: Path, count: int) -> bool:
    """Whether every edit and note of the first `count` steps is in the files."""
    made = [step(number) for number in range(count)]
    edits = {each.arguments["file_path"]: each.arguments["new_string"] for each in made if each.tool == "edit_file"}
    notes = [each.arguments["file_path"] for each in made if each.tool == "write_file"]
    return all((folder / str(path)).read_text().startswith(str(line)) for path, line in edits.items()) and all(
        (folder / str(path)).exists() for path in notes
    )


def run_bare(folder: Path, number: int) -> str:
    """What the call of a step does, without an agent. Returns its result."""
    made = step(number).arguments
    path = folder / str(made.get("file_path", ""))
    if "new_string" in made:
        path.write_text(path.read_text().replace(str(made["old_string"]), str(made["new_string"]), 1))
        return "ok"
    if "content" in made:
        path.write_text(str(made["content"]))
        return "ok"
    if "file_path" in made:
        return path.read_text()
    command = ["grep", "-rn", str(made["pattern"]), "pkg"] if "pattern" in made else ["sh", "-c", str(made["command"])]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return done.stdout.decode()


@dataclass(slots=True)
class Request:
    """One request of the session."""

    step: int
    tokens: int
    """As the model counts them."""
    gap_s: float
    """Seconds since the reply before it ended."""
    cpu_s: float
    """Processor time of this process in the gap."""
    bare_s: float
    """Seconds of the same step's call without an agent."""


class SteppingModel:
    """A `Model` whose n-th reply is that of step n, and which ends the turn after each `per_turn` steps.

    It refuses a request that is longer than its window. It writes no summaries.
    """

    def __init__(self, window: int, per_turn: int, bare: Path, look: Callable[[list[Message]], None]) -> None:
        """`bare` is a copy of the project for steps without an agent. `look` gets the messages of each request."""
        self._info = ModelInfo(Origin("scripted", "scripted", "stepping"), window)
        self._bare, self._per_turn, self.look = bare, per_turn, look
        self.requests: list[Request] = []
        self.overflows = self.summaries = self.next_step = 0
        self._left = per_turn
        self._ended: tuple[float, float] | None = None

    @property
    def info(self) -> ModelInfo:
        """Its name and its window."""
        return self._info

    def open(self, prefix: Prefix, session_id: str = "") -> "SteppingSession":
        """Begin a conversation."""
        return SteppingSession(self, prefix)

    async def window(self) -> Window:
        """The window given."""
        return Window(self._info.context_window or 0, "settings")

    async def aclose(self) -> None:
        """Nothing to close."""

    def begin_turn(self) -> None:
        """A prompt follows."""
        self._left, self._ended = self._per_turn, None

    def answer(self, tokens: int, came: tuple[float, float]) -> Entry:
        """The reply to a request with so many tokens; `came` is the time when it came."""
        number = self.next_step
        usage = ScriptedUsage(input=tokens, output=60)
        gap = (0.0, 0.0) if self._ended is None else (came[0] - self._ended[0], came[1] - self._ended[1])
        if not self._left:
            self.requests.append(Request(number, tokens, 0.0, 0.0, 0.0))
            return Entry(f"Done up to step {number}.", usage=usage)
        began_s = time.perf_counter()
        run_bare(self._bare, number)
        self.requests.append(Request(number, tokens, *gap, time.perf_counter() - began_s))
        self._left -= 1
        self.next_step += 1
        made = step(number)
        return Entry(made.text, tool_calls=(ScriptedCall(made.tool, made.arguments, f"call_{number}"),), usage=usage)

    def ended(self) -> None:
        """The reply has been sent."""
        self._ended = now()


def now() -> tuple[float, float]:
    """Elapsed and processor seconds."""
    return time.perf_counter(), time.process_time()


class SteppingSession:
    """One conversation with a `SteppingModel`."""

    def __init__(self, model: SteppingModel, prefix: Prefix) -> None:
        self._model, self._writes_summary = model, not prefix.tools
        self._messages: list[Message] = []
        encoded = msgspec.json.encode(prefix)
        self._hash, self._bytes = hashlib.sha256(encoded), len(encoded)

    @property
    def info(self) -> ModelInfo:
        """The model that answers."""
        return self._model.info

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        encoded = encode_json(msgspec.to_builtins(message))
        self._messages.append(message)
        self._hash.update(encoded)
        self._bytes += len(encoded)

    def prefix_hash(self) -> str:
        """sha256 over prefix and messages so far."""
        return self._hash.hexdigest()

    async def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Yield the reply."""
        _ = params, budget
        came, model, tokens = now(), self._model, round(self._bytes / _BYTES_PER_TOKEN)
        if self._writes_summary:
            model.summaries += 1
            yield StreamFailed(Failure("invalid_request", "This model writes no summaries."))
            return
        if tokens > (model.info.context_window or 0):
            model.overflows += 1
            yield StreamFailed(Failure("context_overflow", f"{tokens} tokens are too many."))
            return
        model.look(self._messages)
        for delta in deltas_of(model.answer(tokens, came), model.next_step, model.info.origin.model):
            yield delta
        model.ended()
