"""Messages of a conversation with a Responses server, and the requests encoded from them."""

import json

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from bradawl.core.ports import ModelInfo
from wire.cases import PREFIX
from wire.codecs import BY_API
from wire.responses_checker import check_request, responses

ORIGIN = BY_API["openai_responses"].origin
ELSEWHERE = Origin("openai_responses", "demo", "another-model")


def signed(text="Plan.", item_id="rs_1", encrypted="ENC", **more):
    data = {"item_id": item_id, "encrypted_content": encrypted, **more}
    return Thinking(text, provider_data=json.dumps(data))


def said(text, item_id="msg_1", **more):
    return Text(text, json.dumps({"item_id": item_id, **more}))


def called(call_id="call_1", item_id="fc_1", raw='{"path":"a.py"}', **fields):
    return ToolCall(call_id, "read_file", raw, provider_data=json.dumps({"item_id": item_id}), **fields)


def result(call_id="call_1", text="done"):
    return ToolResult(call_id, "read_file", (Text(text),))


def reply(*parts, origin=ORIGIN, complete=True):
    return Assistant(parts, origin, complete)


def encoder_of(messages, base_url="", prefix=PREFIX, session_id="", model=ORIGIN):
    encoder = responses(base_url).encoder(prefix, ModelInfo(model), session_id)
    for message in messages:
        encoder.append(message)
    return encoder


def body_of(messages, params=None, **fields):
    return b"".join(encoder_of(messages, **fields).body(params or RequestParams()))


def request_of(messages, params=None, **fields):
    return json.loads(body_of(messages, params, **fields))


def sent(messages, **fields):
    """The input items of the request, after a check by the strict server."""
    body = body_of(messages, **fields)
    assert check_request(body) == []
    return json.loads(body)["input"]


def kinds(items):
    return [item.get("type", "user") for item in items]
