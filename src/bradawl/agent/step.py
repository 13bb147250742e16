"""One step of a turn: a request to the model with its retries, the calls of its reply, and its outcome."""

import asyncio
from contextlib import aclosing, nullcontext
from typing import NamedTuple

import msgspec

from bradawl.agent.around_step import adjust, after_step
from bradawl.agent.calls.scheduler import Finished, Scheduler
from bradawl.agent.failures import model_failed, report
from bradawl.agent.middleware import MOST_RETRIES, Continue, Finish, Retry, StepOutcome
from bradawl.agent.turn import Turn
from bradawl.core.deltas import CallDelta, PartClosed, RetryScheduled, StreamFailed, TextDelta, ThinkingDelta
from bradawl.core.errors import Failure
from bradawl.core.events import AssistantReplied, ReplyWithdrawn, RequestParams, TurnFinished
from bradawl.core.messages import Assistant, StopReason, calls_of
from bradawl.core.retry import next_delay
from bradawl.core.usage import Usage, cost
from bradawl.folds.assembler import Assembler


class Attempts(msgspec.Struct):
    """What the requests of one step have used of the retry budget, and which results a new reply may reuse."""

    started_s: float
    made: int = 0
    withdrawn: int = 0
    """Replies that middleware withdrew."""
    reusable: Finished = msgspec.field(default_factory=dict)

    def restart(self, now_s: float) -> None:
        """Begin a new retry budget: the next request differs from those that failed."""
        self.started_s, self.made = now_s, 0


class StepEnd(NamedTuple):
    """How a step ended."""

    answer: Continue | Finish | None
    """What a middleware decided; None leaves the decision to `ending`."""
    ending: TurnFinished | None
    """How the turn ends; None if another step follows."""


async def run_step(turn: Turn) -> StepEnd:
    """Send one request, again after failures that may pass, and run the calls of its reply."""
    step = turn.conversation.state.steps + 1
    attempts = Attempts(turn.conversation.clock.monotonic())
    while True:
        params = adjust(turn.middleware, turn.params)
        if isinstance(params, Finish):
            return StepEnd(params, None)
        turn.prefix.request(step, params)
        reply = Assembler(turn.prefix.info.origin)
        kept = await _attempt(turn, step, reply, params, attempts)
        if isinstance(kept, Assistant):
            outcome = _outcome(turn, step, reply, kept)
            answer = await after_step(turn.middleware, outcome)
            return StepEnd(None if isinstance(answer, Retry) else answer, outcome.ending)
        failure = kept
        delay = None if reply.failure is None else _delay(turn, failure, attempts)
        if delay is not None:
            _withdraw(turn, step, reply, failure, RetryScheduled(max(1, attempts.made), delay, failure))
            await turn.conversation.clock.sleep(delay)
            continue
        answer = await _after_failure(turn, step, reply, failure, attempts)
        if not isinstance(answer, Retry):
            return StepEnd(answer, TurnFinished("error", failure))


async def _attempt(
    turn: Turn, step: int, reply: Assembler, params: RequestParams, attempts: Attempts
) -> Assistant | Failure:
    """Receive one reply and run its calls to their end. Returns the logged reply, or why it failed."""
    async with asyncio.TaskGroup() as group:
        scheduler, changes = Scheduler(turn.calls, group, step, attempts.reusable), turn.calls.changes
        try:
            with changes.logged_meanwhile(group) if changes is not None else nullcontext():
                await _receive(turn, reply, scheduler, params, attempts)
        except asyncio.CancelledError:
            _log_reply(turn, step, reply, "cancelled")
            raise
        failure = reply.failure or _failure_of(reply)
        if failure is not None and not scheduler.has_changed:
            attempts.reusable |= scheduler.reusable_results()
            scheduler.stop()
            return failure
        message = _log_reply(turn, step, reply, reply.stop or "unknown")
        scheduler.reply_ended()
        if reply.stop in ("refusal", "content_filter"):
            scheduler.stop(waiting_only=True)
    return message


async def _receive(
    turn: Turn, reply: Assembler, scheduler: Scheduler, params: RequestParams, attempts: Attempts
) -> None:
    """Read the stream, show it, and start each call when it is complete."""
    conversation, retry = turn.conversation, turn.retry
    budget = msgspec.structs.replace(
        retry,
        attempts=retry.attempts - attempts.made,
        deadline_s=retry.deadline_s - (conversation.clock.monotonic() - attempts.started_s),
    )
    earlier = attempts.made
    attempts.made += 1
    async with aclosing(turn.prefix.model_session.stream(params, budget)) as deltas:
        while True:
            try:
                delta = await anext(deltas)
                reply.feed(delta)
            except StopAsyncIteration:
                return
            except Exception as error:
                # A model reports an expected failure as a delta, so this is a defect of it or of its codec.
                reply.feed(StreamFailed(report(str(model_failed(turn.prefix.info.origin, error)), error)))
                return
            match delta:
                case TextDelta() | ThinkingDelta() | CallDelta():
                    conversation.show(delta)
                case RetryScheduled():
                    # A wait need not follow a request of this session: another session may have met the rate limit.
                    attempts.made = earlier + delta.attempt + 1
                    conversation.show(delta)
                case PartClosed():
                    for call, before in reply.take_calls():
                        scheduler.add(call, before)
                case _:
                    pass


def _failure_of(reply: Assembler) -> Failure | None:
    """Why a reply that ended is not whole. A reply with calls counts: the calls decide how the turn goes on."""
    if reply.stop not in ("max_tokens", "context_overflow") or calls_of(reply.reply()):
        return None
    if reply.stop == "max_tokens":
        hint = "Ask for less at once, or raise max_output_tokens."
        return Failure("output_limit", "The reply was cut by the output limit.", hint=hint)
    return Failure("context_overflow", "The conversation no longer fits the model.")


def _delay(turn: Turn, failure: Failure, attempts: Attempts) -> float | None:
    """Seconds until the next request; None if there is none."""
    clock = turn.conversation.clock
    if turn.prefix.model_session.info.origin != turn.prefix.info.origin:  # another model answers from now on
        attempts.restart(clock.monotonic())
    elapsed = clock.monotonic() - attempts.started_s
    return next_delay(failure, attempts.made, turn.retry, elapsed_s=elapsed, draw=turn.conversation.ids.draw())


# ------------------------------------------------------------------ the outcome


async def _after_failure(
    turn: Turn, step: int, reply: Assembler, failure: Failure, attempts: Attempts
) -> Retry | Continue | Finish | None:
    """Ask the middleware about a failed step; its reply is then withdrawn or in the log."""
    outcome = _outcome(turn, step, reply, reply.reply(), failure, can_retry=attempts.withdrawn < MOST_RETRIES)
    try:
        answer = await after_step(turn.middleware, outcome)
    except BaseException as error:
        _log_reply(turn, step, reply, "cancelled" if isinstance(error, asyncio.CancelledError) else "error")
        raise
    if isinstance(answer, Retry) and outcome.can_retry:
        attempts.withdrawn += 1
        attempts.restart(turn.conversation.clock.monotonic())
        _withdraw(turn, step, reply, answer.failure, RetryScheduled(1, 0.0, answer.failure))
        return answer
    _log_reply(turn, step, reply, reply.stop or "error")
    return None if isinstance(answer, Retry) else answer


def _outcome(
    turn: Turn,
    step: int,
    reply: Assembler,
    message: Assistant,
    failure: Failure | None = None,
    *,
    can_retry: bool = False,
) -> StepOutcome:
    return StepOutcome(
        step=step,
        reply=message if message.parts or reply.has_ended else None,
        stop=None if reply.failure is not None else reply.stop,
        usage=reply.usage,
        answer=turn.answer if failure is None else turn.answer_with(message),
        failure=failure,
        ending=_ending(turn, reply, message) if failure is None else TurnFinished("error", failure),
        can_retry=can_retry,
    )


def _ending(turn: Turn, reply: Assembler, message: Assistant) -> TurnFinished | None:
    """How the turn ends with a reply that did not fail; None if it goes on. Calls decide, not the stop reason."""
    if reply.stop in ("refusal", "content_filter"):
        return TurnFinished("refused", Failure("content_filter", "The model's provider refused to go on."))
    if calls_of(message):
        return None
    ending = TurnFinished("refused" if turn.calls.denials.end_the_turn else "completed")
    return None if turn.goes_on_after(ending) else ending


def _withdraw(turn: Turn, step: int, reply: Assembler, failure: Failure, retry: RetryScheduled) -> None:
    usage, price = _bill(turn, reply)
    turn.conversation.record(ReplyWithdrawn(step, failure, usage, price))
    turn.conversation.show(retry)


def _log_reply(turn: Turn, step: int, reply: Assembler, stop: StopReason) -> Assistant:
    """Log the received part of the reply; an empty reply only if it ended."""
    message = reply.reply()
    if not message.parts and not reply.has_ended:
        return message
    usage, price = _bill(turn, reply)
    model = reply.model or turn.prefix.info.origin.model
    turn.conversation.record(AssistantReplied(step, message, stop, not message.complete, usage, price, model))
    turn.add(message)
    return message


def _bill(turn: Turn, reply: Assembler) -> tuple[Usage | None, float | None]:
    """Tokens and US dollars of a reply, complete or not."""
    usage = turn.prefix.usage_of(reply)
    return usage, None if usage is None else cost(usage, turn.prefix.info.price)
