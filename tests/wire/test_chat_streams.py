"""Chat Completions streams: errors, reasoning, split surrogate pairs, and repeated events."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.deltas import CallDelta, StreamFailed, TextDelta
from bradawl.providers.codec import ServerEvent
from patience import cpu_limit
from wire.chat_reading import feed, read
from wire.replay import call, chat, chunk, decode, outcome, stream_of

# ------------------------------------------------------------------ errors in the stream


def test_an_error_field_and_a_bare_body_are_errors():
    error = {"error": {"message": "boom", "type": "server_error", "code": 500}}
    for data in (b"error: " + json.dumps(error["error"]).encode(), json.dumps(error, indent=2).encode()):
        seen = outcome(decode(chat(), [data]))
        assert (seen["error"]["kind"], seen["error"]["status"], seen["error"]["message"]) == ("server", 500, "boom")


def test_an_error_event_of_plain_text_is_an_error():
    seen = outcome(decode(chat(), [b"event: error\ndata: the engine is overloaded\n\n"]))
    assert (seen["error"]["kind"], seen["error"]["message"]) == ("overloaded", "the engine is overloaded")


# ------------------------------------------------------------------ reasoning


def test_reasoning_in_both_fields_is_read_once():
    seen = read(chunk(reasoning="a", reasoning_content="a"), chunk("stop", content="b"))
    assert seen["parts"][0] == {"type": "thinking", "text": "a", "provider_data": {"field": "reasoning_content"}}


def test_reasoning_details_alone_give_the_text():
    details = [{"type": "reasoning.summary", "summary": "Sum.", "index": 0}]
    seen = read(chunk(reasoning_details=details), chunk("stop", content="b"))
    assert seen["parts"][0] == {
        "type": "thinking",
        "text": "Sum.",
        "provider_data": {"reasoning_details": details},
    }


def test_encrypted_reasoning_without_index_is_not_concatenated():
    details = [{"type": "reasoning.encrypted", "data": "A"}, {"type": "reasoning.encrypted", "data": "B"}]
    seen = read(chunk(reasoning_details=details), chunk("stop", content="b"))
    assert seen["parts"][0]["provider_data"] == {"reasoning_details": details}


def test_what_a_call_depends_on_is_closed_with_it_when_the_stream_breaks():
    details = [{"type": "reasoning.encrypted", "data": "ENC", "index": 0}]
    seen = read(
        chunk(reasoning="Hm.", reasoning_details=details),
        chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]),
        chunk(tool_calls=[call("", index=1, id="c2", name="ls")]),
        done=False,
    )
    assert [(part["type"], part.get("args_status")) for part in seen["parts"]] == [
        ("thinking", None),
        ("tool_call", "ok"),
        ("tool_call", "truncated"),
    ]
    assert seen["parts"][0]["provider_data"] == {"field": "reasoning", "reasoning_details": details}
    assert seen["complete"] is False


def test_a_section_of_calls_inside_reasoning_is_reasoning():
    leaked = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>"
    )
    seen = read(chunk(reasoning_content=leaked), chunk("tool_calls"))
    assert [part["type"] for part in seen["parts"]] == ["thinking"]
    assert seen["stop_reason"] == "end_turn"


# ------------------------------------------------------------------ split surrogate pairs


def raw_events(*deltas):
    """Events with unchanged escape sequences."""
    lines = [f'data: {{"choices":[{{"index":0,"delta":{delta}}}]}}\n\n' for delta in deltas]
    return "".join([*lines, 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', "data: [DONE]\n\n"]).encode()


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["x\\ud83d", "\\ude00y"], "x😀y"),
        (["\\ud83d", "", "\\ude00"], "😀"),
        (["a", "\\ud83d", "b"], "a�b"),
        (["a\\ud83d", "\\ud83d\\ude00"], "a�😀"),
        (["\\ude00a"], "�a"),
        (["a\\ud83d"], "a�"),
        (["\\ud83d\\ude00"], "😀"),
    ],
)
def test_a_split_surrogate_pair_is_joined(pieces, text):
    for field, kind in (("content", "text"), ("reasoning_content", "thinking")):
        events = raw_events(*(f'{{"{field}":"{piece}"}}' for piece in pieces))
        seen = outcome(decode(chat(), [events]))
        shown = "".join(part["text"] for part in seen["parts"] if part["type"] == kind)
        assert shown == (text if kind == "text" or not pieces[-1].endswith("ud83d") else text.rstrip("�"))


def test_a_split_surrogate_pair_in_arguments_is_joined():
    head = '{"tool_calls":[{"index":0,"id":"c1","function":{"name":"w","arguments":"{\\"a\\":\\"\\ud83d"}}]}'
    rest = '{"tool_calls":[{"index":0,"function":{"arguments":"\\ude00\\"}"}}]}'
    seen = outcome(decode(chat(), [raw_events(head, rest)]))
    assert seen["parts"][0]["args"] == {"a": "😀"}


# ------------------------------------------------------------------ servers with errors of their own


def test_errors_in_groqs_own_field_are_found():
    seen = read(chunk(content="x"), {**chunk(), "x_groq": {"id": "g", "error": "over capacity"}})
    assert (seen["error"]["kind"], seen["error"]["retryable"]) == ("overloaded", True)
    assert seen["parts"] == [{"type": "text", "text": "x"}]


@pytest.mark.parametrize("error", ["out of memory", {"message": "out of memory", "code": 502}])
@pytest.mark.parametrize("place", ["top", "choice", "x_groq"])
def test_an_error_message_of_the_server_is_found_in_every_position(place, error):
    event = chunk("error")
    match place:
        case "top":
            event["error"] = error
        case "choice":
            event["choices"][0]["error"] = error
        case _:
            event["x_groq"] = {"id": "g", "error": error}
    seen = read(chunk(content="x"), event)
    assert (seen["error"]["message"], seen["error"]["kind"], seen["raw_stop"]) == ("out of memory", "server", "error")
    assert seen["error"]["status"] == (None if isinstance(error, str) else 502)


def test_a_bare_error_object_that_has_an_id_is_an_error():
    bare = {
        "object": "error",
        "id": "r1",
        "model": "m",
        "message": "out of memory",
        "type": "server_error",
        "code": 500,
    }
    assert read(bare)["error"]["message"] == "out of memory"
    assert read(chunk(content="x"), bare)["error"]["message"] == "out of memory"


def test_a_call_that_groq_could_not_parse_is_retried():
    body = b'{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"<fn"}}'
    codec = chat("https://api.groq.com/openai/v1")
    answers = [codec.error_of(400, {}, body) for _ in range(3)]
    assert [answer.retryable for answer in answers] == [True, False, False]
    assert "<fn" in answers[0].message
    decode(codec, [stream_of(chunk("stop", content="fine"))])
    assert codec.error_of(400, {}, body).retryable is True


def test_openrouters_empty_document_is_retryable():
    seen = outcome(list(chat().decoder().whole(b'{"id":"g","choices":null}')))
    assert (seen["error"]["kind"], seen["error"]["retryable"]) == ("server", True)


def test_a_refusal_is_emitted_as_it_arrives():
    first, second = feed(chunk(refusal="I can't "), chunk(refusal="do that."))
    assert [delta.text for delta in first + second if isinstance(delta, TextDelta)] == ["I can't ", "do that."]


# ------------------------------------------------------------------ repeated events

_PIECES = st.sampled_from(
    [
        {"content": "a"},
        {"content": "b c"},
        {"content": 'q"x'},
        {"content": "\n"},
        {"content": "😀"},
        {"content": ""},
        {"content": "stop"},
        {"content": "x", "role": "assistant"},
        {"reasoning_content": "t"},
        {"tool_calls": [call("", index=0, id="c1", name="ls")]},
        {"tool_calls": [call('{"a"', index=0)]},
        {"tool_calls": [call(":1", index=0)]},
        {"tool_calls": [call("}", index=0)]},
        {"tool_calls": [call("", index=1, id="c2", name="cat")]},
        {"tool_calls": [call("{}", index=1)]},
        {"tool_calls": [call("x", index=1), call("y", index=0)]},
        {"content": "both", "tool_calls": [call("z", index=0)]},
    ]
)


@given(st.lists(_PIECES, max_size=14))
def test_the_fast_path_for_repeated_events_gives_the_same_result(pieces):
    events = [chunk(**piece) for piece in pieces]
    # No two of these have the same form, so that each is parsed.
    apart = [{**event, "created": number, "\\": number} for number, event in enumerate(events)]

    def read_all(list_of_events):
        return decode(chat(), [stream_of(*list_of_events, chunk("tool_calls"))])

    assert read_all(events) == read_all(apart)


def test_a_text_that_ends_its_own_string_is_no_repeated_event():
    sane = '{"choices":[{"delta":{"content":"a"}}]}'
    odd = '{"choices":[{"delta":{"content":"b"},"finish_reason":"length"},{"delta":{"content":"c"}}]}'
    reply = chat().decoder()
    list(reply.feed(ServerEvent("", sane)))
    list(reply.feed(ServerEvent("", odd)))
    *_, last = reply.finish()
    assert (last.stop, last.raw_stop) == ("max_tokens", "length")


# ------------------------------------------------------------------ time


def test_arguments_in_very_many_single_characters_are_linear():
    reply = chat().decoder()
    text = json.dumps({"content": "x{y}[" * 20_000})
    head = json.dumps(chunk(tool_calls=[call("", index=0, id="c1", name="write_file")]))
    list(reply.feed(ServerEvent("", head)))
    piece = {
        character: ServerEvent("", json.dumps(chunk(tool_calls=[call(character, index=0)]))) for character in set(text)
    }
    with cpu_limit(5):
        for character in text:
            reply.feed(piece[character])
        deltas = list(reply.feed(ServerEvent("", "[DONE]")))
    assert msgspec.json.decode(deltas[0].part.raw_arguments) == json.loads(text)


def test_text_and_calls_that_alternate_are_linear():
    reply = chat().decoder()
    with cpu_limit(5):
        for _ in range(20_000):
            reply.feed(
                ServerEvent(
                    "",
                    '{"choices":[{"delta":{"content":"a","tool_calls":[{"index":0,"function":{"arguments":"{"}}]}}]}',
                )
            )


def test_fragments_are_emitted_as_they_arrive():
    first, second = feed(
        chunk(content="Hi"),
        chunk(tool_calls=[call('{"a"', index=0, id="c1", name="ls")]),
    )
    assert first[-1] == TextDelta(0, "Hi")
    assert second == [CallDelta(1, "c1", "ls", '{"a"')]


def test_a_failure_is_the_last_delta():
    *_, last = decode(chat(), [stream_of(chunk(content="x"), {"error": {"message": "m"}}, chunk(content="y"))])
    assert isinstance(last, StreamFailed)


PIECES = st.tuples(st.sampled_from((None, 0, 1, 2)), st.text('ab"\\\n{}\u20ac', min_size=1, max_size=3))


@given(st.lists(PIECES, max_size=40))
def test_interleaved_pieces_are_assigned_to_their_parts(pieces):
    heads = [chunk(tool_calls=[call("x", index=index, id=f"c{index}", name="ls")]) for index in range(3)]
    fragments = [
        chunk(content=piece) if index is None else chunk(tool_calls=[call(piece, index=index)])
        for index, piece in pieces
    ]
    seen = read(*heads, *fragments, chunk("tool_calls"))
    raw = [part["raw_args"] for part in seen["parts"] if part["type"] == "tool_call"]
    assert raw == ["x" + "".join(piece for at, piece in pieces if at == index) for index in range(3)]
    text = "".join(part["text"] for part in seen["parts"] if part["type"] == "text")
    assert text == "".join(piece for index, piece in pieces if index is None)


def test_a_new_call_at_an_index_gets_the_pieces_that_follow_it():
    def in_pieces(call_id, *pieces):
        yield chunk(tool_calls=[call("", index=0, id=call_id, name="ls")])
        yield from (chunk(tool_calls=[call(piece, index=0)]) for piece in pieces)

    seen = read(*in_pieces("a", "{", " ", "}"), *in_pieces("b", "{", "  ", "}"), chunk("tool_calls"))
    assert [(part["id"], part["raw_args"]) for part in seen["parts"]] == [("a", "{ }"), ("b", "{  }")]
