"""Has a model write the summary of a conversation, in a conversation of its own."""

from contextlib import aclosing

import msgspec

from bradawl.core.deltas import StreamFailed
from bradawl.core.errors import BradawlError, Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Text, User, calls_of, text_of
from bradawl.core.ports import Model, Prefix
from bradawl.core.retry import RetryBudget
from bradawl.core.usage import Usage, cost
from bradawl.folds.assembler import Assembler
from bradawl.shaping.compaction.summary import MOST_SUMMARY, SYSTEM

_BUDGET = RetryBudget(attempts=2, deadline_s=60.0, longest_wait_s=30.0)
"""A summary without a model is ready at once, so there are few attempts."""
_SHORTEST = 80
"""Characters; a shorter text is no summary."""


class WrittenSummary(msgspec.Struct, frozen=True):
    """What the model wrote, and what it cost; with a failure there is no text."""

    text: str = ""
    usage: Usage | None = None
    cost: float | None = None
    failure: Failure | None = None


async def write_summary(model: Model, request: str, session_id: str, most_output: int) -> WrittenSummary:
    """Ask the model for a summary; a failure, of whatever kind, is a value."""
    reply = Assembler(model.info.origin)
    try:
        session = model.open(Prefix(SYSTEM, ()), session_id)
        session.append(User((Text(request),)))
        params = RequestParams(max_output_tokens=min(2 * MOST_SUMMARY, most_output))
        async with aclosing(session.stream(params, _BUDGET)) as deltas:
            async for delta in deltas:
                reply.feed(delta)
    except BradawlError as error:
        reply.feed(StreamFailed(Failure("internal", str(error))))
    except Exception as error:  # a defect of the model or its codec: the conversation is compacted without it
        reply.feed(StreamFailed(Failure("internal", f"{type(error).__name__}: {error}")))
    message = reply.reply()
    text = text_of(message.parts).strip()
    price = None if reply.usage is None else cost(reply.usage, model.info.price)
    failure = reply.failure
    if failure is None and (calls_of(message) or len(text) < _SHORTEST):
        failure = Failure("bad_answer", "The model wrote no summary.")
    return WrittenSummary("" if failure else text, reply.usage, price, failure)
