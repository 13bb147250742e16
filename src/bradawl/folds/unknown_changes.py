"""The calls of an interrupted turn of which the log does not say what they changed, as a fold over the log."""

from collections.abc import Iterable

from bradawl.core.effects import Effects
from bradawl.core.events import (
    CallPrepared,
    CheckpointTaken,
    Envelope,
    PromptSubmitted,
    ToolStarted,
)


def calls_without_checkpoint(entries: Iterable[Envelope], agent: str) -> dict[str, Effects]:
    """The calls of the agent's last turn that were started and have no checkpoint, with the effects they declared.

    A call that changed nothing has one, too.
    """
    declared: dict[str, Effects] = {}
    started: dict[str, Effects] = {}
    for entry in entries:
        if entry.agent != agent:
            continue
        match entry.event:
            case PromptSubmitted():
                declared.clear()
                started.clear()
            case CallPrepared(call_id) as prepared:
                declared[call_id] = prepared.effects
            case ToolStarted(call_id) if call_id in declared:
                started[call_id] = declared[call_id]
            case CheckpointTaken(call_id):
                started.pop(call_id, None)
            case _:
                pass
    return started
