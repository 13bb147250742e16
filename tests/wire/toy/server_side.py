"""The toy protocol for the test kit's server."""

import json
from collections.abc import Iterator

from bradawl.testing.script import Entry, stop_of
from bradawl.testing.wire_format import WireFormat, WireRequest


def read_request(body: bytes) -> WireRequest | str:
    request = json.loads(body)
    last = request["messages"][-1]
    if last["from"] == "model":
        return "the last message is the model's own"
    return WireRequest(request["model"], last["text"], is_stream=True)


def sse_events(entry: Entry, number: int, request: WireRequest) -> Iterator[bytes]:
    del number, request
    if entry.text:
        yield _event(text=entry.text)
    for call in entry.tool_calls:
        yield _event(call={"id": call.id, "name": call.name, "arguments": call.raw_arguments})
    yield _event(end=stop_of(entry))


def _event(**fields: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(fields).encode()


def whole_reply(entry: Entry, number: int, request: WireRequest) -> bytes:
    raise AssertionError("every request of the toy wants a stream")


def error_body(status: int, message: str) -> bytes:
    return json.dumps({"error": {"message": message, "code": status}}).encode()


FORMAT = WireFormat(read_request, sse_events, whole_reply, error_body)
