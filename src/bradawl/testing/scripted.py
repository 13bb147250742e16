"""The scripted model: answers from a script, in the process, without HTTP."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.deltas import (
    CallDelta,
    Delta,
    PartClosed,
    ReplyEnded,
    ReplyStarted,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from bradawl.core.errors import Failure, FailureKind
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Message, Origin, Refusal, Text, Thinking, ToolCall, User, text_of
from bradawl.core.ports import Clock, ModelInfo, Prefix, Window
from bradawl.core.retry import RetryBudget
from bradawl.core.usage import Price, Usage
from bradawl.providers.encoding import encode_json
from bradawl.testing.script import (
    Cursor,
    Entry,
    Faults,
    Script,
    ScriptSource,
    fragments,
    raw_stop_of,
    script_from,
    stop_of,
    words,
)
from bradawl.workspace.machine import SystemClock

_KINDS: dict[int, FailureKind] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    413: "context_overflow",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


class ScriptedModel:
    """A `Model` that gives the script's answers in order.

    All its sessions share one position in the script; with `per_session` each has its own.
    A request that the script does not expect gets a `StreamFailed` with the reason, which is also
    kept in `failures`. `delay_ms` waits on `clock`. Raises `ScriptError`.
    """

    def __init__(
        self,
        script: ScriptSource,
        *,
        clock: Clock | None = None,
        per_session: bool = False,
        context_window: int | None = None,
        price: Price | None = None,
        max_output: int | None = None,
    ) -> None:
        self._script = script_from(script)
        self._clock: Clock = clock or SystemClock()
        self._per_session = per_session
        self._cursor = Cursor(self._script)
        self._info = ModelInfo(Origin("scripted", "scripted", self._script.name), context_window, price, max_output)
        self.requests: list[tuple[Message, ...]] = []
        """The messages of each request, in order."""
        self.params: list[RequestParams] = []
        """The parameters of each request."""
        self.prefixes: list[Prefix] = []
        """The prefix of each opened session."""
        self.failures: list[str] = []
        """The reasons of requests that the script did not expect."""

    @property
    def info(self) -> ModelInfo:
        """The provider is `scripted`, the model's name that of the script."""
        return self._info

    @property
    def script(self) -> Script:
        """The script."""
        return self._script

    def open(self, prefix: Prefix, session_id: str = "") -> "ScriptedSession":
        """Begin a conversation."""
        self.prefixes.append(prefix)
        cursor = Cursor(self._script) if self._per_session else self._cursor
        return ScriptedSession(self, prefix, cursor, self._clock)

    async def window(self) -> Window:
        """The window given, else an assumed size."""
        given = self._info.context_window
        return Window(128_000, "assumed") if given is None else Window(given, "settings")

    async def aclose(self) -> None:
        """Nothing to close."""


class ScriptedSession:
    """One conversation with a `ScriptedModel`."""

    def __init__(self, model: ScriptedModel, prefix: Prefix, cursor: Cursor, clock: Clock) -> None:
        self._model = model
        self._cursor = cursor
        self._clock = clock
        self._messages: list[Message] = []
        self._hash = hashlib.sha256(msgspec.json.encode(prefix))

    @property
    def info(self) -> ModelInfo:
        """The model that answers."""
        return self._model.info

    def append(self, message: Message) -> None:
        """Add a message to all later requests."""
        self._messages.append(message)
        self._hash.update(encode_json(msgspec.to_builtins(message)))

    def prefix_hash(self) -> str:
        """sha256 over prefix and messages so far."""
        return self._hash.hexdigest()

    async def stream(self, params: RequestParams, budget: RetryBudget) -> AsyncGenerator[Delta, None]:
        """Yield the script's next answer, without retries."""
        _ = budget
        self._model.requests.append(tuple(self._messages))
        self._model.params.append(params)
        entry = self._cursor.take(last_text(self._messages))
        if isinstance(entry, str):
            self._model.failures.append(entry)
            yield StreamFailed(Failure("invalid_request", entry, hint="Change the script or the test."))
            return
        if entry.faults.delay_ms:
            await self._clock.sleep(entry.faults.delay_ms / 1000)
        number = self._cursor.position
        for delta in _cut(deltas_of(entry, number, self._model.info.origin.model), entry.faults.cut_at_byte):
            # Other tasks run while a real reply arrives.
            await asyncio.sleep(0)
            yield delta


def last_text(messages: list[Message]) -> str:
    """The text after the last reply: the prompt, or all results, notes included."""
    texts: list[str] = []
    for message in reversed(messages):
        if isinstance(message, Assistant):
            break
        results = [message.parts] if isinstance(message, User) else [result.parts for result in message.results]
        texts.append("\n".join([*(text_of(parts) for parts in results), *(note.text for note in message.notes)]))
    return "\n".join(reversed(texts))


def deltas_of(entry: Entry, number: int, model: str) -> Iterator[Delta]:
    """The deltas of an answer, as a codec decodes it; `number` is that of the request, from 1."""
    if entry.faults.is_refusal:
        yield StreamFailed(_failure_of(entry))
        return
    yield ReplyStarted(f"scripted-{number}", model)
    index = 0
    if entry.thinking:
        for piece in _pieces(entry.thinking, entry.faults):
            yield ThinkingDelta(index, piece)
        yield PartClosed(index, Thinking(entry.thinking))
        index += 1
    if entry.text:
        for piece in _pieces(entry.text, entry.faults):
            yield TextDelta(index, piece)
        yield PartClosed(index, Refusal(entry.text) if entry.stop == "refusal" else Text(entry.text))
        index += 1
    yield from _calls(entry, index)
    yield from _ending(entry)


def _pieces(text: str, faults: Faults) -> list[str]:
    return words(text) if faults.chunk_bytes is None else fragments(text, faults.chunk_bytes)


def _calls(entry: Entry, first: int) -> Iterator[Delta]:
    is_cut = stop_of(entry) in ("max_tokens", "content_filter", "context_overflow")
    for index, call in enumerate(entry.tool_calls, first):
        raw = call.raw_arguments
        yield CallDelta(index, call.id, call.name, "")
        for piece in fragments(raw, entry.faults.chunk_bytes or 12):
            yield CallDelta(index, call.id, call.name, piece)
        _, status = parse_arguments(raw, cut=is_cut)
        yield PartClosed(index, ToolCall(call.id, call.name, raw, status))


def _ending(entry: Entry) -> Iterator[Delta]:
    if entry.usage is not None:
        counted = entry.usage
        yield UsageReported(
            Usage(counted.input, counted.output, counted.cache_read, counted.cache_write, counted.reasoning)
        )
    if stop_of(entry) == "error":
        yield StreamFailed(Failure("server", "The scripted model failed.", retryable=True), raw_stop=entry.stop)
    else:
        yield ReplyEnded(stop_of(entry), raw_stop_of(entry))


def _cut(deltas: Iterator[Delta], limit: int | None) -> Iterator[Delta]:
    """The deltas of a reply that breaks after `limit` bytes of text, thinking and arguments."""
    if limit is None:
        yield from deltas
        return
    left = limit
    for delta in deltas:
        if left == 0 and not isinstance(delta, StreamFailed):
            break
        piece = _content(delta)
        if len(piece) > left:
            yield from _shortened(delta, piece[:left].decode(errors="ignore"))
            break
        yield delta
        left -= len(piece)
    else:
        return
    message = f"The scripted connection broke after {limit} bytes of the reply."
    yield StreamFailed(Failure("connection", message, retryable=True))


def _content(delta: Delta) -> bytes:
    if isinstance(delta, TextDelta | ThinkingDelta):
        return delta.text.encode()
    return delta.arguments.encode() if isinstance(delta, CallDelta) else b""


def _shortened(delta: Delta, rest: str) -> Iterator[Delta]:
    if isinstance(delta, TextDelta | ThinkingDelta) and rest:
        yield msgspec.structs.replace(delta, text=rest)
    elif isinstance(delta, CallDelta) and rest:
        yield msgspec.structs.replace(delta, arguments=rest)


def _failure_of(entry: Entry) -> Failure:
    status = entry.faults.status or 0
    kind = _KINDS.get(status, "server" if status >= 500 else "invalid_request")
    message = entry.text or f"The scripted model answered with status {status}."
    retryable = status in (408, 429) or status >= 500
    return Failure(kind, message, retryable, status, retry_after_s=_retry_after(entry.faults))


def _retry_after(faults: Faults) -> float | None:
    headers = {name.lower(): value for name, value in faults.headers.items()}
    with suppress(KeyError, ValueError):
        return float(headers["retry-after-ms"]) / 1000
    with suppress(KeyError, ValueError):
        return float(headers["retry-after"])
    return None
