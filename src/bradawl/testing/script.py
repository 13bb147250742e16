"""The format of scripts: the answers of a scripted model, one entry per request.

A script is a JSON array. Every field of an entry may be left out:

    [{"text": "I read it first.",
      "thinking": "where is it?",
      "tool_calls": [{"id": "call_1", "name": "read_file", "arguments": {"file_path": "main.py"}}],
      "usage": {"input": 120, "output": 30, "cache_read": 0, "cache_write": 0, "reasoning": 0},
      "stop": "tool_use",
      "expect": "the bug in main.py",
      "faults": {"delay_ms": 20, "cut_at_byte": 300, "status": 429, "headers": {"retry-after": "1"}, "chunk_bytes": 1}},
     {"text": "Done."}]

`arguments` is an object, or a string that is sent as it is (also if it is not JSON).
`stop` is one of bradawl's stop reasons or the word a server would send. `expect` must be
part of what the request holds after the model's last reply: the prompt, or all results.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, get_args

import msgspec

from bradawl.core.errors import SettingsError
from bradawl.core.messages import StopReason

LIMIT_BYTES = 64 * 1024 * 1024
"""Size limit of a script file."""
MOST_PIECES = 512
"""The highest number of fragments of a text or an argument."""

Count = Annotated[int, msgspec.Meta(ge=0)]


class ScriptError(SettingsError):
    """A script can't be used; the text names the script, the entry and the field."""


class ScriptedUsage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens in disjoint buckets, as in `core.usage.Usage`."""

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    reasoning: Count = 0
    """Contained in `output`."""


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tool call of a reply."""

    name: str
    arguments: dict[str, object] | str = {}
    """An object, or the text to send as it is."""
    id: str = ""
    """Filled in when a script is loaded: `call_<n>`, where n numbers the script's calls from 1."""

    @property
    def raw_arguments(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else msgspec.json.encode(self.arguments).decode()


class Faults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Faults of the transport, and the status of the response."""

    delay_ms: Annotated[float, msgspec.Meta(ge=0, le=86_400_000)] = 0
    """Delay before the first byte of the response."""
    cut_at_byte: Count | None = None
    """The connection breaks after this number of bytes of the reply; no effect on a shorter reply."""
    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    """HTTP status; other than 200 the answer is an error, and `text` its message."""
    headers: dict[str, str] = {}
    """Additional response headers."""
    chunk_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The response is sent in pieces of this size."""

    @property
    def is_refusal(self) -> bool:
        """True when the answer is an error instead of a reply."""
        return self.status is not None and self.status != 200


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to one request."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    usage: ScriptedUsage | None = None
    """None: no token counts are sent."""
    stop: str | None = None
    """None: `tool_use` if there are calls, else `end_turn`."""
    expect: str | None = None
    faults: Faults = Faults()


class Script(msgspec.Struct, frozen=True):
    """A checked script."""

    entries: tuple[Entry, ...]
    name: str = "script"
    """The name in messages: its path, if it has one."""


ScriptSource = Script | str | Path | bytes | Sequence[Entry | Mapping[str, object]]
"""A checked script, a path, JSON text as bytes, or the entries themselves."""


def script_from(source: ScriptSource) -> Script:
    """The script at a path, in JSON bytes, or made of entries given as objects. Raises `ScriptError`."""
    if isinstance(source, Script):
        return source
    if isinstance(source, str | Path):
        return _checked(_read(source), str(source))
    if isinstance(source, bytes):
        return _checked(source, "script")
    try:
        return _checked(msgspec.json.encode(list(source)), "script")
    except (TypeError, ValueError) as error:
        raise ScriptError(f"script: {error}; entries must be what JSON can say") from error


def _read(path: str | Path) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(LIMIT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ScriptError(f"cannot read the script {path}: {reason}") from error
    if len(data) > LIMIT_BYTES:
        raise ScriptError(f"the script {path} is longer than {LIMIT_BYTES // 1024 // 1024} MiB")
    return data


def _checked(data: bytes, name: str) -> Script:
    try:
        raws = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=list[msgspec.Raw])
    except msgspec.ValidationError as error:
        raise ScriptError(f"{name}: a script is a JSON array of entries, one per request ({error})") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScriptError(f"{name} is not JSON: {error}{_line_of(data, str(error))}") from error
    entries = tuple(_entry(raw, name, number) for number, raw in enumerate(raws, 1))
    return Script(_with_ids(entries, name), name)


def _line_of(data: bytes, message: str) -> str:
    found = re.search(r"\(byte (\d+)\)", message)
    return f", line {data[: int(found[1])].count(10) + 1}" if found else ""


def _entry(raw: msgspec.Raw, name: str, number: int) -> Entry:
    try:
        return msgspec.json.decode(raw, type=Entry)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        field = place.rstrip("`").lstrip(".")
        raise ScriptError(f"{name}: entry {number}{f', {field}' if field else ''}: {message}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScriptError(f"{name}: entry {number} is not JSON: {error}") from error


def _with_ids(entries: tuple[Entry, ...], name: str) -> tuple[Entry, ...]:
    """Fill in missing call ids; equal scripts get equal ids."""
    taken = {call.id for entry in entries for call in entry.tool_calls if call.id}
    named: list[Entry] = []
    count = 0
    for number, entry in enumerate(entries, 1):
        calls: list[ScriptedCall] = []
        for call in entry.tool_calls:
            count += 1
            calls.append(call if call.id else msgspec.structs.replace(call, id=_fresh(count, taken)))
        ids = [call.id for call in calls]
        if len(set(ids)) < len(ids):
            raise ScriptError(f"{name}: entry {number}, tool_calls: two calls have the same id")
        named.append(msgspec.structs.replace(entry, tool_calls=tuple(calls)))
    return tuple(named)


def _fresh(count: int, taken: set[str]) -> str:
    fresh = f"call_{count}"
    while fresh in taken:
        fresh += "_"
    taken.add(fresh)
    return fresh


# ------------------------------------------------------------------ how a reply ends

_OURS = frozenset[str](get_args(StopReason))
_TO_WIRE: dict[str, str] = {
    "end_turn": "stop",
    "refusal": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "context_overflow": "model_context_window_exceeded",
}
_FROM_WIRE: dict[str, StopReason] = {
    "stop": "end_turn",
    "end": "end_turn",
    "eos": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
    "model_length": "max_tokens",
    "sensitive": "content_filter",
    "model_context_window_exceeded": "context_overflow",
    "abort": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
}


def raw_stop_of(entry: Entry) -> str:
    """The finish reason as in Chat Completions."""
    if entry.stop is None:
        return "tool_calls" if entry.tool_calls else "stop"
    return _TO_WIRE.get(entry.stop, entry.stop)


def stop_of(entry: Entry) -> StopReason:
    """The stop reason as a client decodes it."""
    stop: StopReason = "tool_use" if entry.tool_calls else "end_turn"
    if entry.stop is not None:
        stop = _FROM_WIRE.get(entry.stop) or _own_word(entry.stop)
    if entry.tool_calls and stop in ("end_turn", "unknown"):
        return "tool_use"
    return "end_turn" if stop == "tool_use" and not entry.tool_calls else stop


def _own_word(word: str) -> StopReason:
    return msgspec.convert(word if word in _OURS else "unknown", StopReason)


# ------------------------------------------------------------------ asking for the next entry


class Cursor:
    """The position in a script. Not thread-safe."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.position = 0
        """Number of requests so far."""

    def take(self, last_text: str) -> Entry | str:
        """The entry for the next request, or the reason if there is none; `expect` is looked for in `last_text`."""
        self.position += 1
        entries = self._script.entries
        if self.position > len(entries):
            count = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
            return f"{self._script.name} has {count}, and request {self.position} came"
        entry = entries[self.position - 1]
        if entry.expect is not None and entry.expect not in last_text:
            return (
                f"{self._script.name}: request {self.position} should hold {entry.expect!r} after the last reply, "
                f"but holds {_shortened(last_text)!r}"
            )
        return entry


def _shortened(text: str, limit: int = 4_000) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} [...] {text[-limit // 2 :]}"


# ------------------------------------------------------------------ fragments


def words(text: str) -> list[str]:
    """A text split into fragments as a model streams it."""
    found = re.findall(r"\s*\S+|\s+$", text)
    step = -(-len(found) // MOST_PIECES) or 1
    return ["".join(found[start : start + step]) for start in range(0, len(found), step)]


def fragments(arguments: str, size: int = 12) -> list[str]:
    """Arguments split into fragments, regardless of the JSON syntax."""
    size = max(size, -(-len(arguments) // MOST_PIECES))
    return [arguments[start : start + size] for start in range(0, len(arguments), size)]
