"""Property tests of the Messages codec: any conversation becomes a valid request, any events a valid reply."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Opaque,
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import ModelInfo
from bradawl.providers.codec import ServerEvent
from bradawl.providers.messages.codec import AnthropicMessages
from wire.anthropic_streams import CLAUDE, messages
from wire.cases import PREFIX
from wire.messages_checker import check_request

_WORDS = st.sampled_from(["", " ", "\n\n", "a", "Do it. ", "x\u2028y", "\ud83d", "\x00", "naïve 日本"]) | st.text(
    max_size=8
)
_IDS = st.sampled_from(["toolu_1", "toolu_2", "functions.ls:0", "", "c" * 70, "é"])
_RAW = st.sampled_from(["", "{}", '{"p":"a"}', '{"p":', '"{\\"p\\":1}"', "[1]", '{"n":1e999}', "{'a'"])
_THOUGHTS = st.one_of(
    st.builds(Thinking, _WORDS, signature=st.none() | st.just("S"), provider_data=st.sampled_from(["", "oops", "[]"])),
    st.builds(Thinking, st.just(""), redacted=st.just(True), provider_data=st.sampled_from(["", '{"data":"R"}', "[]"])),
)
_FILES = st.one_of(
    st.builds(Image, st.sampled_from(["image/png", "image/tiff"]), st.binary(max_size=4)),
    st.builds(Document, st.sampled_from(["application/pdf", "text/plain", "x/y"]), st.binary(max_size=4), _WORDS),
)
_SHOWN = st.lists(st.builds(Text, _WORDS) | _FILES, max_size=3).map(tuple)
_NOTES = st.lists(st.builds(Note, st.just("n"), _WORDS), max_size=2).map(tuple)
_STATUS = st.sampled_from(["ok", "malformed", "truncated"])
_CALLS = st.builds(ToolCall, _IDS, st.sampled_from(["ls", "read file!", ""]), _RAW, _STATUS)
_PARTS = st.one_of(
    st.builds(Text, _WORDS),
    _THOUGHTS,
    _CALLS,
    _CALLS,
    st.builds(Refusal, _WORDS),
    st.builds(Opaque, st.sampled_from(['{"type":"hologram"}', "oops", "{}", '{"type":7}'])),
    _FILES,
)
_ORIGINS = st.sampled_from([CLAUDE, Origin("openai_chat", "elsewhere", "m")])
_REPLIES = st.builds(Assistant, st.lists(_PARTS, max_size=5).map(tuple), _ORIGINS, st.booleans())
_RESULTS = st.builds(
    ToolResults,
    st.lists(st.builds(ToolResult, _IDS, st.just("ls"), _SHOWN, st.booleans()), max_size=3).map(tuple),
    _NOTES,
)
_MESSAGES = st.lists(st.builds(User, _SHOWN, _NOTES) | _REPLIES | _RESULTS, max_size=8)
_PARAMS = st.builds(
    RequestParams,
    st.none() | st.integers(1, 200_000),
    st.sampled_from([None, "none", "minimal", "low", "high", "xhigh", "max"]),
    st.sampled_from(["", '{"type":"object"}']),
)
_MODELS = ("claude-opus-5-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-3-haiku-20240307")


_GO_ON = b'{"type":"text","text":"Go on."}'
_FIRST = b'{"role":"user","content":['
_REPLY = b'{"role":"assistant","content":['


@pytest.mark.parametrize("model", _MODELS)
@given(conversation=_MESSAGES, params=_PARAMS)
def test_any_conversation_becomes_a_valid_request(model, conversation, params):
    origin = Origin(CLAUDE.api, CLAUDE.provider, model)
    encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(origin))
    history = sent = b""
    for message in conversation:
        is_own = isinstance(message, Assistant) and message.origin == CLAUDE
        encoder.append(Assistant(message.parts, origin, message.complete) if is_own else message)
        body = b"".join(encoder.body(params))
        assert check_request(body, opaque=frozenset({"hologram"})) == []
        plain = body.replace(b',"cache_control":{"type":"ephemeral"}', b"")
        # An inserted user message stays if a reply follows it. Otherwise the user's next message may replace it.
        has_new_reply = plain.count(_REPLY) > sent.count(_REPLY)
        assert plain.startswith(sent if has_new_reply else history)
        sent = plain[: plain.rindex(b']}],"max_tokens"')]
        history = sent.removesuffix(_GO_ON).removesuffix(b']},{"role":"user","content":[').removesuffix(_FIRST)


@given(conversation=_MESSAGES)
def test_the_same_conversation_becomes_the_same_bytes(conversation):
    bodies, hashes = set(), set()
    for _ in range(2):
        encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(CLAUDE))
        for message in conversation:
            encoder.append(message)
        bodies.add(b"".join(encoder.body(RequestParams())))
        hashes.add(encoder.prefix_hash())
    assert len(bodies) == len(hashes) == 1


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = st.dictionaries(
    st.sampled_from(
        ["type", "text", "partial_json", "thinking", "signature", "stop_reason", "citation", "id", "input"]
    ),
    st.sampled_from(["text_delta", "input_json_delta", "signature_delta", "text", "tool_use", "x"]) | _JSON,
    max_size=5,
)
_BLOCKS = [f"content_block_{what}" for what in ("start", "delta", "stop")]
_TYPES = st.sampled_from(
    [*_BLOCKS, "message_start", "message_delta", "message_stop", "ping", "error", "message", "aurora"]
)
_EVENTS = st.fixed_dictionaries(
    {"type": _TYPES | _JSON},
    optional={
        "index": st.integers(0, 2) | _JSON,
        "delta": _FIELDS | _JSON,
        "content_block": _FIELDS | _JSON,
        "message": _FIELDS | _JSON,
        "usage": _JSON,
        "content": st.lists(_FIELDS, max_size=2) | _JSON,
        "error": _JSON,
    },
)


@given(st.lists(_EVENTS.map(json.dumps) | st.text(max_size=12), max_size=12))
def test_any_events_decode_to_deltas_with_one_end_and_never_an_exception(events):
    reply = messages().decoder()
    deltas = [delta for event in events for delta in reply.feed(ServerEvent("", event))]
    deltas += reply.finish()
    assert sum(type(delta).__name__ in ("ReplyEnded", "StreamFailed") for delta in deltas) == 1
    assert type(deltas[-1]).__name__ in ("ReplyEnded", "StreamFailed")


@given(st.binary(max_size=60) | _EVENTS.map(lambda event: json.dumps(event).encode()))
def test_any_body_is_a_reply_or_a_failure(body):
    deltas = list(messages().decoder().whole(body))
    assert type(deltas[-1]).__name__ in ("ReplyEnded", "StreamFailed")


@given(st.binary(max_size=40) | _EVENTS.map(lambda event: json.dumps(event).encode()), st.integers(300, 599))
def test_any_refusal_is_a_failure(body, status):
    assert AnthropicMessages().error_of(status, {}, body).message
