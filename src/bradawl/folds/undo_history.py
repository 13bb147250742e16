"""The steps of a session and what their calls changed, as a fold over the log: what can be undone and redone."""

from bisect import insort
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from bradawl.core.events import (
    AgentSpawned,
    CallPrepared,
    CheckpointTaken,
    Cwd,
    Envelope,
    HeadMoved,
    JobEnded,
    JobStarted,
    PromptSubmitted,
    RequestSent,
    SessionForked,
    SessionOpened,
    StateChanged,
    ToolFinished,
    ToolStarted,
)
from bradawl.core.messages import text_of
from bradawl.folds.transcript import branch

Part = Literal["code", "talk", "both"]
"""The files, the conversation, or both."""
_MAIN = "main"
_Call = tuple[str, str, int]
"""A call of the log: its agent, its id, and the entry that prepared it, because servers use the same id again."""


class UndoStep(msgspec.Struct, frozen=True):
    """A step of the main agent. Its number is unique in the session: taken-back steps keep theirs."""

    turn: int
    """Number of its prompt in the session, from 1."""
    number: int
    """Number in its turn, from 1."""
    prompt: str
    """The text of the turn's prompt."""
    at: int
    """When it began; Unix time in milliseconds."""
    start: int
    """The entry of the log to go back to so that the step has not happened."""
    is_in_conversation: bool = True
    """False if the conversation was taken back to before it."""
    jobs: tuple[str, ...] = ()
    """Commands it started in the background."""
    is_start_in_conversation: bool = True
    """Whether the conversation goes through `start`: also after it was taken back to before the step and went on."""

    @property
    def name(self) -> str:
        """`3` for the first step of the third turn, `3.2` for its second."""
        return str(self.turn) if self.number == 1 else f"{self.turn}.{self.number}"


class CallJob(msgspec.Struct, frozen=True):
    """The background job that a call left running."""

    job_id: str
    command: str
    cwd: str
    """Where it was started; empty if that is not known."""
    writes: tuple[str, ...] = ()
    """Paths that the command names as written, and the only ones; empty if they are not known exactly."""


class CallChange(msgspec.Struct, frozen=True):
    """What one call changed in the workspace, that of a sub-agent too."""

    step: int
    """Index of its step in `UndoHistory.steps`."""
    call_id: str
    tool: str
    """Empty if the call is not in the log."""
    raw_arguments: str
    ref: str
    """Name of the change record; empty if nothing was saved."""
    uncovered: str
    """What may have changed and can't be restored."""
    is_known: bool = True
    """False if it is not known what the call changed, or its changes could not be saved; `uncovered` says why."""
    ended: int = -1
    """The entry with which the call, or its background job, ended. Changes are ordered by it: those of a sub-agent are
    often logged before earlier ones of its caller.
    """
    started_ms: int = 0
    """When it started; Unix time in milliseconds."""
    seconds: float = 0.0
    """How long it ran, without a background job; 0 if that is not known."""
    writes: tuple[str, ...] | None = None
    """The only paths that it writes, or in which; None if that is not known exactly, or if others ran meanwhile."""
    job: CallJob | None = None
    """Its background job, if this changed while the job ran; the last one of several."""
    prepared: int = -1
    """The entry that prepared it; -1 if the call is not in the log. Servers use the same `call_id` again."""


class Undone(msgspec.Struct, frozen=True):
    """A step back that can be redone."""

    head: int
    """The entry that the session continued from before it."""
    part: Part
    ref: str
    """The change record of the files that were restored; empty for none."""
    applied: tuple[CallChange, ...]
    """The changes that were in the files before it."""
    to: int
    """The entry that it went back to."""


class UndoHistory(msgspec.Struct, frozen=True):
    """What can be undone and redone in a session."""

    steps: tuple[UndoStep, ...] = ()
    """All steps, oldest first."""
    applied: tuple[CallChange, ...] = ()
    """The changes that are in the files: not undone, oldest first."""
    undone: tuple[Undone, ...] = ()
    """The steps back since the last prompt, the newest last."""
    moved_at: int = -1
    """The entry of the last prompt, step back or redo; -1 for none."""
    has_undone: bool = False
    """Whether changes of files were ever undone."""

    def last_changed(self) -> UndoStep | None:
        """The last step whose changes are in the files; None if there is none.

        An earlier step whose background job changed files later is not the last one.
        """
        last = max((change.step for change in self.applied if change.ref), default=None)
        return None if last is None else self.steps[last]

    def unknown_since(self, step: UndoStep) -> CallChange | None:
        """The last call of a later step whose changes are not known; None for none."""
        calls = (each for each in reversed(self.applied) if not each.is_known)
        return next((each for each in calls if self.steps[each.step].start > step.start), None)

    def last_prompt(self) -> UndoStep | None:
        """The first step of the conversation's last turn; None in an empty conversation."""
        found = (step for step in reversed(self.steps) if step.is_in_conversation and step.number == 1)
        return next(found, None)

    def named(self, name: str) -> UndoStep | None:
        """The step with this name, `3`, `3.1` or `3.2`; None if there is none."""
        wanted = name.removesuffix(".1")
        return next((step for step in self.steps if step.name == wanted), None)

    def can_take_back_conversation(self, step: UndoStep) -> bool:
        """Whether the conversation has something since before this step, which may itself be taken back already."""
        later = (each.is_in_conversation for each in self.steps if each.start >= step.start)
        return step.is_in_conversation or (step.is_start_in_conversation and any(later))

    def changes_since(self, start: int) -> tuple[CallChange, ...]:
        """The changes in the files since a step that starts at `start`, oldest first.

        They are all changes after the first one of such a step: a job of an earlier step may have changed files later.
        """
        first = (place for place, each in enumerate(self.applied) if self.steps[each.step].start >= start)
        return self.applied[next(first, len(self.applied)) :]

    def changes_of(self, step: UndoStep) -> tuple[CallChange, ...]:
        """The changes of one step that are in the files, oldest first."""
        return tuple(change for change in self.applied if self.steps[change.step] == step)


def undo_history(entries: Iterable[Envelope]) -> UndoHistory:
    """The history of a session, from all entries of its log."""
    entries = tuple(entries)
    fold = _Fold()
    for entry in entries:
        fold.take(entry)
    kept = {entry.seq for entry in branch(entries, _MAIN)}
    steps = tuple(step.freeze(kept) for step in fold.steps)
    return UndoHistory(steps, tuple(fold.applied), tuple(fold.undone), fold.moved_at, fold.has_undone)


class _OpenStep(msgspec.Struct):
    """A step whose jobs are not all known yet."""

    turn: int
    number: int
    prompt: str
    at: int
    start: int
    seq: int
    """The entry that began it."""
    request: int | None = None
    """Number of its request in the log; None before it was sent."""
    jobs: list[str] = msgspec.field(default_factory=list[str])

    def freeze(self, kept: set[int]) -> UndoStep:
        is_kept, is_start_kept = self.seq in kept, self.start in kept
        return UndoStep(
            self.turn, self.number, self.prompt, self.at, self.start, is_kept, tuple(self.jobs), is_start_kept
        )


def _end(change: CallChange) -> int:
    return change.ended


class _Fold:
    def __init__(self) -> None:
        self.steps: list[_OpenStep] = []
        self.applied: list[CallChange] = []
        self.undone: list[Undone] = []
        self.moved_at = -1
        self.has_undone = False
        self._turns = 0
        self._present: dict[tuple[str, str], _Call] = {}
        """By agent and id, the call that further entries with this id are about."""
        self._next: dict[tuple[str, str], _Call] = {}
        """The same for prepared calls with the id of an earlier one. Until such a call starts, an entry about what the
        call with this id has changed is about the earlier one.
        """
        self._last: dict[str, _Call] = {}
        """By id, the last call of any agent, for entries that another agent logged."""
        self._calls: dict[_Call, CallPrepared] = {}
        self._step_of_call: dict[_Call, int] = {}
        self._step_of_agent: dict[str, int] = {}
        self._call_of_job: dict[tuple[str, str], _Call] = {}
        self._job_of_call: dict[_Call, CallJob] = {}
        self._cwd = ""
        """Working directory of all calls so far; empty if it changed."""
        self._ended: dict[_Call, int] = {}
        """By call, the entry with which the call and its jobs ended. Until then, what was found has the order of the
        log: it was found before the calls that began later.
        """
        self._times: dict[_Call, tuple[int, int]] = {}
        """By call, when it started and ended; Unix time in milliseconds."""
        self._running: set[_Call] = set()
        """Calls that run or whose jobs run, except those that only read."""
        self._overlapping: set[_Call] = set()
        """Calls that ran at the same time as others."""
        self._running_jobs: Counter[_Call] = Counter()
        """Number of running jobs by call."""

    def take(self, entry: Envelope) -> None:
        match entry.event:
            case PromptSubmitted(parts) if entry.agent == _MAIN:
                self._turns += 1
                self.moved_at = entry.seq
                self._begin(entry, 1, text_of(parts))
                self.undone.clear()
            case RequestSent(step) if entry.agent == _MAIN:
                self._request(entry, step)
            case CallPrepared() as prepared if self.steps:
                self._prepare(entry, prepared)
            case AgentSpawned(spawned, call_id) if self.steps:
                call = self._call(entry, call_id)
                self._step_of_agent[spawned] = self._step_of_call.get(call, len(self.steps) - 1)
            case CheckpointTaken() as taken if self.steps:
                call = self._call_with_changes(entry, taken.call_id)
                self._forget_unknown(call)
                if taken.checkpoint_ref or taken.uncovered:
                    self._add(call, taken, entry.seq)
            case HeadMoved() as moved if entry.agent == _MAIN and self.steps and entry.parent is not None:
                self.moved_at = entry.seq
                self._move(moved, entry.parent)
            case _:
                self._take_other(entry)

    def _take_other(self, entry: Envelope) -> None:
        match entry.event:
            case SessionOpened() | SessionForked():
                self._cwd = entry.event.cwd
            case StateChanged(Cwd()):
                self._cwd = ""
            case ToolStarted(call_id):
                self._start(entry, call_id)
            case ToolFinished(call_id):
                self._finish(entry, call_id)
            case JobStarted(job_id, call_id, command) if self.steps:
                call = self._call_of_job[entry.agent, job_id] = self._call(entry, call_id)
                prepared = self._calls.get(call)
                writes = prepared.effects.writes if prepared is not None and prepared.effects.understood else ()
                self._job_of_call[call] = CallJob(job_id, command, self._cwd, writes)
                self._running_jobs[call] += 1
                self.steps[self._step_of(entry.agent)].jobs.append(command)
            case JobEnded(job_id):
                call = self._call_of_job.get((entry.agent, job_id), (entry.agent, "", -1))
                self._running_jobs[call] -= 1
                self._ended[call] = entry.seq
                if not self._running_jobs[call]:
                    self._running.discard(call)
            case _:
                pass

    def _call(self, entry: Envelope, call_id: str) -> _Call:
        found = self._present.get((entry.agent, call_id)) or self._last.get(call_id)
        return found or (entry.agent, call_id, -1)

    def _call_with_changes(self, entry: Envelope, name: str) -> _Call:
        """The call with this id; or that of the job, if a later call has the id of the job's."""
        of_job = None if (entry.agent, name) in self._present else self._call_of_job.get((entry.agent, name))
        return of_job or self._call(entry, name)

    def _prepare(self, entry: Envelope, prepared: CallPrepared) -> None:
        call = (entry.agent, prepared.call_id, entry.seq)
        self._calls[call] = prepared
        self._step_of_call[call] = self._step_of(entry.agent)
        has_started = self._present.get(call[:2]) in self._times
        (self._next if has_started else self._present)[call[:2]] = self._last[prepared.call_id] = call

    def _start(self, entry: Envelope, call_id: str) -> None:
        call = self._next.pop((entry.agent, call_id), None) or self._call(entry, call_id)
        self._present[entry.agent, call_id] = call
        self._times[call] = entry.at, entry.at
        prepared = self._calls.get(call)
        if prepared is None or not prepared.effects.is_read_only:
            self._running.add(call)
            if len(self._running) > 1:
                self._overlapping |= self._running

    def _finish(self, entry: Envelope, call_id: str) -> None:
        if self._next.pop((entry.agent, call_id), None) is not None:
            return  # it was refused
        call = self._call(entry, call_id)
        self._times[call] = self._times.get(call, (entry.at,))[0], entry.at
        if not self._running_jobs[call]:
            self._ended[call] = entry.seq
            self._running.discard(call)

    def _known_writes(self, call: _Call) -> tuple[str, ...] | None:
        """What one of several overlapping calls wrote may be credited to another one."""
        prepared = self._calls.get(call)
        is_known = prepared is not None and prepared.effects.understood and call not in self._overlapping
        return prepared.effects.writes if prepared is not None and is_known else None

    def _begin(self, entry: Envelope, number: int, prompt: str) -> None:
        start = 0 if entry.parent is None else entry.parent
        self.steps.append(_OpenStep(self._turns, number, prompt, entry.at, start, entry.seq))

    def _request(self, entry: Envelope, number: int) -> None:
        """A request begins a step unless it is the first of its turn, or the same request again."""
        if not self.steps:
            return
        last = self.steps[-1]
        if last.request is not None and last.request != number:
            self._begin(entry, last.number + 1, last.prompt)
        self.steps[-1].request = number

    def _step_of(self, agent: str) -> int:
        return self._step_of_agent.get(agent, len(self.steps) - 1)

    def _add(self, call: _Call, taken: CheckpointTaken, seq: int) -> None:
        prepared = self._calls.get(call)
        step = self._step_of_call.get(call, len(self.steps) - 1)
        name, arguments = ("", "") if prepared is None else (prepared.name, prepared.raw_arguments)
        started, finished = self._times.get(call, (0, 0))
        change = CallChange(
            step,
            call[1],
            name,
            arguments,
            taken.checkpoint_ref,
            taken.uncovered,
            taken.is_known,
            self._ended.get(call, seq),
            started,
            max(0, finished - started) / 1000,
            self._known_writes(call),
            self._job_of_call.get(call),
            call[2],
        )
        insort(self.applied, change, key=_end)
        # A job that ends after a step back has changed the files that a redo finds.
        self.undone = [
            msgspec.structs.replace(each, applied=tuple(sorted((*each.applied, change), key=_end)))
            for each in self.undone
        ]

    def _forget_unknown(self, call: _Call) -> None:
        """A later checkpoint says what the call changed."""

        def without(calls: Iterable[CallChange]) -> list[CallChange]:
            return [each for each in calls if each.is_known or (each.call_id, each.prepared) != call[1:]]

        self.applied = without(self.applied)
        self.undone = [msgspec.structs.replace(each, applied=tuple(without(each.applied))) for each in self.undone]

    def _move(self, moved: HeadMoved, head: int) -> None:
        last = self.undone[-1] if self.undone else None
        if last is not None and (moved.to, moved.restore) == (last.head, last.part):
            self.undone.pop()
            self.applied = list(last.applied) if moved.restore != "talk" else self.applied
            return
        self.undone.append(Undone(head, moved.restore, moved.checkpoint_ref, tuple(self.applied), moved.to))
        if moved.restore != "talk":
            self.has_undone = self.has_undone or bool(moved.checkpoint_ref)
            starts = (self.steps[each.step].start for each in self.applied)
            first = next((place for place, start in enumerate(starts) if start >= moved.to), len(self.applied))
            del self.applied[first:]
