"""What calls change in the workspace: which files a call may change, and the log entries about what it changed."""

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable

from bradawl.agent.conversation import Conversation
from bradawl.core.effects import Effects
from bradawl.core.events import CheckpointTaken
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

    A call that leaves a job running ends with that job.
    """

    def __init__(self, changes: WorkspaceChanges, conversation: Conversation) -> None:
        self._changes = changes
        self._conversation = conversation
        self._owner = f"{conversation.log.session_id}.{conversation.name}"
        self._jobs: Counter[str] = Counter()
        """Number of running jobs by call id."""
        self._unknown: dict[str, None] = {}
        """Ended calls without a checkpoint."""
        self._late: set[str] = set()
        """Ended calls that were logged as not known, and that a search may still find."""

    async def begin(self, call_id: str, effects: Effects) -> bool:
        """Save the state before a call; False if it changes no file. The call must be ended then, also if this raises.

        Raises `ToolError`.
        """
        paths = files_it_may_change(effects)
        if paths == ():
            return False
        try:
            self._log(await self._changes.begin(self._key(call_id), paths))
        except asyncio.CancelledError:
            self._changes.end(self._key(call_id))
            raise
        return True

    def end(self, call_id: str) -> None:
        """Search for what the call changed, in the background; does nothing while a job of the call runs."""
        if self._jobs[call_id]:
            self._jobs[call_id] -= 1
        else:
            self._changes.end(self._key(call_id))
            self._unknown[call_id] = None

    def continues(self, call_id: str) -> None:
        """The running call has started a job, which calls `end` once more."""
        self._jobs[call_id] += 1

    async def settle(self) -> None:
        """Wait for the searches of ended calls, and log what they found."""
        self._log(await self._changes.settle(self._owner))

    async def settle_or_give_up(self) -> None:
        """As `settle`. For a call whose search did not end in time, log that it is not known what the call changed."""
        await self.settle()
        late = tuple(self._unknown)
        self._log([Checkpoint(call_id, "", _LATE, is_known=False) for call_id in late])
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

    def _key(self, call_id: str) -> str:
        return f"{self._owner}/{call_id}"

    def _log(self, found: Iterable[Checkpoint]) -> None:
        """Log what ended calls have changed, also that a call changed nothing: without an entry it is not known."""
        for each in found:
            self._conversation.record(CheckpointTaken(each.call_id, each.ref, each.uncovered, each.is_known))
            self._unknown.pop(each.call_id, None)
            self._late.discard(each.call_id)
