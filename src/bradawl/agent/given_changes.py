"""A `WorkspaceChanges` of an embedding program: its answers are checked, and its defects fail closed."""

import asyncio
from collections import defaultdict

from bradawl.agent.failures import PartFailed, answer_of
from bradawl.core.errors import ToolError
from bradawl.core.ports import WorkspaceChanges
from bradawl.core.workspace import Checkpoint
from bradawl.shaping.validation import validated

SETTLE_S = 10.0
"""Longest wait for the searches of ended calls, in seconds."""
_AGAIN_S = 1.0
"""The same after a search that did not end in time."""
_UNKNOWN = "The search for its changes failed: what it changed is not known."


class GivenChanges:
    """`WorkspaceChanges` over one that a program brought.

    If `begin` fails, the turn ends with a `Failure` and the call is not run. If the search for changes fails, the event
    loop's exception handler gets the exception, and the checkpoints of the ended calls say that their changes are not
    known. A search that does not end in time is cancelled, and fails. If `covers` fails, nothing is covered.
    """

    def __init__(self, changes: WorkspaceChanges, settle_s: float = SETTLE_S) -> None:
        """`settle_s` is the longest wait for the searches of ended calls, in seconds."""
        self._changes = changes
        self._settle_s = self._patience_s = settle_s
        self._ended: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """By owner, the ended calls without a checkpoint."""

    async def begin(self, call_id: str, paths: tuple[str, ...] | None) -> tuple[Checkpoint, ...]:
        """Save the state before a call. Raises `ToolError`, and `PartFailed`."""

        async def begin() -> tuple[Checkpoint, ...] | ToolError:
            try:
                return validated(await self._changes.begin(call_id, paths), tuple[Checkpoint, ...])
            except ToolError as refusal:
                return refusal

        found = await answer_of("`changes.begin`", begin)
        if isinstance(found, ToolError):
            raise found
        return self._known(call_id.partition("/")[0], found)

    def end(self, call_id: str) -> None:
        """Search for what the call changed, in the background."""
        owner, _, name = call_id.partition("/")
        self._ended[owner][name] = None
        try:
            self._end(call_id)
        except PartFailed as error:
            _report(error)

    async def settle(self, owner: str = "") -> tuple[Checkpoint, ...]:
        """The owner's checkpoints."""

        async def settle() -> tuple[Checkpoint, ...]:
            limit = asyncio.timeout(self._patience_s)
            try:
                async with limit:
                    found = await self._changes.settle(owner)
            except TimeoutError as error:
                if not limit.expired():
                    raise
                late, self._patience_s = self._patience_s, min(self._settle_s, _AGAIN_S)
                raise TimeoutError(f"it did not end within {late:g} s") from error
            self._patience_s = self._settle_s
            return validated(found, tuple[Checkpoint, ...])

        try:
            return self._known(owner, await answer_of("`changes.settle`", settle))
        except PartFailed as error:
            _report(error)
            return tuple(Checkpoint(name, "", _UNKNOWN, is_known=False) for name in self._ended.pop(owner, ()))

    async def covers(self) -> bool:
        """Whether undo can bring back all files."""

        async def covers() -> bool:
            return validated(await self._changes.covers(), bool)

        try:
            return await answer_of("`changes.covers`", covers)
        except PartFailed as error:
            _report(error)
            return False

    def _end(self, call_id: str) -> None:
        try:
            self._changes.end(call_id)
        except Exception as error:
            raise PartFailed("`changes.end`", error) from error

    def _known(self, owner: str, found: tuple[Checkpoint, ...]) -> tuple[Checkpoint, ...]:
        for each in found:
            self._ended[owner].pop(each.call_id, None)
        return found


def _report(failed: PartFailed) -> None:
    """Give an exception that does not end the turn to the event loop's exception handler."""
    asyncio.get_running_loop().call_exception_handler({"message": str(failed), "exception": failed.error})
