"""The bodies of Messages requests."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Opaque,
    Origin,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.messages.codec import AnthropicMessages
from patience import cpu_limit
from wire.anthropic_streams import CLAUDE
from wire.cases import ASK, PIXEL, PREFIX, cases
from wire.codecs import BY_API
from wire.messages_checker import check_request

ORIGIN = BY_API["anthropic_messages"].origin
SNAPSHOTS = Path(__file__).parent / "snapshots" / "anthropic_messages"
LS = ToolCall("toolu_1", "ls", "{}")
ELSEWHERE = "https://llm.example/anthropic"


ANSWER = (Text("x"),)


def _with(*parts, answer=ANSWER, **fields):
    """A prompt, a reply with these parts and a call, and the result of the call."""
    reply = Assistant((*parts, LS), fields.pop("origin", ORIGIN), **fields)
    return [ASK, reply, ToolResults((ToolResult(LS.id, "ls", answer),))]


OWN_CASES = [
    (
        "thinking_signed_redacted_and_omitted",
        _with(
            Thinking("Hm.", signature="S1"),
            Thinking("", redacted=True, provider_data='{"data":"R"}'),
            Thinking("", signature="S2"),
            Text("So."),
        ),
    ),
    ("thinking_unsigned", _with(Thinking("Hm."))),
    ("thinking_at_the_end", [ASK, Assistant((Text("a"), Thinking("b", signature="S")), ORIGIN), ASK]),
    ("unknown_block", _with(Opaque('{"type":"server_tool_use","id":"srvtoolu_1","name":"web","input":{"q": 1}}'))),
    ("citations", [ASK, Assistant((Text("a", provider_data='{"citations":[{"type":"x"}]}'),), ORIGIN), ASK]),
    ("blank_text_between", _with(Thinking("Hm.", signature="S"), Text("\n\n"))),
    ("documents_in_result", _with(answer=(Text("Two."), Document("application/pdf", b"%PDF", "a.pdf"), PIXEL))),
    ("strange_files", _with(answer=(Image("image/svg+xml", b"<svg/>"), Document("text/x-c", b"int x;", "a.c")))),
    ("empty_result", _with(answer=(Text(""),))),
    ("reply_first", [Assistant((Text("Hello."),), ORIGIN), ASK]),
    ("cut_after_signed_thinking_and_call", _with(Thinking("Hm.", signature="S"), complete=False)),
    ("cut_with_unsigned_thinking_before_a_call", _with(Thinking("Hm."), Text("Well,"), complete=False)),
    ("cut_in_thinking", [ASK, Assistant((Thinking("Hm"),), ORIGIN, complete=False), ASK]),
]
CASES = [*cases(ORIGIN), *OWN_CASES]
OPAQUE = frozenset({"server_tool_use"})


def body_of(messages, base_url="", params=None, prefix=PREFIX, origin=ORIGIN, max_output=None):
    info = ModelInfo(origin, max_output=max_output)
    encoder = AnthropicMessages(base_url).encoder(prefix, info)
    for message in messages:
        encoder.append(message)
    return b"".join(encoder.body(params or RequestParams()))


def request_of(*args, **fields):
    return json.loads(body_of(*args, **fields))


def without_marks(body):
    return body.replace(b',"cache_control":{"type":"ephemeral"}', b"")


def content_of(request):
    return [block for turn in request["messages"] for block in turn["content"]]


@pytest.mark.parametrize(("name", "messages"), CASES, ids=[name for name, _ in CASES])
def test_a_conversation_is_sent_as_its_snapshot_shows(name, messages):
    body = body_of(messages)
    assert check_request(body, opaque=OPAQUE) == []
    assert json.loads(body) == json.loads((SNAPSHOTS / f"{name}.json").read_text("utf-8"))


def test_no_snapshot_is_left_over():
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == {name for name, _ in CASES}


def test_the_checker_finds_what_a_server_would_refuse():
    good = request_of([ASK, Assistant((Thinking("a", signature="S"), LS), ORIGIN)])
    assert check_request(json.dumps(good).encode()) == []
    thought = good["messages"][1]["content"][:1]
    spoiled = {
        "temperature": {**good, "temperature": 1},
        "max_tokens": {**good, "max_tokens": 0},
        "first turn": {**good, "messages": good["messages"][1:]},
        "are followed by": {**good, "messages": good["messages"][:2]},
        "two turns": {**good, "messages": [good["messages"][0], *good["messages"]]},
        "final block": {**good, "messages": [good["messages"][0], {**good["messages"][1], "content": thought}]},
        "but found `tool_use`": {
            **request_of([ASK, Assistant((LS,), ORIGIN)]),
            "thinking": {"type": "enabled", "budget_tokens": 1_024},
        },
        "Found 6": {**good, "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 3},
    }
    for words, request in spoiled.items():
        assert any(words in problem for problem in check_request(json.dumps(request).encode())), words


# ------------------------------------------------------------------ stable bytes


def test_a_body_begins_with_what_was_sent_before():
    encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(ORIGIN))
    before = b""
    for _, messages in CASES:
        for message in messages:
            encoder.append(message)
            sent = without_marks(b"".join(encoder.body(RequestParams())))
            history = sent[: sent.rindex(b']}],"max_tokens"')]
            assert history.startswith(before)
            before = history


def test_the_hash_covers_tools_system_and_messages_and_nothing_else():
    def hash_of(prefix, *messages, base_url="", params=None):
        encoder = AnthropicMessages(base_url).encoder(prefix, ModelInfo(ORIGIN))
        for message in messages:
            encoder.append(message)
        encoder.body(params or RequestParams())
        return encoder.prefix_hash()

    base = hash_of(PREFIX, ASK)
    assert len(base) == len(hashlib.sha256().hexdigest())
    assert base == hash_of(PREFIX, ASK, base_url=ELSEWHERE, params=RequestParams(max_output_tokens=5, effort="low"))
    others = [
        hash_of(PREFIX, ASK, ASK),
        hash_of(PREFIX, Assistant((Text("Go."),), ORIGIN)),
        hash_of(Prefix("Other.", PREFIX.tools), ASK),
        hash_of(Prefix(PREFIX.system, ()), ASK),
    ]
    assert len({base, *others}) == 5


def test_many_steps_cost_the_same_each():
    encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(ORIGIN))
    answer = (Text("x" * 2_000),)
    with cpu_limit(3):
        for number in range(2_000):
            encoder.append(Assistant((ToolCall(f"c{number}", "ls", "{}"),), ORIGIN))
            encoder.append(ToolResults((ToolResult(f"c{number}", "ls", answer),)))
            encoder.prefix_hash()


def test_a_request_has_only_what_it_needs():
    assert request_of([ASK], ELSEWHERE, prefix=Prefix("", ())) == {
        "model": "demo-model",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Go."}]}],
        "max_tokens": 8_192,
        "stream": True,
    }


@pytest.mark.parametrize("base_url", ["", ELSEWHERE])
@pytest.mark.parametrize("effort", [None, "none", "low", "max"])
def test_no_sampling_parameters_are_ever_sent(base_url, effort):
    for origin in (ORIGIN, CLAUDE):
        request = request_of([ASK], base_url, RequestParams(effort=effort), origin=origin)
        assert not request.keys() & {"temperature", "top_p", "top_k", "stop_sequences", "metadata"}


# ------------------------------------------------------------------ pairing and replay


def test_consecutive_prompts_become_one_turn_and_sent_bytes_are_unchanged():
    encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(ORIGIN))
    encoder.append(User((Text("One."),)))
    first = without_marks(b"".join(encoder.body(RequestParams())))
    encoder.append(User((Text("Two."), Text("  \n")), (Note("n", "Mode: plan.", "mode"),)))
    second = without_marks(b"".join(encoder.body(RequestParams())))
    assert second.startswith(first[: first.rindex(b']}],"max_tokens"')])
    (turn,) = json.loads(second)["messages"]
    assert [block["text"][:5] for block in turn["content"]] == ["One.", "Two.", "<note"]


def test_a_note_goes_into_the_last_result_and_not_behind_it():
    results = ToolResults((ToolResult(LS.id, "ls", (Text("x"),)),), (Note("n", "Job 1 ended.", "job"),))
    *_, last = request_of([ASK, Assistant((LS,), ORIGIN), results])["messages"]
    (result,) = last["content"]
    assert [block["text"].split("\n")[0] for block in result["content"]] == ["x", '<note source="job">']


def test_an_open_call_is_answered_as_failed_and_a_stray_result_is_dropped():
    stray = ToolResults((ToolResult("other", "ls", (Text("y"),)),))
    *_, last = request_of([ASK, Assistant((LS,), ORIGIN), stray])["messages"]
    (result,) = last["content"]
    assert result["tool_use_id"] == LS.id and result["is_error"] is True
    assert "y" not in result["content"]


def test_a_failed_result_holds_only_text_and_its_picture_follows():
    failed = ToolResults((ToolResult(LS.id, "ls", (Text("no"), PIXEL), is_error=True),))
    *_, last = request_of([ASK, Assistant((LS,), ORIGIN), failed])["messages"]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text", "image"]


def test_a_document_follows_the_result_on_compatible_servers():
    messages = _with(answer=(Document("application/pdf", b"%PDF"),))
    *_, last = request_of(messages, ELSEWHERE)["messages"]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text", "document"]


def test_thinking_is_replayed_byte_for_byte_to_its_own_model_only():
    thoughts = (
        Thinking("  Hm.\u2028 \n", signature="Eq/+=="),
        Thinking("", redacted=True, provider_data='{"data": "R+/="}'),
        Thinking("", signature="S2"),
    )
    own = content_of(request_of(_with(*thoughts)))
    assert own[1:4] == [
        {"type": "thinking", "thinking": "  Hm.\u2028 \n", "signature": "Eq/+=="},
        {"type": "redacted_thinking", "data": "R+/="},
        {"type": "thinking", "thinking": "", "signature": "S2"},
    ]
    for field in ("api", "provider", "model"):
        other = msgspec.structs.replace(ORIGIN, **{field: "another"})
        kinds = [
            block["type"] for block in content_of(request_of(_with(*thoughts, Opaque('{"type":"x"}'), origin=other)))
        ]
        assert kinds == ["text", "tool_use", "tool_result"]


def test_an_unknown_block_goes_back_as_the_text_it_came_as():
    raw = '{"type":"web_search_tool_result",  "content":[{"b":1.50, "a":1e3}]}'
    assert raw.encode() in body_of(_with(Opaque(raw)))


def test_unsigned_thinking_is_replayed_to_a_server_that_does_not_sign():
    (_, thought, *_) = content_of(request_of(_with(Thinking("Hm.")), ELSEWHERE))
    assert thought == {"type": "thinking", "thinking": "Hm.", "signature": ""}


def test_ids_of_other_providers_are_rewritten_consistently_and_stay_paired():
    ids = ["functions.ls:0", "call_1|fc_2", "c" * 65, "", "ok-1", "ok-1"]
    messages = [ASK]
    for call_id in ids:
        messages.append(Assistant((ToolCall(call_id, "ls", "{}"),), Origin("openai_responses", "openai", "gpt")))
        messages.append(ToolResults((ToolResult(call_id, "ls", (Text("x"),)),)))
    body = body_of(messages)
    assert check_request(body) == []
    assert body == body_of(messages)
    sent = [block["id"] for block in content_of(json.loads(body)) if block["type"] == "tool_use"]
    assert sent[4] == "ok-1" and len(set(sent)) == 6


@pytest.mark.parametrize("there", ["openai_chat", "openai_responses"])
def test_a_conversation_can_move_between_providers_and_back(there):
    other = BY_API[there]
    foreign = Origin(there, "elsewhere", "other-model")
    messages = [
        ASK,
        Assistant((Thinking("a", signature="S"), ToolCall("toolu_01", "ls", "{}")), ORIGIN),
        ToolResults((ToolResult("toolu_01", "ls", (Text("x"),)),)),
        Assistant((Thinking("b"), ToolCall("functions.ls:0", "ls", "{}")), foreign),
        ToolResults((ToolResult("functions.ls:0", "ls", (Text("y"),)),)),
        Assistant((Thinking("c", signature="T"), Text("Done.")), ORIGIN),
        ASK,
    ]
    assert check_request(body_of(messages)) == []
    thoughts = [block["thinking"] for block in content_of(request_of(messages)) if block["type"] == "thinking"]
    assert thoughts == ["a", "c"]
    encoder = other.new().encoder(PREFIX, ModelInfo(foreign))
    for message in messages:
        encoder.append(message)
    assert other.check(b"".join(encoder.body(RequestParams()))) == []


def test_a_reply_at_the_end_that_ends_in_white_space_is_followed_by_the_user():
    assert [turn["role"] for turn in request_of([ASK, Assistant((Text("a "),), ORIGIN)])["messages"]][-1] == "user"
    paused = [ASK, Assistant((Text("a"), Opaque('{"type":"server_tool_use"}')), ORIGIN)]
    assert [turn["role"] for turn in request_of(paused)["messages"]][-1] == "assistant"


# ------------------------------------------------------------------ cut replies


def test_a_cut_reply_whose_calls_are_signed_is_replayed_as_it_was():
    messages = _with(Thinking("Hm.", signature="S"), Text("Look."), complete=False)
    cut = msgspec.structs.replace(messages[1], parts=(*messages[1].parts, Thinking("and th")))
    kinds = [block["type"] for block in content_of(request_of([ASK, cut, messages[2]]))]
    assert kinds == ["text", "thinking", "text", "tool_use", "tool_result"]


def test_a_cut_reply_with_unsigned_thinking_before_its_call_is_described_as_text():
    reply = Assistant((Thinking("Hm."), Text("Look."), ToolCall("c1", "ls", '{"p":1}')), ORIGIN, complete=False)
    results = ToolResults((ToolResult("c1", "ls", (Text("a.py"), PIXEL)),), (Note("n", "Hi.", "user"),))
    _, said, told = request_of([ASK, reply, results])["messages"]
    assert said["content"] == [{"type": "text", "text": "Look."}]
    assert [block["type"] for block in told["content"]] == ["text", "text", "text", "image", "text"]
    words = "".join(block.get("text", "") for block in told["content"])
    assert 'ls {"p":1}' in words and "a.py" in words and "Hi." in words and "Hm." not in words


def test_an_inserted_user_message_is_kept_only_once_a_reply_follows_it():
    encoder = AnthropicMessages().encoder(PREFIX, ModelInfo(ORIGIN))
    again = AnthropicMessages().encoder(PREFIX, ModelInfo(ORIGIN))
    paused, more = (Assistant((Text(text),), ORIGIN) for text in ("I pause. ", "I am done."))
    for message in (ASK, paused):
        encoder.append(message)
    before = encoder.prefix_hash()
    sent = b"".join(encoder.body(RequestParams()))
    assert sent.count(b"Go on.") == 1
    assert encoder.prefix_hash() == before
    encoder.append(more)
    for message in (ASK, paused, more):
        again.append(message)
    assert again.prefix_hash() == encoder.prefix_hash()
    body = without_marks(b"".join(again.body(RequestParams())))
    assert body.startswith(without_marks(sent)[: without_marks(sent).rindex(b']}],"max_tokens"')])
