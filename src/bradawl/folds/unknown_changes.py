"""The calls that an end of the program interrupted and of which the log does not say all that they changed, as a fold
over the log.
"""

from collections import defaultdict
from collections.abc import Iterable

from bradawl.core.effects import Effects
from bradawl.core.events import (
    CallPrepared,
    CheckpointTaken,
    Envelope,
    JobEnded,
    JobStarted,
    PromptSubmitted,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)


def calls_without_checkpoint(entries: Iterable[Envelope], agent: str) -> dict[str, Effects]:
    """The calls of the agent's last turn, and those with jobs that run, of which the last checkpoint is missing, with
    the effects that they declared.

    A call that changed nothing has a checkpoint, too. What was found of a call while it or its job ran is not all.
    A turn that a resume has closed stays the last one until its calls have checkpoints: the resume may be killed, too.
    """
    return calls_by_agent(entries).get(agent, {})


def calls_by_agent(entries: Iterable[Envelope]) -> dict[str, dict[str, Effects]]:
    """As `calls_without_checkpoint`, of each agent in the log."""
    folds: defaultdict[str, _Fold] = defaultdict(_Fold)
    for entry in entries:
        folds[entry.agent].take(entry)
    return {agent: fold.started for agent, fold in folds.items()}


class _Fold:
    def __init__(self) -> None:
        self.started: dict[str, Effects] = {}
        self._declared: dict[str, Effects] = {}
        self._running: set[str] = set()
        self._jobs: dict[str, str] = {}
        """The calls of running jobs, by job id."""
        self._was_killed = False
        """Whether the program was killed in the last turn that was closed."""

    def take(self, entry: Envelope) -> None:
        match entry.event:
            case PromptSubmitted():
                self._begin_turn()
            case TurnFinished(reason):
                self._was_killed = reason == "interrupted"
            case CallPrepared(call_id) as prepared:
                self._declared[call_id] = prepared.effects
            case ToolStarted(call_id) if call_id in self._declared:
                self.started[call_id] = self._declared[call_id]
                self._running.add(call_id)
            case ToolFinished(call_id):
                self._running.discard(call_id)
            case JobStarted(job_id, call_id):
                self._jobs[job_id] = call_id
            case JobEnded(job_id):
                self._jobs.pop(job_id, None)
            case CheckpointTaken(name):
                call_id = self._jobs.get(name, name)
                if call_id not in self._running and call_id not in self._jobs.values():
                    self.started.pop(call_id, None)
            case _:
                pass

    def _begin_turn(self) -> None:
        self._declared.clear()
        self._running.clear()
        if not self._was_killed:
            left = set(self._jobs.values())
            self.started = {call: effects for call, effects in self.started.items() if call in left}
