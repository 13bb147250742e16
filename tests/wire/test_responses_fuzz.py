"""Property tests of the Responses decoder: any events give a reply with one end that can be sent back."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from bradawl.core.deltas import PartClosed, ReplyEnded, StreamFailed
from bradawl.core.events import RequestParams
from bradawl.core.messages import Text, ToolCall, ToolResult, ToolResults, User, calls_of
from bradawl.core.ports import ModelInfo
from bradawl.folds.assembler import Assembler
from bradawl.providers.codec import ServerEvent
from wire.cases import PREFIX
from wire.responses_checker import check_request, responses
from wire.responses_events import STANDARD_STREAM
from wire.responses_messages import ORIGIN

NAMES = sorted({event["type"].removeprefix("response.") for event in STANDARD_STREAM})
NAMES += ["refusal.delta", "refusal.done", "reasoning_text.delta", "reasoning_text.done", "incomplete", "failed"]
TYPES = ["message", "reasoning", "function_call", "web_search_call", "custom_tool_call", None]

_odd = st.sampled_from([None, "", "x", 0, 1.5, [], {}, [None], {"text": "t"}, "\ud83d", '{"a":1}', "fc_1", "rs_1"])
_index = st.sampled_from([0, 0, 1, 2, None, "1", -1, 1.0, 10**9])
_pieces = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["output_text", "refusal", "summary_text"]),
            "text": st.just("t") | _odd,
            "refusal": _odd,
        },
    )
    | _odd,
    max_size=2,
)
_items = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={
        "id": st.sampled_from(["rs_1", "fc_1", "msg_1", "fc_2"]) | _odd,
        "call_id": st.sampled_from(["call_1", "call_2"]) | _odd,
        "name": st.just("ls") | _odd,
        "arguments": st.just('{"a":1}') | _odd,
        "status": st.sampled_from(["completed", "incomplete"]),
        "content": _pieces | _odd,
        "summary": _pieces | _odd,
        "encrypted_content": st.just("ENC") | _odd,
        "phase": st.sampled_from(["commentary", "final_answer"]),
    },
)
_responses = st.fixed_dictionaries(
    {},
    optional={
        "id": st.just("resp_1") | _odd,
        "model": _odd,
        "status": st.sampled_from(["completed", "incomplete", "failed"]) | _odd,
        "output": st.lists(_items | _odd, max_size=3) | _odd,
        "usage": st.fixed_dictionaries({"input_tokens": _odd}) | _odd,
        "error": st.fixed_dictionaries({"message": _odd, "code": _odd}) | _odd,
        "incomplete_details": st.fixed_dictionaries({"reason": _odd}) | _odd,
    },
)
_events = st.fixed_dictionaries(
    {"type": st.sampled_from([f"response.{name}" for name in NAMES])},
    optional={
        "output_index": _index | _odd,
        "item_id": st.sampled_from(["fc_1", "rs_1"]) | _odd,
        "content_index": _odd.filter(lambda value: not isinstance(value, list | dict)) | st.just(0),
        "summary_index": st.sampled_from([0, 1]) | _odd,
        "delta": st.just('{"a":1}') | _odd,
        "text": st.just("t") | _odd,
        "refusal": _odd,
        "arguments": st.just('{"a":1}') | _odd,
        "item": _items | _odd,
        "response": _responses | _odd,
    },
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_events | st.sampled_from(STANDARD_STREAM), max_size=14))
def test_any_events_give_a_reply_that_ends_once_and_can_be_sent_back(events):
    reply, assembler = responses().decoder(), Assembler(ORIGIN)
    deltas = [delta for event in events for delta in reply.feed(ServerEvent("", json.dumps(event)))]
    deltas += reply.finish()
    for delta in deltas:
        assembler.feed(delta)
    assert [delta for delta in deltas if isinstance(delta, ReplyEnded | StreamFailed)] == deltas[-1:]
    places = [delta.index for delta in deltas if isinstance(delta, PartClosed)]
    assert len(places) == len(set(places))
    ids = [call.id for call in calls_of(assembler.reply())]
    assert len(ids) == len(set(ids))
    closed = [delta.part for delta in deltas if isinstance(delta, PartClosed) and isinstance(delta.part, ToolCall)]
    assert {call.id for call in closed} == set(ids)

    encoder = responses().encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(User((Text("Go."),)))
    encoder.append(assembler.reply())
    encoder.append(ToolResults(tuple(ToolResult(call_id, "ls", (Text("done"),)) for call_id in ids)))
    assert check_request(b"".join(encoder.body(RequestParams()))) == []


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60) | st.builds(lambda value: json.dumps(value).encode(), _responses))
def test_any_document_ends_once(body):
    deltas = list(responses().decoder().whole(body))
    assert [delta for delta in deltas if isinstance(delta, ReplyEnded | StreamFailed)] == deltas[-1:]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40), st.sampled_from(["", "error", "response.completed", "response.output_item.done", "x"]))
def test_any_text_as_an_event_is_ignored(data, name):
    reply = responses().decoder()
    deltas = [*reply.feed(ServerEvent(name, data)), *reply.finish()]
    assert [delta for delta in deltas if isinstance(delta, ReplyEnded | StreamFailed)] == deltas[-1:]
