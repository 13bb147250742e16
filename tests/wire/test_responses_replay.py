"""Replies as they are sent back to Responses servers."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import ModelInfo
from wire.cases import ASK, PREFIX
from wire.responses_checker import check_request, responses
from wire.responses_messages import (
    ELSEWHERE,
    ORIGIN,
    body_of,
    called,
    kinds,
    reply,
    result,
    said,
    sent,
    signed,
)

# ------------------------------------------------------------------ replays


def test_encrypted_reasoning_is_sent_back_byte_for_byte_before_its_call():
    data = '{"item_id":"rs_1","encrypted_content":"gA\\/\\u0041+="}'
    body = body_of([ASK, reply(Thinking("", provider_data=data), called())])
    expected = (
        b'{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA\\/\\u0041+="},{"type":"function_call"'
    )
    assert expected in body
    assert check_request(body) == []


def test_phases_and_ids_are_kept_with_their_reasoning():
    items = sent([ASK, reply(signed(), said("Looking.", phase="commentary"), called()), ToolResults((result(),))])
    assert kinds(items) == ["user", "reasoning", "message", "function_call", "function_call_output"]
    assert (items[2]["id"], items[2]["phase"]) == ("msg_1", "commentary")
    assert items[3]["id"] == "fc_1"


def test_without_its_reasoning_an_item_is_sent_without_its_id():
    items = sent([ASK, reply(said("Looking.", phase="commentary"), called()), ToolResults((result(),))])
    assert items[1]["id"] != "msg_1"
    assert items[1]["phase"] == "commentary"
    assert "id" not in items[2]


@pytest.mark.parametrize("encrypted", [None, ""])
def test_reasoning_that_was_not_encrypted_is_never_sent(encrypted):
    items = sent([ASK, reply(signed(encrypted=encrypted), called()), ToolResults((result(),))])
    assert kinds(items) == ["user", "function_call", "function_call_output"]
    assert "id" not in items[1]
    assert "rs_1" not in json.dumps(items)


def test_on_another_model_reasoning_ids_and_unknown_items_are_dropped_and_the_rest_kept():
    foreign = reply(
        signed(), said("Hm.", phase="commentary"), Opaque('{"type":"x"}'), called(), Refusal("No."), origin=ELSEWHERE
    )
    items = sent([ASK, foreign, ToolResults((result(),))])
    assert kinds(items) == ["user", "message", "function_call", "message", "function_call_output"]
    assert "phase" not in items[1]
    assert items[1]["id"] != "msg_1"
    assert "id" not in items[2]
    assert [items[1]["content"][0]["text"], items[3]["content"][0]["text"]] == ["Hm.", "No."]


@pytest.mark.parametrize("call_id", ["x" * 65, "functions.read:0", "", "a b", "ä"])
def test_invalid_ids_are_rewritten_consistently_in_call_and_result(call_id):
    messages = [ASK, reply(ToolCall(call_id, "ls", "{}"), origin=ELSEWHERE), ToolResults((result(call_id, "found"),))]
    items = sent(messages)
    assert items[1]["call_id"] == items[2]["call_id"]
    assert items[2]["output"] == "found"
    assert items == sent(messages)


def test_ids_repeated_in_a_later_reply_are_made_distinct():
    turn = [reply(signed(), called()), ToolResults((result(),))]
    items = sent([ASK, *turn, *turn])
    assert len({item["call_id"] for item in items if item.get("type") == "function_call"}) == 2


def test_two_calls_of_one_id_each_get_their_own_result():
    items = sent([ASK, reply(called(), called()), ToolResults((result(text="one"), result(text="two")))])
    assert [item["output"] for item in items[3:]] == ["one", "two"]


def test_a_refusal_is_sent_back_as_a_refusal():
    items = sent([ASK, reply(Refusal("I can't.")), ASK])
    assert items[1]["content"] == [{"type": "refusal", "refusal": "I can't."}]


def test_images_and_files_are_sent_inside_their_results():
    parts = (Text("Two."), Image("image/png", b"\x89"), Document("application/pdf", b"%PDF", "a.pdf"))
    items = sent(
        [ASK, reply(called()), ToolResults((ToolResult("call_1", "read_file", parts),), (Note("n", "Go on.", "user"),))]
    )
    assert kinds(items) == ["user", "function_call", "function_call_output"]
    assert [piece["type"] for piece in items[2]["output"]] == ["input_text", "input_image", "input_file", "input_text"]
    assert "Go on." in items[2]["output"][3]["text"]


def test_unknown_items_are_sent_back_unchanged_unless_they_need_an_answer():
    search = '{"type":"web_search_call","id":"ws_1","action":{"q":1.50}}'
    body = body_of([ASK, reply(Opaque(search), said("Found.")), ASK])
    assert search.encode() in body
    waits = Opaque('{"type":"custom_tool_call","call_id":"c","name":"x","input":""}')
    assert kinds(sent([ASK, reply(waits, said("So.")), ASK])) == ["user", "message", "user"]
    hosted = [Opaque('{"type":"shell_call","call_id":"c"}'), Opaque('{"type":"shell_call_output","call_id":"c"}')]
    assert kinds(sent([ASK, reply(*hosted, said("So.")), ASK]))[1:3] == ["shell_call", "shell_call_output"]


@pytest.mark.parametrize(
    "data", ["[1]", "x", "{}", "[" * 5000, '{"type":7}', '{"type":1e999,"item_id":1e999,"encrypted_content":1e999}']
)
def test_provider_data_that_is_no_item_is_ignored(data):
    parts = (Thinking("Hm.", provider_data=data), Text("So.", data), Opaque(data), ToolCall("c", "ls", "{}"))
    assert kinds(sent([ASK, reply(*parts)]))[-2:] == ["function_call", "function_call_output"]


# ------------------------------------------------------------------ cut replies


def test_a_cut_reply_with_a_closed_call_is_sent_back_unchanged():
    items = sent([ASK, reply(signed(), called(), Thinking("And"), complete=False), ToolResults((result(),))])
    assert kinds(items) == ["user", "reasoning", "function_call", "function_call_output"]


def test_reasoning_before_a_cut_text_is_not_sent_alone():
    items = sent([ASK, reply(signed(), Text("I was ab"), complete=False), ASK])
    assert kinds(items) == ["user", "message", "user"]


def test_a_cut_reply_with_unsigned_reasoning_is_described_as_text():
    cut = reply(Text("Look."), Thinking("Hm."), called(), complete=False)
    items = sent([ASK, cut, ToolResults((result(text="12 lines"),)), ASK])
    assert kinds(items) == ["user", "message", "user", "user"]
    told = "\n".join(piece["text"] for piece in items[2]["content"])
    assert 'read_file {"path":"a.py"}' in told
    assert "12 lines" in told
    assert "cut off" in told


def test_calls_of_a_cut_reply_without_results_are_described_as_unfinished():
    items = sent([ASK, reply(Thinking("Hm."), called(), complete=False), ASK])
    assert "not run to its end" in json.dumps(items[1])


# ------------------------------------------------------------------ any conversation

_texts = st.text(max_size=8)
_ids = st.sampled_from(["call_1", "call_2", "x" * 70, "a:b", ""]) | _texts
_item_ids = st.sampled_from(["rs_1", "rs_2", "fc_1", "fc_2", "msg_1", "msg_2_", "rs_" + "x" * 70, None]) | _texts
_data = st.builds(
    json.dumps,
    st.fixed_dictionaries(
        {"item_id": _item_ids},
        optional={
            "encrypted_content": st.sampled_from(["ENC", "", None]),
            "phase": st.sampled_from(["commentary", "final_answer"]),
            "summary": st.just([]),
        },
    ),
) | st.sampled_from(["", "{}", "[]", "x"])
_items = st.sampled_from(['{"type":"ws","id":"w1"}', '{"type":"ws"}', '{"type":"custom_tool_call","call_id":"c"}'])
_parts = st.one_of(
    st.builds(Text, _texts, _data),
    st.builds(Thinking, _texts, provider_data=_data),
    st.builds(Refusal, _texts),
    st.builds(Opaque, _items | _texts),
    st.builds(
        ToolCall,
        _ids,
        st.just("ls") | _texts,
        st.sampled_from(["{}", "", "[", '{"a":1}']) | _texts,
        st.sampled_from(["ok", "truncated", "malformed"]),
        provider_data=_data,
    ),
)
_shown = st.one_of(st.builds(Text, _texts), st.builds(Image, st.just("image/png"), st.binary(max_size=3)))
_notes = st.lists(st.builds(Note, st.just("n"), _texts), max_size=2).map(tuple)
_messages = st.one_of(
    st.builds(User, st.lists(_shown, max_size=3).map(tuple), _notes),
    st.builds(
        Assistant, st.lists(_parts, max_size=6).map(tuple), st.sampled_from([ORIGIN, ORIGIN, ELSEWHERE]), st.booleans()
    ),
    st.builds(
        ToolResults,
        st.lists(st.builds(ToolResult, _ids, st.just("ls"), st.lists(_shown, max_size=2).map(tuple)), max_size=3).map(
            tuple
        ),
        _notes,
    ),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_messages, max_size=6))
def test_any_conversation_becomes_a_valid_request(messages):
    encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(ASK)
    before = b""
    for message in messages:
        encoder.append(message)
        head, items, _ = encoder.body(RequestParams())
        assert (head + items).startswith(before)
        before = head + items
    assert check_request(b"".join(encoder.body(RequestParams()))) == []
