"""The agent: everything a session needs, put together once. Holds no state; shareable."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from bradawl.agent.answer import AnswerSchema, CheckFor
from bradawl.agent.limits import Limits
from bradawl.agent.session import Prompt, Session, TurnResult
from bradawl.core.events import Envelope, Live, RequestParams
from bradawl.core.permissions import Policy
from bradawl.core.ports import AnyTool, Approver, Checkpoints, Clock, Files, Hook, Ids, Model, Processes, SessionStore
from bradawl.core.retry import RetryBudget


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration. `open` gives a living session; `stream` and `run_sync` are for one prompt."""

    model: Model
    small_model: Model | None = None
    """Does what asks for less, such as looking around; the model itself where there is none."""
    tools: tuple[AnyTool, ...]
    store: SessionStore
    files: Files
    processes: Processes
    approver: Approver
    clock: Clock
    ids: Ids
    policy: Callable[[], Policy]
    """Asked before each call, so that a change of mode holds at once."""
    system_prompt: Callable[[], Awaitable[str]]
    """Asked once, when a session opens its first prefix."""
    project: str
    """Real path of the folder the session belongs to; its first working directory."""
    version: str = ""
    limits: Limits = Limits()
    params: RequestParams = RequestParams()
    retry: RetryBudget = RetryBudget()
    hooks: tuple[Hook, ...] = ()
    checkpoints: Checkpoints | None = None
    check_for: CheckFor | None = None
    """Makes the check of an answer from a JSON Schema; needed only where answers must satisfy one."""
    on_close: Callable[[], None] | None = None
    """Gives back what the adapters hold."""

    def open(self, session_id: str | None = None) -> Session:
        """A new session, or an existing one to continue; an async context manager. Raises `SessionError`."""
        return Session(self, self.store.create() if session_id is None else self.store.open(session_id))

    async def run(
        self, prompt: Prompt, session_id: str | None = None, *, answer_schema: AnswerSchema | None = None
    ) -> TurnResult:
        """Run one prompt to its end; with a JSON Schema the result's `answer` is a value that satisfies it.

        Raises `SessionError`, and `SettingsError` for a schema that is none.
        """
        async with self.open(session_id) as session:
            return await session.run(prompt, answer_schema=answer_schema)

    def run_sync(
        self, prompt: Prompt, session_id: str | None = None, *, answer_schema: AnswerSchema | None = None
    ) -> TurnResult:
        """`run` for callers without an event loop; blocks. The agent is closed afterwards."""

        async def main() -> TurnResult:
            try:
                return await self.run(prompt, session_id, answer_schema=answer_schema)
            finally:
                await self.aclose()

        return asyncio.run(main())

    async def stream(
        self, prompt: Prompt, session_id: str | None = None, *, answer_schema: AnswerSchema | None = None
    ) -> AsyncIterator[Envelope | Live]:
        """Run one prompt and yield every event as it happens; ends after `TurnFinished`.

        Closing the iterator early cancels the turn. Raises `SessionError`.
        """
        queue: asyncio.Queue[Envelope | Live | None] = asyncio.Queue()

        async def pump() -> None:
            try:
                async with self.open(session_id) as session:
                    await session.run(prompt, queue.put_nowait, answer_schema=answer_schema)
            finally:
                queue.put_nowait(None)

        # A task group may not span a yield, so the generator owns this one task itself.
        task = asyncio.get_running_loop().create_task(pump())
        try:
            while (event := await queue.get()) is not None:
                yield event
            await task
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def aclose(self) -> None:
        """Close connections and give back what the adapters hold; safe to call twice."""
        try:
            await self.model.aclose()
            if self.small_model is not None:
                await self.small_model.aclose()
        finally:
            if self.on_close is not None:
                self.on_close()
