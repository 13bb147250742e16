"""Which calls of a reply may overlap, and which may start before the reply has ended."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from bradawl.agent.calls.prepare import Prepared, Refused, authorize, check, execute, finalize, prepare
from bradawl.core.effects import UNKNOWN, Effects, conflict
from bradawl.core.events import ToolFinished
from bradawl.core.messages import Part, Text, ToolCall

if TYPE_CHECKING:
    from bradawl.agent.session import Session

Finished = dict[tuple[str, str], ToolFinished]
"""Answers of free reads of a withdrawn reply, by tool name and raw arguments."""


class _Entry:
    """One call on its way."""

    def __init__(self, call: ToolCall, before: tuple[Part, ...]) -> None:
        self.call = call
        self.before = before
        self.effects: Effects = UNKNOWN
        self.is_prepared = asyncio.Event()
        self.is_placed = asyncio.Event()
        """It has its copy of the working directory and the environment."""
        self.is_done = asyncio.Event()
        self.has_started = False
        self.lacks_change = False
        """It failed, and what it was to change is as it was."""


class Scheduler:
    """Runs the calls of one reply, handed over in call order as they close.

    Two calls whose effects conflict run in call order; others at the same time, up to a cap.
    """

    def __init__(self, session: "Session", group: asyncio.TaskGroup, step: int, reusable: Finished) -> None:
        self._session = session
        self._group = group
        self._step = step
        self._reusable = reusable
        self._entries: list[_Entry] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._slots = asyncio.Semaphore(session.agent.limits.parallel_calls)
        self._reply_ended = asyncio.Event()

    def add(self, call: ToolCall, before: tuple[Part, ...]) -> None:
        """Take a closed call; it starts as soon as it may."""
        entry = _Entry(call, before)
        self._tasks.append(self._group.create_task(self._run(entry, tuple(self._entries))))
        self._entries.append(entry)

    def reply_ended(self) -> None:
        """From now on questions may be asked."""
        self._reply_ended.set()

    def stop(self, *, waiting_only: bool = False) -> None:
        """Start nothing more, and cancel what runs unless told otherwise. The calls it hits stay unanswered."""
        for entry, task in zip(self._entries, self._tasks, strict=True):
            if not (waiting_only and entry.has_started):
                task.cancel()

    @property
    def has_spent(self) -> bool:
        """True when a call has started that may not simply be done again."""
        return any(entry.has_started and not entry.effects.is_read_only for entry in self._entries)

    def free_reads(self) -> Finished:
        """Answers that a new reply may have again."""
        results = self._session.transcript.results
        return {
            (entry.call.name, entry.call.raw_arguments): ToolFinished(entry.call.id, "ok", results[entry.call.id].parts)
            for entry in self._entries
            if entry.effects.is_read_only and entry.call.id in results and not results[entry.call.id].is_error
        }

    async def _run(self, entry: _Entry, earlier: tuple[_Entry, ...]) -> None:
        try:
            if earlier:
                await earlier[-1].is_prepared.wait()
            too_many = self._too_many(len(earlier))
            prepared = await prepare(self._session, entry.call, self._step, self._unlogged(entry), too_many)
            if isinstance(prepared, Prepared):
                entry.effects = prepared.effects
                entry.is_prepared.set()
                prepared = await self._wait_for(entry, prepared, earlier)
            else:
                entry.effects = Effects()
                entry.is_prepared.set()
            entry.is_placed.set()
            missing = [other.call.name for other in earlier if other.lacks_change]
            finished = await self._finish(entry, prepared, earlier)
            is_refused = isinstance(prepared, Refused)
            entry.lacks_change = finished.outcome != "ok" and (is_refused or bool(entry.effects.writes))
            if missing and finished.outcome != "refused" and (entry.effects.unknown or entry.effects.commands):
                finished = _without(missing, finished)
            await finalize(self._session, entry.call, finished)
        finally:
            entry.is_prepared.set()
            entry.is_placed.set()
            entry.is_done.set()

    def _too_many(self, before: int) -> str:
        """Why a call with so many before it in its reply is not run; empty if it may be."""
        most = self._session.agent.limits.calls_per_reply
        if before < most:
            return ""
        return f"Not run: a reply may hold {most} calls, and this is one more. Send fewer at once."

    def _unlogged(self, entry: _Entry) -> tuple[Part, ...]:
        """Parts of the reply before the call, as long as the reply itself is not in the log."""
        return () if self._reply_ended.is_set() else entry.before

    async def _wait_for(self, entry: _Entry, prepared: Prepared, earlier: tuple[_Entry, ...]) -> Prepared | Refused:
        """Wait for the calls that must come first. Each may have moved the session or a link: the call is seen anew."""
        ended: set[_Entry] = set()
        while True:
            await self._until_settled(entry, earlier)
            first = [other for other in earlier if other not in ended and conflict(other.effects, entry.effects)]
            if not first:
                return prepared
            for other in first:
                await other.is_done.wait()
            ended.update(first)
            again = check(self._session, prepared.call)
            if isinstance(again, Refused):
                return again
            prepared, entry.effects = again, again.effects

    async def _until_settled(self, entry: _Entry, earlier: tuple[_Entry, ...]) -> None:
        """Wait until it is known what the earlier calls will touch: who follows one that moves is seen anew."""
        moves = entry.effects.moves  # and who moves lets the earlier take their copies first
        for other in earlier:
            if moves:
                await other.is_placed.wait()
            moves = moves or other.effects.moves

    async def _finish(self, entry: _Entry, prepared: Prepared | Refused, earlier: tuple[_Entry, ...]) -> ToolFinished:
        if isinstance(prepared, Refused):
            return _answer(prepared)
        known = self._reusable.get((entry.call.name, entry.call.raw_arguments))
        if known is not None and all(other.effects.is_read_only for other in earlier):
            return ToolFinished(entry.call.id, known.outcome, known.shown, known.full_ref)
        grant = await authorize(self._session, prepared, self._reply_ended)
        if isinstance(grant, Refused):
            return _answer(grant)
        async with self._slots:
            entry.has_started = True
            return await execute(self._session, prepared, grant)


def _without(missing: list[str], finished: ToolFinished) -> ToolFinished:
    """A command's answer that says that it saw the world without changes that were asked for before it."""
    said = Text(f"\n[{', '.join(missing)} before it in the same reply failed: this ran without that change]")
    return msgspec.structs.replace(finished, shown=(*finished.shown, said))


def _answer(refused: Refused) -> ToolFinished:
    return ToolFinished(refused.call.id, refused.outcome, (Text(refused.text),))
