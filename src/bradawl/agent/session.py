"""A session: opens the log and the prefix, runs turns, takes messages for the running turn, cancels it, and closes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Final, Literal, Never, Self

import msgspec

from bradawl.agent.around_step import begin_turn
from bradawl.agent.calls.call import NOT_RUN
from bradawl.agent.calls.context import CallServices
from bradawl.agent.configuration import AgentConfiguration
from bradawl.agent.conversation import Conversation, ignore
from bradawl.agent.failures import PartFailed, as_error, failure_of
from bradawl.agent.jobs import BackgroundJobs
from bradawl.agent.loop import run_turn
from bradawl.agent.middleware import Finish, Middleware
from bradawl.agent.middleware.compaction import Compaction
from bradawl.agent.prefix import PrefixLedger
from bradawl.agent.recovery import repair, what_changed
from bradawl.agent.session_model import SessionModel
from bradawl.agent.turn import Turn
from bradawl.agent.users_choices import UsersChoices
from bradawl.agent.users_texts import Prompt, UsersTexts
from bradawl.core.errors import Failure, SessionError
from bradawl.core.events import (
    FORMAT_VERSION,
    Compacted,
    HeadMoved,
    LimitReached,
    ModeChosen,
    NoteQueued,
    PromptSubmitted,
    RequestParams,
    SessionOpened,
    StateChanged,
    ToolFinished,
    TurnFinished,
    TurnReason,
)
from bradawl.core.messages import Text, ToolCall
from bradawl.core.permissions import Mode, Policy
from bradawl.core.ports import Emit, Model, Tool
from bradawl.core.usage import Usage
from bradawl.shaping.json_answer import AnswerSchema, schema_text

_MODES: Final[tuple[Mode, ...]] = ("plan", "default", "accept-edits", "auto", "bypass")
"""Permission modes, the strictest first."""
_UNFINISHED: Final = "[the turn ended while it was running; it may have done part of its work, or all of it]"


def _stricter(usual: Mode, earlier: Mode | None, now: Mode | None) -> Mode | None:
    """The mode from before a rewind if the one after it allows more; None if it does not."""
    before = usual if earlier is None or earlier == "bypass" else earlier
    after = usual if now is None or now == "bypass" else now
    return before if _MODES.index(after) > _MODES.index(before) else None


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn ended."""

    reason: TurnReason
    text: str
    """The answer: the text of the last reply, empty if that reply called tools; the JSON alone of a checked answer."""
    steps: int
    usage: Usage
    """Tokens of this turn alone."""
    cost: float | None
    """US dollars of this turn; None if any reply could not be priced."""
    failure: Failure | None
    session_id: str
    saved: bool
    """False if part of the session is not on the disk."""
    denials: tuple[ToolCall, ...]
    """Calls that needed a permission while no user was there to give it, and commands that were refused a connection,
    by the user too. `reason` is `refused` only if the model gave up on one of the former; see `folds.attempts`."""
    answer: object = None
    """The answer as a JSON value that satisfies the schema; None without a schema."""
    limit: LimitReached | None = None
    """The last limit that the turn reached."""
    unwritten: tuple[str, ...] = ()
    """What the prompt asked for in the machine's `/tmp` and was not written there, in sentences."""


class SessionParts(msgspec.Struct, frozen=True, kw_only=True):
    """The collaborators of a session, which `Agent.open` connects."""

    agent: AgentConfiguration
    conversation: Conversation
    choices: UsersChoices
    model: SessionModel
    prefix: PrefixLedger
    calls: CallServices
    jobs: BackgroundJobs
    middleware: Sequence[Middleware]
    compaction: Compaction
    texts: UsersTexts
    recover_children: Callable[[], Awaitable[Mapping[str, str]]]
    """Ends the sub-agents that ran when the program ended; returns, by call id, what they had found."""


class Session:
    """One conversation. Use it as an async context manager; one turn at a time."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self.agent, self.conversation = parts.agent, parts.conversation
        self.log, self.blobs, self.inbox = self.conversation.log, self.conversation.blobs, self.conversation.inbox
        self.transcript, self.state = self.conversation.transcript, self.conversation.state
        self.prefix, self.calls, self.jobs, self.compaction = parts.prefix, parts.calls, parts.jobs, parts.compaction
        self.choices, self.model, self.denials = parts.choices, parts.model, parts.calls.denials
        self._mode: Mode | None = None
        """The mode chosen before the log has its first event."""
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[object] | None = None
        self._turn_over: asyncio.Event | None = None
        """Set when the running turn is over; None between turns."""
        self._is_closed = False

    @property
    def id(self) -> str:
        """The session's ULID."""
        return self.log.session_id

    @property
    def is_running(self) -> bool:
        """True while a turn runs."""
        return self._turn_over is not None

    @property
    def policy(self) -> Callable[[], Policy]:
        """Returns the policy for the next call."""
        return self.calls.policy

    @property
    def mode(self) -> Mode:
        """The permission mode of the next call."""
        return self._mode or self.policy().mode

    def choose_mode(self, mode: Mode) -> None:
        """Change the permission mode from the next step on. The model gets a note if plan mode begins or ends.

        Raises `SessionError` if the session is closed.
        """
        self._check_is_open()
        if self.conversation.last_event is None:  # `SessionOpened` must be the first event of a log
            self._mode = mode
        else:
            self.conversation.record(StateChanged(ModeChosen(mode)))

    def change_tools(self, tools: Sequence[Tool[Never]]) -> None:
        """Offer the model these tools, in this order, instead of the present ones, from the next step on.

        Opens a new prefix, so the provider's cache of the conversation is lost. Sub-agents started later get the new
        tools too. A resumed session has the tools of its agent again. Raises `SettingsError` for an object that is
        not a tool and for a name that is wrong or used twice, and `SessionError` if the session is closed.
        """
        self._check_is_open()
        self.prefix.want_tools(tools)

    async def change_model(self, model: Model, params: RequestParams | None = None, *, is_choice: bool = True) -> bool:
        """Have another model answer, and sub-agents started later; the caller owns it and closes it after the session.

        Opens a new prefix with the conversation as it is. `params` replace those of the agent. With `is_choice` the log
        keeps it for programs that continue the session. Returns whether it is on the disk; true before the first turn.
        Raises `SessionError` during a turn and in a closed session.
        """
        self._check_is_idle()
        await self.model.change(model, self.prefix, params, is_choice=is_choice)
        return await self.conversation.is_on_disk()

    def _check_is_open(self) -> None:
        if self._is_closed:
            raise SessionError(f"The session {self.id} is closed; continue it with `Agent.open({self.id!r})`.")

    def _check_is_idle(self, *, has_begun: bool = False) -> None:
        self._check_is_open()
        if self._turn_over is not None:
            raise SessionError("A turn is running. If one is already running, wait, cancel it, or use send().")
        if has_begun and self.conversation.last_event is None:
            raise SessionError("Nothing has happened in this session yet.")

    async def __aenter__(self) -> Self:
        self._check_is_open()
        self._tasks = self.jobs.tasks = await asyncio.TaskGroup().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        async with AsyncExitStack() as closing:
            closing.callback(self.log.close)
            if self._tasks is not None:
                closing.push_async_exit(self._tasks)  # cancels the rest if this task is cancelled
                await self._end_turn()
                await self.jobs.close()
                await self._log_changes()

    def show_with(self, emit: Emit) -> None:
        """Show the events between turns with `emit`, beginning with the warnings about the opened session.

        Without this call the first turn shows those warnings, if it has an `emit`.
        """
        self.conversation.show_with(emit)

    async def _end_turn(self) -> None:
        """Cancel a turn that another task still runs, and wait until its end is logged."""
        if self._turn_over is not None:
            self.cancel()
            await self._turn_over.wait()

    async def run(
        self, prompt: Prompt, emit: Emit = ignore, *, answer_schema: AnswerSchema | None = None
    ) -> TurnResult:
        """Run one turn to its end. Cancelling the caller cancels the turn, and logs its end.

        With a JSON Schema, given here or in the agent's `params`, the answer is checked; the model may correct it once.
        An exception of a middleware or a codec, or another defect, ends the turn with a `Failure` of kind `internal`;
        the event loop's exception handler gets it with its traceback. The next turn can be run all the same.
        Raises `SettingsError` for an invalid schema, and `SessionError` if a turn is running already or the session is
        closed. Closing the session cancels the turn.
        """
        self._check_is_idle()
        turn, defect = self._new_turn(answer_schema)
        turn_over = self._turn_over = asyncio.Event()
        self.conversation.begin_turn(emit)
        self.denials.clear()
        finish = Finish(TurnFinished("cancelled"))
        try:
            async with asyncio.TaskGroup() as group:
                self._task = group.create_task(self._run(turn, prompt, defect))
            if not self._task.cancelled():
                finish = self._task.result()
        except BaseExceptionGroup as group:
            failure = failure_of(group)
            finish = Finish(TurnFinished("error", failure if isinstance(failure, Failure) else None))
            if not isinstance(failure, Failure):
                raise failure from failure.__cause__  # without the groups around it
        finally:
            self._task = None
            try:
                self.jobs.warn_user()
                unwritten = self._parts.texts.end_turn()
                saved = await self._close_turn(finish.finished)
            finally:
                self._turn_over = None
                turn_over.set()
                self.jobs.check_soon()
        return self._result(turn, finish, saved=saved, unwritten=unwritten)

    def send(self, text: str) -> None:
        """Queue a message of the user for the running turn; the model sees it at the next step or prompt.

        Raises `SessionError` if the session is closed.
        """
        self._check_is_open()
        self._parts.texts.add(text)
        self.conversation.note(text, "user")

    def cancel(self) -> None:
        """End the running turn; `run` then returns with reason `cancelled`. A running `compact` ends too."""
        if self._task is not None:
            self._task.cancel()

    def _new_turn(self, answer_schema: AnswerSchema | None) -> tuple[Turn, PartFailed | None]:
        """A turn that no middleware has refused, and the defect of one that could not begin. Raises `SettingsError`."""
        agent, parts = self.agent, self._parts
        params = self.model.params
        if answer_schema is not None:
            params = msgspec.structs.replace(params, answer_schema=schema_text(answer_schema))
        turn = Turn(self.conversation, self.prefix, parts.calls, parts.middleware, params, agent.retry)
        try:
            begin_turn(parts.middleware, params)
        except PartFailed as defect:
            return turn, defect
        return turn, None

    async def _run(self, turn: Turn, prompt: Prompt, defect: PartFailed | None) -> Finish:
        await self._begin()
        self._parts.texts.begin_turn(prompt)
        self.conversation.record(PromptSubmitted((Text(prompt),) if isinstance(prompt, str) else prompt))
        if defect is not None:
            raise defect
        if self._mode is not None:
            self.conversation.record(StateChanged(ModeChosen(self._mode)))
            self._mode = None
        return await run_turn(turn)

    async def rewind(self, to: int, restore: Literal["code", "talk", "both"], checkpoint_ref: str = "") -> bool:
        """Return to the state after entry `to` of the log; a later entry than the present one undoes a return.

        `talk` and `both` move the conversation, with the files seen, todos, folder and variables of that entry. The
        permission mode only becomes stricter. `code` only logs that the files were restored: the caller restores
        them, and `checkpoint_ref` names the change record of that. No entry is deleted.
        Returns whether the move is on the disk. Raises `SessionError`, with nothing done, during a turn, in a closed
        session, for an entry that does not exist, for another value of `restore` and if the history can't be read.
        """
        if restore not in ("code", "talk", "both"):  # this check is for programs without type checking
            raise SessionError(f"What to restore is 'code', 'talk' or 'both', not {restore!r:.40}.")
        self._check_is_idle(has_begun=True)
        await self._repair_end()
        mode = self.state.mode
        moved = self.conversation.move_head(HeadMoved(to, restore, checkpoint_ref))
        if restore != "code":
            self._close_open_turn({})
            if self.state.mode != mode and (strict := _stricter(self.agent.policy().mode, mode, self.state.mode)):
                self.choose_mode(strict)
            await self.prefix.reopen("rewound")
        return await self.log.durable(moved)

    async def compact(self, focus: str = "") -> Compacted | None:
        """Summarise the conversation, above all `focus`; None for no gain. Raises as `run`, and if it is cancelled."""
        self._check_is_idle(has_begun=True)
        turn_over = self._turn_over = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                task = self._task = group.create_task(self.compaction.on_request(focus, self._begin))
            if task.cancelled():
                raise SessionError("The compaction was cancelled; the conversation is as it was.")
            return task.result()
        except BaseExceptionGroup as group:
            raise as_error(failure_of(group)) from None
        finally:
            self._task = self._turn_over = None
            turn_over.set()

    async def log_changes(self) -> None:
        """Wait until the log says what all ended calls have changed, those that a crash interrupted too.

        Raises `SessionError` during a turn and in a closed session.
        """
        self._check_is_idle()
        if self.conversation.last_event is not None:
            await self._repair_end()
            await self._log_changes()

    async def _begin(self) -> None:
        """Write the log's first events and open the prefix, or repair the end of the log and continue there."""
        if self.prefix.is_open:
            return
        conversation, agent = self.conversation, self.agent
        if conversation.last_event is None:
            conversation.record(SessionOpened(FORMAT_VERSION, agent.project, agent.project, agent.version))
            for note in self.inbox.waiting:
                conversation.record(NoteQueued(note))
            self.choices.record_waiting()
        await self._repair_end()
        await self.prefix.open()

    async def _repair_end(self) -> None:
        """Close the turn that the end of the log leaves open, after a crash."""
        if self.calls.changes is not None:
            self.calls.changes.end_interrupted(self.transcript.started)
        changed = await what_changed(self.agent.files, self.transcript)
        self._close_open_turn({**changed, **await self._parts.recover_children()})
        self.jobs.recover()

    def _close_open_turn(self, known: Mapping[str, str]) -> None:
        for event in repair(self.transcript, self.prefix.info.origin, self.state.steps, known):
            self.conversation.record(event)

    async def _close_turn(self, finished: TurnFinished) -> bool:
        """Answer the open calls, log the end, and wait for the disk. True if the whole session is on the disk."""
        conversation = self.conversation
        if conversation.last_event is None:
            return True  # cancelled before anything was logged
        for call_id in tuple(self.transcript.open_calls):
            text = _UNFINISHED if call_id in self.transcript.started else NOT_RUN
            conversation.record(ToolFinished(call_id, "cancelled", (Text(text),)))
        try:
            await self._log_changes()
        finally:  # also if the wait for the search is cancelled
            end = conversation.record(finished)
        return await self.log.durable(end)

    async def _log_changes(self) -> None:
        if self.calls.changes is not None and self.conversation.last_event is not None:
            await self.calls.changes.settle_or_give_up()

    def _result(self, turn: Turn, finish: Finish, *, saved: bool, unwritten: tuple[str, ...]) -> TurnResult:
        spent = self.conversation.turn_state
        return TurnResult(
            reason=finish.finished.reason,
            text=turn.answer if finish.text is None else finish.text,
            steps=spent.replies,
            usage=spent.usage,
            cost=spent.cost,
            failure=finish.finished.failure,
            session_id=self.id,
            saved=saved,
            denials=tuple(self.denials.calls),
            answer=finish.value,
            limit=spent.limit,
            unwritten=unwritten,
        )
