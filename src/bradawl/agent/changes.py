"""What calls change in the workspace: which files a call may change, and the log entries about what it changed."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence

from bradawl.agent.conversation import Conversation
from bradawl.core.effects import Effects
from bradawl.core.events import CheckpointTaken, Envelope
from bradawl.core.ports import WorkspaceChanges
from bradawl.core.workspace import Checkpoint

_LATE = "The search for its changes did not end in time: what it changed is not known."


def files_it_may_change(effects: Effects) -> tuple[str, ...] | None:
    """The files that a call may change; None for any file of the workspace, empty for none.

    A shell line declares what its words name before it runs; a link that it makes can lead the words elsewhere.
    """
    if effects.unknown or (effects.commands and not effects.understood):
        return None
    return None if effects.seal and effects.writes else effects.writes


class UnsavedChanges:
    """`WorkspaceChanges` where undo is off. Each call that may change files gets a checkpoint that says so."""

    def __init__(self, why: str) -> None:
        """`why` is a sentence for the user."""
        self._why = why
        self._found: defaultdict[str, list[Checkpoint]] = defaultdict(list)
        """By owner."""

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        """The owner's checkpoints; saves nothing."""
        return await self.settle(call_id.partition("/")[0])

    def end(self, call_id: str) -> None:
        """Note that the call's changes are not saved."""
        owner, _, name = call_id.partition("/")
        self._found[owner].append(Checkpoint(name, "", self._why))

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """The owner's checkpoints."""
        return tuple(self._found.pop(owner, ()))

    async def covers(self) -> bool:
        """False."""
        return False


class ConversationChanges:
    """The port `WorkspaceChanges` for the calls of one conversation. Logs what they changed.

    A call that leaves a job running ends with that job. A later call with the same id, which some servers give, has
    another key meanwhile, and what changed while the job ran is logged under the job's id.
    """

    def __init__(self, changes: WorkspaceChanges, conversation: Conversation, entries: Sequence[Envelope] = ()) -> None:
        """`entries` are those already in the log."""
        self._changes = changes
        self._conversation = conversation
        self._owner = f"{conversation.log.session_id}.{conversation.name}"
        self._keys: dict[str, str] = {}
        """By call id, the key of the last call. The key of a call is its id, unless that is in use."""
        self._ids: dict[str, str] = {}
        """Call ids by keys that are none."""
        self._job_ids: dict[str, str] = {}
        """By key, the job that the call has started last."""
        self._open: set[str] = set()
        """Keys of the calls that have begun and not ended."""
        self._jobs: Counter[str] = Counter()
        """Number of running jobs by key."""
        self._unknown: dict[str, None] = {}
        """Keys of ended calls without a checkpoint."""
        self._logged: frozenset[str] = frozenset()
        """The change records that a killed program has logged, and that are found once more."""
        self._left: Mapping[str, Effects] = {}
        """The calls that a killed program has left without a checkpoint."""
        if entries:
            self._read(entries)
        self._late: set[str] = set()
        """Keys of ended calls that were logged as not known, and that a search may still find."""

    def _read(self, entries: Sequence[Envelope]) -> None:
        from bradawl.folds.unknown_changes import calls_without_checkpoint

        taken = [entry.event for entry in entries if isinstance(entry.event, CheckpointTaken)]
        self._logged = frozenset(each.checkpoint_ref for each in taken if each.checkpoint_ref)
        self._left = calls_without_checkpoint(entries, self._conversation.name)

    async def begin(self, call_id: str, effects: Effects) -> bool:
        """Save the state before a call; False if it changes no file. The call must be ended then, also if this raises.

        Raises `ToolError`.
        """
        paths = files_it_may_change(effects)
        if paths == ():
            return False
        key = self._new_key(call_id)
        try:
            self._log(await self._changes.begin(self._named(key), paths))
        except asyncio.CancelledError:
            self._open.discard(key)
            self._changes.end(self._named(key))
            raise
        return True

    def _new_key(self, call_id: str) -> str:
        key, number = call_id, 1
        while key in self._open:
            number += 1
            key = f"{call_id}~{number}"
        if key != call_id:
            self._ids[key] = call_id
        self._keys[call_id] = key
        self._open.add(key)
        return key

    def end(self, call_id: str) -> None:
        """Search for what the call changed, in the background; does nothing while a job of the call runs."""
        self.end_job(self._keys.get(call_id, call_id))

    def end_interrupted(self, started: Iterable[str]) -> None:
        """Search for what calls changed that ran when the program ended: those `started`, and those of which the log
        had no checkpoint when it was opened. A second call of this searches for none of these again.
        """
        left, self._left = self._left, {}
        for call_id in dict.fromkeys((*started, *left)):
            effects = left.get(call_id)
            if effects is None or files_it_may_change(effects) != ():
                self.end(call_id)

    def continues(self, call_id: str, job_id: str) -> str:
        """The running call has started a job. Returns the key for `end_job`."""
        key = self._keys.get(call_id, call_id)
        self._jobs[key] += 1
        self._job_ids[key] = job_id
        return key

    def end_job(self, key: str) -> None:
        """As `end`, for a job that `continues` has returned the key of."""
        if self._jobs[key]:
            self._jobs[key] -= 1
        else:
            self._open.discard(key)
            self._changes.end(self._named(key))
            self._unknown[key] = None

    async def settle(self) -> None:
        """Wait for the searches of ended calls, and log what they found."""
        self._log(await self._changes.settle(self._owner))

    async def settle_earlier(self, call_id: str) -> None:
        """Wait for the search for changes of an earlier call with this id: after the start of the new one, the log
        could not tell which of them it is about.
        """
        if self._keys.get(call_id) in self._unknown:
            await self.settle()

    async def settle_or_give_up(self) -> None:
        """As `settle`. For a call whose search did not end in time, log that it is not known what the call changed."""
        await self.settle()
        late = tuple(self._unknown)
        self._log([Checkpoint(key, "", _LATE, is_known=False) for key in late])
        self._late.update(late)

    @property
    def is_late(self) -> bool:
        """True if a search did not end in time, and can still end."""
        return bool(self._late)

    @contextlib.contextmanager
    def logged_meanwhile(self, group: asyncio.TaskGroup) -> Generator[None]:
        """Log what ended calls changed as soon as it is found: undo reaches it even if the agent is killed then."""
        task = group.create_task(self.settle()) if self._unknown else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def covers(self) -> bool:
        """Whether undo can bring back all files of the workspace."""
        return await self._changes.covers()

    def _named(self, key: str) -> str:
        return f"{self._owner}/{key}"

    def _log(self, found: Iterable[Checkpoint]) -> None:
        """Log what ended calls have changed, also that a call changed nothing: without an entry it is not known."""
        for each in found:
            if each.ref not in self._logged:
                name = self._name_in_log(each.call_id)
                self._conversation.record(CheckpointTaken(name, each.ref, each.uncovered, each.is_known))
            self._unknown.pop(each.call_id, None)
            self._late.discard(each.call_id)

    def _name_in_log(self, key: str) -> str:
        call_id = self._ids.get(key, key)
        is_last = self._keys.get(call_id, key) == key
        return call_id if is_last else self._job_ids.get(key, call_id)
