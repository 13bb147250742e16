"""Conversations that every codec must be able to encode. Snapshots hold the encoded bodies."""

import msgspec

from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Note,
    Origin,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolResults,
    User,
)
from bradawl.core.ports import Prefix, ToolSchema

PREFIX = Prefix(
    "You are a careful engineer.",
    (
        ToolSchema(
            "read_file",
            "Reads a file.",
            msgspec.Raw(b'{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}'),
        ),
    ),
)
PIXEL = Image("image/png", b"\x89PNG\r\n")
ASK = User((Text("Go."),))


def _ask(text="Fix it."):
    return User((Text(text),))


def _result(call_id="c1", text="done", **fields):
    return ToolResult(call_id, "read_file", (Text(text),), **fields)


def _call(call_id="c1", raw='{"path":"a.py"}', **fields):
    return ToolCall(call_id, "read_file", raw, **fields)


def cases(origin: Origin):
    """(name, messages) of each case, with replies of `origin`; some cases contain replies of another model."""
    foreign = Origin("openai_chat", "elsewhere", "other-model")

    def reply(*parts, **fields):
        return Assistant(parts, fields.pop("origin", origin), **fields)

    return [
        ("prompt", [_ask()]),
        ("prompt_with_note", [User((Text("Go."),), (Note("n1", "Mode: plan.", "mode"),))]),
        ("prompt_with_image_and_file", [User((Text("See."), PIXEL, Document("application/pdf", b"%PDF", "a.pdf")))]),
        ("answer", [_ask(), reply(Text("Fixed.")), _ask("Thanks.")]),
        ("call_and_result", [_ask(), reply(Text("Looking."), _call()), ToolResults((_result(),))]),
        ("call_without_text", [_ask(), reply(_call()), ToolResults((_result(),))]),
        (
            "parallel_calls_one_failed",
            [
                _ask(),
                reply(_call("c1"), _call("c2", '{"path":"b.py"}')),
                ToolResults((_result("c1"), _result("c2", "No such file.", is_error=True))),
            ],
        ),
        (
            "note_with_results",
            [
                _ask(),
                reply(_call("c1"), _call("c2")),
                ToolResults((_result("c1", "one"), _result("c2", "two")), (Note("n1", "Job 1 ended.", "job"),)),
            ],
        ),
        (
            "image_in_result",
            [_ask(), reply(_call()), ToolResults((ToolResult("c1", "read_file", (Text("A picture."), PIXEL)),))],
        ),
        ("empty_arguments", [_ask(), reply(_call(raw="")), ToolResults((_result(),))]),
        (
            "malformed_arguments",
            [_ask(), reply(_call(raw="{'path':", status="malformed")), ToolResults((_result(is_error=True),))],
        ),
        ("double_encoded_arguments", [_ask(), reply(_call(raw='"{\\"path\\":\\"a\\"}"')), ToolResults((_result(),))]),
        ("control_characters_in_arguments", [_ask(), reply(_call(raw='{"path":"a\nb"}')), ToolResults((_result(),))]),
        ("surrogate_in_arguments", [_ask(), reply(_call(raw='{"path":"\\ud83d"}')), ToolResults((_result(),))]),
        ("number_beyond_json", [_ask(), reply(_call(raw='{"n":1e999}')), ToolResults((_result(),))]),
        ("surrogate_in_text", [_ask("a\ud83db"), reply(Text("\udc00")), _ask()]),
        (
            "reasoning_with_call",
            [
                _ask(),
                reply(Thinking("Hm.", provider_data='{"field":"reasoning_content"}'), _call()),
                ToolResults((_result(),)),
            ],
        ),
        (
            "reasoning_details_with_call",
            [
                _ask(),
                reply(
                    Thinking(
                        "Hm.",
                        provider_data='{"field":"reasoning",'
                        '"reasoning_details":[{"type":"reasoning.encrypted","data":"E"}]}',
                    ),
                    _call(),
                ),
                ToolResults((_result(),)),
            ],
        ),
        (
            "foreign_reasoning_and_signature",
            [
                _ask(),
                reply(
                    Thinking("Hm.", provider_data='{"field":"reasoning_content"}'),
                    _call(provider_data='{"extra_content":{"signature":"S"}}'),
                    origin=foreign,
                ),
                ToolResults((_result(),)),
            ],
        ),
        (
            "own_signature",
            [
                _ask(),
                reply(_call(provider_data='{"extra_content":{"signature":"S"}}')),
                ToolResults((_result(),)),
            ],
        ),
        ("cut_reply_with_text", [_ask(), reply(Text("I was about"), complete=False), _ask("Go on.")]),
        ("cut_reply_with_nothing", [_ask(), reply(Thinking("Hm."), complete=False), _ask("Go on.")]),
        (
            "cut_reply_with_call",
            [_ask(), reply(Text("Looking."), _call(), complete=False), ToolResults((_result(),))],
        ),
        ("refusal", [_ask(), reply(Refusal("I can't do that.")), _ask("Why?")]),
        ("unanswered_call", [_ask(), reply(_call()), _ask("Never mind.")]),
        ("result_of_another_call", [_ask(), reply(_call("c1")), ToolResults((_result("c9"),))]),
        (
            "results_out_of_order",
            [_ask(), reply(_call("c1"), _call("c2")), ToolResults((_result("c2"), _result("c1")))],
        ),
        ("odd_tool_name", [_ask(), reply(ToolCall("c1", "read file!", "{}")), ToolResults((_result(),))]),
    ]
