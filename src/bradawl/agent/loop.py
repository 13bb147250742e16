"""The loop: a turn is steps until the model calls no tool; a step is one request and its calls.

No feature lives here. Tools, hooks, notes, limits and folds have doors of their own.
"""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from bradawl.agent.calls.scheduler import Finished, Scheduler
from bradawl.agent.middleware.limits import TurnLimits
from bradawl.core.deltas import CallDelta, PartClosed, RetryScheduled, TextDelta, ThinkingDelta
from bradawl.core.errors import Failure
from bradawl.core.events import AssistantReplied, ReplyWithdrawn, RequestParams, TurnFinished
from bradawl.core.messages import StopReason, calls_of
from bradawl.core.retry import next_delay
from bradawl.core.usage import Usage, cost
from bradawl.folds.assembler import Assembler

if TYPE_CHECKING:
    from bradawl.agent.session import Session


class Attempts(msgspec.Struct):
    """What the retries of one step have used up, and what they may have again."""

    started_s: float
    made: int = 0
    reusable: Finished = msgspec.field(default_factory=dict)
    params: RequestParams = RequestParams()

    def start(self, now_s: float) -> None:
        """The next request asks for something else, or somebody else: nothing of it has failed yet."""
        self.started_s, self.made = now_s, 0


async def run_turn(session: "Session") -> TurnFinished:
    """Run steps until the turn is over. The prompt is already in the transcript."""
    limits = TurnLimits(session)
    while True:
        if (finished := limits.reached()) is not None:
            return finished
        session.deliver_notes()
        finished = await run_step(session)
        if finished is None or (finished.reason == "completed" and session.inbox.holds_user_note):
            continue
        if (finished := session.reconsider(finished)) is not None:
            return finished


async def run_step(session: "Session") -> TurnFinished | None:
    """One request and the calls of its reply. None means that the turn goes on."""
    step = session.state.steps + 1
    attempts = Attempts(session.agent.clock.monotonic())
    while True:
        attempts.params = session.request(step)
        reply = Assembler(session.info.origin)
        failure = await _attempt(session, step, reply, attempts)
        if failure is None:
            return _outcome(session, reply)
        delay = _delay(session, failure, attempts)
        if delay is None:
            _log_reply(session, step, reply, "error")
            return TurnFinished("error", failure)
        usage, price = _bill(session, reply)
        session.record(ReplyWithdrawn(step, failure, usage, price))
        session.show(RetryScheduled(max(1, attempts.made), delay, failure))
        await session.agent.clock.sleep(delay)


async def _attempt(session: "Session", step: int, reply: Assembler, attempts: Attempts) -> Failure | None:
    """Receive one reply and run its calls to the end. Gives back why it broke off, if nothing of it counts."""
    async with asyncio.TaskGroup() as group:
        scheduler = Scheduler(session, group, step, attempts.reusable)
        try:
            await _receive(session, reply, scheduler, attempts)
        except asyncio.CancelledError:
            _log_reply(session, step, reply, "cancelled")
            raise
        failure = reply.failure or session.output_limit.objection(reply)
        if failure is not None and not scheduler.has_spent:
            attempts.reusable |= scheduler.free_reads()
            scheduler.stop()
            return failure
        _log_reply(session, step, reply, reply.stop or "unknown")
        scheduler.reply_ended()
        if reply.stop in ("refusal", "content_filter"):
            scheduler.stop(waiting_only=True)
    return None


async def _receive(session: "Session", reply: Assembler, scheduler: Scheduler, attempts: Attempts) -> None:
    """Take the stream in; show it, and hand over each call as it closes."""
    agent = session.agent
    budget = msgspec.structs.replace(
        agent.retry,
        attempts=agent.retry.attempts - attempts.made,
        deadline_s=agent.retry.deadline_s - (agent.clock.monotonic() - attempts.started_s),
    )
    earlier = attempts.made
    attempts.made += 1
    async with aclosing(session.model_session.stream(attempts.params, budget)) as deltas:
        async for delta in deltas:
            reply.feed(delta)
            match delta:
                case TextDelta() | ThinkingDelta() | CallDelta():
                    session.show(delta)
                case RetryScheduled():
                    # Not every wait follows a request of ours: a host may be left alone for another's sake.
                    attempts.made = earlier + delta.attempt + 1
                    session.show(delta)
                case PartClosed():
                    for call, before in reply.take_calls():
                        scheduler.add(call, before)
                case _:
                    pass


def _log_reply(session: "Session", step: int, reply: Assembler, stop: StopReason) -> None:
    """Put the reply, whole or as far as it came, into the log."""
    message = reply.reply()
    if not message.parts and not reply.has_ended:
        return
    usage, price = _bill(session, reply)
    model = reply.model or session.info.origin.model
    session.record(AssistantReplied(step, message, stop, not message.complete, usage, price, model))


def _bill(session: "Session", reply: Assembler) -> tuple[Usage | None, float | None]:
    """Tokens and US dollars of a reply, also of one that broke off."""
    usage = session.prefix.usage_of(reply)
    return usage, None if usage is None else cost(usage, session.info.price)


def _delay(session: "Session", failure: Failure, attempts: Attempts) -> float | None:
    agent = session.agent
    if failure.kind == "output_limit" or session.model_session.info.origin != session.info.origin:
        attempts.start(agent.clock.monotonic())
    elapsed = agent.clock.monotonic() - attempts.started_s
    return next_delay(failure, attempts.made, agent.retry, elapsed_s=elapsed, draw=agent.ids.draw())


def _outcome(session: "Session", reply: Assembler) -> TurnFinished | None:
    """What a finished step means for the turn. Calls decide, whatever the stop reason says."""
    if reply.stop in ("refusal", "content_filter"):
        return TurnFinished("refused", Failure("content_filter", "The model's provider refused to go on."))
    if calls_of(reply.reply()):
        return None
    if reply.stop == "max_tokens":
        hint = "Ask for less at once, or raise max_output_tokens."
        return TurnFinished("error", Failure("output_limit", "The reply was cut by the output limit.", hint=hint))
    if reply.stop == "context_overflow":
        return TurnFinished("error", Failure("context_overflow", "The conversation no longer fits the model."))
    return TurnFinished("refused" if session.denials else "completed")
