"""The Responses decoder: streams that follow the specification, cuts, ends and speed."""

import json
import time

import pytest

from bradawl.core.deltas import CallDelta, PartClosed, StreamFailed, TextDelta, ThinkingDelta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Text, ToolCall, ToolResult, ToolResults, User, calls_of
from bradawl.core.ports import ModelInfo
from bradawl.folds.assembler import Assembler
from bradawl.providers.codec import ServerEvent
from bradawl.providers.sse import SseDecoder
from wire.cases import PREFIX
from wire.replay import decode, outcome
from wire.responses_checker import check_request, responses
from wire.responses_events import (
    STANDARD_STREAM,
    USAGE,
    arguments_in_pieces,
    bytes_of,
    created,
    deltas_of,
    ended,
    event,
    function_call,
    item,
    message,
    reply_of,
)
from wire.responses_messages import ORIGIN

# ------------------------------------------------------------------ standard streams


def test_a_standard_stream_is_decoded():
    deltas = deltas_of(*STANDARD_STREAM)
    seen = outcome(deltas)
    assert [part["type"] for part in seen["parts"]] == ["thinking", "text", "tool_call", "tool_call"]
    assert seen["parts"][0] == {
        "type": "thinking",
        "text": "Find it.\n\nFix it.",
        "provider_data": {"item_id": "rs_1", "encrypted_content": "ENC"},
    }
    assert [part["args"] for part in seen["parts"][2:]] == [{"a": 1}, {"b": 2}]
    assert (seen["stop_reason"], seen["raw_stop"], seen["warnings"]) == ("tool_use", "completed", [])
    assert seen["usage"] == {"input": 30, "output": 20, "cache_read": 60, "cache_write": 10, "reasoning": 5}
    assert (seen["id"], seen["model"]) == ("resp_1", "gpt-demo")
    shown = "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
    assert shown == "Find it.\n\nFix it."
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == "Looking."
    text = next(delta.part for delta in deltas if isinstance(delta, PartClosed) and isinstance(delta.part, Text))
    assert json.loads(text.provider_data) == {"item_id": "msg_1", "phase": "commentary"}


def test_a_call_is_closed_by_its_arguments_and_not_before():
    closed = []
    reply = responses().decoder()
    for one in STANDARD_STREAM:
        for delta in reply.feed(ServerEvent("", json.dumps(one))):
            if isinstance(delta, PartClosed) and isinstance(delta.part, ToolCall):
                closed.append((one["type"], delta.part.id))
    assert closed == [
        ("response.function_call_arguments.done", "call_1"),
        ("response.function_call_arguments.done", "call_2"),
    ]


def test_a_decoded_reply_is_sent_back_unchanged():
    assembler = Assembler(ORIGIN)
    for delta in deltas_of(*STANDARD_STREAM):
        assembler.feed(delta)
    encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(User((Text("Go."),)))
    encoder.append(assembler.reply())
    body = b"".join(encoder.body(RequestParams()))
    assert check_request(body) == []
    _, reasoning, said, first, second, *outputs = json.loads(body)["input"]
    done = [one["item"] for one in STANDARD_STREAM if one["type"] == "response.output_item.done"]
    del done[0]["status"]
    assert reasoning == done[0]
    assert {name: said[name] for name in ("id", "phase")} == {"id": "msg_1", "phase": "commentary"}
    assert [first["id"], second["id"]] == ["fc_1", "fc_2"]
    assert [output["call_id"] for output in outputs] == ["call_1", "call_2"]


def test_summaries_with_blank_lines_are_sent_back_in_their_parts():
    summary = [{"type": "summary_text", "text": "**One**\n\ntext"}, {"type": "summary_text", "text": "two"}]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": "E"}
    assembler = Assembler(ORIGIN)
    for delta in deltas_of(created(), item("done", 0, **reasoning), item("done", 1, **function_call()), ended()):
        assembler.feed(delta)
    encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(assembler.reply())
    assert json.loads(b"".join(encoder.body(RequestParams())))["input"][0] == reasoning


# ------------------------------------------------------------------ cut streams


@pytest.mark.parametrize("feed_events", [STANDARD_STREAM, STANDARD_STREAM[7:]], ids=["with_reasoning", "without"])
def test_after_a_cut_at_any_byte_the_reply_can_be_sent_back(feed_events):
    data = bytes_of(*feed_events)
    sse, reply, assembler = SseDecoder(), responses().decoder(), Assembler(ORIGIN)
    started = []
    for place in range(len(data)):
        for one in sse.feed(data[place : place + 1]):
            for delta in reply.feed(one):
                assembler.feed(delta)
        started += [call.id for call, _ in assembler.take_calls()]
        if assembler.has_ended:
            break
        cut = assembler.reply()
        assert [call.id for call in calls_of(cut)] == started
        encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
        encoder.append(User((Text("Go."),)))
        encoder.append(cut)
        encoder.append(ToolResults(tuple(ToolResult(call_id, "ls", (Text("done"),)) for call_id in started)))
        encoder.append(User((Text("Go on."),)))
        if place % 16 == 0 or place > len(data) - 64:
            assert check_request(b"".join(encoder.body(RequestParams()))) == []
    assert started == ["call_1", "call_2"]


@pytest.mark.parametrize("last", [[], [b"[DONE]"]])
def test_without_its_last_event_a_reply_is_incomplete(last):
    deltas = deltas_of(*STANDARD_STREAM[:-1], *last)
    assert isinstance(deltas[-1], StreamFailed)
    assert (deltas[-1].failure.kind, deltas[-1].failure.retryable) == ("connection", True)


def test_events_after_the_end_are_ignored():
    seen = reply_of(
        created(), item("done", 0, **message("So.")), ended(), item("done", 1, **function_call()), b"[DONE]"
    )
    assert [part["type"] for part in seen["parts"]] == ["text"]
    assert seen["stop_reason"] == "end_turn"


# ------------------------------------------------------------------ ends


@pytest.mark.parametrize(
    ("reason", "stop", "warnings"),
    [
        ("max_output_tokens", "max_tokens", []),
        ("content_filter", "content_filter", []),
        ("something_new", "unknown", ["unknown_stop_reason"]),
    ],
)
def test_an_incomplete_reply_has_a_stop_reason(reason, stop, warnings):
    seen = reply_of(created(), ended("incomplete", incomplete_details={"reason": reason}, usage=USAGE))
    assert (seen["stop_reason"], seen["raw_stop"], seen["complete"]) == (stop, reason, True)
    assert seen["warnings"] == warnings
    assert seen["usage"]["output"] == 20


@pytest.mark.parametrize("arguments", ['{"a":1}', "", '{"a'])
@pytest.mark.parametrize("is_told", [True, False])
def test_a_call_in_which_the_reply_was_cut_never_runs(arguments, is_told):
    events = [created(), item("added", 0, **function_call("")), *arguments_in_pieces(0, arguments)]
    if is_told:
        events.append(item("done", 0, **function_call(arguments, status="incomplete")))
    seen = reply_of(*events, ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert [part["args_status"] for part in seen["parts"]] == ["truncated"]


def test_arguments_that_were_cut_are_not_closed_by_their_last_event():
    events = [
        created(),
        item("added", 0, **function_call("")),
        event("function_call_arguments.done", output_index=0, arguments='{"path":"a'),
        item("done", 0, **function_call('{"path":"a', status="incomplete")),
    ]
    seen = reply_of(*events, ended("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert seen["parts"][0]["args_status"] == "truncated"


@pytest.mark.parametrize("nested", [True, False])
def test_an_error_event_fails_the_reply_in_either_form(nested):
    error = {"code": "rate_limit_exceeded", "message": "Please try again in 1.5s.", "param": None}
    one = {"type": "error", "error": error} if nested else {"type": "error", **error, "sequence_number": 3}
    deltas = deltas_of(created(), one)
    failure = deltas[-1].failure
    assert (failure.kind, failure.code, failure.retry_after_s) == ("rate_limit", "rate_limit_exceeded", 1.5)
    assert deltas[-1].raw_stop is None


def test_an_error_may_be_named_by_the_event_line_only():
    stream = b'event: error\ndata: {"code":"server_error","message":"Oops."}\n\n'
    failed = decode(responses(), [stream])[-1]
    assert (failed.failure.kind, failed.failure.message, failed.failure.retryable) == ("server", "Oops.", True)


def test_a_failed_response_keeps_its_usage_and_its_error():
    error = {"code": "server_error", "message": "The server had an error."}
    seen = reply_of(created(), ended("failed", error=error, usage=USAGE))
    assert (seen["error"]["kind"], seen["error"]["retryable"], seen["raw_stop"]) == ("server", True, "failed")
    assert seen["usage"]["output"] == 20
    assert reply_of(created(), ended("failed", error=None))["error"]["message"]


def test_a_status_in_the_response_takes_precedence_over_the_event_name():
    told = {"response": {"status": "failed", "error": {"code": "server_error", "message": "No."}}}
    assert reply_of(created(), event("completed", **told))["complete"] is False
    told = {"response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}
    assert reply_of(created(), event("completed", **told))["stop_reason"] == "max_tokens"


def test_a_refusal_has_its_own_part_and_stop_reason():
    done = {"type": "message", "id": "msg_1", "content": [{"type": "refusal", "refusal": "I can't."}]}
    pieces = [event("refusal.delta", output_index=0, content_index=0, delta=text) for text in ("I ", "can't.")]
    for events in ([*pieces, item("done", 0, **done)], pieces, [item("done", 0, **done)]):
        seen = reply_of(created(), *events, ended())
        assert seen["parts"] == [{"type": "refusal", "text": "I can't."}]
        assert seen["stop_reason"] == "refusal"


# ------------------------------------------------------------------ speed


def _time_to_decode(count):
    events = [ServerEvent("", json.dumps(item("added", 0, **function_call(""))))]
    delta = json.dumps(event("function_call_arguments.delta", item_id="fc_1", output_index=0, delta="x"))
    events += [ServerEvent("", delta)] * count
    reply = responses().decoder()
    started, pieces = time.process_time(), 0
    for one in events:
        for delta in reply.feed(one):
            pieces += isinstance(delta, CallDelta)
    assert pieces == count + 1
    return time.process_time() - started


def test_a_large_argument_in_single_characters_takes_linear_time():
    _time_to_decode(1_000)
    small, large = (min(_time_to_decode(count) for _ in range(3)) for count in (30_000, 120_000))
    assert large < 8 * small
