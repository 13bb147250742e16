"""The calls of which the log does not say all that they changed when the program ended."""

from collections.abc import Sequence

import pytest

from bradawl.core.effects import Effects
from bradawl.core.events import (
    CallPrepared,
    CheckpointTaken,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    PromptSubmitted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from bradawl.core.messages import Text
from bradawl.folds.unknown_changes import calls_without_checkpoint

PROMPT = PromptSubmitted((Text("go"),))


def call(name: str) -> tuple[Event, ...]:
    return CallPrepared(name, 1, "bash", "{}", Effects(writes=(name,))), ToolStarted(name)


def found(events: Sequence[Event], agent: str = "main") -> list[str]:
    entries = [Envelope(number, number - 1, 0, "main", event) for number, event in enumerate(events)]
    return list(calls_without_checkpoint(entries, agent))


DONE = ToolFinished("a", "ok", ())
TAKEN = CheckpointTaken("a", "ref")
JOB = JobStarted("job-1", "a", "sleep 60")
OVER = JobEnded("job-1")
KILLED = TurnFinished("interrupted")
END = TurnFinished("completed")


@pytest.mark.parametrize(
    ("events", "left"),
    [
        ((PROMPT,), []),
        ((PROMPT, *call("a")), ["a"]),
        ((PROMPT, *call("a"), DONE), ["a"]),
        ((PROMPT, *call("a"), DONE, TAKEN), []),
        ((PROMPT, *call("a"), TAKEN), ["a"]),  # found when another call began
        ((PROMPT, *call("a"), DONE, PROMPT), []),  # the turn had its end, where it is said what is not known
        ((PROMPT, *call("a"), JOB, DONE, TAKEN), ["a"]),
        ((PROMPT, *call("a"), JOB, DONE, TAKEN, PROMPT, *call("b")), ["a", "b"]),
        ((PROMPT, *call("a"), JOB, DONE, TAKEN, PROMPT, OVER), ["a"]),
        ((PROMPT, *call("a"), JOB, DONE, TAKEN, PROMPT, OVER, TAKEN), []),
        ((PROMPT, *call("a"), JOB, DONE, TAKEN, PROMPT, OVER, PROMPT), []),
        ((PROMPT, *call("a"), JOB, DONE, CheckpointTaken("job-1", "ref")), ["a"]),
        ((PROMPT, CallPrepared("a", 1, "bash", "{}", Effects())), []),
        ((PROMPT, *call("a"), DONE, KILLED), ["a"]),  # the resume was killed before the search had ended
        ((PROMPT, *call("a"), DONE, KILLED, PROMPT, *call("b")), ["a", "b"]),
        ((PROMPT, *call("a"), DONE, KILLED, PROMPT, TAKEN), []),
        ((PROMPT, *call("a"), DONE, KILLED, PROMPT, END, PROMPT), []),
    ],
)
def test_a_call_is_left_until_it_its_job_and_the_search_have_ended(events: Sequence[Event], left: list[str]) -> None:
    assert found(events) == left
    assert found(events, "agent-1") == []
