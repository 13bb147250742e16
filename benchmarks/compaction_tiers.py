"""The processor time of one compaction, without a model: `python benchmarks/compaction_tiers.py [TOKENS]`.

It is compared with one pass of `estimate` over the text of the same conversation.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import long_session
from long_session import SteppingModel

from bradawl.agent.compaction.compactor import Compactor
from bradawl.agent.conversation import Conversation
from bradawl.agent.prefix import PrefixLedger
from bradawl.core.effects import Effects
from bradawl.core.events import (
    AssistantReplied,
    CallPrepared,
    Envelope,
    PrefixOpened,
    PromptSubmitted,
    RequestSent,
    SessionOpened,
    ToolFinished,
    ToolStarted,
)
from bradawl.core.messages import Assistant, Origin, Text, ToolCall
from bradawl.core.permissions import Policy
from bradawl.core.ports import OpenSession
from bradawl.session.blobs import MemoryBlobs
from bradawl.session.journal import MemoryLog
from bradawl.shaping.compaction.limits import Room, Tier
from bradawl.shaping.compaction.record import record_of
from bradawl.shaping.context_size import message_tokens
from bradawl.shaping.tokens import estimate
from bradawl.testing.fakes import FakeClock, FakeIds, MemoryFiles
from bradawl.testing.script import ScriptedCall

TOKENS = 200_000
TIERS: tuple[Tier, ...] = ("snip", "summarise", "collapse")
_ROUNDS = 5
_PIECE = 100_000
"""`estimate` extrapolates longer texts, so the text is given to it in pieces."""


def filled(root: Path, tokens: int) -> tuple[Envelope, ...]:
    """The log of a session whose conversation has about so many tokens."""
    long_session.prepare(root)
    log, origin = MemoryLog("01", FakeClock()), Origin("scripted", "scripted", "stepping")
    log.append(SessionOpened(1, str(root), str(root)))
    log.append(PrefixOpened("0" * 64, "0" * 64, origin.provider, origin.model))
    log.append(PromptSubmitted((Text("Work through the modules one by one."),)))
    number = 0
    while tokens > 0:
        made, shown = long_session.step(number), long_session.run_bare(root, number) or "(no output)"
        raw = ScriptedCall(made.tool, made.arguments).raw_arguments
        call = ToolCall(f"call_{number}", made.tool, raw)
        log.append(RequestSent(number + 1, "0" * 64))
        log.append(AssistantReplied(number + 1, Assistant((Text(made.text), call), origin), "tool_use"))
        log.append(CallPrepared(call.id, number + 1, call.name, raw, Effects()))
        log.append(ToolStarted(call.id))
        log.append(ToolFinished(call.id, "ok", (Text(shown),)))
        tokens -= estimate(f"{made.text}{raw}{shown}") + 30
        number += 1
    return tuple(log.entries)


async def tier_s(entries: tuple[Envelope, ...], tier: Tier, room: Room, *, is_known: bool) -> float:
    """Processor seconds of a compaction. With `is_known` the messages have been sent, so their sizes are known."""
    model = SteppingModel(room.window, 1, Path(), lambda _: None)
    log = MemoryLog("01", FakeClock())
    conversation = Conversation(OpenSession(log, MemoryBlobs(), entries), FakeIds(), FakeClock())
    prefix = PrefixLedger(conversation, model, (), _no_prompt)
    if is_known:
        prefix.sizes.total(conversation.transcript.messages)
    began_s = time.process_time()
    compactor = Compactor(conversation, prefix, MemoryFiles(), lambda: Policy("bypass"), model, None)
    event = await compactor.compact(tier, room, requests=10_000)
    if event is None:
        raise SystemExit(f"The tier {tier} frees too little.")
    return time.process_time() - began_s


def estimate_s(entries: tuple[Envelope, ...]) -> float:
    """Processor seconds of `estimate` over the text of the conversation."""
    messages = Conversation(
        OpenSession(MemoryLog("01", FakeClock()), MemoryBlobs(), entries), FakeIds(), FakeClock()
    ).transcript.messages
    text = record_of(messages).text
    began_s = time.process_time()
    for start in range(0, len(text), _PIECE):
        estimate(text[start : start + _PIECE])
    return time.process_time() - began_s


async def _no_prompt() -> str:
    return ""


def main() -> None:
    """Fill a session and measure each tier."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else TOKENS
    with tempfile.TemporaryDirectory() as folder:
        entries = filled(Path(folder), tokens)
    messages = Conversation(
        OpenSession(MemoryLog("01", FakeClock()), MemoryBlobs(), entries), FakeIds(), FakeClock()
    ).transcript.messages
    size = sum(map(message_tokens, messages))
    room = Room(size, size * 7 // 8, 0)
    pass_s = median(estimate_s(entries) for _ in range(_ROUNDS))
    print(f"{len(messages):,} messages, {size:,} tokens; one pass of `estimate`: {pass_s * 1e3:.0f} ms")
    for tier in TIERS:
        for is_known in (True, False):
            seconds = median(asyncio.run(tier_s(entries, tier, room, is_known=is_known)) for _ in range(_ROUNDS))
            sizes = "known" if is_known else "not known"
            print(f"{tier}, sizes {sizes}: {seconds * 1e3:.0f} ms, {seconds / pass_s:.2f} passes")


if __name__ == "__main__":
    main()
