"""Points 19 to 55 of the conformance list: Chat Completions streams, and arguments of calls."""

import json
import time

import pytest

from bradawl.core.arguments import parse_arguments
from bradawl.core.deltas import PartClosed
from bradawl.core.messages import Assistant, Origin, ToolCall
from bradawl.providers.codec import ServerEvent
from wire.chat_reading import read
from wire.points import CHAT, answers_to, ask, body_of, check_sample, reply_in, request_of, sample, seen_in
from wire.points import wire as format_of
from wire.replay import call, chat, chunk, decode, stream_of

FINISH = chunk("tool_calls")


def calls_in(*events):
    """(id, name, arguments) of the calls of a stream."""
    parts = read(*events)["parts"]
    return [(part["id"], part["name"], part["args"]) for part in parts if part["type"] == "tool_call"]


def fragment(*entries, finish=None):
    return chunk(finish, tool_calls=list(entries))


def replayed(api, reply, **fields):
    """The reply as it is encoded in the next request."""
    request = request_of(api, ask(), reply, answers_to(reply), **fields)
    return next(message for message in request["messages"] if message["role"] == "assistant")


# ------------------------------------------------------------------ 19 to 46: the stream


def test_19_a_call_in_fragments():
    check_sample(2)


def test_20_parallel_calls_that_interleave():
    check_sample(3)


def test_21_usage_only_in_the_last_chunk():
    check_sample(4)


@pytest.mark.parametrize("number", [4, 25, 34])
def test_22_cached_written_and_reasoning_tokens_are_told_apart(number):
    usage = check_sample(number)["usage"]
    assert usage["reasoning"] <= usage["output"]
    assert all(count >= 0 for count in usage.values())


def test_23_the_index_is_missing():
    check_sample(5)


def test_24_the_index_is_always_zero():
    check_sample(6)


@pytest.mark.parametrize("nothing", [None, ""])
def test_25_id_and_name_of_a_continuation_are_null_or_empty(nothing):
    events = [
        fragment(call('{"path":', index=0, id="c1", name="read_file")),
        fragment({"index": 0, "id": nothing, "function": {"name": nothing, "arguments": ' "a"}'}}),
        fragment({"index": 0, "id": nothing, "function": {"name": nothing, "arguments": None}}),
    ]
    assert calls_in(*events, FINISH) == [("c1", "read_file", {"path": "a"})]


def test_26_no_id_at_all():
    check_sample(8)


def test_27_two_calls_with_one_id_get_two():
    events = [
        fragment(call('{"path": "a"}', index=0, id="same", name="read_file")),
        fragment(call('{"path": "b"}', index=1, id="same", name="read_file")),
    ]
    (first, *_), (second, *_) = calls_in(*events, FINISH)
    assert first == "same" and second not in ("", "same")


def test_28_the_whole_call_in_one_chunk_with_its_finish():
    check_sample(9)


def test_29_arguments_as_an_object():
    check_sample(10)


def test_30_usage_in_every_chunk_counts_once():
    events = [
        {**chunk(content="x"), "usage": {"prompt_tokens": 9, "completion_tokens": count}} for count in range(1, 6)
    ]
    usage = read(*events, chunk("stop"))["usage"]
    assert (usage["input"], usage["output"]) == (9, 5)


def test_31_usage_inside_the_choice():
    event = chunk("stop", content="x")
    event["choices"][0]["usage"] = {"prompt_tokens": 8, "completion_tokens": 3, "cached_tokens": 2}
    assert read(event)["usage"] == {"input": 6, "output": 3, "cache_read": 2, "cache_write": 0, "reasoning": 0}


@pytest.mark.parametrize("choices", [None, [], [{"index": 0}], [{"index": 0, "delta": None}]])
def test_32_choices_are_null_or_empty_or_have_no_delta(choices):
    odd = {"id": "r1", "model": "demo-model", "choices": choices}
    assert read(odd, chunk(content="hi"), odd, chunk("stop"))["parts"] == [{"type": "text", "text": "hi"}]


def test_33_done_is_missing():
    check_sample(15)


def test_34_id_or_index_change_within_one_call():
    check_sample(18)
    pieces = ['{"path"', ': "a', '"}']
    events = [fragment(call(pieces[0], index=0, id="c1", name="read_file"))]
    events += [fragment(call(piece, index=place)) for place, piece in enumerate(pieces[1:], 1)]
    assert calls_in(*events, FINISH) == [("c1", "read_file", {"path": "a"})]


def test_35_the_name_comes_with_every_fragment():
    pieces = ['{"path"', ': "a"', "}"]
    events = [fragment(call(piece, index=0, id="c1", name="read_file")) for piece in pieces]
    assert calls_in(*events, FINISH) == [("c1", "read_file", {"path": "a"})]


def test_36_an_empty_list_of_calls_in_every_chunk():
    check_sample(20)


def test_37_stop_although_there_are_calls():
    events = [fragment(call('{"path": "a"}', index=0, id="c1", name="read_file")), chunk("stop")]
    assert read(*events)["stop_reason"] == "tool_use"


def test_38_tool_calls_without_calls():
    assert check_sample(22)["stop_reason"] == "end_turn"


def test_39_an_unknown_finish_reason():
    assert check_sample(23)["stop_reason"] == "unknown"


def test_40_two_finish_reasons_and_data_after_the_end():
    check_sample(24)
    late = stream_of(chunk(content="hi"), chunk("length"), chunk("stop")) + stream_of(chunk(content=" late"))
    got = seen_in("openai_chat", late)
    assert (got["parts"], got["stop_reason"]) == ([{"type": "text", "text": "hi"}], "max_tokens")


def test_41_reasoning_is_kept_and_replayed_to_its_own_origin_only():
    check_sample(25)
    events = [
        chunk(reasoning_content="because"),
        fragment(call('{"path": "a"}', index=0, id="c1", name="read_file")),
        FINISH,
    ]
    reply = reply_in("openai_chat", stream_of(*events))
    kept = replayed("openai_chat", reply, base_url="https://api.deepseek.com")
    assert kept["reasoning_content"] == "because"
    stranger = Assistant(reply.parts, Origin("openai_chat", "elsewhere", "other"))
    assert "because" not in json.dumps(replayed("openai_chat", stranger, base_url="https://api.deepseek.com"))


def test_42_reasoning_details_are_merged_and_replayed_as_they_came():
    thinking = next(part for part in check_sample(26)["parts"] if part["type"] == "thinking")
    reply = reply_in("openai_chat", sample(26)[0])
    calling = Assistant((*reply.parts, ToolCall("c9", "read_file", '{"path":"a"}')), reply.origin)
    kept = replayed("openai_chat", calling, base_url="https://openrouter.ai/api/v1")
    assert kept["reasoning_details"] == thinking["provider_data"]["reasoning_details"]


def test_43_content_as_a_list():
    check_sample(33)


def test_44_refusals_and_content_filters():
    assert check_sample(53)["stop_reason"] == "content_filter"
    got = read(chunk(refusal="I can't "), chunk(refusal="help."), chunk("stop"))
    assert (got["parts"], got["stop_reason"]) == ([{"type": "refusal", "text": "I can't help."}], "refusal")


def test_45_the_role_is_missing():
    check_sample(14)
    assert read({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})["complete"]


def test_46_the_old_function_call_field_is_one_call():
    events = [
        chunk(function_call={"name": "read_file", "arguments": ""}),
        chunk(function_call={"arguments": '{"path":'}),
        chunk(function_call={"arguments": ' "a"}'}),
        chunk("function_call"),
    ]
    ((call_id, name, arguments),) = calls_in(*events)
    assert call_id and (name, arguments) == ("read_file", {"path": "a"})


# ------------------------------------------------------------------ 47 to 55: arguments


@pytest.mark.parametrize("number", [44, 46, 58])
def test_47_truncated_arguments_are_never_run(number):
    if number == 44:  # a stream that is cut in a call, without a finish
        cut = stream_of(fragment(call('{"path": "a', index=0, id="c1", name="read_file")), done=False)
        got = seen_in("openai_chat", cut)
        assert not got["complete"] and got["error"]["kind"] == "connection"
        closed = [delta for delta in decode(chat(), [cut]) if isinstance(delta, PartClosed)]
        assert not [delta for delta in closed if isinstance(delta.part, ToolCall)]
        return
    statuses = [part["args_status"] for part in check_sample(number)["parts"] if part["type"] == "tool_call"]
    assert statuses and "ok" not in statuses


def test_48_malformed_arguments_are_an_error_and_the_history_stays_json():
    (part,) = [part for part in check_sample(47)["parts"] if part["type"] == "tool_call"]
    assert (part["args_status"], part["args"]) == ("malformed", None)
    for api in ("openai_chat", "openai_responses", "anthropic_messages"):
        bad = ToolCall("c1", "read_file", part["raw_args"], "malformed")
        reply = Assistant((bad,), format_of(api).origin)
        assert format_of(api).check(body_of(api, ask(), reply, answers_to(reply))) == []


@pytest.mark.parametrize("raw", ["[1]", "7", '"x"', "null", "true"])
def test_49_arguments_that_are_no_object(raw):
    assert parse_arguments(raw) == (None, "malformed")
    ((_, _, arguments),) = calls_in(fragment(call(raw, index=0, id="c1", name="read_file")), FINISH)
    assert arguments is None


def test_50_arguments_encoded_twice():
    check_sample(49)


def test_51_control_characters_in_arguments():
    raw = '{"text": "a\tb\nc"}'
    ((_, _, arguments),) = calls_in(fragment(call(raw, index=0, id="c1", name="write")), FINISH)
    assert arguments == {"text": "a\tb\nc"}


def test_52_half_a_surrogate_pair():
    ((_, _, arguments),) = calls_in(fragment(call('{"text": "x\\ud83d y"}', index=0, id="c1", name="write")), FINISH)
    text = arguments["text"]
    assert text.startswith("x") and text.endswith(" y")
    reply = Assistant((ToolCall("c1", "write", '{"text": "x\\ud83d y"}'),), CHAT.origin)
    assert CHAT.check(body_of("openai_chat", ask("half \ud83d here"), reply, answers_to(reply))) == []


def test_53_empty_arguments_are_an_empty_object():
    check_sample(52)
    for raw in ("", "  \n"):
        ((_, _, arguments),) = calls_in(fragment(call(raw, index=0, id="c1", name="list")), FINISH)
        assert arguments == {}


@pytest.mark.parametrize("raw", ['{"n": NaN}', '{"n": [Infinity]}', '{"n": -Infinity}'])
def test_54_not_a_number_is_malformed(raw):
    assert parse_arguments(raw) == (None, "malformed")


def test_55_arguments_in_single_characters_take_linear_time():
    def cpu_s(size):
        pieces = {
            char: ServerEvent("", json.dumps(fragment(call(char, index=0)))) for char in {*json.dumps({"t": "x{"}), "x"}
        }
        text = json.dumps({"t": "x{" * (size // 2)})
        reply = chat().decoder()
        list(reply.feed(ServerEvent("", json.dumps(fragment(call("", index=0, id="c1", name="write"))))))
        started = time.process_time()
        for char in text:
            reply.feed(pieces[char])
        ended = list(reply.feed(ServerEvent("", "[DONE]")))
        spent = time.process_time() - started
        assert ended[0].part.raw_arguments == text
        return spent

    small = min(cpu_s(32_768) for _ in range(3))
    assert cpu_s(8 * 32_768) < 8 * small * 3 + 0.2
