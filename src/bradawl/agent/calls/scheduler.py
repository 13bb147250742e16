"""Decides which calls of a reply may run at the same time, and which may start before the reply has ended."""

import asyncio

from bradawl.agent.calls.authorize import authorize
from bradawl.agent.calls.call import Prepared, Refused
from bradawl.agent.calls.context import CallServices
from bradawl.agent.calls.execute import execute, finalize
from bradawl.agent.calls.missing_changes import is_missing, lacks_change, with_note
from bradawl.agent.calls.prepare import check, prepare
from bradawl.core.effects import UNKNOWN, Effects, conflict
from bradawl.core.events import ToolFinished
from bradawl.core.messages import Part, Text, ToolCall

Finished = dict[tuple[str, str], ToolFinished]
"""Results of read-only calls of a withdrawn reply, by tool name and raw arguments."""


class _Entry:
    """One call of the reply, and its progress."""

    def __init__(self, call: ToolCall, before: tuple[Part, ...]) -> None:
        self.call = call
        """As the model wrote it."""
        self.checked = call
        """With its arguments as hooks and the tool's own names changed them."""
        self.before = before
        self.effects: Effects = UNKNOWN
        self.is_prepared = asyncio.Event()
        self.is_placed = asyncio.Event()
        """Set once it has its copy of the working directory and the environment."""
        self.is_done = asyncio.Event()
        self.has_started = False
        self.lacks_change = False
        """True if it failed to change files, until a command has said so."""


class Scheduler:
    """Runs the calls of one reply, which are added in call order as each is complete.

    Calls whose effects conflict run one after the other, in call order; others run at the same time, up to a limit.
    """

    def __init__(self, services: CallServices, group: asyncio.TaskGroup, step: int, reusable: Finished) -> None:
        self._services = services
        self._group = group
        self._step = step
        self._reusable = reusable
        self._entries: list[_Entry] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._slots = asyncio.Semaphore(services.parallel_calls)
        self._reply_ended = asyncio.Event()

    def add(self, call: ToolCall, before: tuple[Part, ...]) -> None:
        """Add a complete call; it starts as soon as it may. `before` are the parts of the reply before it."""
        entry = _Entry(call, before)
        self._tasks.append(self._group.create_task(self._run(entry, tuple(self._entries))))
        self._entries.append(entry)

    def reply_ended(self) -> None:
        """Allow questions to the user from now on."""
        self._reply_ended.set()

    def stop(self, *, waiting_only: bool = False) -> None:
        """Cancel all calls, or with `waiting_only` those that have not started. Cancelled calls get no result here."""
        for entry, task in zip(self._entries, self._tasks, strict=True):
            if not (waiting_only and entry.has_started):
                task.cancel()

    @property
    def has_changed(self) -> bool:
        """True if a call has started that is not read-only, so that it must not be repeated."""
        return any(entry.has_started and not entry.effects.is_read_only for entry in self._entries)

    def reusable_results(self) -> Finished:
        """Results that calls of a new reply may reuse."""
        results = self._services.conversation.transcript.results
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
            prepared = await prepare(self._services, entry.call, self._step, self._unlogged(entry), too_many)
            entry.checked = prepared.call
            if isinstance(prepared, Prepared):
                entry.effects = prepared.effects
                entry.is_prepared.set()
                prepared = await self._wait_for(entry, prepared, earlier)
            else:
                entry.effects = Effects()
                entry.is_prepared.set()
            entry.is_placed.set()
            missing = await self._missing_changes(entry, earlier)
            finished = await self._finish(entry, prepared, earlier)
            entry.lacks_change = lacks_change(self._services, entry.checked, entry.effects, finished)
            if finished.outcome != "refused":
                finished = self._with_missing(missing, finished)
            await finalize(self._services, entry.checked, finished)
        finally:
            entry.is_prepared.set()
            entry.is_placed.set()
            entry.is_done.set()

    def _too_many(self, before: int) -> str:
        """Why a call with this number of calls before it is not run; empty if it may run."""
        most = self._services.calls_per_reply
        if before < most:
            return ""
        return f"Not run: a reply may hold {most} calls, and this is one more. Send fewer at once."

    def _unlogged(self, entry: _Entry) -> tuple[Part, ...]:
        """Parts of the reply before the call; none once the reply itself is in the log."""
        return () if self._reply_ended.is_set() else entry.before

    async def _wait_for(self, entry: _Entry, prepared: Prepared, earlier: tuple[_Entry, ...]) -> Prepared | Refused:
        """Wait for the conflicting calls before it. They may change cwd, env or links, so the call is checked again."""
        ended: set[_Entry] = set()
        while True:
            await self._until_settled(entry, earlier)
            first = [other for other in earlier if other not in ended and conflict(other.effects, entry.effects)]
            if not first:
                return prepared
            for other in first:
                await other.is_done.wait()
            ended.update(first)
            again = check(self._services, prepared.call)
            if isinstance(again, Refused):
                return again
            prepared, entry.effects = again, again.effects

    async def _until_settled(self, entry: _Entry, earlier: tuple[_Entry, ...]) -> None:
        """Wait until the effects of the earlier calls are known: one that changes cwd or env changes this call too."""
        moves = entry.effects.moves  # a call that changes cwd or env waits until the earlier ones have their copies
        for other in earlier:
            if moves:
                await other.is_placed.wait()
            moves = moves or other.effects.moves

    async def _missing_changes(self, entry: _Entry, earlier: tuple[_Entry, ...]) -> list[_Entry]:
        """The earlier calls whose changes a command runs without."""
        if not (entry.effects.unknown or entry.effects.commands):
            return []
        failed = [other for other in earlier if other.lacks_change]
        return [
            other
            for other in failed
            if await is_missing(self._services, other.checked, other.effects, was_allowed=other.has_started)
        ]

    def _with_missing(self, missing: list[_Entry], finished: ToolFinished) -> ToolFinished:
        """The result, with a note about missing changes. The first command that ran says it, for all of the reply."""
        untold = [other for other in missing if other.lacks_change]
        for other in untold:
            other.lacks_change = False
        return with_note(self._services, [other.checked for other in untold], finished) if untold else finished

    async def _finish(self, entry: _Entry, prepared: Prepared | Refused, earlier: tuple[_Entry, ...]) -> ToolFinished:
        if isinstance(prepared, Refused):
            return _result(prepared)
        known = self._reusable.get((entry.call.name, entry.call.raw_arguments))
        if known is not None and all(other.effects.is_read_only for other in earlier):
            return ToolFinished(entry.call.id, known.outcome, known.shown, known.full_ref)
        grant = await authorize(self._services, prepared, self._reply_ended)
        if isinstance(grant, Refused):
            return _result(grant)
        async with self._slots:
            entry.has_started = True
            return await execute(self._services, prepared, grant)


def _result(refused: Refused) -> ToolFinished:
    return ToolFinished(refused.call.id, refused.outcome, (Text(refused.text),))
