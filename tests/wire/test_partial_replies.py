"""After a cut at any byte only closed calls have run, each appears once, and the next request is valid."""

import json

import pytest

from bradawl.core.arguments import parse_arguments
from bradawl.core.deltas import Delta, PartClosed, ReplyEnded
from bradawl.core.errors import Failure
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Text, ToolCall, ToolResult, ToolResults, User, calls_of
from bradawl.core.ports import ModelInfo
from bradawl.folds.assembler import Assembler
from bradawl.providers.protocols import PROTOCOLS, protocol_named
from bradawl.providers.response_reader import ResponseReader
from bradawl.testing.script import Entry, ScriptedCall
from bradawl.testing.wire_format import WireRequest
from bradawl.testing.wire_formats import format_of
from wire.cases import PREFIX
from wire.codecs import BY_API, FORMATS, Format, has_checker

LOST = Failure("connection", "The connection broke.", retryable=True)
PATHS = ("first/einz.py", "second/zwoh.py")
ARGUMENTS = tuple(json.dumps({"path": path}) for path in PATHS)
THOUGHT = ("I must look ", "at both.")
SAID = ("Looking at ", "two files.")


def pieces(text: str) -> list[str]:
    """A text in pieces that are cut inside words and JSON."""
    return [text[at : at + 9] for at in range(0, len(text), 9)]


def named(events) -> bytes:
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


def chat_stream(*, thinking: bool) -> bytes:
    def chunk(finish=None, **delta):
        return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def call(index, **fields):
        return chunk(tool_calls=[{"index": index, **fields}])

    events = [chunk(role="assistant", content="")]
    events += [chunk(reasoning_content=text) for text in THOUGHT if thinking]
    events += [chunk(content=text) for text in SAID]
    for index, arguments in enumerate(ARGUMENTS):
        function = {"name": "read_file", "arguments": ""}
        events.append(call(index, id=f"call_{index}", type="function", function=function))
        events += [call(index, function={"arguments": piece}) for piece in pieces(arguments)]
    events.append(chunk("tool_calls"))
    events.append({"id": "r1", "choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}})
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events) + b"data: [DONE]\n\n"


def anthropic_stream(*, thinking: bool) -> bytes:
    def start(index, **block):
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(index, kind, **fields):
        return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}

    def stop(index):
        return {"type": "content_block_stop", "index": index}

    usage = {"input_tokens": 9, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events = [{"type": "message_start", "message": message}]
    index = 0
    if thinking:
        events += [start(0, type="thinking", thinking="", signature="")]
        events += [delta(0, "thinking_delta", thinking=text) for text in THOUGHT]
        events += [delta(0, "signature_delta", signature="c2lnbmVk"), stop(0)]
        index = 1
    events += [start(index, type="text", text="")]
    events += [delta(index, "text_delta", text=text) for text in SAID] + [stop(index)]
    for number, arguments in enumerate(ARGUMENTS):
        index += 1
        events.append(start(index, type="tool_use", id=f"toolu_{number}", name="read_file", input={}))
        events += [delta(index, "input_json_delta", partial_json=piece) for piece in pieces(arguments)]
        events.append(stop(index))
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}})
    return named([*events, {"type": "message_stop"}])


def responses_stream(*, thinking: bool) -> bytes:
    def added(index, **item):
        return {"type": "response.output_item.added", "output_index": index, "item": item}

    def done(index, **item):
        return {"type": "response.output_item.done", "output_index": index, "item": item}

    response = {"id": "resp_1", "object": "response", "model": "m", "output": []}
    events = [{"type": "response.created", "response": {**response, "status": "in_progress"}}]
    index = 0
    if thinking:
        events.append(added(0, type="reasoning", id="rs_1", summary=[]))
        place = {"item_id": "rs_1", "output_index": 0, "summary_index": 0}
        for text in THOUGHT:
            events.append({"type": "response.reasoning_summary_text.delta", **place, "delta": text})
        summary = [{"type": "summary_text", "text": "".join(THOUGHT)}]
        events.append(done(0, type="reasoning", id="rs_1", summary=summary, encrypted_content="ZW5j"))
        index = 1
    place = {"item_id": "msg_1", "output_index": index, "content_index": 0}
    events.append(added(index, type="message", id="msg_1", role="assistant", status="in_progress", content=[]))
    events += [{"type": "response.output_text.delta", **place, "delta": text} for text in SAID]
    content = [{"type": "output_text", "text": "".join(SAID), "annotations": []}]
    events.append(done(index, type="message", id="msg_1", role="assistant", status="completed", content=content))
    for number, arguments in enumerate(ARGUMENTS):
        index += 1
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": "read_file"}
        place = {"item_id": f"fc_{number}", "output_index": index}
        events.append(added(index, **call, arguments="", status="in_progress"))
        for piece in pieces(arguments):
            events.append({"type": "response.function_call_arguments.delta", **place, "delta": piece})
        events.append({"type": "response.function_call_arguments.done", **place, "arguments": arguments})
        events.append(done(index, **call, arguments=arguments, status="completed"))
    usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
    events.append({"type": "response.completed", "response": {**response, "status": "completed", "usage": usage}})
    return named([{**event, "sequence_number": number} for number, event in enumerate(events)])


STREAMS = {
    "openai_chat": chat_stream,
    "openai_responses": responses_stream,
    "anthropic_messages": anthropic_stream,
}
"""Streams as servers cut them. That of another protocol comes from the scripted server."""


def stream_of(wire: Format, *, thinking: bool) -> bytes:
    """A reply with two calls. Skips the test for a protocol whose scripted server sends no thinking."""
    if (own := STREAMS.get(wire.api)) is not None:
        return own(thinking=thinking)
    calls = tuple(ScriptedCall("read_file", each, f"call_{number}") for number, each in enumerate(ARGUMENTS))
    entry = Entry(text="".join(SAID), thinking="".join(THOUGHT) if thinking else "", tool_calls=calls)
    server_side = format_of(protocol_named(wire.api))
    stream = b"".join(server_side.events(entry, 1, WireRequest("m", "", is_stream=True)))
    if thinking and THOUGHT[0].encode() not in stream:
        pytest.skip(f"the scripted server of {wire.api} sends no thinking")
    return stream


class Run:
    """The received part of one reply, and the calls that a scheduler ran: each as soon as it was closed."""

    def __init__(self, wire: Format, received: bytes) -> None:
        self.reply = Assembler(wire.origin)
        self.ran: list[ToolCall] = []
        reading = ResponseReader(wire.new().decoder)
        for delta in [*reading.feed(received), *reading.break_off(LOST)]:
            self._take(delta)
        assert reading.end is not None
        self.is_whole = isinstance(reading.end, ReplyEnded)
        self.reply.feed(reading.end)

    def _take(self, delta: Delta) -> None:
        self.reply.feed(delta)
        if isinstance(delta, PartClosed):
            self.ran += [call for call, _ in self.reply.take_calls() if call.status == "ok"]

    @property
    def message(self) -> Assistant:
        return self.reply.reply()

    def results(self) -> ToolResults:
        """A result for each call that ran, and an error for each with malformed arguments."""
        ran = {call.id: parse_arguments(call.raw_arguments)[0] for call in self.ran}
        return ToolResults(
            tuple(
                ToolResult(call.id, call.name, (Text(f"read <{path_in(ran[call.id])}>"),))
                if call.id in ran
                else ToolResult(call.id, call.name, (Text("not run"),), is_error=True)
                for call in calls_of(self.message)
            )
        )


def path_in(arguments: object) -> str:
    assert isinstance(arguments, dict)
    return str(arguments["path"])


def next_body(wire: Format, run: Run) -> bytes:
    """The body of the request after the cut reply."""
    encoder = wire.new().encoder(PREFIX, ModelInfo(wire.origin))
    encoder.append(User((Text("Fix it."),)))
    encoder.append(run.message)
    encoder.append(run.results() if calls_of(run.message) else User((Text("Go on."),)))
    return b"".join(encoder.body(RequestParams()))


def outcomes(wire: Format, stream: bytes) -> list[Run]:
    """All different outcomes of cutting the stream."""
    found: dict[str, Run] = {}
    for size in range(len(stream) + 1):
        run = Run(wire, stream[:size])
        found.setdefault(repr((run.message, run.ran, run.is_whole)), run)
    return list(found.values())


@pytest.fixture(scope="module")
def runs():
    """Outcomes for a format, with and without thinking. Computed once for all tests."""
    known: dict[tuple[str, bool], list[Run]] = {}

    def of(wire: Format, thinking: bool) -> list[Run]:
        key = (wire.api, thinking)
        if key not in known:
            known[key] = outcomes(wire, stream_of(wire, thinking=thinking))
        return known[key]

    return of


WIRES = pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: wire.api)
THINKING = pytest.mark.parametrize("thinking", [True, False], ids=["thinking", "plain"])


@WIRES
@THINKING
def test_the_complete_stream_has_the_expected_reply(wire: Format, thinking: bool):
    run = Run(wire, stream_of(wire, thinking=thinking))
    assert run.is_whole
    assert [parse_arguments(call.raw_arguments)[0] for call in run.ran] == [json.loads(one) for one in ARGUMENTS]
    assert len(run.message.parts) == (4 if thinking else 3)


@WIRES
@THINKING
def test_no_call_runs_whose_arguments_were_not_closed(wire: Format, thinking: bool, runs):
    found = runs(wire, thinking)
    for run in found:
        assert [call.raw_arguments for call in run.ran] == list(ARGUMENTS[: len(run.ran)])
    assert {len(run.ran) for run in found} == {0, 1, 2}


@WIRES
@THINKING
def test_each_call_that_ran_is_in_the_reply_once_and_the_shown_text_is_kept(wire: Format, thinking: bool, runs):
    for run in runs(wire, thinking):
        ids = [call.id for call in calls_of(run.message)]
        assert [ids.count(call.id) for call in run.ran] == [1] * len(run.ran)
        if run.ran:
            assert Text("".join(SAID)).text in [part.text for part in run.message.parts if isinstance(part, Text)]


@pytest.mark.parametrize("target", FORMATS, ids=lambda wire: f"to_{wire.api}")
@WIRES
@THINKING
def test_the_next_request_is_valid_and_contains_each_call_that_ran_once(
    wire: Format, target: Format, thinking: bool, runs
):
    for run in runs(wire, thinking):
        body = next_body(target, run)
        assert target.check(body) == [], run.message
        text = body.decode()
        for number, path in enumerate(PATHS):
            has_run = number < len(run.ran)
            assert text.count(f"read <{path}>") == has_run, (run.message, text)
            if has_run:
                assert text.count(path) == 2, (run.message, text)  # in the arguments and in the result


@WIRES
@THINKING
def test_the_shown_text_of_a_cut_reply_is_in_the_next_request(wire: Format, thinking: bool, runs):
    for run in runs(wire, thinking):
        shown = "".join(part.text for part in run.message.parts if isinstance(part, Text))
        if shown.strip():
            assert shown.strip() in next_body(wire, run).decode()


@WIRES
def test_encoding_a_body_twice_gives_the_same_bytes(wire: Format):
    run = Run(wire, stream_of(wire, thinking=True))
    encoder = wire.new().encoder(PREFIX, ModelInfo(wire.origin))
    for message in (User((Text("Fix it."),)), run.message, run.results(), User((Text("Go on."),))):
        encoder.append(message)
        assert encoder.body(RequestParams()) == encoder.body(RequestParams())


def test_every_protocol_has_a_checker():
    missing = [f"tests/wire/{each.folder}_checker.py" for each in PROTOCOLS if not has_checker(each)]
    assert missing == [], "without these a protocol does not go through the tables of cases; chat_checker.py is a model"


def test_the_streams_are_those_of_protocols():
    assert set(STREAMS) <= set(BY_API)
