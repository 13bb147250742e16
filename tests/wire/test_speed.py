"""Decoding takes linear time: twice the data takes little more than twice the time."""

import json
import time
from collections.abc import Callable

import msgspec
import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Text, ToolCall, ToolResult, ToolResults, User
from bradawl.core.ports import ModelInfo, Prefix, ToolSchema
from bradawl.providers.codec import ServerEvent
from bradawl.providers.sse import SseDecoder
from wire.codecs import FORMATS
from wire.replay import ORIGIN, call, chat, chunk, stream_of

_MOST = 2.6
"""Largest permitted ratio: 2 for twice the work, and a margin for a busy machine."""
_TOOLS = Prefix("", (ToolSchema("write_file", "Writes.", msgspec.Raw(b'{"type":"object"}')),))


def arguments(size):
    """Events of a call whose arguments arrive in single characters."""
    text = json.dumps({"content": "x{y}[ " * (size // 6)})
    events = {one: ServerEvent("", json.dumps(chunk(tool_calls=[call(one, index=0)]))) for one in set(text)}
    head = ServerEvent("", json.dumps(chunk(tool_calls=[call("", index=0, id="c1", name="write_file")])))
    return [head, *(events[one] for one in text), ServerEvent("", "[DONE]")]


def words(size):
    """Events of a text in small pieces, with all kinds of content."""
    pieces = ["Hello ", "<b", ">", " `x`", "\n", "[1]", '"q"', "<tool", "_call"]
    events = [ServerEvent("", json.dumps(chunk(content=piece))) for piece in pieces]
    return [*(events[number % len(events)] for number in range(size)), ServerEvent("", "[DONE]")]


def held(size):
    """Events of a call written as text, which is held back until it is complete."""
    text = '<tool_call>\n{"name": "write_file", "arguments": {"content": "' + "ab <" * (size // 4) + '"}}\n</tool_call>'
    return [*(ServerEvent("", json.dumps(chunk(content=one))) for one in text), ServerEvent("", "[DONE]")]


def decode_events(events):
    codec = chat("http://127.0.0.1:8000/v1")
    codec.encoder(_TOOLS, ModelInfo(ORIGIN))
    reply = codec.decoder()
    for event in events:
        list(reply.feed(event))


def feed_sse(chunks):
    decoder = SseDecoder()
    for piece in chunks:
        decoder.feed(piece)
    decoder.close()


def ratio(work: Callable[[object], None], prepare: Callable[[int], object], size: int) -> float:
    """Time for twice the data divided by the time for the data: the best of several tries."""
    small, large = prepare(size), prepare(2 * size)
    best = float("inf")
    for _ in range(6):
        best = min(best, _seconds(work, large) / _seconds(work, small))
        if best < _MOST:
            break
    return best


def _seconds(work, subject):
    started = time.process_time()
    work(subject)
    return time.process_time() - started


@pytest.mark.parametrize(("prepare", "size"), [(arguments, 40_000), (words, 20_000), (held, 20_000)])
def test_a_reply_twice_as_long_takes_twice_the_time(prepare, size):
    assert ratio(decode_events, prepare, size) < _MOST


@pytest.mark.parametrize("step", [1, 1_400, 65_536])
def test_a_stream_twice_as_long_takes_twice_the_time_however_it_is_cut(step):
    def prepare(size):
        data = stream_of(*[chunk(content="word ")] * size)
        return [data[start : start + step] for start in range(0, len(data), step)]

    assert ratio(feed_sse, prepare, 500 if step == 1 else 12_000) < _MOST


@pytest.mark.parametrize("wire", FORMATS, ids=[wire.api for wire in FORMATS])
def test_a_late_step_takes_as_long_as_an_early_one(wire):
    encoder = wire.new().encoder(_TOOLS, ModelInfo(wire.origin))
    encoder.append(User((Text("Go"),)))

    def seconds(first, count=40):
        """Seconds for this number of steps."""
        started = time.process_time()
        for number in range(first, first + count):
            name = f"call_{number}"
            encoder.append(Assistant((Text("I look."), ToolCall(name, "write_file", '{"content":"x"}')), wire.origin))
            encoder.append(ToolResults((ToolResult(name, "write_file", (Text("done"),)),)))
            encoder.prefix_hash()
            encoder.body(RequestParams())
        return time.process_time() - started

    early = min(seconds(first) for first in range(0, 200, 40))
    seconds(200, 1_600)
    # The body is copied for each request, and only that may grow: 0.05 ms after 2,000 steps.
    assert min(seconds(first) for first in range(1_800, 2_000, 40)) < 8 * early
