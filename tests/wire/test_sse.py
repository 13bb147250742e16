"""The parser of server-sent events: the standard's grammar, deviations of servers, and limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.providers.sse import SseDecoder, StreamTooLarge
from patience import cpu_limit


def events_of(*chunks: bytes, **limits: int) -> list[tuple[str, str]]:
    decoder = SseDecoder(**limits)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [(event.event, event.data) for event in [*events, *decoder.close()]]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: 1\n\ndata: 2\n\n", [("", "1"), ("", "2")]),
        (b"data:1\r\n\r\ndata:2\r\n\r\n", [("", "1"), ("", "2")]),
        (b"data: 1\r\rdata: 2\r\r", [("", "1"), ("", "2")]),
        (b"\xef\xbb\xbfdata: 1\n\n", [("", "1")]),
        (b": hi\nid: 4\nretry: 9\nevent: ping\n\ndata: 1\n\n", [("", "1")]),
        (b"event: ping\ndata: 1\n\n", [("ping", "1")]),
        (b"event:a\ndata:1\nevent:b\ndata:2\n\n", [("a", "1"), ("b", "2")]),
        (b'data: {"a":\ndata: 1}\n\n', [("", '{"a":\n1}')]),
        (b"data: one\ndata: two\n\n", [("", "one\ntwo")]),
        (b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n', [("", '{"a":1}'), ("", '{"b":2}'), ("", "[DONE]")]),
        (b'data: {"a":1}', [("", '{"a":1}')]),
        (b'data: {"a":1', []),
        (b"data: [DONE]", [("", "[DONE]")]),
        (b"data:\n\ndata: \n\n", []),
        (b'error: {"code":1}\n\n', [("error", '{"code":1}')]),
        (b'{"error":\n {"message": "m"}}', [("", '{"error":\n {"message": "m"}}')]),
        (b"data:  two spaces\n\n", [("", " two spaces")]),
        ('data: "a\u2028b\u0085c\x0bd"\n\n'.encode(), [("", '"a\u2028b\u0085c\x0bd"')]),
        ("data: \U0001f600é\n\n".encode(), [("", "\U0001f600é")]),
        (b"data: \xff\n\n", [("", "\ufffd")]),
        (b'data: {"s":"\\ud83d"}', [("", '{"s":"\\ud83d"}')]),
        (b"", []),
    ],
)
def test_a_stream_in_any_pieces_gives_its_events(stream, expected):
    assert events_of(stream) == expected
    assert events_of(*(stream[i : i + 1] for i in range(len(stream)))) == expected
    for place in range(len(stream)):
        assert events_of(stream[:place], b"", stream[place:]) == expected


@given(st.lists(st.sampled_from([b"data:", b"x", b"\r", b"\n", b":", b"{}", b"event: e", b"\xef\xbb\xbf", b"\xc3"])))
def test_the_events_do_not_depend_on_the_pieces(pieces):
    stream = b"".join(pieces)
    assert events_of(*(stream[i : i + 1] for i in range(len(stream)))) == events_of(stream)


def test_an_event_beyond_the_cap_is_refused_as_it_arrives():
    decoder = SseDecoder(event_limit_bytes=1_000)
    with pytest.raises(StreamTooLarge):
        for _ in range(20):
            decoder.feed(b"x" * 100)


def test_many_small_lines_of_one_event_count_together():
    with pytest.raises(StreamTooLarge):
        events_of(*[b"data: " + b"x" * 90 + b"\n"] * 20, event_limit_bytes=1_000)


def test_comments_and_small_events_do_not_add_up_to_the_event_cap():
    stream = b": keep-alive\n" * 100 + b"data: 1\n\n" * 300
    assert len(events_of(stream, event_limit_bytes=1_000)) == 300


def test_a_stream_beyond_its_cap_is_refused():
    with pytest.raises(StreamTooLarge):
        events_of(*[b": keep-alive\n"] * 100, stream_limit_bytes=1_000)


def test_a_very_long_line_fed_in_single_bytes_is_linear():
    decoder = SseDecoder()
    with cpu_limit(5):
        for _ in range(262_144):
            decoder.feed(b"x")
        decoder.feed(b"\n\n")


def test_data_in_very_many_lines_is_linear():
    with cpu_limit(5):
        (event,) = events_of(b"data: [\n" + b"data: 1,\n" * 100_000 + b"data: 1]\n\n")
        assert len(event[1]) > 200_000
