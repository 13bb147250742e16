"""Points 1 to 18 of the conformance list: event framing, compression, and bodies that are no event stream."""

import asyncio
import gzip
import json
import zlib
from contextlib import aclosing

import pytest

from bradawl.core.deltas import StreamFailed, TextDelta
from bradawl.core.events import RequestParams
from bradawl.core.http import HttpRequest
from bradawl.providers.sse import SseDecoder, StreamTooLarge
from bradawl.testing.replay import Recording, ReplayServer
from wire.exchange import ADAPTERS, ONCE, PREFIX, ask, model_at
from wire.points import APIS, EVENTS, chat_stream, check_sample, seen_in, text_document, text_of, text_stream
from wire.points import wire as format_of
from wire.replay import decode, outcome

MIB = 1024 * 1024


def events_of(*chunks):
    decoder = SseDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [(event.event, event.data) for event in [*events, *decoder.close()]]


def in_two(stream):
    """The stream in two pieces, cut at every position."""
    return [(stream[:place], stream[place:]) for place in range(len(stream) + 1)]


async def exchanged(api, adapter, recording):
    """The deltas of one request to a server that answers with `recording`."""

    async with ReplayServer([recording]) as server, aclosing(ADAPTERS[adapter]()) as http:
        return await ask(model_at(format_of(api), server.base_url, http))


def test_01_basic_text():
    check_sample(1)


@pytest.mark.parametrize("number", [1, 2, 3, 55, 61, 64, 69])
def test_02_byte_by_byte_feed_gives_equal_result(number):
    assert check_sample(number, cut_every=1) == check_sample(number)


def test_03_utf8_cut_inside_sequences_of_two_three_and_four_bytes():
    stream = "data: é€\U0001f600é\n\n".encode()
    assert {len(character.encode()) for character in "é€\U0001f600"} == {2, 3, 4}
    for cut in in_two(stream):
        assert events_of(*cut) == [("", "é€\U0001f600é")]


def test_04_crlf_split_between_chunks():
    check_sample(37)
    stream = b"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n"
    for cut in in_two(stream):
        assert events_of(*cut) == [("a", "1"), ("", "2")]


def test_05_carriage_returns_only():
    stream = chat_stream("Hello", " there").replace(b"\n", b"\r")
    for pieces in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        assert outcome(decode(format_of("openai_chat").new(), pieces))["parts"] == [
            {"type": "text", "text": "Hello there"}
        ]


def test_06_byte_order_mark_split():
    for cut in in_two(b"\xef\xbb\xbfdata: 1\n\n"):
        assert events_of(*cut) == [("", "1")]


def test_07_data_in_several_lines():
    data = json.dumps({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}, indent=1)
    stream = "".join(f"data: {line}\n" for line in data.splitlines()) + "\ndata: [DONE]\n\n"
    assert data.count("\n") > 5
    assert seen_in("openai_chat", stream.encode())["parts"] == [{"type": "text", "text": "x"}]


def test_08_comments_id_retry_and_empty_events():
    check_sample(16)
    stream = b": hello\n\nid: 7\nretry: 10\n\nevent: ping\n\ndata: 1\n: in between\n\n:\n\n"
    for cut in in_two(stream):
        assert events_of(*cut) == [("", "1")]


def test_09_data_without_space():
    check_sample(14)


def test_10_other_line_separators_inside_data():
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf"
    line = json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}, ensure_ascii=False)
    for raw in (line, line.replace("\\u000b", "\x0b").replace("\\f", "\x0c")):
        seen = seen_in("openai_chat", f"data: {raw}\n\ndata: [DONE]\n\n".encode())
        assert seen["parts"] == [{"type": "text", "text": text}]


def test_11_no_final_blank_line():
    check_sample(42)


def test_12_events_separated_by_single_newlines():
    check_sample(35)


async def test_13_an_event_beyond_the_cap_is_an_error_and_memory_is_bounded():
    decoder, fed = SseDecoder(), 0
    with pytest.raises(StreamTooLarge):
        for _ in range(64):
            decoder.feed(b"x" * MIB)
            fed += 1
    assert fed <= 17, "no more than the cap is kept"
    *_, last = await exchanged("openai_chat", "direct", Recording(b"data: " + b"x" * (17 * MIB)))
    assert isinstance(last, StreamFailed) and last.failure.kind == "server"


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_14_a_compressed_stream_is_decoded_as_it_comes(adapter, coding):
    """bradawl never requests `br`, so no server may send it."""
    packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    begun = packer.compress(chat_stream("first", " second")[:80]) + packer.flush(zlib.Z_SYNC_FLUSH)
    headers = (*EVENTS, ("content-encoding", coding))

    recording = Recording(begun, headers=headers, then="silence")
    async with ReplayServer([recording]) as server, aclosing(ADAPTERS[adapter]()) as http:
        url = f"{server.base_url}/chat/completions"
        async with http.stream(HttpRequest("POST", url, (), (b"{}",))) as response, asyncio.timeout(60):
            first = await anext(response.chunks())
        accepted = server.requests[0].headers["accept-encoding"]
    assert chat_stream("first").startswith(first[:40]) and len(first) > 40
    assert "br" not in {word.split(";")[0].strip() for word in accepted.split(",")}
    whole = Recording(gzip.compress(chat_stream("all")), headers=(*EVENTS, ("content-encoding", "gzip")))
    assert text_of(await exchanged("openai_chat", adapter, whole)) == "all"


@pytest.mark.parametrize("api", APIS)
async def test_15_a_web_page_with_status_200(api):
    page = b"<!doctype html><html><body><h1>Welcome to nginx</h1></body></html>"
    *_, last = await exchanged(api, "direct", Recording(page, headers=(("content-type", "text/html"),)))
    assert isinstance(last, StreamFailed)
    assert "not an API endpoint" in last.failure.message and "Welcome to nginx" in last.failure.message
    assert "<h1>" not in last.failure.message


@pytest.mark.parametrize("api", APIS)
async def test_16_a_json_document_although_a_stream_was_asked_for(api):
    recording = Recording(text_document(api, "all at once"), headers=(("content-type", "application/json"),))
    assert text_of(await exchanged(api, "direct", recording)) == "all at once"
    lying = Recording(text_stream(api, "a stream"), headers=(("content-type", "application/json"),))
    assert text_of(await exchanged(api, "direct", lying)) == "a stream"


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [200, 204])
async def test_17_an_empty_body(api, adapter, status):
    *_, last = await exchanged(api, adapter, Recording(b"", status=status))
    assert isinstance(last, StreamFailed)
    assert last.failure.kind in ("server", "connection") and last.failure.retryable


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("status", [307, 308])
async def test_18_a_redirected_post_stays_one_and_the_key_goes_to_no_other_host(adapter, status):
    wire, key = format_of("openai_chat"), "sk-only-for-the-first-host"

    async with ReplayServer([Recording(chat_stream("elsewhere"))] * 2) as other:

        def answer(request):
            place = request.path.removeprefix("/here")
            if place != request.path:
                return Recording(b"", status=status, headers=(("location", place),))
            if request.path.startswith("/there"):
                return Recording(b"", status=status, headers=(("location", other.base_url + request.path),))
            return Recording(chat_stream("moved"))

        async with ReplayServer(answer) as server, aclosing(ADAPTERS[adapter]()) as http:
            near = await ask(model_at(wire, server.base_url + "/here", http, key=key))
            kept = list(server.requests)
            far = await ask(model_at(wire, server.base_url + "/there", http, key=key))
    strayed = other.requests
    assert text_of(near) == "moved"
    assert [request.method for request in kept] == ["POST", "POST"]
    assert kept[0].body == kept[1].body != b""
    assert kept[1].headers["authorization"] == f"Bearer {key}"
    assert isinstance(far[-1], StreamFailed) and not strayed, "another origin gets neither key nor conversation"


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_text_is_shown_before_the_stream_has_ended(adapter):
    begun = chat_stream("Hello", " there").partition(b"\n\n")[0] + b"\n\n"

    async with ReplayServer([Recording(begun, then="silence")]) as server, aclosing(ADAPTERS[adapter]()) as http:
        session = model_at(format_of("openai_chat"), server.base_url, http).open(PREFIX)
        async with asyncio.timeout(60), aclosing(session.stream(RequestParams(), ONCE)) as deltas:
            assert [await anext(deltas) for _ in range(2)][-1] == TextDelta(0, "Hello")
