"""The living conversation: it owns the log's lock, the tasks, the model session and the state."""

import asyncio
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from bradawl.agent.answer import AnswerCheck, AnswerSchema, schema_text
from bradawl.agent.inbox import QueueInbox
from bradawl.agent.jobs import BackgroundJobs
from bradawl.agent.loop import run_turn
from bradawl.agent.output_limit import OutputLimit
from bradawl.agent.prefix import PrefixLedger
from bradawl.agent.recovery import repair, what_changed
from bradawl.agent.reminders import Reminders
from bradawl.agent.seen import SeenFiles
from bradawl.agent.subagent import SubAgents
from bradawl.core.deltas import CallDelta, RetryScheduled, TextDelta, ThinkingDelta, ToolProgress
from bradawl.core.errors import Failure, SessionError
from bradawl.core.events import (
    FORMAT_VERSION,
    Compacted,
    Envelope,
    Event,
    HeadMoved,
    Live,
    NoteDelivered,
    NoteQueued,
    PrefixOpened,
    PromptSubmitted,
    ReplyWithdrawn,
    RequestParams,
    SessionOpened,
    StateChanged,
    ToolFinished,
    TurnFinished,
    TurnReason,
)
from bradawl.core.messages import Document, Image, Note, Text, ToolCall
from bradawl.core.permissions import Policy
from bradawl.core.ports import Blobs, Emit, ModelInfo, ModelSession, OpenSession, SessionLog
from bradawl.core.usage import Usage
from bradawl.folds.session_state import SessionState, remember
from bradawl.folds.transcript import Transcript, apply, branch
from bradawl.safety.permissions.builtin_rules import with_builtin_rules

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent

Prompt = str | tuple[Text | Image | Document, ...]


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn ended."""

    reason: TurnReason
    text: str
    """The answer: the last reply's text, unless it was on its way to a call; the JSON alone of a checked answer."""
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
    answer: object = None
    """What the answer says, as a JSON value that satisfies the schema; None when there was no schema."""


def ignore(_: Envelope | Live) -> None:
    """An `Emit` that shows nothing."""


class Session:
    """One conversation. Use it as an async context manager; one turn at a time."""

    def __init__(self, agent: "Agent", opened: OpenSession, name: str = "main") -> None:
        """`name` is under which its entries stand in the log: sub-agents write into that of the session they are in."""
        self.agent = agent
        self.name, self.is_sub_agent = name, name != "main"
        self.log: SessionLog = opened.log
        self.blobs: Blobs = opened.blobs
        self.notices = opened.notices
        self.transcript = Transcript()
        self.state = SessionState()
        self.inbox = QueueInbox()
        self.tools = {tool.spec.name: tool for tool in agent.tools}
        self.params: RequestParams = agent.params
        """What the requests of this turn ask for."""
        self.prefix = PrefixLedger(self, agent.model.info)
        self.output_limit = OutputLimit(self)
        self.answer = AnswerCheck(self)
        self.seen = SeenFiles(self.state.files_seen, lambda change: self.record(StateChanged(change)))
        self.jobs = BackgroundJobs(self, opened.entries)
        self.spawner = SubAgents(self, opened.entries)
        self.reminders = Reminders(self)
        self.asking = asyncio.Lock()
        self.allowed: set[str] = set()
        """What the user has said yes to for the whole session."""
        self.denials: list[ToolCall] = []
        self.tasks: asyncio.TaskGroup | None = None
        """Of what may outlive a turn; None outside the context manager."""
        self.emit: Emit = ignore
        """Shows what happens; given with each turn."""
        self._last: Envelope | None = None
        self._is_running = False
        self._turn_state = SessionState()
        self._turn: asyncio.Task[TurnFinished] | None = None
        for envelope in branch(opened.entries, name):
            self._take(envelope)
        for note in self.transcript.waiting_notes.values():
            self.inbox.put(note)

    @property
    def id(self) -> str:
        """The session's ulid."""
        return self.log.session_id

    @property
    def model_session(self) -> ModelSession:
        """The conversation with the model; there is one as soon as a turn runs. Raises `SessionError`."""
        return self.prefix.conversation

    @property
    def info(self) -> ModelInfo:
        """The model that answers the next request."""
        return self.prefix.info

    def policy(self) -> Policy:
        """What holds for the next call: the agent's policy, in the mode that was chosen in this session.

        A session never leaves more unasked than it was started with: who resumes one decides anew on `bypass`.
        A policy without built-in rules gets them here.
        """
        policy, mode = with_builtin_rules(self.agent.policy(), self.agent.files), self.state.mode
        if mode is None or mode == "bypass":
            return policy
        return msgspec.structs.replace(policy, mode=mode)

    @property
    def last_event(self) -> Event | None:
        """What the log ends with; None in a session that has not begun."""
        return self._last.event if self._last else None

    async def __aenter__(self) -> Self:
        self.tasks = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with AsyncExitStack() as closing:
            closing.callback(self.log.close)
            if self.tasks is not None:
                closing.push_async_exit(self.tasks)  # cancels the rest where that is cancelled
                await self.jobs.close()

    # -------------------------------------------------------------- what happened

    def record(self, event: Event) -> Envelope:
        """Put an event into the log, fold it, and show it."""
        envelope = self.log.append(event)
        self._take(envelope)
        self.emit(envelope)
        return envelope

    def show(self, item: TextDelta | ThinkingDelta | CallDelta | ToolProgress | RetryScheduled) -> None:
        """Show something that is not kept."""
        self.emit(Live(self.name, self._last.seq if self._last else -1, item))

    def _take(self, envelope: Envelope) -> None:
        apply(self.transcript, envelope)
        remember(self.state, envelope)
        remember(self._turn_state, envelope)
        self._last = envelope
        if isinstance(envelope.event, PrefixOpened | ReplyWithdrawn | Compacted | HeadMoved):
            self.seen.forget_answers()

    # -------------------------------------------------------------- a turn

    async def run(
        self, prompt: Prompt, emit: Emit = ignore, *, answer_schema: AnswerSchema | None = None
    ) -> TurnResult:
        """Run one turn to its end. Cancelling the caller cancels the turn, which is then closed in the log.

        With a JSON Schema, here or in the agent's `params`, the answer is checked against it, and asked for once more
        if it is not right. Raises `SettingsError` for a schema that is none.
        """
        if self._is_running:
            raise SessionError("A turn is already running in this session; use send() to say something to it.")
        schema = self.agent.params.answer_schema if answer_schema is None else schema_text(answer_schema)
        self.answer.begin_turn(schema)
        self.output_limit.begin_turn()
        self.params = msgspec.structs.replace(self.agent.params, answer_schema=schema)
        self._is_running = True
        self.emit, self._turn_state = emit, SessionState()
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
        self.note(text, "user")

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
        has_replied = self._turn_state.last_reply is not None
        return TurnResult(
            reason=finished.reason,
            text=self.answer.text or (self.output_limit.text() if has_replied else ""),
            steps=self._turn_state.replies,
            usage=self._turn_state.usage,
            cost=self._turn_state.cost,
            failure=finished.failure,
            session_id=self.id,
            saved=saved,
            denials=tuple(self.denials),
            answer=self.answer.value,
        )

    # -------------------------------------------------------------- for the loop

    def deliver_notes(self) -> None:
        """Hand all waiting notes to the model, and what it is to be reminded of."""
        self.reminders.look()
        for note in self.inbox.drain():
            self.record(NoteDelivered(note.id))

    def request(self, step: int) -> RequestParams:
        """Bring the conversation up to date, log the request that is about to leave, and say what it asks for."""
        params = self.output_limit.limited(self.params)
        self.prefix.request(step, params)
        return params

    def reconsider(self, finished: TurnFinished) -> TurnFinished | None:
        """How the turn ends after all who have a say in it have looked; None lets it go on."""
        going = self.output_limit.look(finished)
        return None if going is None else self.answer.look(going)

    def note(self, text: str, source: Literal["user", "system"] = "system") -> None:
        """Say something to the model at the next step boundary."""
        note = Note(self.agent.ids.ulid(), text, source)
        self.inbox.put(note)
        if self._last is not None:  # nothing may stand before the first line of a log
            self.record(NoteQueued(note))

    async def _begin(self) -> None:
        """Open the log's first lines and the prefix, or continue where the log ends."""
        if self.prefix.is_open:
            return
        if self._last is None:
            agent = self.agent
            self.record(SessionOpened(FORMAT_VERSION, agent.project, agent.project, agent.version))
            for note in self.inbox.waiting:
                self.record(NoteQueued(note))
        known = {**await what_changed(self), **await self.spawner.recover()}
        for event in repair(self.transcript, self.info.origin, self.state.steps, known):
            self.record(event)
        self.jobs.recover()
        await self.prefix.open()
