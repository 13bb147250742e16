"""The Messages decoder: one rule for each test."""

import json
import time

import pytest

from bradawl.core.deltas import CallDelta, PartClosed, ReplyEnded, StreamFailed, TextDelta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Opaque, Text, Thinking, ToolCall, ToolResult, ToolResults, User
from bradawl.folds.assembler import Assembler
from bradawl.providers.codec import ServerEvent
from bradawl.providers.sse import SseDecoder
from wire.anthropic_streams import CLAUDE, CLAUDE_INFO, begin, call, end, messages, piece, stream, text, thinking
from wire.cases import PREFIX
from wire.messages_checker import check_request
from wire.replay import decode, outcome


def read(*events, **fields):
    return outcome(decode(messages(), [stream(*events, **fields)]))


def parts_of(deltas):
    return [delta.part for delta in deltas if isinstance(delta, PartClosed)]


def feed(*events):
    """The deltas of each event, without ending the stream."""
    reply = messages().decoder()
    return [list(reply.feed(ServerEvent("", json.dumps(event)))) for event in events]


# ------------------------------------------------------------------ parts


def test_signed_omitted_and_redacted_thinking_is_complete_and_replayed_byte_for_byte():
    redacted = [begin(2, "redacted_thinking", data="R+/="), end(2)]
    events = [*thinking(0, " Hm.\n", "S1"), *thinking(1, "", "S2"), *redacted, *call(3, '{"path": "a"}')]
    parts = parts_of(decode(messages(), [stream(*events, stop="tool_use")]))
    assert parts == [
        Thinking(" Hm.\n", signature="S1"),
        Thinking("", signature="S2"),
        Thinking("", redacted=True, provider_data='{"data":"R+/="}'),
        ToolCall("toolu_3", "read_file", '{"path": "a"}'),
    ]
    encoder = messages().encoder(PREFIX, CLAUDE_INFO)
    assembler = Assembler(CLAUDE)
    for delta in decode(messages(), [stream(*events, stop="tool_use")]):
        assembler.feed(delta)
    encoder.append(User((Text("Go."),)))
    encoder.append(assembler.reply())
    body = b"".join(encoder.body(RequestParams()))
    assert b'[{"type":"thinking","thinking":" Hm.\\n","signature":"S1"},' in body
    assert b'{"type":"thinking","thinking":"","signature":"S2"},{"type":"redacted_thinking","data":"R+/="},' in body
    assert b'"input":{"path": "a"}' in body


def test_a_later_signature_replaces_an_earlier_one():
    signed = [piece(0, "signature_delta", signature=one) for one in ("S", "SIG")]
    seen = read(begin(0, "thinking"), *signed, end(0), *text(1, "x"))
    assert seen["parts"][0]["signature"] == "SIG"


def test_citations_stay_with_their_text():
    cited = piece(0, "citations_delta", citation={"type": "page_location", "page": 1})
    deltas = decode(messages(), [stream(begin(0, "text"), piece(0, "text_delta", text="a"), cited, end(0))])
    (part,) = parts_of(deltas)
    assert (part.text, json.loads(part.provider_data)) == ("a", {"citations": [{"type": "page_location", "page": 1}]})


def test_the_caller_field_stays_with_the_call():
    deltas = decode(messages(), [stream(*call(0, "{}", caller={"type": "direct"}), stop="tool_use")])
    assert parts_of(deltas)[0].provider_data == '{"caller":{"type": "direct"}}'


def test_an_unknown_block_is_kept_unchanged_with_its_arguments():
    odd = [begin(0, "hologram", x={"y": 1.50}), piece(0, "ray_delta", ray=1), end(0)]
    search = [
        begin(1, "server_tool_use", id="s", input={}),
        piece(1, "input_json_delta", partial_json='{"q":1}'),
        end(1),
    ]
    first, second = parts_of(decode(messages(), [stream(*odd, *search)]))
    assert json.loads(first.provider_data) == {"type": "hologram", "x": {"y": 1.5}}
    assert json.loads(second.provider_data)["input"] == {"q": 1}
    assert isinstance(first, Opaque)


def test_unknown_events_and_deltas_are_skipped():
    seen = read(
        {"type": "aurora"}, begin(0, "text"), piece(0, "glow", text="no"), piece(0, "text_delta", text="a"), end(0)
    )
    assert [part["text"] for part in seen["parts"]] == ["a"]
    assert seen["complete"] is True


def test_an_empty_text_is_no_part():
    assert read(*text(0), *text(1, "a"))["parts"] == [{"type": "text", "text": "a"}]


# ------------------------------------------------------------------ calls


@pytest.mark.parametrize("fragments", [(), ("",), ("", " ")])
def test_a_call_without_arguments_has_none(fragments):
    (part,) = read(*call(0, *fragments), stop="tool_use")["parts"]
    assert (part["args"], part["args_status"]) == ({}, "ok")


def test_fragments_replace_the_input_of_the_start_event():
    seen = read(*call(0, '{"a":1}', input={"b": 2}), stop="tool_use")
    assert seen["parts"][0]["args"] == {"a": 1}
    assert seen["warnings"] == []


def test_arguments_complete_in_the_start_event_keep_their_text():
    (part,) = read(*call(0, input={"p": [1, {}]}), stop="tool_use")["parts"]
    assert part["raw_args"] == '{"p": [1, {}]}'


def test_only_its_own_stop_event_closes_a_call():
    started, pieces, other, closed = feed(
        begin(0, "tool_use"), piece(0, "input_json_delta", partial_json='{"path":"a"}'), begin(1, "text"), end(0)
    )
    assert [type(delta) for delta in started + pieces] == [CallDelta, CallDelta]
    assert other == []
    assert parts_of(closed) == [ToolCall("toolu_0", "read_file", '{"path":"a"}')]


@pytest.mark.parametrize(("stop", "status"), [("max_tokens", "truncated"), ("tool_use", "malformed")])
def test_broken_arguments_wait_for_the_reason_of_the_stop(stop, status):
    deltas = feed(*call(0, '{"path":'))
    assert not any(parts_of(one) for one in deltas)
    assert read(*call(0, '{"path":'), stop=stop)["parts"][0]["args_status"] == status


def test_interleaved_blocks_keep_their_own_text():
    seen = read(
        begin(0, "tool_use"),
        begin(1, "tool_use"),
        piece(0, "input_json_delta", partial_json='{"a"'),
        piece(1, "input_json_delta", partial_json='{"b"'),
        piece(0, "input_json_delta", partial_json=":1}"),
        piece(1, "input_json_delta", partial_json=":2}"),
        end(1),
        end(0),
        stop="tool_use",
    )
    assert [part["args"] for part in seen["parts"]] == [{"a": 1}, {"b": 2}]


def test_every_call_has_an_id_of_its_own():
    seen = read(*call(0, id="x"), *call(1, id="x"), *call(2, id=""), stop="tool_use")
    ids = [part["id"] for part in seen["parts"]]
    assert ids[0] == "x" and len(set(ids)) == 3 and all(ids)
    assert seen["warnings"] == ["duplicate_call_id", "id_generated"]


# ------------------------------------------------------------------ servers that differ


def test_the_event_line_replaces_a_missing_type():
    events = [*text(0, "a")]
    bare = [(event["type"], {key: value for key, value in event.items() if key != "type"}) for event in events]
    bare += [("message_delta", {"delta": {"stop_reason": "end_turn"}}), ("message_stop", {})]
    data = "".join(f"event: {name}\ndata: {json.dumps(event)}\n\n" for name, event in bare).encode()
    seen = outcome(decode(messages(), [data]))
    assert (seen["parts"], seen["stop_reason"], seen["warnings"]) == ([{"type": "text", "text": "a"}], "end_turn", [])


def test_deltas_without_index_or_start_become_a_text():
    loose = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    assert read(loose, loose)["parts"] == [{"type": "text", "text": "aa"}]


def test_blocks_that_were_never_stopped_end_with_the_message():
    seen = read(*call(0, '{"a":1}')[:-1], stop="tool_use")
    assert seen["parts"][0]["args"] == {"a": 1}
    assert seen["warnings"] == ["block_stop_missing"]


def test_one_index_for_all_blocks_does_not_mix_them():
    seen = read(*text(0, "a"), *call(0, '{"a":1}'), *call(0, '{"a":2}', id="toolu_9"), stop="tool_use")
    assert [part.get("text") or part["args"] for part in seen["parts"]] == ["a", {"a": 1}, {"a": 2}]


def test_arguments_given_as_an_object_are_read():
    odd = {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": {"a": 1}}}
    assert read(begin(0, "tool_use"), odd, end(0), stop="tool_use")["parts"][0]["args"] == {"a": 1}


def test_a_lone_surrogate_becomes_a_replacement_character():
    data = stream(*text(0, "@")).replace(b'"@"', b'"a\\ud83d b"')
    assert outcome(decode(messages(), [data]))["parts"][0]["text"] == "a\ufffd b"


def test_the_calls_of_a_reply_decide_whether_it_ends_as_tool_use():
    seen = read(*call(0, "{}"), stop="end_turn")
    assert (seen["stop_reason"], seen["warnings"]) == ("tool_use", ["stop_overridden_to_tool_use"])
    seen = read(*text(0, "a"), stop="tool_use")
    assert (seen["stop_reason"], seen["warnings"]) == ("end_turn", ["tool_use_without_calls"])


def test_a_done_event_is_ignored_and_does_not_replace_message_stop():
    data = stream(*text(0, "a")) + b"data: [DONE]\n\n"
    assert outcome(decode(messages(), [data]))["warnings"] == []
    data = stream(*text(0, "a")).partition(b"event: message_stop")[0] + b"data: [DONE]\n\n"
    assert outcome(decode(messages(), [data]))["warnings"] == ["missing_message_stop"]


# ------------------------------------------------------------------ the end


@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("stop_sequence", "stop_sequence"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context_overflow"),
        ("sensitive", "content_filter"),
        ("of_the_future", "unknown"),
    ],
)
def test_stop_reasons_are_translated(raw, stop):
    seen = read(*text(0, "a"), stop=raw)
    assert (seen["stop_reason"], seen["raw_stop"], seen["complete"]) == (stop, raw, True)


def test_the_details_of_a_refusal_are_kept():
    details = {"type": "refusal", "category": "bio", "explanation": None}
    assert read(*text(0, "a"), stop="refusal", stop_details=details)["stop_details"] == details


def test_token_counts_are_totals_and_null_is_ignored():
    usage = {"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 7, "output_tokens": 1}
    started = {"type": "message_start", "message": {"id": "m", "usage": usage}}
    more = {"output_tokens": 20, "input_tokens": None, "output_tokens_details": {"thinking_tokens": 8}}
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": more}
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in (started, *text(0, "a"), ended)).encode()
    seen = outcome(decode(messages(), [data]))["usage"]
    assert seen == {"input": 10, "output": 20, "cache_read": 5, "cache_write": 7, "reasoning": 8}


def test_without_a_total_cache_writes_are_the_sum_of_their_kinds():
    split = {"cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}, "output_tokens": "9"}
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": split}
    seen = outcome(decode(messages(), [f"data: {json.dumps(ended)}\n\n".encode()]))["usage"]
    assert (seen["cache_write"], seen["output"]) == (7, 9)


@pytest.mark.parametrize(
    ("event", "kind", "code"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "No"}}, "overloaded", "overloaded_error"),
        ({"type": "error", "error": {"type": "api_error", "message": "Internal"}}, "server", "api_error"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}}, "rate_limit", "rate_limit_error"),
        ({"error": {"message": "Boom", "type": "x"}}, "server", "x"),
        ({"message": "prompt is too long"}, "context_overflow", None),
    ],
)
def test_an_error_inside_the_stream_ends_it(event, kind, code):
    data = stream(*text(0, "a"), stop=None) + f"data: {json.dumps(event)}\n\n".encode()
    seen = outcome(decode(messages(), [data]))
    assert (seen["complete"], seen["error"]["kind"], seen["error"]["code"]) == (False, kind, code)
    assert seen["parts"] == [{"type": "text", "text": "a"}]


def test_nothing_comes_after_the_end():
    reply = messages().decoder()
    for event in SseDecoder().feed(stream(*text(0, "a"))):
        list(reply.feed(event))
    assert list(reply.feed(ServerEvent("", json.dumps(begin(5, "text", text="late"))))) == []
    assert list(reply.finish()) == []


# ------------------------------------------------------------------ bodies that are no stream


def test_a_reply_as_one_document_is_the_same_reply():
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "S"},
        {"type": "text", "text": "So."},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"p": 1}},
    ]
    body = {"type": "message", "id": "m", "model": "c", "content": content, "stop_reason": "tool_use"}
    body["usage"] = {"input_tokens": 3, "output_tokens": 4}
    seen = outcome(list(messages().decoder().whole(json.dumps(body).encode())))
    assert [part["type"] for part in seen["parts"]] == ["thinking", "text", "tool_call"]
    assert (seen["stop_reason"], seen["usage"]["output"], seen["id"], seen["complete"]) == ("tool_use", 4, "m", True)
    assert seen["warnings"] == ["non_streaming_body"]


@pytest.mark.parametrize(
    "body", [b'{"type":"error","error":{"type":"api_error","message":"No"}}', b"[]", b"oops", b"", b"{}"]
)
def test_a_document_that_is_no_reply_fails(body):
    deltas = list(messages().decoder().whole(body))
    assert isinstance(deltas[-1], StreamFailed)
    assert deltas[-1].failure.kind == "server"


# ------------------------------------------------------------------ cut anywhere


BROKEN = stream(
    *thinking(0, "Think a bit.", "S1"),
    *text(1, "First ", "this."),
    *call(2, '{"path":', '"a.py"}'),
    *call(3, '{"path":', '"b.py"}'),
    stop="tool_use",
)


@pytest.mark.parametrize("ids", ["whole", "unsigned"])
def test_after_a_cut_at_any_byte_the_conversation_can_continue(ids):
    data = BROKEN if ids == "whole" else BROKEN.replace(b'"signature": "S1"', b'"signature": ""')
    seen_calls = set()
    for size in range(len(data)):
        assembler, ran = Assembler(CLAUDE), []
        for delta in decode(messages(), [data[:size]]):
            assembler.feed(delta)
            ran += [call_part for call_part, _ in assembler.take_calls()]
        reply = assembler.reply()
        if not reply.parts:
            continue
        encoder = messages().encoder(PREFIX, CLAUDE_INFO)
        encoder.append(User((Text("Go."),)))
        encoder.append(reply)
        results = [ToolResult(one.id, one.name, (Text(f"ran {one.id}"),)) for one in ran]
        encoder.append(ToolResults(tuple(results)) if results else User((Text("Go on."),)))
        body = b"".join(encoder.body(RequestParams()))
        assert check_request(body) == []
        assert all(body.count(f'"ran {one.id}"'.encode()) == 1 for one in ran)
        assert [part.id for part in reply.parts if isinstance(part, ToolCall)] == [one.id for one in ran]
        seen_calls.add(len(ran))
    assert seen_calls == {0, 1, 2}


# ------------------------------------------------------------------ speed


def _events(size):
    body = '{"t":"' + "x" * (size - 8) + '"}'
    pieces = (piece(0, "input_json_delta", partial_json=one) for one in body)
    return [ServerEvent("", json.dumps(event)) for event in (begin(0, "tool_use"), *pieces, end(0))]


def _seconds(events):
    reply = messages().decoder()
    started = time.process_time()
    for event in events:
        for _ in reply.feed(event):
            pass
    return time.process_time() - started


def test_arguments_in_single_characters_take_linear_time():
    small, large = _events(20_000), _events(80_000)
    ratios = (min(_seconds(large) for _ in range(3)) / min(_seconds(small) for _ in range(3)) for _ in range(3))
    assert any(ratio < 7 for ratio in ratios)  # 4 where it is linear, 16 where it grows with the square


def test_text_deltas_are_emitted_as_they_arrive():
    started, first, second, closed = feed(*text(0, "a", "b"))
    assert (started, first, second) == ([], [TextDelta(0, "a")], [TextDelta(0, "b")])
    assert parts_of(closed) == [Text("ab")]


def test_a_stream_has_exactly_one_end():
    deltas = decode(messages(), [stream(*text(0, "a")) + stream(*text(0, "b"))])
    assert sum(isinstance(delta, ReplyEnded | StreamFailed) for delta in deltas) == 1
