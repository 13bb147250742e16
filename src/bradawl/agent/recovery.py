"""Repairs the log when a session is resumed that crashed in the middle of a turn."""

from collections.abc import Mapping
from types import MappingProxyType

from bradawl.core.errors import ToolError
from bradawl.core.events import AssistantReplied, Event, ToolFinished, TurnFinished
from bradawl.core.messages import Assistant, Origin, Part, Text, ToolCall, calls_of
from bradawl.core.ports import Files
from bradawl.folds.transcript import Transcript

_READ_LIMIT = 50_000_000
_MOST_FILES = 50


async def state_of(files: Files, paths: tuple[str, ...]) -> dict[str, str]:
    """sha256 of each file a call may write; empty for a file that does not exist. Folders are left out."""
    states = {path: await _sha256(files, path) for path in paths[:_MOST_FILES]}
    return {path: sha256 for path, sha256 in states.items() if sha256 is not None}


async def _sha256(files: Files, path: str) -> str | None:
    try:
        return (await files.read(path, _READ_LIMIT)).sha256
    except ToolError:
        pass
    try:
        await files.list(path, 0)
    except ToolError:
        return ""
    return None


async def what_changed(files: Files, transcript: Transcript) -> dict[str, str]:
    """For each call that was started and not answered, a sentence on the files it was to write."""
    return {
        call_id: _compared(before, await state_of(files, tuple(before)))
        for call_id, before in transcript.started.items()
        if before
    }


def _compared(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    changed = [path for path in before if before[path] != now.get(path)]
    same = [path for path in before if before[path] == now.get(path)]
    said = [f"changed: {', '.join(changed)}"] if changed else []
    said += [f"not changed: {', '.join(same)}"] if same else []
    return f"Of the files it was to write: {'; '.join(said)}."


def repair(
    transcript: Transcript, origin: Origin, step: int, known: Mapping[str, str] = MappingProxyType({})
) -> tuple[Event, ...]:
    """Events that close the turn a crash left open. They depend on the end of the transcript only.

    `known` says, by call id, what is known about the effect of a started call.

    A reply that was never logged but had started calls is rebuilt from the prepared calls.
    A call that was started and not answered may or may not have had its effect; its answer says so.
    """
    events: list[Event] = []
    open_calls = list(transcript.open_calls)
    rebuilt = _rebuild(transcript, origin, step)
    if rebuilt is not None:
        events.append(rebuilt)
        open_calls = [call.id for call in calls_of(rebuilt.message) if call.id not in transcript.results]
    events.extend(_interrupted(i, known.get(i, "")) if i in transcript.started else _not_run(i) for i in open_calls)
    if transcript.turn_is_open:
        events.append(TurnFinished("interrupted"))
    return tuple(events)


def _interrupted(call_id: str, known: str) -> ToolFinished:
    text = "The program ended while this call was running: it may or may not have happened. Check before repeating it."
    return ToolFinished(call_id, "interrupted", (Text(f"{text} {known}".rstrip()),))


def _not_run(call_id: str) -> ToolFinished:
    return ToolFinished(call_id, "cancelled", (Text("Not run: the program ended before this call started."),))


def _rebuild(transcript: Transcript, origin: Origin, step: int) -> AssistantReplied | None:
    kept = [
        p for p in transcript.prepared.values() if p.call_id in transcript.started or p.call_id in transcript.results
    ]
    if not kept:
        return None
    parts: list[Part] = []
    for prepared in kept:
        parts.extend(prepared.parts_before)
        parts.append(ToolCall(prepared.call_id, prepared.name, prepared.raw_arguments))
    message = Assistant(tuple(parts), origin, complete=False)
    return AssistantReplied(step, message, "error", cut=True)
