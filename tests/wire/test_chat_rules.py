"""The Chat Completions decoder and quirks of servers: one rule for each test."""

import json

import pytest

from bradawl.core.deltas import ReplyEnded
from bradawl.providers.codec import ServerEvent
from bradawl.providers.encoding import new_call_id
from wire.chat_reading import calls_in, closed_in, feed, read
from wire.replay import call, chat, chunk, decode, outcome, stream_of

# ------------------------------------------------------------------ assembling calls


def test_an_empty_id_empty_name_and_null_arguments_continue_a_call():
    seen = read(
        chunk(tool_calls=[call('{"a"', index=0, id="c1", name="ls")]),
        chunk(tool_calls=[call(":1}", index=0, id="", name="")]),
        chunk(tool_calls=[call(None, index=0, id=None, name=None)]),
        chunk("tool_calls"),
    )
    assert calls_in(seen) == [("c1", "ls", '{"a":1}')]
    assert seen["warnings"] == []


def test_an_index_that_counts_up_with_each_fragment_is_still_one_call():
    seen = read(
        chunk(tool_calls=[call('{"cmd"', index=0, id="c1", name="bash")]),
        chunk(tool_calls=[call(':"ls', index=1)]),
        chunk(tool_calls=[call('"}', index=2)]),
        chunk("tool_calls"),
    )
    assert calls_in(seen) == [("c1", "bash", '{"cmd":"ls"}')]


def test_a_name_repeated_with_each_fragment_is_taken_once():
    seen = read(
        chunk(tool_calls=[call('{"a"', index=0, id="c1", name="bash")]),
        chunk(tool_calls=[call(":1", index=0, id="c1", name="bash")]),
        chunk(tool_calls=[call("}", index=0, id="c1", name="bash")]),
        chunk("tool_calls"),
    )
    assert calls_in(seen) == [("c1", "bash", '{"a":1}')]


@pytest.mark.parametrize(
    ("names", "whole"),
    [(["read_", "file"], "read_file"), (["read", "read_file"], "read_file"), (["ls", "ls"], "ls")],
)
def test_a_name_may_come_in_pieces_grow_or_repeat(names, whole):
    events = [chunk(tool_calls=[call("", index=0, id="c1", name=name)]) for name in names]
    seen = read(*events, chunk(tool_calls=[call("{}", index=0)]), chunk("tool_calls"))
    assert calls_in(seen) == [("c1", whole, "{}")]


def test_whole_calls_that_share_an_index_and_have_no_ids_stay_apart():
    seen = read(
        chunk(tool_calls=[call('{"p":1}', index=0, name="ls")]),
        chunk(tool_calls=[call('{"p":2}', index=0, name="ls")]),
        chunk("tool_calls"),
    )
    assert [arguments for _, _, arguments in calls_in(seen)] == ['{"p":1}', '{"p":2}']
    assert len({call_id for call_id, _, _ in calls_in(seen)}) == 2


def test_a_header_repeated_after_a_whole_call_does_not_begin_another():
    seen = read(
        chunk(tool_calls=[call('{"p":1}', index=0, id="c1", name="ls")]),
        chunk(tool_calls=[call("", index=0, id="c1", name="ls")]),
        chunk("tool_calls"),
    )
    assert calls_in(seen) == [("c1", "ls", '{"p":1}')]


def test_without_index_fragments_go_to_the_call_of_their_id():
    seen = read(
        chunk(tool_calls=[call('{"a"', id="c1", name="ls")]),
        chunk(tool_calls=[call('{"b"', id="c2", name="cat")]),
        chunk(tool_calls=[call(":1}", id="c1")]),
        chunk(tool_calls=[call(":2}", id="c2")]),
        chunk("tool_calls"),
    )
    assert calls_in(seen) == [("c1", "ls", '{"a":1}'), ("c2", "cat", '{"b":2}')]
    assert seen["warnings"] == ["index_missing"]


def test_without_index_and_id_a_name_begins_a_call_and_the_rest_continues_the_last():
    seen = read(
        chunk(tool_calls=[call('{"a"', name="ls")]),
        chunk(tool_calls=[call(":1}")]),
        chunk(tool_calls=[call('{"b"', name="cat")]),
        chunk(tool_calls=[call(":2}", name="cat")]),
        chunk("tool_calls"),
    )
    assert [(name, raw) for _, name, raw in calls_in(seen)] == [("ls", '{"a":1}'), ("cat", '{"b":2}')]


def test_two_calls_with_one_id_get_two_ids():
    seen = read(
        chunk(tool_calls=[call('{"a":1}', index=0, id="same", name="ls")]),
        chunk(tool_calls=[call('{"a":2}', index=1, id="same", name="ls")]),
        chunk("tool_calls"),
    )
    (first, _, one), (second, _, two) = calls_in(seen)
    assert (first, one, two) == ("same", '{"a":1}', '{"a":2}')
    assert second != "same"
    assert "duplicate_call_id" in seen["warnings"]


def test_a_minted_id_is_never_one_the_server_uses():
    codec = chat()
    data = stream_of(
        chunk(tool_calls=[call("{}", index=0, name="ls"), call("{}", index=1, id="call_generated1", name="ls")]),
        chunk("tool_calls"),
    )
    ids = [call_id for call_id, _, _ in calls_in(outcome(decode(codec, [data])))]
    assert len(set(ids)) == 2
    assert ids[1] == "call_generated1"


def test_ids_made_here_have_twelve_characters_of_base_36():
    made = {new_call_id() for _ in range(200)}
    assert len(made) == 200
    assert all(len(one) == 17 and one[5:].isalnum() and one[5:] == one[5:].lower() for one in made)


def test_the_old_function_call_field_is_one_call():
    seen = read(
        chunk(function_call={"name": "ls", "arguments": '{"a"'}),
        chunk(function_call={"arguments": ":1}"}),
        chunk("function_call"),
    )
    assert [(name, raw) for _, name, raw in calls_in(seen)] == [("ls", '{"a":1}')]
    assert seen["stop_reason"] == "tool_use"


def test_garbage_in_tool_calls_is_ignored():
    seen = read(chunk(tool_calls=[None, 3, "x", {}, {"index": 0}]), chunk("stop", content="fine"))
    assert seen["parts"] == [{"type": "text", "text": "fine"}]


# ------------------------------------------------------------------ closing calls


def test_a_call_is_closed_by_the_finish_reason_and_not_by_balanced_json():
    first, second = feed(
        chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]),
        chunk("tool_calls"),
    )
    assert closed_in(first) == []
    assert closed_in(second) == ["c1"]


def test_a_whole_call_is_closed_when_the_next_one_begins():
    _, second = feed(
        chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]),
        chunk(tool_calls=[call("", index=1, id="c2", name="ls")]),
    )
    assert closed_in(second) == ["c1"]


@pytest.mark.parametrize("delta", [{"content": "then"}, {"reasoning": "hm"}, {"refusal": "no"}])
def test_a_whole_call_is_closed_when_something_else_follows(delta):
    _, second = feed(chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]), chunk(**delta))
    assert closed_in(second) == ["c1"]


@pytest.mark.parametrize("arguments", ["", "{}", '{"a":', "[1]", '"{}"', '{"a":1}}', '{"a": NaN}', "{'a':1}"])
def test_other_arguments_wait_for_the_end(arguments):
    _, second = feed(
        chunk(tool_calls=[call(arguments, index=0, id="c1", name="ls")]),
        chunk(tool_calls=[call("", index=1, id="c2", name="ls")], content="more"),
    )
    assert closed_in(second) == []


def test_calls_that_interleave_wait_until_each_is_whole():
    *_, last = feed(
        chunk(tool_calls=[call('{"a"', index=0, id="c1", name="ls")]),
        chunk(tool_calls=[call('{"b"', index=1, id="c2", name="ls")]),
        chunk(tool_calls=[call(":1}", index=0)]),
        chunk(tool_calls=[call(":2}", index=1)]),
    )
    assert closed_in(last) == ["c1"]


def test_text_for_a_closed_call_is_dropped_and_reported():
    seen = read(
        chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]),
        chunk(content="text"),
        chunk(tool_calls=[call("  ", index=0)]),
        chunk(tool_calls=[call(',"b":2}', index=0)]),
        chunk("tool_calls"),
    )
    assert calls_in(seen) == [("c1", "ls", '{"a":1}')]
    assert seen["warnings"] == ["arguments_after_close"]


def test_after_a_content_filter_no_call_is_closed_before_the_reply_ends():
    _, second = feed(
        chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]),
        chunk("content_filter"),
    )
    assert second == []


# ------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "finish", "status"),
    [
        ('{"a":1', "length", "truncated"),
        ('{"a":1', "tool_calls", "malformed"),
        ("[1,2]", "tool_calls", "malformed"),
        ('"text"', "tool_calls", "malformed"),
        ('{"a":NaN}', "tool_calls", "malformed"),
        ('{"t":"line\nbreak\ttab"}', "tool_calls", "ok"),
        ('{"t":"x\\ud83d y"}', "tool_calls", "ok"),
        ("", "tool_calls", "ok"),
        ("  \n", "stop", "ok"),
    ],
)
def test_the_status_of_arguments_is_determined_when_the_reply_has_ended(arguments, finish, status):
    seen = read(chunk(tool_calls=[call(arguments, index=0, id="c1", name="ls")]), chunk(finish))
    assert [part["args_status"] for part in seen["parts"]] == [status]
    assert seen["parts"][0]["raw_args"] == arguments


def test_a_lone_surrogate_in_an_event_becomes_a_replacement_character():
    data = b'data: {"choices":[{"delta":{"content":"x\\ud83d y"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    seen = outcome(decode(chat(), [data]))
    assert seen["parts"] == [{"type": "text", "text": "x\ufffd y"}]


def test_nan_and_control_characters_around_the_reply_do_no_harm():
    data = b'data: {"choices":[{"delta":{"content":"a\tb"},"logprobs":NaN,"finish_reason":"stop"}]}\n\n'
    assert outcome(decode(chat(), [data]))["parts"] == [{"type": "text", "text": "a\tb"}]


# ------------------------------------------------------------------ cuts


def test_a_stream_cut_in_text_keeps_the_text_and_fails():
    seen = read(chunk(content="half a"), done=False)
    assert seen["parts"] == [{"type": "text", "text": "half a"}]
    assert (seen["stop_reason"], seen["complete"]) == ("error", False)
    assert (seen["error"]["kind"], seen["error"]["retryable"]) == ("connection", True)


def test_a_stream_cut_in_a_call_closes_nothing_more():
    deltas = decode(chat(), [stream_of(chunk(tool_calls=[call('{"a":1}', index=0, id="c1", name="ls")]), done=False)])
    assert closed_in(deltas) == []
    assert outcome(deltas)["complete"] is False


@pytest.mark.parametrize("reason", ["null", "", "tool_calls", "stop"])
def test_a_finish_reason_in_every_event_does_not_end_a_call_early(reason):
    pieces = [call("{", index=0, id="c1", name="ls"), *(call(text, index=0) for text in ('"path"', ':"a', '"}'))]
    seen = read(*(chunk(reason, tool_calls=[piece]) for piece in pieces), chunk("tool_calls"))
    assert calls_in(seen) == [("c1", "ls", '{"path":"a"}')]
    assert (seen["parts"][0]["args_status"], seen["stop_reason"], seen["warnings"]) == ("ok", "tool_use", [])


@pytest.mark.parametrize("reason", ["null", ""])
def test_an_empty_finish_reason_is_ignored(reason):
    blank = chunk(reason, tool_calls=[call("", index=0, id="c1", name="ls")])
    seen = read(chunk(reason, content="a"), blank, chunk(tool_calls=[call('{"a":1}', index=0)]), chunk("tool_calls"))
    assert calls_in(seen) == [("c1", "ls", '{"a":1}')]
    assert (seen["raw_stop"], seen["warnings"]) == ("tool_calls", [])


def test_a_single_call_in_place_of_the_list_of_calls_is_a_call():
    seen = read(chunk(tool_calls=call('{"a":1}', index=0, id="c1", name="ls")), chunk("tool_calls"))
    assert calls_in(seen) == [("c1", "ls", '{"a":1}')]


@pytest.mark.parametrize(
    ("raw", "status"),
    [('{"path":"a.py","content":"de', "truncated"), ("{", "truncated"), ("", "truncated"), ("{'a", "malformed")],
)
def test_the_received_part_of_a_cut_call_is_shown(raw, status):
    cut = chunk(tool_calls=[call("", index=0, id="c1", name="ls")]), chunk(tool_calls=[call(raw, index=0)])
    seen = read(chunk(content="Now."), *cut, done=False)
    begun = {"type": "tool_call", "id": "c1", "name": "ls", "raw_args": raw, "args": None, "args_status": status}
    assert seen["parts"][1] == begun
    assert (seen["stop_reason"], seen["error"]["code"]) == ("error", "stream_truncated")


def test_an_event_cut_in_the_middle_is_not_dispatched():
    whole = stream_of(chunk(content="kept"), chunk(content="lost"), done=False)
    assert outcome(decode(chat(), [whole[:-20]]))["parts"] == [{"type": "text", "text": "kept"}]


def test_nothing_comes_after_the_end():
    reply = chat().decoder()
    ends = [*reply.feed(ServerEvent("", "[DONE]"))]
    assert [type(delta) for delta in ends] == [ReplyEnded]
    assert [*reply.feed(ServerEvent("", json.dumps(chunk(content="late")))), *reply.finish()] == []


# ------------------------------------------------------------------ usage


def test_cumulative_usage_counts_once_with_its_last_report():
    usages = [{"prompt_tokens": 5, "completion_tokens": n, "total_tokens": 5 + n} for n in (1, 2, 3)]
    events = [{**chunk(content=str(n)), "usage": usage} for n, usage in enumerate(usages)]
    seen = read(*events, {**chunk("stop"), "usage": usages[-1]})
    assert seen["usage"] == {"input": 5, "output": 3, "cache_read": 0, "cache_write": 0, "reasoning": 0}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2, "cached_tokens": 4}, (6, 2, 4, 0, 0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 7}, (3, 2, 7, 0, 0)),
        ({"prompt_tokens": 10.0, "completion_tokens": "2"}, (10, 2, 0, 0, 0)),
        ({"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None}, (3, 0, 0, 0, 0)),
        (
            {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}},
            (0, 1, 3, 0, 0),
        ),
        ({"prompt_tokens": -5, "completion_tokens": True}, (0, 0, 0, 0, 0)),
    ],
)
def test_usage_is_converted_to_disjoint_buckets(usage, expected):
    seen = read({**chunk("stop", content="x"), "usage": usage})
    assert tuple(seen["usage"].values()) == expected


def test_usage_inside_the_choice_and_of_groq_is_found():
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    inside = chunk("stop", content="x")
    inside["choices"][0]["usage"] = usage
    assert read(inside)["usage"]["input"] == 7
    assert read({**chunk("stop", content="x"), "x_groq": {"id": "g", "usage": usage}})["usage"]["output"] == 2


# ------------------------------------------------------------------ chunks of any shape


def test_chunks_without_choices_or_delta_are_ignored():
    seen = read(
        {"id": "", "model": "", "choices": [], "prompt_filter_results": []},
        {"id": "r1", "model": "m", "choices": None},
        {"id": "r1", "choices": [{"index": 0, "finish_reason": None}]},
        chunk(content="hi"),
        {"id": "r1", "choices": [{"finish_reason": "stop", "delta": None}]},
    )
    assert seen["parts"] == [{"type": "text", "text": "hi"}]
    assert (seen["id"], seen["model"], seen["complete"]) == ("r1", "m", True)


def test_further_choices_are_ignored():
    event = chunk("stop", content="mine")
    event["choices"].append({"index": 1, "delta": {"content": "other"}, "finish_reason": "length"})
    seen = read(event)
    assert (seen["parts"], seen["raw_stop"]) == ([{"type": "text", "text": "mine"}], "stop")


def test_data_that_is_no_json_is_reported_and_skipped():
    data = b"data: hello?\n\n" + stream_of(chunk("stop", content="x"))
    seen = outcome(decode(chat(), [data]))
    assert (seen["warnings"], seen["complete"]) == (["undecodable_event"], True)


def test_a_whole_document_is_a_reply():
    body = {
        "id": "r1",
        "model": "m",
        "choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    seen = outcome(list(chat().decoder().whole(json.dumps(body).encode())))
    assert (seen["parts"], seen["complete"]) == ([{"type": "text", "text": "hi"}], True)


@pytest.mark.parametrize("ids", [("a", "b", "c"), ("a", "", "c"), ("", "", "")])
@pytest.mark.parametrize("arguments", [("", '{"path":"b"}', ""), ('{"path":"b"}', "", "{}"), ("{}", "{}", "{}")])
def test_each_call_of_a_whole_document_is_a_call_of_its_own(ids, arguments):
    calls = [
        {"id": name, "type": "function", "function": {"name": "read", "arguments": text}}
        for name, text in zip(ids, arguments, strict=True)
    ]
    body = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    parts = outcome(list(chat().decoder().whole(json.dumps(body).encode())))["parts"]
    assert [part["raw_args"] for part in parts] == list(arguments)
    assert len({part["id"] for part in parts}) == 3


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b"[]", b"no", b'{"choices":null}', b'{"choices":[]}'])
def test_a_document_that_is_no_reply_is_a_retryable_failure(body):
    seen = outcome(list(chat().decoder().whole(body)))
    assert (seen["error"]["kind"], seen["error"]["retryable"]) == ("server", True)


@pytest.mark.parametrize(
    ("raw", "stop"),
    [
        ("end", "end_turn"),
        ("eos", "end_turn"),
        ("model_length", "max_tokens"),
        ("sensitive", "content_filter"),
        ("model_context_window_exceeded", "context_overflow"),
        ("", "unknown"),
    ],
)
def test_nonstandard_finish_reasons_are_translated(raw, stop):
    assert read(chunk(raw, content="x"))["stop_reason"] == stop


@pytest.mark.parametrize("raw", ["error", "network_error", "insufficient_system_resource", "abort"])
def test_a_finish_reason_that_reports_an_error_is_a_retryable_failure(raw):
    seen = read(chunk(content="x"), chunk(raw))
    assert (seen["error"]["kind"], seen["error"]["retryable"], seen["raw_stop"]) == ("server", True, raw)


def test_a_refusal_is_a_part_and_a_stop():
    seen = read(chunk(refusal="I can't "), chunk(refusal="do that."), chunk("stop"))
    assert seen["parts"] == [{"type": "refusal", "text": "I can't do that."}]
    assert seen["stop_reason"] == "refusal"
