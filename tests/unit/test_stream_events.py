"""Lines of events: sub-agents, background commands, withdrawn replies, interleaved calls; texts JSON can't hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from printed_events import ORIGIN
from stream_runs import SCHEMA, kinds

from bradawl.app.json_values import call_input, json_line, new_uuid
from bradawl.app.stream_json.content import result_content
from bradawl.app.stream_json.event_lines import EventLines
from bradawl.app.stream_json.line_reader import LineSplitter, LongLine
from bradawl.core.deltas import CallDelta, Notice, RetryScheduled, TextDelta, ThinkingDelta
from bradawl.core.errors import Failure
from bradawl.core.events import (
    AgentEnded,
    AgentSpawned,
    AssistantReplied,
    Compacted,
    Envelope,
    JobEnded,
    JobStarted,
    Live,
    ModeChosen,
    PromptSubmitted,
    ReplyWithdrawn,
    StateChanged,
    ToolFinished,
    TurnFinished,
)
from bradawl.core.messages import Assistant, Document, Image, Opaque, Refusal, Text, Thinking, ToolCall
from bradawl.core.usage import Usage


class Stream:
    """The lines of the events that it is given; each fits the schema."""

    def __init__(self, *, is_partial=False) -> None:
        self.now = 0.0
        self.lines = []
        self._events = EventLines(self._take, model="gpt", is_partial=is_partial, monotonic=lambda: self.now)
        self._events.session_id = "s1"
        self._seq = 0

    def _take(self, line) -> None:
        self.lines.append(json.loads(json_line(line)))
        SCHEMA.validate(self.lines[-1])

    def emit(self, *events, agent="main"):
        """Returns the lines of these events."""
        before = len(self.lines)
        for event in events:
            self._seq += 1
            is_live = isinstance(event, TextDelta | ThinkingDelta | CallDelta | RetryScheduled | Notice)
            item = Live(agent, self._seq, event) if is_live else Envelope(self._seq, None, 0, agent, event)
            self._events.emit(item)
        return self.lines[before:]


def replied(*parts, stop="end_turn", usage=None):
    return AssistantReplied(1, Assistant(parts, ORIGIN), stop, usage=usage, model="gpt-5")


def finished(call_id, text="ok", outcome="ok"):
    return ToolFinished(call_id, outcome, (Text(text),))


FAILURE = Failure("overloaded", "busy", status=503)


def test_results_wait_for_the_reply_with_their_calls():
    stream = Stream()
    assert stream.emit(finished("a")) == []
    lines = stream.emit(replied(ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}"), stop="tool_use"))
    assert kinds(lines) == ["assistant", "user"]
    assert kinds(stream.emit(finished("b", "no", "error"))) == ["user"]
    assert stream.lines[-1]["message"]["content"][0]["is_error"] is True


@pytest.mark.parametrize("end", [ReplyWithdrawn(1, FAILURE), TurnFinished("cancelled"), PromptSubmitted(())])
def test_results_of_a_void_reply_are_dropped_also_where_the_model_uses_the_id_again(end):
    stream = Stream()
    stream.emit(finished("a"), end)
    assert kinds(stream.emit(replied(ToolCall("a", "look", "{}")))) == ["assistant"]
    assert kinds(stream.emit(finished("a"))) == ["user"]


def test_a_sub_agent_is_a_task_and_its_lines_name_its_call():
    stream = Stream()
    (started,) = stream.emit(AgentSpawned("agent-1", "c1", "explore", "look\nfor it"))
    assert (started["task_id"], started["tool_use_id"], started["description"]) == ("agent-1", "c1", "look for it")
    stream.now = 2.0
    call = ToolCall("x", "grep", "{}")
    reply, progress, result = stream.emit(
        replied(call, stop="tool_use", usage=Usage(10, 5)), finished("x"), agent="agent-1"
    )
    assert [line["parent_tool_use_id"] for line in (reply, result)] == ["c1", "c1"]
    used = {"total_tokens": 15, "tool_uses": 1, "duration_ms": 2000}
    assert (progress["usage"], progress["last_tool_name"]) == (used, "grep")
    (ended,) = stream.emit(AgentEnded("agent-1", "error"))
    assert (ended["status"], ended["usage"], ended["summary"]) == ("failed", used, "look for it: error")
    assert stream.emit(AgentEnded("agent-7", "interrupted"))[0]["tool_use_id"] is None  # of an earlier run


def test_the_agent_of_an_open_call_is_known():
    stream = Stream()
    stream.emit(AgentSpawned("agent-1", "c1", "general", "x"))
    stream.emit(replied(ToolCall("x", "bash", "{}")), agent="agent-1")
    assert (stream._events.agent_of("x"), stream._events.agent_of("c1")) == ("agent-1", "")


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "failed"), (None, "stopped")])
def test_a_background_command_is_a_task(code, status):
    stream = Stream()
    started, ended = stream.emit(JobStarted("job-1", "c1", "sleep  9\n"), JobEnded("job-1", code))
    assert (started["task_type"], started["description"]) == ("local_bash", "sleep 9")
    assert (ended["status"], ended["tool_use_id"]) == (status, "c1")


def test_compactions_retries_warnings_and_modes_have_lines():
    stream = Stream()
    lines = stream.emit(
        Compacted("summarise", 3, tokens=(100, 10)),
        PromptSubmitted((Text("x"),)),
        Compacted("snip", 3),
        RetryScheduled(1, 1.5, FAILURE),
        Notice("careful"),
        StateChanged(ModeChosen("accept-edits")),
    )
    by_user, in_turn, retry, notice, status = lines
    assert by_user["compact_metadata"] == {"trigger": "manual", "pre_tokens": 100, "post_tokens": 10}
    assert in_turn["compact_metadata"]["trigger"] == "auto"
    assert (retry["retry_delay_ms"], retry["error_status"], retry["attempt"]) == (1500, 503, 1)
    assert (notice["text"], status["permissionMode"]) == ("careful", "acceptEdits")


def test_parts_that_only_a_provider_can_read_are_left_out():
    (line,) = Stream().emit(
        replied(Thinking("", redacted=True), Opaque("{}"), Refusal("no"), Thinking("t", "sig"), stop="content_filter")
    )
    assert line["message"]["content"] == [
        {"type": "text", "text": "no"},
        {"type": "thinking", "thinking": "t", "signature": "sig"},
    ]
    assert line["message"]["stop_reason"] == "refusal"


def test_images_and_documents_of_a_result_are_blocks():
    content = result_content((Text("see"), Image("image/png", b"\x89"), Document("application/pdf", b"%", "a.pdf")))
    assert json.loads(json_line(content)) == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iQ=="}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JQ=="},
            "title": "a.pdf",
        },
    ]


# ------------------------------------------------------------------ partial messages


def events(lines):
    return [line["event"] for line in lines if line["type"] == "stream_event"]


def test_calls_that_arrive_in_turns_stay_apart():
    stream = Stream(is_partial=True)
    found = events(
        stream.emit(
            TextDelta(0, "a"),
            CallDelta(1, "c1", "look", '{"k'),
            CallDelta(2, "c2", "look", '{"z'),
            CallDelta(1, "", "", '":1}'),
            CallDelta(2, "", "", '":2}'),
            replied(Text("a"), ToolCall("c1", "look", '{"k":1}'), ToolCall("c2", "look", '{"z":2}')),
        )
    )
    assert [(each["type"], each.get("index")) for each in found] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_start", 2),
        ("content_block_delta", 2),
        ("content_block_delta", 1),
        ("content_block_delta", 2),
        ("content_block_stop", 1),
        ("content_block_stop", 2),
        ("message_delta", None),
        ("message_stop", None),
    ]


def test_arguments_wait_for_the_name_of_their_call():
    found = events(
        Stream(is_partial=True).emit(
            CallDelta(0, "", "", "{"), CallDelta(0, "c1", "look", ""), CallDelta(0, "", "", "}")
        )
    )
    assert found[1]["content_block"] == {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    assert [each["delta"]["partial_json"] for each in found[2:]] == ["{", "}"]


def test_a_reply_that_arrives_as_a_whole_has_the_same_events():
    found = events(Stream(is_partial=True).emit(replied(Text("a"), ToolCall("c1", "look", "{}"))))
    assert [each["type"] for each in found] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        "message_delta",
        "message_stop",
    ]


def test_a_withdrawn_reply_ends_without_a_reason_and_the_next_one_has_another_id():
    stream = Stream(is_partial=True)
    void = events(stream.emit(TextDelta(0, "a"), ReplyWithdrawn(1, FAILURE)))
    assert [each["type"] for each in void[-2:]] == ["content_block_stop", "message_stop"]
    again = events(stream.emit(TextDelta(0, "b")))
    assert again[0]["message"]["id"] != void[0]["message"]["id"]
    assert [each["type"] for each in events(stream.emit(TurnFinished("cancelled")))] == [
        "content_block_stop",
        "message_stop",
    ]


def test_partial_messages_of_a_sub_agent_are_apart_from_those_of_the_main_agent():
    stream = Stream(is_partial=True)
    stream.emit(AgentSpawned("agent-1", "c1", "general", "x"))
    lines = stream.emit(TextDelta(0, "a"), agent="agent-1") + stream.emit(TextDelta(0, "b"))
    found = [(line["parent_tool_use_id"], line["event"]["type"]) for line in lines]
    assert [kind for parent, kind in found if parent == "c1"] == [kind for parent, kind in found if parent is None]


parts = st.lists(
    st.one_of(
        st.builds(TextDelta, st.integers(0, 3), st.text(max_size=5)),
        st.builds(ThinkingDelta, st.integers(0, 3), st.text(max_size=5)),
        st.builds(CallDelta, st.integers(0, 3), st.sampled_from(["", "c"]), st.sampled_from(["", "look"]), st.text()),
    ),
    min_size=1,
)


@given(parts)
def test_blocks_are_numbered_open_while_they_grow_and_closed_once(deltas):
    found = events(Stream(is_partial=True).emit(*deltas, replied(Text("x"))))
    is_open, begun = set(), 0
    for event in found:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == begun
                begun += 1
                is_open.add(event["index"])
            case "content_block_delta":
                assert event["index"] in is_open
            case "content_block_stop":
                is_open.remove(event["index"])
            case "message_start":
                assert event is found[0]
            case _:
                assert not is_open
    assert found[-1]["type"] == "message_stop"


# ------------------------------------------------------------------ texts and bytes


@pytest.mark.parametrize("raw", ['{"a": "\\ud800"}', '{"a": ' + "[" * 5000 + "]" * 5000 + "}", "[1]", "no"])
def test_arguments_that_json_cannot_hold_are_their_text(raw):
    assert call_input(raw) == {"_raw": raw}
    assert call_input('{"a": 1}') == {"a": 1}


def deep(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["\ud83d", 10**30, -(10**400), deep(3000), {"\ud800": {"x": "\udfff"}}, float("inf")])
def test_every_value_is_one_line_of_json(value):
    line = json_line({"value": value})
    assert line.count("\n") == 1 and json.loads(line).keys() == {"value"}


@given(st.text())
def test_a_line_has_no_line_end_inside_and_keeps_its_text(text):
    line = json_line({"a": text})
    assert len(line.splitlines()) == 1
    assert json.loads(line)["a"] == text.encode("utf-8", "replace").decode()


def test_ids_are_uuids_of_version_4():
    import uuid

    assert {uuid.UUID(new_uuid()).version for _ in range(20)} == {4}


@given(st.lists(st.binary(max_size=8).filter(lambda each: b"\n" not in each)), st.integers(1, 7))
def test_lines_are_the_same_in_any_pieces(lines, size):
    data = b"".join(line + b"\n" for line in lines) + b"rest"
    splitter = LineSplitter()
    found = [line for start in range(0, len(data), size) for line in splitter.feed(data[start : start + size])]
    assert found == lines and splitter.end() == b"rest"


def test_a_line_may_have_the_limit_and_not_one_byte_more():
    assert LineSplitter(4).feed(b"abcd\nab") == [b"abcd"]
    splitter = LineSplitter(4)
    splitter.feed(b"abc")
    with pytest.raises(LongLine, match="more than 4 bytes"):
        splitter.feed(b"de")
