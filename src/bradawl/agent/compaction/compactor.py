"""Compacts a conversation: makes the event of one tier, checks what it keeps, and opens the new prefix."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from bradawl.agent.compaction.touched_files import TouchedFiles
from bradawl.agent.compaction.written_summary import WrittenSummary, write_summary
from bradawl.agent.conversation import Conversation
from bradawl.agent.prefix import PrefixLedger
from bradawl.core.deltas import Notice
from bradawl.core.errors import SessionError
from bradawl.core.events import Compacted, Shortened
from bradawl.core.messages import Assistant, Message, calls_of
from bradawl.core.permissions import Policy
from bradawl.core.ports import Files, Model
from bradawl.core.rules import path_rules
from bradawl.folds.compacted import compacted
from bradawl.shaping.compaction.digest import Earlier, call_text, digest
from bradawl.shaping.compaction.limits import Room, Tier, least_worth
from bradawl.shaping.compaction.measured import Measured
from bradawl.shaping.compaction.pins import Stated, checked, files_stated, pinned, state_stated, stated_in, todos_stated
from bradawl.shaping.compaction.record import Record, record_of
from bradawl.shaping.compaction.snip import (
    Latest,
    latest_in_emergency,
    long_results,
    older_results,
    recent_from,
    result_at,
    shortened,
    unanswered_from,
    with_places,
)
from bradawl.shaping.compaction.summary import (
    MOST_SUMMARY,
    NOT_FITTING,
    body_of,
    cut_summary,
    request_text,
    summary_text,
)
from bradawl.shaping.compaction.superseded import superseded
from bradawl.shaping.context_size import part_tokens
from bradawl.shaping.tokens import estimate

MOST_FAILURES: Final = 3
"""Summaries in a row that the model failed to write; afterwards it is not asked any more."""
_AFTER: Final = 0.4
"""Share of its tokens that a conversation has at most after a summary."""
_IN_EMERGENCY: Final = 0.3
_LEAST_DIGEST: Final = 300
_LEAST_SHARE: Final = 0.1
"""Of the conversation, for a summary: many pins must not leave nothing for it."""
_REFERENCE: Final = 150
"""Tokens of the reference that stands for the oldest requests."""
_KNOWN_AFTER: Final = 3
"""Replies after which it is known whether the provider has a cache."""
_MARK: Final = 6
_SNIPPED_TO: Final = 600
_ANSWERED: Final = 3
"""The last replies, whose results a snip leaves as they are: the model is working with them."""
_LEFT_IN_REQUEST: Final = (3_000, 800)
"""Characters of each long result in the request for a summary, where whole ones have no room."""


class Compactor:
    """Compacts one conversation. No call may be open."""

    def __init__(
        self,
        conversation: Conversation,
        prefix: PrefixLedger,
        files: Files,
        policy: Callable[[], Policy],
        model: Model,
        small_model: Model | None,
    ) -> None:
        self._conversation, self._prefix, self._files, self._policy = conversation, prefix, files, policy
        self._writer = small_model or model
        self._is_own_model = small_model is None
        self._failures = 0

    # ------------------------------------------------------------------ tiers

    async def compact(
        self,
        tier: Tier,
        room: Room,
        *,
        focus: str = "",
        is_asked: bool = False,
        keep_results: int | None = None,
        requests: int = 0,
    ) -> Compacted | None:
        """Compact the conversation; None, with nothing changed, if that would free too little.

        `requests` is the number of requests that are expected to follow: a `snip` must save more with them than the
        new prefix costs.
        """
        if tier == "snip":
            return await self._snip(room, keep_results, requests)
        return await self._summarise(tier, room, focus, 1 if is_asked else room.least_summarised)

    def economise(self) -> None:
        """Reduce results that later ones have replaced, because a new prefix opens anyway."""
        messages = self._conversation.transcript.messages
        if short := superseded(messages, unanswered_from(messages)):
            conversation = self._conversation
            conversation.record(Compacted("economy", conversation.last_seq, shortened=tuple(short)))

    async def forecast(self, tier: Tier, room: Room) -> dict[str, int]:
        """Tokens that this tier would free now, by what they belong to; a model is not asked."""
        measured = self._measured()
        messages = measured.messages
        if tier != "snip":
            draft = await self._draft(tier, room, measured, self._latest(tier, room, measured), Record("", {}))
            return {} if draft is None else {f"{draft.event.kept_from} messages": draft.before - draft.expected}
        freed: dict[str, int] = {}
        for each in _snipped(measured, room, None, 0).all:
            name = f"results of {result_at(messages, (each.message, each.result)).name}"
            freed[name] = freed.get(name, 0) + _freed(messages, each)
        return freed

    async def _snip(self, room: Room, keep_results: int | None, requests: int) -> Compacted | None:
        measured = self._measured()
        worth = max(room.least_freed, self._worth_freeing(measured.total, requests))
        least = worth if keep_results is None else 1
        snipped = _snipped(measured, room, keep_results, room.after_snip)
        if sum(_freed(measured.messages, each) for each in snipped.all) < least:
            return None
        record = await self._record_of(measured.messages, [each.message for each in snipped.all])
        short = (*snipped.replaced, *with_places(snipped.cut, record))
        return self._take_effect(
            Compacted("snip", self._conversation.last_seq, shortened=short, record_ref=record.ref), measured, (), least
        )

    def _worth_freeing(self, tokens: int, requests: int) -> int:
        """Tokens that a compaction must free to cost less than it saves."""
        state = self._conversation.state
        all_tokens = self._prefix.opening_tokens + tokens
        has_cache = state.usage.cache_read > 0 or state.replies < _KNOWN_AFTER
        return least_worth(all_tokens, requests, self._prefix.info.price, has_cache=has_cache)

    async def _summarise(self, tier: Tier, room: Room, focus: str, least: int) -> Compacted | None:
        measured = self._measured()
        messages, latest = measured.messages, self._latest(tier, room, measured)
        if not latest.too_long and measured.total - measured.since(latest.begin) < least:
            return None
        record = await self._record_of(messages, [*range(latest.begin), *(key[0] for key in latest.too_long)])
        draft = await self._draft(tier, room, measured, latest, record)
        if draft is None or draft.before - draft.expected < least:
            return None
        old = messages[: latest.begin]
        written = WrittenSummary()
        if tier != "collapse":
            kept = _calls_in(messages[latest.begin :])
            written = await self._written(old, record, room, focus, kept)
        summary = cut_summary(written.text) or digest(old, draft.room, self._earlier())
        text = summary_text(summary, record.file, is_by_model=bool(written.text))
        event = msgspec.structs.replace(draft.event, summary=text, usage=written.usage, cost=written.cost)
        return self._take_effect(event, measured, draft.stated, least)

    async def _draft(
        self, tier: Tier, room: Room, measured: Measured, latest: Latest, record: Record
    ) -> "_Draft | None":
        """The event without its summary; None if there is nothing to summarise."""
        if not latest.begin:
            return None
        messages, before, is_emergency = measured.messages, measured.total, tier == "collapse"
        short = with_places(shortened(messages, latest.too_long, latest.left, NOT_FITTING), record)
        stated = await self._stated(messages, latest.begin, record)
        pins = pinned(stated, max(room.pins - _REFERENCE, room.pins // 2))
        if not is_emergency:
            kept = record_of(messages[latest.begin :]).text
            pins += await self._touched.restored(min(room.restored, before // 8), kept)
        event = Compacted(
            tier,
            self._conversation.last_seq,
            pins=tuple(pins),
            kept_from=latest.begin,
            shortened=tuple(short),
            record_ref=record.ref,
        )
        taken = measured.of(compacted(messages, event))
        share = _IN_EMERGENCY if is_emergency else _AFTER
        size = min(before, room.usable - room.opening)
        most = max(_LEAST_DIGEST, int(size * _LEAST_SHARE), int(size * share) - taken)
        return _Draft(event, stated, before, taken + min(most, MOST_SUMMARY), most)

    # ------------------------------------------------------------------ parts

    @property
    def _touched(self) -> TouchedFiles:
        return TouchedFiles(self._files, self._conversation.state, path_rules(self._policy().rules))

    def _measured(self) -> Measured:
        return Measured(self._conversation.transcript.messages, self._prefix.sizes)

    def _latest(self, tier: Tier, room: Room, measured: Measured) -> Latest:
        recent = min(room.recent, measured.total // 4)
        if tier != "collapse":
            return Latest(recent_from(measured, recent))
        return latest_in_emergency(measured, recent, room.unanswered)

    def _earlier(self) -> Earlier:
        transcript = self._conversation.transcript
        return Earlier(body_of(transcript.summary), is_first_message=True) if transcript.summary else Earlier()

    async def _stated(self, messages: Sequence[Message], end: int, record: Record) -> list[Stated]:
        state, transcript = self._conversation.state, self._conversation.transcript
        return [
            *stated_in(messages, end, transcript.pins, record),
            *files_stated(await self._touched.changed()),
            *todos_stated(state.todos),
            *state_stated(self._touched.session()),
        ]

    async def _record_of(self, messages: Sequence[Message], numbers: Sequence[int]) -> Record:
        """Save what is taken out as a text that the model can read; its numbers are those of the messages."""
        chosen = sorted(set(numbers))
        if not chosen:
            return Record("", {})
        records, transcript = self._conversation.records, self._conversation.transcript
        mark = self._conversation.ids.ulid()[-_MARK:].lower()
        record = record_of([messages[number] for number in chosen], self._file(transcript.record_ref), mark)
        ref = await records.put(record.text.encode("utf-8", "replace"))
        places = {(chosen[message], part): place for (message, part), place in record.places.items()}
        return Record(record.text, places, self._file(ref), ref)

    def _file(self, ref: str) -> str:
        """The file of a blob; empty in a session in memory, and with a full disk: the log still has it all."""
        try:
            return self._conversation.records.path(ref) if ref else ""
        except SessionError:
            return ""

    async def _written(
        self, messages: Sequence[Message], record: Record, room: Room, focus: str, following: str
    ) -> WrittenSummary:
        if self._failures >= MOST_FAILURES:
            return WrittenSummary()
        self._conversation.show(Notice("The conversation is being summarised to make room in the context window."))
        window = room.usable if self._is_own_model else self._writer.info.context_window or room.usable
        text = request_text(self._fitting(messages, record, window * 3 // 4), focus, following)
        written = await write_summary(self._writer, text, self._conversation.log.session_id, window // 4)
        self._failures = 0 if written.failure is None else self._failures + 1
        if written.failure is not None:
            self._conversation.warn(
                f"The summary could not be written by the model ({written.failure.message.rstrip('.')}); one is made "
                "without it."
            )
        return written

    def _fitting(self, messages: Sequence[Message], record: Record, most: int) -> str:
        """The conversation as a text of at most this many tokens, with as much of it as possible."""
        if estimate(record.text) <= most:
            return record.text
        keys = long_results(messages, len(messages))
        for left in _LEFT_IN_REQUEST:
            event = Compacted("", 0, shortened=tuple(shortened(messages, keys, left)))
            text = record_of(compacted(messages, event)).text
            if estimate(text) <= most:
                return text
        return digest(messages, most * 9 // 10, self._earlier())

    # ------------------------------------------------------------------ taking effect

    def _take_effect(
        self, event: Compacted, measured: Measured, stated: Sequence[Stated], least: int
    ) -> Compacted | None:
        after = compacted(measured.messages, event)
        tokens = measured.total, measured.of(after)
        check = checked(stated, event.pins, after)
        if tokens[0] - tokens[1] < least or check.missing:
            return None
        event = msgspec.structs.replace(event, pinned=check.pinned, dropped=check.dropped, tokens=tokens)
        self._conversation.record(event)
        self._prefix.open_compacted()
        return event


class _Draft(NamedTuple):
    """A compaction without its summary."""

    event: Compacted
    stated: list[Stated]
    before: int
    """Tokens of the conversation."""
    expected: int
    """Tokens of it afterwards, with a summary of a model."""
    room: int
    """Tokens for a summary without a model."""


class _Snipped(NamedTuple):
    """The results that are shortened."""

    replaced: list[Shortened]
    """Those that later ones have replaced."""
    cut: list[Shortened]
    """Long or old ones, without the places of the whole ones."""

    @property
    def all(self) -> list[Shortened]:
        return [*self.replaced, *self.cut]


def _calls_in(messages: Sequence[Message]) -> str:
    """The calls of some messages, one a line."""
    return "\n".join(call_text(call) for each in messages if isinstance(each, Assistant) for call in calls_of(each))


def _snipped(measured: Measured, room: Room, keep_results: int | None, after: int) -> _Snipped:
    """`after`: tokens of the messages from which no more results are shortened."""
    messages = measured.messages
    end = unanswered_from(messages)
    replaced = superseded(messages, end)
    known = {(each.message, each.result) for each in replaced}
    if keep_results is not None:
        keys = [key for key in older_results(messages, end, keep_results) if key not in known]
        return _Snipped(replaced, shortened(messages, keys, 0))
    end = recent_from(measured, room.recent, _ANSWERED)
    keys = [key for key in long_results(messages, end) if key not in known]
    rest = measured.total - sum(_freed(messages, each) for each in replaced)
    cut: list[Shortened] = []
    for each in shortened(messages, keys, _SNIPPED_TO):
        if rest <= after:
            break
        cut.append(each)
        rest -= _freed(messages, each)
    return _Snipped(replaced, cut)


def _freed(messages: Sequence[Message], each: Shortened) -> int:
    result = result_at(messages, (each.message, each.result))
    return sum(map(part_tokens, result.parts)) - estimate(each.text)
