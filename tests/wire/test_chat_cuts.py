"""Chat Completions streams cut at any byte: the kept reply becomes a valid request for every server."""

import json

import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import Text, ToolResult, ToolResults, User, calls_of
from bradawl.core.ports import ModelInfo
from bradawl.folds.assembler import Assembler
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.sse import SseDecoder
from wire.cases import PREFIX
from wire.chat_checker import check_request
from wire.replay import ORIGIN, call, chunk, numbered_ids, stream_of

SERVERS = (
    "https://api.deepseek.com",
    "https://api.moonshot.ai/v1",
    "https://api.mistral.ai/v1",
    "https://openrouter.ai/api/v1",
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "http://127.0.0.1:8000/v1",
)
STREAM = stream_of(
    chunk(reasoning_content="Look ", reasoning_details=[{"type": "reasoning.text", "text": "Look ", "index": 0}]),
    chunk(reasoning_content="first."),
    chunk(content="I'll "),
    chunk(content="look.\n<tool"),
    chunk(tool_calls=[call('{"path"', index=0, id="functions.read_file:0", name="read_file")]),
    chunk(tool_calls=[call(':"a"}', index=0)]),
    chunk(tool_calls=[call("", index=1, id="functions.read_file:1", name="read_file")]),
    chunk(tool_calls=[call('{"path":"b"}', index=1)]),
    chunk("tool_calls"),
)


def cut_after(base_url, size):
    """The codec, and the message an agent keeps of a reply that was cut after `size` bytes."""
    codec = OpenAIChat(base_url, new_id=numbered_ids())
    encoder = codec.encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(User((Text("Go."),)))
    assembler, sse, reply = Assembler(ORIGIN), SseDecoder(), codec.decoder()
    for event in [*sse.feed(STREAM[:size]), *sse.close()]:
        for delta in reply.feed(event):
            assembler.feed(delta)
    for delta in reply.finish():
        assembler.feed(delta)
    return encoder, assembler


@pytest.mark.parametrize("base_url", SERVERS)
def test_a_cut_reply_becomes_a_valid_request_for_every_server(base_url):
    for size in range(0, len(STREAM), 7):
        encoder, assembler = cut_after(base_url, size)
        kept = assembler.reply()
        encoder.append(kept)
        if calls := calls_of(kept):
            encoder.append(ToolResults(tuple(ToolResult(one.id, one.name, (Text("done"),)) for one in calls)))
        encoder.append(User((Text("Go on."),)))
        body = b"".join(encoder.body(RequestParams()))
        assert check_request(body) == [], size
        said = json.dumps(json.loads(body)["messages"][2:])
        assert said.count("done") == len(calls), size


@pytest.mark.parametrize("base_url", SERVERS)
def test_a_call_of_a_cut_reply_is_kept_only_when_it_was_closed(base_url):
    closed = [len(calls_of(cut_after(base_url, size)[1].reply())) for size in range(0, len(STREAM), 3)]
    assert closed == sorted(closed)
    assert set(closed) == {0, 1, 2}


def test_a_text_that_could_have_become_a_call_is_kept_when_the_stream_breaks():
    marker = STREAM.index(b"<tool") + len(b'<tool"},"finish_reason": null}]}\n\n') + 20
    _, assembler = cut_after("http://127.0.0.1:8000/v1", marker)
    assert assembler.failure is not None
    assert "".join(part.text for part in assembler.reply().parts if isinstance(part, Text)).endswith("<tool")
