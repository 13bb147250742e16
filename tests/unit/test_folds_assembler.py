"""`Assembler`: a reply is the same however its fragments were cut and interleaved."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from session_histories import BROKEN, ORIGIN

from bradawl.core.deltas import (
    CallDelta,
    Delta,
    PartClosed,
    ReplyEnded,
    ReplyStarted,
    RetryScheduled,
    StreamFailed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from bradawl.core.messages import Assistant, Part, Text, Thinking, ToolCall, calls_of
from bradawl.core.usage import Usage
from bradawl.folds.assembler import Assembler

PARTS = st.one_of(
    st.builds(Text, st.text(min_size=1)),
    st.builds(Thinking, st.text(min_size=1)),
    st.builds(
        ToolCall,
        st.text(min_size=1, max_size=4),
        st.just("read_file"),
        st.sampled_from(["{}", '{"path": "a.py"}', '{"x']),
        st.sampled_from(["ok", "truncated", "malformed"]),
    ),
)
REPLIES = st.lists(PARTS, max_size=5)


def fragments_of(part: Part, index: int, cuts: list[int]) -> list[Delta]:
    text = part.raw_arguments if isinstance(part, ToolCall) else part.text
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    match part:
        case ToolCall(call_id, name):
            return [CallDelta(index, call_id, name, piece) for piece in pieces or [""]]
        case Thinking():
            return [ThinkingDelta(index, piece) for piece in pieces]
        case _:
            return [TextDelta(index, piece) for piece in pieces]


@st.composite
def streams(draw: st.DrawFn, *, may_lack_closes: bool = False) -> tuple[list[Part], list[Delta], set[int]]:
    """Parts of a reply, its deltas in an order a server may send, and the indices of the closed parts."""
    parts = draw(REPLIES)
    lanes = [
        fragments_of(part, index, draw(st.lists(st.integers(0, 12), max_size=4))) for index, part in enumerate(parts)
    ]
    closed = set()
    for index, part in enumerate(parts):
        if not may_lack_closes or draw(st.booleans()):
            lanes[index].append(PartClosed(index, part))
            closed.add(index)
    deltas: list[Delta] = []
    begun = 0  # a part begins only after the one before it has begun; then they may interleave
    while waiting := [lane for lane in lanes[: begun + 1] if lane]:
        lane = draw(st.sampled_from(waiting))
        deltas.append(lane.pop(0))
        begun += begun < len(lanes) and lane is lanes[begun]
    return parts, deltas, closed


def feed(deltas: list[Delta]) -> Assembler:
    assembler = Assembler(ORIGIN)
    for delta in deltas:
        assembler.feed(delta)
    return assembler


@given(streams())
def test_any_split_and_any_interleaving_gives_the_same_reply(stream):
    parts, deltas, _ = stream
    assembler = feed([ReplyStarted("r1", "gpt-x"), *deltas, ReplyEnded("end_turn")])
    assert assembler.reply() == Assistant(tuple(parts), ORIGIN, complete=True, response_id="r1")
    assert assembler.has_ended
    assert assembler.open_calls == set()


@given(streams(may_lack_closes=True))
def test_a_cut_reply_keeps_the_text_so_far_and_only_closed_calls(stream):
    parts, deltas, closed = stream
    assembler = feed([*deltas, StreamFailed(BROKEN)])
    kept = tuple(part for index, part in enumerate(parts) if index in closed or not isinstance(part, ToolCall))
    assert assembler.reply() == Assistant(kept, ORIGIN, complete=False)
    assert assembler.failure == BROKEN
    assert not assembler.has_ended
    calls = {index for index, part in enumerate(parts) if isinstance(part, ToolCall)}
    assert assembler.open_calls == calls - closed


@given(streams(may_lack_closes=True), st.data())
def test_the_reply_so_far_never_loses_text_or_calls(stream, data: st.DataObject):
    _, deltas, _ = stream
    end = data.draw(st.integers(0, len(deltas)))
    before, after = feed(deltas[:end]), feed(deltas)
    texts = [[part.text for part in each.reply().parts if isinstance(part, Text)] for each in (before, after)]
    assert len("".join(texts[0])) <= len("".join(texts[1]))
    calls = [Counter((call.id, call.raw_arguments) for call in calls_of(each.reply())) for each in (before, after)]
    assert calls[0] <= calls[1]


@given(streams(may_lack_closes=True))
def test_is_empty_holds_exactly_while_the_reply_has_no_parts(stream):
    _, deltas, _ = stream
    assembler = Assembler(ORIGIN)
    assert assembler.is_empty
    for delta in deltas:
        assembler.feed(delta)
        assert assembler.is_empty == (assembler.reply().parts == ())


def test_a_fragment_without_text_leaves_the_reply_empty():
    assert feed([TextDelta(0, "")]).is_empty


@given(streams(may_lack_closes=True), st.lists(st.booleans(), min_size=40, max_size=40))
def test_calls_are_taken_once_in_order_with_the_parts_between_them(stream, takes: list[bool]):
    parts, deltas, _ = stream
    assembler = Assembler(ORIGIN)
    taken: list[tuple[ToolCall, tuple[Part, ...]]] = []
    for delta, take in zip(deltas, takes, strict=False):
        assembler.feed(delta)
        if take:
            taken += assembler.take_calls()
    for delta in deltas[len(takes) :]:
        assembler.feed(delta)
    taken += assembler.take_calls()
    assert assembler.take_calls() == []
    held_back = min(assembler.open_calls, default=len(parts))
    assert [call for call, _ in taken] == [part for part in parts[:held_back] if isinstance(part, ToolCall)]
    assert not any(isinstance(part, ToolCall) for _, before in taken for part in before)


def test_a_call_comes_with_the_closed_text_before_it():
    call, other = ToolCall("1", "read_file", "{}"), ToolCall("2", "grep", "{}")
    first, second = Text("first"), Text("second")
    assembler = feed([PartClosed(0, first), PartClosed(1, call), PartClosed(2, second), PartClosed(3, other)])
    assert assembler.take_calls() == [(call, (first,)), (other, (second,))]


def test_a_closed_call_after_an_open_one_waits_for_it():
    late, early = ToolCall("1", "bash", "{}"), ToolCall("2", "read_file", "{}")
    assembler = feed([CallDelta(0, "1", "bash", "{"), CallDelta(1, "2", "read_file", "{}"), PartClosed(1, early)])
    assert assembler.take_calls() == []
    assembler.feed(PartClosed(0, late))
    assert [call for call, _ in assembler.take_calls()] == [late, early]


def test_a_closed_part_replaces_its_fragments():
    signed = Thinking("as it counts", signature="s")
    assembler = feed([ThinkingDelta(0, "as it "), PartClosed(0, signed), ReplyEnded("end_turn")])
    assert assembler.reply().parts == (signed,)


def test_fragments_that_come_after_their_part_was_closed_change_nothing():
    call = ToolCall("1", "bash", "{}")
    assembler = feed(
        [PartClosed(0, Text("whole")), TextDelta(0, "late"), PartClosed(1, call), CallDelta(1, "1", "bash", "late")]
    )
    assert assembler.reply().parts == (Text("whole"), call)
    assert assembler.open_calls == set()


def test_a_later_report_of_usage_replaces_an_earlier_one():
    first, second = Usage(input=1), Usage(input=1, output=9)
    assert feed([UsageReported(first), UsageReported(second)]).usage == second
    assert feed([]).usage is None


def test_a_retry_that_was_scheduled_leaves_no_trace_in_the_reply():
    assembler = feed(
        [RetryScheduled(1, 0.5, BROKEN), ReplyStarted("r", None), ReplyEnded("end_turn", "stop", ("odd",))]
    )
    assert assembler.is_empty
    assert (assembler.stop, assembler.warnings, assembler.has_ended) == ("end_turn", ("odd",), True)
