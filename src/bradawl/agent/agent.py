"""The agent: opens sessions and runs prompts. Connects the parts of a session: middleware, calls, jobs, sub-agents."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from bradawl.agent.calls.authorize import SessionPolicy
from bradawl.agent.calls.context import CallServices
from bradawl.agent.calls.denials import Denials
from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.agent.changes import ConversationChanges
from bradawl.agent.configuration import AgentConfiguration
from bradawl.agent.conversation import Conversation
from bradawl.agent.jobs import BackgroundJobs
from bradawl.agent.middleware import Middleware, MiddlewareContext
from bradawl.agent.middleware.answer_schema import AnswerSchemaCheck
from bradawl.agent.middleware.compaction import Compaction
from bradawl.agent.middleware.early_answer import EarlyAnswer
from bradawl.agent.middleware.loop_detection import LoopDetection
from bradawl.agent.middleware.output_limit import OutputLimit
from bradawl.agent.middleware.reminders import Reminders
from bradawl.agent.middleware.step_limit import StepLimit
from bradawl.agent.middleware.tool_changes import ToolChanges
from bradawl.agent.prefix import PrefixLedger
from bradawl.agent.session import Session, SessionParts, TurnResult
from bradawl.agent.session_model import SessionModel
from bradawl.agent.session_rules import SessionRules
from bradawl.agent.subagents.registry import SubAgents
from bradawl.agent.users_choices import UsersChoices
from bradawl.agent.users_texts import Prompt, UsersTexts, own_words
from bradawl.core.events import AgentSpawned, Envelope, Live, PromptSubmitted
from bradawl.core.ports import OpenSession
from bradawl.shaping.json_answer import AnswerSchema


class Agent(AgentConfiguration, frozen=True, kw_only=True):
    """Opens sessions with its configuration; `stream` and `run_sync` are for one prompt. Holds no other state."""

    def open(self, session_id: str | None = None) -> Session:
        """A new session, or an existing one to continue; an async context manager. Raises `SessionError`."""
        return _open_session(self, self.store.create() if session_id is None else self.store.open(session_id))

    async def run(
        self, prompt: Prompt, session_id: str | None = None, *, answer_schema: AnswerSchema | None = None
    ) -> TurnResult:
        """Run one prompt to its end; with a JSON Schema the result's `answer` is a value that satisfies it.

        Raises `SessionError`, and `SettingsError` for an invalid schema.
        """
        async with self.open(session_id) as session:
            return await session.run(prompt, answer_schema=answer_schema)

    def run_sync(
        self, prompt: Prompt, session_id: str | None = None, *, answer_schema: AnswerSchema | None = None
    ) -> TurnResult:
        """`run` for callers without an event loop; blocks.

        The agent is closed afterwards: build another one for the next prompt. A closed one saves nothing for undo.
        """

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
        """Close connections and release what the adapters hold; safe to call twice."""
        try:
            await self.model.aclose()
            if self.small_model is not None:
                await self.small_model.aclose()
        finally:
            if self.on_close is not None:
                self.on_close()


class _Shared(msgspec.Struct):
    """What a sub-agent shares with the session that started it."""

    asking: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    allowed: set[str] = msgspec.field(default_factory=set[str])


def _open_session(
    agent: AgentConfiguration, opened: OpenSession, name: str = "main", shared: _Shared | None = None
) -> Session:
    """Connect the parts of a session. `name` and `shared` are for sub-agents."""
    shared = shared or _Shared()
    conversation = Conversation(opened, agent.ids, agent.clock, name)
    choices = UsersChoices(conversation)
    model = SessionModel(choices, agent.model, agent.params)
    prefix = PrefixLedger(conversation, model, agent.tools, agent.system_prompt)
    rules = SessionRules(agent.policy, choices, agent.files, agent.project)
    policy = SessionPolicy(rules, agent.files, conversation)
    changes = ConversationChanges(agent.changes, conversation, opened.entries) if agent.changes else None
    jobs = BackgroundJobs(conversation, opened.entries, changes=changes, processes=agent.processes)
    seen = SeenFiles.of(conversation)
    denials = Denials(conversation)

    def open_child(spawned: AgentSpawned, cwd: str, entries: tuple[Envelope, ...]) -> Session:
        from bradawl.agent.subagents.child import SharedLog, child_configuration

        inherited = msgspec.structs.replace(
            agent, model=model.current, params=model.params, tools=tuple(prefix.tools.values()), policy=policy
        )
        log = SharedLog(conversation.log, spawned.spawned)
        child = _open_session(
            child_configuration(inherited, spawned, cwd),
            OpenSession(log, conversation.blobs, entries, records=conversation.records),
            spawned.spawned,
            shared,
        )
        child.show_with(conversation.emit)
        return child

    sub_agents = SubAgents(conversation, agent.files, opened.entries, open_child, denials)
    calls = CallServices(
        conversation=conversation,
        tools=prefix.tools,
        policy=policy,
        files=agent.files,
        processes=agent.processes,
        approver=agent.approver,
        asking=shared.asking,
        hooks=agent.hooks,
        changes=changes,
        seen=seen,
        jobs=jobs,
        spawner=sub_agents.at,
        parallel_calls=agent.limits.parallel_calls,
        calls_per_reply=agent.limits.calls_per_reply,
        allowed=shared.allowed,
        denials=denials,
    )
    context = MiddlewareContext(conversation=conversation, prefix=prefix, policy=policy)
    compaction = Compaction(context, agent.files, model, agent.small_model, agent.compaction)
    around = None if conversation.is_sub_agent else agent.around_turns
    return Session(
        SessionParts(
            agent=agent,
            conversation=conversation,
            choices=choices,
            model=model,
            prefix=prefix,
            calls=calls,
            jobs=jobs,
            middleware=_middleware_of(agent, context, denials, compaction),
            compaction=compaction,
            recover_children=sub_agents.recover,
            texts=UsersTexts(around, conversation, policy, _prompts(opened.entries, name)),
        )
    )


def _prompts(entries: tuple[Envelope, ...], name: str) -> tuple[str, ...]:
    return tuple(
        own_words(each.event.parts)
        for each in entries
        if each.agent == name and isinstance(each.event, PromptSubmitted)
    )


def _middleware_of(
    agent: AgentConfiguration, context: MiddlewareContext, denials: Denials, compaction: Compaction
) -> tuple[Middleware, ...]:
    """The middleware of a session in the order they are called. A middleware of bradawl is one line here."""
    # A caller waits for the conclusion of a sub-agent, a script for that of its run; a user can let the turn go on.
    is_told = context.conversation.is_sub_agent or agent.limits.tells_last_step
    last_step = agent.limits.max_steps if is_told else None
    return (
        StepLimit(context, agent.limits.max_steps),
        LoopDetection(context, agent.limits.same_rounds),
        ToolChanges(context),
        compaction,
        OutputLimit(context),
        Reminders(context, last_step),
        *(make(context) for make in agent.middleware),
        EarlyAnswer(context, lambda: denials.end_the_turn),
        AnswerSchemaCheck(agent.check_for),
    )
