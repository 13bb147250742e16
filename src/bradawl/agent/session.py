"""The living conversation: it owns the log's lock, the tasks, the model session and the state."""

import asyncio
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from bradawl.agent.inbox import QueueInbox
from bradawl.agent.loop import run_turn
from bradawl.agent.tool_schema import schemas_of
from bradawl.core.deltas import CallDelta, RetryScheduled, TextDelta, ThinkingDelta, ToolProgress
from bradawl.core.errors import Failure, SessionError
from bradawl.core.events import (
    FORMAT_VERSION,
    Envelope,
    Event,
    Live,
    ModelChosen,
    NoteDelivered,
    NoteQueued,
    PrefixOpened,
    PromptSubmitted,
    SessionOpened,
    StateChanged,
    ToolFinished,
    TurnFinished,
    TurnReason,
)
from bradawl.core.messages import Document, Image, Note, Origin, Text, ToolCall, calls_of, text_of
from bradawl.core.ports import Blobs, Emit, ModelSession, OpenSession, Prefix, SessionLog
from bradawl.core.state import SessionState, remember
from bradawl.core.transcript import Transcript, apply, branch, repair
from bradawl.core.usage import Usage

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent

Prompt = str | tuple[Text | Image | Document, ...]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended."""

    reason: TurnReason
    text: str
    """The answer: the last reply's text, unless it was on its way to a call."""
    steps: int
    usage: Usage
    """Of this turn alone."""
    cost: float | None
    """US dollars of this turn; None if any reply could not be priced."""
    failure: Failure | None
    session_id: str
    saved: bool
    """False if some of the session is not on the disk."""
    denials: tuple[ToolCall, ...]
    """Calls that needed a permission nobody could give."""


def ignore(_: Envelope | Live) -> None:
    """An `Emit` that shows nothing."""


class Session:
    """One conversation. Use it as an async context manager; one turn at a time."""

    def __init__(self, agent: "Agent", opened: OpenSession) -> None:
        self.agent = agent
        self.log: SessionLog = opened.log
        self.blobs: Blobs = opened.blobs
        self.notices = opened.notices
        self.transcript = Transcript()
        self.state = SessionState()
        self.inbox = QueueInbox()
        self.tools = {tool.name: tool for tool in agent.tools}
        self.origin: Origin = agent.model.info.origin
        self.asking = asyncio.Lock()
        self.allowed: set[str] = set()
        """What the user has said yes to for the whole session."""
        self.denials: list[ToolCall] = []
        self._emit: Emit = ignore
        self._last: Envelope | None = None
        self._model_session: ModelSession | None = None
        self._encoded = 0
        self._is_running = False
        self._turn_state = SessionState()
        self._turn: asyncio.Task[TurnFinished] | None = None
        for envelope in branch(opened.entries):
            self._take(envelope)
        for note in self.transcript.waiting_notes.values():
            self.inbox.put(note)

    @property
    def id(self) -> str:
        """The session's ulid."""
        return self.log.session_id

    @property
    def model_session(self) -> ModelSession:
        """The conversation with the model; there is one as soon as a turn runs."""
        if self._model_session is None:
            raise SessionError("The session has not begun.")
        return self._model_session

    @property
    def last_event(self) -> Event | None:
        """What the log ends with; None in a session that has not begun."""
        return self._last.event if self._last else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.log.close()

    # -------------------------------------------------------------- what happened

    def record(self, event: Event) -> Envelope:
        """Put an event into the log, fold it, and show it."""
        envelope = self.log.append(event)
        self._take(envelope)
        self._emit(envelope)
        return envelope

    def show(self, item: TextDelta | ThinkingDelta | CallDelta | ToolProgress | RetryScheduled) -> None:
        """Show something that is not kept."""
        self._emit(Live("main", self._last.seq if self._last else -1, item))

    def _take(self, envelope: Envelope) -> None:
        apply(self.transcript, envelope)
        remember(self.state, envelope)
        remember(self._turn_state, envelope)
        self._last = envelope

    # -------------------------------------------------------------- a turn

    async def run(self, prompt: Prompt, emit: Emit = ignore) -> TurnResult:
        """Run one turn to its end. Cancelling the caller cancels the turn, which is then closed in the log."""
        if self._is_running:
            raise SessionError("A turn is already running in this session; use send() to say something to it.")
        self._is_running = True
        self._emit, self._turn_state = emit, SessionState()
        self.denials.clear()
        finished = TurnFinished("cancelled")
        try:
            async with asyncio.TaskGroup() as group:
                self._turn = group.create_task(self._run(prompt))
            if not self._turn.cancelled():
                finished = self._turn.result()
        except BaseExceptionGroup:
            finished = TurnFinished("error")
            raise
        finally:
            self._turn = None
            self._is_running = False
            saved = await self._close_turn(finished)
        return self._result(finished, saved=saved)

    def send(self, text: str) -> None:
        """Say something to the running turn; the model sees it at the next step, or with the next prompt."""
        note = Note(self.agent.ids.ulid(), text, "user")
        self.inbox.put(note)
        if self._last is not None:  # nothing may stand before the first line of a log
            self.record(NoteQueued(note))

    def cancel(self) -> None:
        """End the running turn; `run` then returns with reason `cancelled`. Does nothing between turns."""
        if self._turn is not None:
            self._turn.cancel()

    async def _run(self, prompt: Prompt) -> TurnFinished:
        await self._begin()
        self.record(PromptSubmitted((Text(prompt),) if isinstance(prompt, str) else prompt))
        return await run_turn(self)

    async def _close_turn(self, finished: TurnFinished) -> bool:
        """Answer what is open, log the end, and wait for the disk. True if all of the session is on it."""
        if self._last is None:
            return True  # cancelled before anything happened
        for call_id in tuple(self.transcript.open_calls):
            text = "Not run: the turn ended before this call started."
            self.record(ToolFinished(call_id, "cancelled", (Text(text),)))
        return await self.log.durable(self.record(finished))

    def _result(self, finished: TurnFinished, *, saved: bool) -> TurnResult:
        last = self._turn_state.last_reply
        return TurnResult(
            reason=finished.reason,
            text="" if last is None or calls_of(last) else text_of(last.parts),
            steps=self._turn_state.replies,
            usage=self._turn_state.usage,
            cost=self._turn_state.cost,
            failure=finished.failure,
            session_id=self.id,
            saved=saved,
            denials=tuple(self.denials),
        )

    # -------------------------------------------------------------- for the loop

    def deliver_notes(self) -> None:
        """Hand all waiting notes to the model."""
        for note in self.inbox.drain():
            self.record(NoteDelivered(note.id))

    def encode_new_messages(self) -> None:
        """Give the model session what came since the last request."""
        messages = self.transcript.messages
        for message in messages[self._encoded :]:
            self.model_session.append(message)
        self._encoded = len(messages)

    # -------------------------------------------------------------- the prefix

    async def _begin(self) -> None:
        """Open the log's first lines and the prefix, or continue where the log ends."""
        if self._model_session is not None:
            return
        if self._last is None:
            agent = self.agent
            self.record(SessionOpened(FORMAT_VERSION, agent.project, agent.project, agent.version))
            for note in self.inbox.waiting:
                self.record(NoteQueued(note))
        for event in repair(self.transcript, self.origin, self.state.steps):
            self.record(event)
        prefix = await self._open_prefix()
        self._model_session = self.agent.model.open(prefix, self.id)

    async def _open_prefix(self) -> Prefix:
        """The prefix of the log if it still fits, otherwise a new one, said in the log."""
        tools = schemas_of(self.agent.tools)
        tools_ref = await self.blobs.put(msgspec.json.encode(tools))
        old, origin = self.state.prefix, self.origin
        system = self._stored_system(old)
        if old is not None and system is not None:
            if (old.provider, old.model) != (origin.provider, origin.model):
                self.record(StateChanged(ModelChosen(origin.provider, origin.model)))
                self.record(PrefixOpened(old.system_ref, tools_ref, origin.provider, origin.model, "model"))
            elif old.tools_ref != tools_ref:
                self.record(PrefixOpened(old.system_ref, tools_ref, origin.provider, origin.model, "tools"))
            return Prefix(system, tools)
        system = await self.agent.system_prompt()
        system_ref = await self.blobs.put(system.encode("utf-8", "replace"))
        self.record(PrefixOpened(system_ref, tools_ref, origin.provider, origin.model))
        return Prefix(system, tools)

    def _stored_system(self, opened: PrefixOpened | None) -> str | None:
        if opened is None:
            return None
        try:
            return self.blobs.get(opened.system_ref).decode()
        except SessionError as error:
            self.notices = (*self.notices, f"The system prompt of this session is lost, a new one is used: {error}")
            return None
