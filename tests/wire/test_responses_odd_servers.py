"""Decoding streams of Responses servers that deviate from the specification."""

import json

import pytest

from bradawl.core.deltas import PartClosed, TextDelta
from bradawl.core.messages import Opaque
from wire.replay import outcome
from wire.responses_checker import responses
from wire.responses_events import (
    STANDARD_STREAM,
    USAGE,
    arguments_in_pieces,
    created,
    deltas_of,
    ended,
    event,
    function_call,
    item,
    message,
    reply_of,
)

# ------------------------------------------------------------------ deviations


def test_a_done_event_replaces_the_received_pieces():
    seen = reply_of(
        created(),
        event("output_text.delta", output_index=0, content_index=0, delta="Helo"),
        item("done", 0, **message("Hello")),
        item("added", 1, **function_call("")),
        *arguments_in_pieces(1, '{"a":0}'),
        item("done", 1, **function_call('{"a":1}')),
        ended(),
    )
    assert seen["parts"][0]["text"] == "Hello"
    assert seen["parts"][1]["args"] == {"a": 1}


def test_a_server_that_sends_only_finished_items_shows_their_text_once():
    deltas = deltas_of(created(), item("done", 0, **message("Hello")), ended())
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["Hello"]


def test_a_server_that_sends_only_the_finished_response():
    output = [{"type": "reasoning", "id": "rs_1", "summary": []}, message("Hello"), function_call()]
    seen = reply_of(created(), ended(output=output))
    assert [part["type"] for part in seen["parts"]] == ["text", "tool_call"]
    assert (seen["stop_reason"], seen["warnings"]) == ("tool_use", [])


def test_the_finished_response_repeats_nothing():
    output = [message("Looking.", "msg_other"), function_call(item_id="fc_other")]
    repeated = [*STANDARD_STREAM[:-1], ended(output=output, usage=USAGE)]
    assert reply_of(*repeated) == reply_of(*STANDARD_STREAM)


def test_without_index_and_item_events_find_their_call():
    events = [item("added", None, **function_call("")), *arguments_in_pieces(None, item_id="fc_1")]
    events += [item("added", None, **function_call("", "call_2", "fc_2"))]
    events += [*arguments_in_pieces(None, '{"b":2}', item_id="fc_2")]
    events += [item("done", None, **function_call()), item("done", None, **function_call('{"b":2}', "call_2", "fc_2"))]
    seen = reply_of(created(), *events, ended())
    assert [(part["id"], part["args"]) for part in seen["parts"]] == [("call_1", {"a": 1}), ("call_2", {"b": 2})]


def test_one_index_for_all_items_and_ids_that_change_keep_the_items_apart():
    events = []
    for number in ("1", "2"):
        call = function_call(f'{{"n":{number}}}', f"call_{number}", None)
        events += [item("added", 0, **{**call, "arguments": "", "id": f"fc_a{number}"})]
        events += arguments_in_pieces(0, call["arguments"], item_id=f"fc_b{number}")
        events += [item("done", 0, **{**call, "id": f"fc_c{number}"})]
    seen = reply_of(created(), *events, item("done", 0, **message("So.")), ended())
    assert [part.get("args") for part in seen["parts"]] == [{"n": 1}, {"n": 2}, None]
    assert seen["warnings"] == []


def test_interleaved_calls_stay_apart():
    first, second = arguments_in_pieces(0), arguments_in_pieces(1, '{"b":2}')
    mixed = [one for pair in zip(first, second, strict=True) for one in pair]
    seen = reply_of(
        created(),
        item("added", 0, **function_call("")),
        item("added", 1, **function_call("", "call_2", "fc_2")),
        *mixed,
        event("function_call_arguments.done", output_index=1, arguments='{"b":2}'),
        event("function_call_arguments.done", output_index=0, arguments='{"a":1}'),
        ended(),
    )
    assert [part["args"] for part in seen["parts"]] == [{"a": 1}, {"b": 2}]
    assert seen["warnings"] == []


def test_calls_without_id_or_with_the_same_get_one_of_their_own():
    calls = [function_call(f'{{"n":{n}}}', call_id, None) for n, call_id in enumerate(["c", "c", None])]
    seen = reply_of(created(), *(item("done", n, **call) for n, call in enumerate(calls)), ended())
    assert [part["id"] for part in seen["parts"]] == ["c", "call_generated1", "call_generated2"]
    assert seen["warnings"] == ["duplicate_call_id", "id_generated"]


def test_more_arguments_for_a_closed_call_are_dropped_and_reported():
    for late in (
        event("function_call_arguments.delta", output_index=0, delta=" x"),
        event("function_call_arguments.done", output_index=0, arguments='{"a":2}'),
        item("done", 0, **function_call('{"a":2}')),
    ):
        seen = reply_of(
            created(),
            item("added", 0, **function_call("")),
            event("function_call_arguments.done", output_index=0, arguments='{"a":1}'),
            late,
            ended(),
        )
        assert [part["args"] for part in seen["parts"]] == [{"a": 1}]
        assert seen["warnings"] == ["arguments_after_close"]


def test_arguments_as_an_object_are_accepted_and_reported():
    seen = reply_of(created(), item("done", 0, **function_call({"a": 1})), ended())
    assert (seen["parts"][0]["args"], seen["warnings"]) == ({"a": 1}, ["args_not_string"])


def test_numbers_out_of_range_are_ignored():
    call = b'{"type":"function_call","id":1e999,"call_id":"c","name":"ls","arguments":{"n":1e999}}'
    done = b'{"type":"response.output_item.done","output_index":0,"item":' + call + b"}"
    end = b'{"type":"response.completed","response":{"id":1e999,"usage":1e999,"output":[1e999]}}'
    seen = reply_of(created(), done, end)
    assert seen["parts"][0]["raw_args"] == '{"n":1e999}'
    assert seen["warnings"] == ["args_not_string"]


def test_a_call_no_event_closed_counts_when_the_whole_response_is_complete():
    seen = reply_of(created(), item("added", 0, **function_call("")), *arguments_in_pieces(), ended())
    assert (seen["parts"][0]["args_status"], seen["warnings"]) == ("ok", ["call_never_closed"])


def test_reasoning_shown_in_full_is_thinking_without_anything_to_send_back():
    content = [{"type": "reasoning_text", "text": "Hm."}]
    seen = reply_of(
        created(),
        event("reasoning_text.delta", output_index=0, content_index=0, delta="H"),
        event("reasoning_text.delta", output_index=0, content_index=0, delta="m."),
        item("done", 0, type="reasoning", id="rs_1", summary=[], content=content),
        item("done", 1, **message("So.")),
        ended(),
    )
    assert [part["text"] for part in seen["parts"]] == ["Hm.", "So."]
    assert seen["parts"][0]["provider_data"]["encrypted_content"] is None


def test_items_of_unknown_kinds_are_kept_as_they_came():
    raw = b'{"type":"web_search_call","id":"ws_1","action":{"n":1.50}}'
    done = b'{"type":"response.output_item.done","output_index":0,"item":' + raw + b"}"
    deltas = deltas_of(
        created(), {"type": "response.web_search_call.searching", "output_index": 0}, done, done, ended()
    )
    assert [delta.part for delta in deltas if isinstance(delta, PartClosed)] == [Opaque(raw.decode())]


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "response.something_new", "output_index": 0},
        {"type": "keepalive"},
        {"type": "response.output_text.delta", "output_index": 9, "delta": None},
        {"type": "response.output_text.delta", "output_index": 9, "delta": {"text": "x"}},
        {"type": "response.output_item.done", "output_index": 9, "item": None},
        {"type": "response.output_item.done", "output_index": 9},
        {"type": "response.output_item.added", "output_index": 9, "item": []},
        {"type": "response.function_call_arguments.delta", "output_index": 9, "delta": 7, "item_id": []},
        {"type": "response.in_progress", "response": None},
        {},
    ],
)
def test_events_of_unknown_types_are_ignored(odd):
    seen = reply_of(created(), odd, item("done", 0, **message("So.")), ended())
    assert [part["text"] for part in seen["parts"] if part["type"] == "text"] == ["So."]
    assert seen["complete"] is True


@pytest.mark.parametrize("odd", [b"{not json", b"[1", b'"x"', b"7", b"[" * 5000])
def test_data_that_is_no_event_is_reported_and_skipped(odd):
    seen = reply_of(created(), odd, item("done", 0, **message("So.")), ended())
    assert (seen["complete"], seen["warnings"]) == (True, ["undecodable_event"])


def test_lone_surrogates_and_control_characters_are_read_leniently():
    delta = b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"a\\ud83d\tb"}'
    seen = reply_of(created(), delta, ended())
    assert seen["parts"][0]["text"] == "a\ufffd\tb"


def test_a_reply_as_one_document():
    output = [message("Hello"), function_call()]
    response = {"object": "response", "id": "resp_1", "status": "completed", "model": "m", "error": None}
    body = json.dumps({**response, "output": output, "usage": USAGE}).encode()
    seen = outcome(list(responses().decoder().whole(body)))
    assert [part["type"] for part in seen["parts"]] == ["text", "tool_call"]
    assert (seen["id"], seen["stop_reason"], seen["usage"]["input"]) == ("resp_1", "tool_use", 30)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"a":1}', b"not json", b'{"object":"list"}'])
def test_a_document_that_is_no_reply_fails(body):
    (failed,) = responses().decoder().whole(body)
    assert (failed.failure.kind, failed.failure.retryable) == ("server", True)


def test_an_error_document_is_a_failure_with_its_message():
    (failed,) = responses().decoder().whole(b'{"error":{"message":"Bad key.","code":"invalid_api_key"}}')
    assert (failed.failure.kind, failed.failure.message) == ("auth", "Bad key.")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 5, "output_tokens": 2}, (5, 2, 0, 0, 0)),
        ({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 9}, "output_tokens": None}, (0, 0, 5, 0, 0)),
        (
            {"input_tokens": "5", "output_tokens": 2.0, "output_tokens_details": {"reasoning_tokens": 7}},
            (5, 2, 0, 0, 2),
        ),
    ],
)
def test_tokens_are_counted_in_buckets_that_do_not_overlap(usage, expected):
    seen = reply_of(created(), ended(usage=usage))["usage"]
    assert tuple(seen[name] for name in ("input", "output", "cache_read", "cache_write", "reasoning")) == expected


@pytest.mark.parametrize("usage", [None, {}, [], {"total_tokens": 3}])
def test_empty_usage_is_not_reported(usage):
    assert reply_of(created(), ended(usage=usage))["usage"] is None
