"""Calls and reasoning that a model wrote into its text."""

import itertools
import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.core.deltas import PartClosed, TextDelta
from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Text, Thinking, ToolCall, User
from bradawl.core.ports import ModelInfo, Prefix, ToolSchema
from bradawl.providers.chat.codec import OpenAIChat
from bradawl.providers.codec import ServerEvent
from bradawl.providers.compat_table import profile_for
from wire.replay import ORIGIN, call, chunk, decode, numbered_ids, outcome, stream_of

_BASH = msgspec.Raw(
    b'{"type":"object","properties":{"command":{"type":"string"},"timeout_s":{"type":"integer"},'
    b'"quiet":{"type":"boolean"},"env":{"anyOf":[{"type":"object"},{"type":"null"}]}}}'
)
TOOLS = (
    ToolSchema("bash", "Runs.", _BASH),
    ToolSchema("read_file", "Reads.", msgspec.Raw(b'{"type":"object","properties":{"path":{"type":"string"}}}')),
)
LOCAL = "http://127.0.0.1:8080/v1"


def local(base_url=LOCAL, tools=TOOLS):
    codec = OpenAIChat(base_url, new_id=numbered_ids())
    codec.encoder(Prefix("", tools), ModelInfo(ORIGIN))
    return codec


def read(*texts, finish="stop", base_url=LOCAL, tools=TOOLS):
    events = [chunk(content=text) for text in texts]
    return outcome(decode(local(base_url, tools), [stream_of(*events, chunk(finish))]))


def calls_in(seen):
    return [(part["name"], part["args"]) for part in seen["parts"] if part["type"] == "tool_call"]


def text_in(seen):
    return "".join(part["text"] for part in seen["parts"] if part["type"] == "text")


LS = [("bash", {"command": "ls"})]
FORMS = {
    "hermes": ('<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>', LS),
    "hermes_in_one_line": ('<tool_call>{"name":"bash","arguments":{"command":"ls"}}</tool_call>', LS),
    "hermes_without_its_end": ('<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}', LS),
    "hermes_with_arguments_as_text": (
        '<tool_call>{"name":"bash","arguments":"{\\"command\\":\\"ls\\"}"}</tool_call>',
        LS,
    ),
    "two_of_hermes": (
        '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "read_file", "arguments": {"path": "a"}}\n</tool_call>',
        [*LS, ("read_file", {"path": "a"})],
    ),
    "an_end_tag_inside_the_arguments": (
        '<tool_call>\n{"name": "bash", "arguments": {"command": "echo </tool_call>"}}\n</tool_call>',
        [("bash", {"command": "echo </tool_call>"})],
    ),
    "qwen_coder": (
        "<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n<parameter=timeout_s>\n5\n</parameter>\n"
        "<parameter=quiet>\ntrue\n</parameter>\n<parameter=env>\n{}\n</parameter>\n</function>\n</tool_call>",
        [("bash", {"command": "ls", "timeout_s": 5, "quiet": True, "env": {}})],
    ),
    "qwen_coder_bare": ("<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>", LS),
    "qwen_coder_keeps_lines_and_json_as_text": (
        '<function=bash>\n<parameter=command>\ncat <<E\n{"a": 1}\n\nE\n</parameter>\n</function>',
        [("bash", {"command": 'cat <<E\n{"a": 1}\n\nE'})],
    ),
    "qwen_coder_number_for_a_text": (
        "<function=read_file><parameter=path>7</parameter></function>",
        [("read_file", {"path": "7"})],
    ),
    "qwen_coder_without_parameters": ("<function=bash>\n</function>", [("bash", {})]),
    "llama_custom": ('<function=bash>{"command": "ls"}</function>', LS),
    "llama_python_tag": ('<|python_tag|>{"name": "bash", "parameters": {"command": "ls"}}<|eom_id|>', LS),
    "llama_two_calls": (
        '<|python_tag|>{"name":"bash","parameters":{"command":"ls"}}; {"name":"bash","parameters":{}}',
        [*LS, ("bash", {})],
    ),
    "llama_bare": ('{"name": "bash", "parameters": {"command": "ls"}}', LS),
    "llama_bare_with_type": ('{"type": "function", "name": "bash", "parameters": {"command": "ls"}}', LS),
    "mistral_list": ('[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls"}}]', LS),
    "mistral_new": ('[TOOL_CALLS]bash[ARGS]{"command": "ls"}', LS),
    "mistral_two": ('[TOOL_CALLS]bash{"command": "ls"}[TOOL_CALLS]bash[ARGS]{}', [*LS, ("bash", {})]),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
        '{"command":"ls"}<|tool_call_end|><|tool_calls_section_end|>',
        LS,
    ),
    "kimi_two": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.bash:0<|tool_call_argument_begin|>"
        '{"command":"ls"}<|tool_call_end|><|tool_call_begin|>functions.read_file:1<|tool_call_argument_begin|>'
        '{"path":"a"}<|tool_call_end|><|tool_calls_section_end|>',
        [*LS, ("read_file", {"path": "a"})],
    ),
    "deepseek": (
        "<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>bash\n```json\n"
        '{"command": "ls"}\n```<\uff5ctool▁call▁end\uff5c><\uff5ctool▁calls▁end\uff5c>',
        LS,
    ),
    "deepseek_new": (
        "<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>bash<\uff5ctool▁sep\uff5c>"
        '{"command": "ls"}<\uff5ctool▁call▁end\uff5c><\uff5ctool▁calls▁end\uff5c><\uff5cend▁of▁sentence\uff5c>',
        LS,
    ),
    "glm": (
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n"
        "<arg_key>timeout_s</arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
        [("bash", {"command": "ls", "timeout_s": 5})],
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_call_in_a_known_form_becomes_a_call_and_is_not_shown(name):
    text, expected = FORMS[name]
    for pieces in ([text], list(text)):
        seen = read(*pieces)
        assert calls_in(seen) == expected
        assert text_in(seen).strip() in ("", "<\uff5cend▁of▁sentence\uff5c>")
        assert (seen["stop_reason"], seen["complete"]) == ("tool_use", True)
        assert len({part["id"] for part in seen["parts"] if part["type"] == "tool_call"}) == len(expected)


@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("llama_bare")])
def test_text_before_a_call_is_shown_and_the_call_is_not(name):
    text, expected = FORMS[name]
    for pieces in ([f"I'll look.\n{text}"], list(f"I'll look.\n{text}")):
        seen = read(*pieces)
        assert calls_in(seen) == expected
        assert text_in(seen).replace("<\uff5cend▁of▁sentence\uff5c>", "").strip() == "I'll look."


@pytest.mark.parametrize("name", FORMS)
def test_a_call_cut_anywhere_into_chunks_is_the_same_call(name):
    text, expected = FORMS[name]
    dice = random.Random(name)  # noqa: S311  cuts need not be secret
    for _ in range(15):
        places = sorted(dice.sample(range(len(text)), min(len(text), dice.randint(1, 8))))
        seen = read(*(text[start:end] for start, end in itertools.pairwise([0, *places, len(text)])))
        assert calls_in(seen) == expected


_QUOTED = [
    "```\n{}\n```",
    "```xml\n{}\n```\nThat is how.",
    "~~~\n{}\n~~~",
    "````\n```\n{}\n````",
    "Like this:\n\n- one\n  ```\n  {}\n  ```",
    "Write `{}` and it runs.",
    'Write "{}" and it runs.',
    "Write '{}' and it runs.",
    "“{}” is the form.",
    "> {}\n> they said",
    "Models write ``{}`` for that.",
    "```\n{}",
]


@pytest.mark.parametrize("frame", _QUOTED)
@pytest.mark.parametrize("name", FORMS)
def test_a_call_that_is_quoted_is_only_text(frame, name):
    text = FORMS[name][0]
    if "\n" in text and ("`{" in frame or '"' in frame or "'" in frame or ">" in frame or "“" in frame):
        text = FORMS["hermes_in_one_line"][0]
    whole = frame.replace("{}", text)
    for pieces in ([whole], list(whole)):
        seen = read(*pieces)
        assert calls_in(seen) == []
        assert text_in(seen) == whole
        assert seen["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "rm_rf", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "bash", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "bash", "arguments": "ls"}</tool_call>',
        '<tool_call>{"name": "bash"}</tool_call>',
        "<tool_call>not json</tool_call>",
        "<tool_call>bash ls</tool_call>",
        "A <tool_call> tag begins a call.",
        "<tool_call>",
        "a < b and b <tool",
        "[TOOL_CALLS] is Mistral's token.",
        "<|python_tag|>print('x')",
        '<function=unknown>{"a":1}</function>',
        '{"name": "bash", "parameters": {}, "note": "an example"}',
        '{"name": "Ada", "age": 36}',
        '{"name": "bash", "parameters": {}} is how it looks',
        '{"answer": 42}',
        '<tool_call>{"name":"bash","arguments":{}}</tool_call> is how Hermes writes it.',
        "<|tool_calls_section_begin|>nothing<|tool_calls_section_end|>",
        "  {",
        "\n\n",
    ],
)
def test_text_that_only_resembles_a_call_stays_text(text):
    for pieces in ([text], list(text)):
        seen = read(*pieces)
        assert calls_in(seen) == []
        assert text_in(seen) == text


def test_a_call_between_texts_leaves_both():
    call_text = FORMS["hermes"][0]
    for pieces in ([f"Before.\n{call_text}\nAfter."], list(f"Before.\n{call_text}\nAfter.")):
        seen = read(*pieces)
        assert calls_in(seen) == LS
        assert text_in(seen) == "Before.\nAfter."


def test_the_text_of_a_reply_with_protocol_calls_is_not_searched_for_calls():
    text = FORMS["hermes"][0]
    own = chunk(tool_calls=[call('{"command":"pwd"}', index=0, id="c1", name="bash")])
    for events in ([chunk(content=text + "\n"), own], [own, chunk(content=text)]):
        seen = outcome(decode(local(), [stream_of(*events, chunk("tool_calls"))]))
        assert calls_in(seen) == [("bash", {"command": "pwd"})]
        assert text_in(seen).strip() == text


@pytest.mark.parametrize("name", FORMS)
def test_a_call_inside_reasoning_never_runs(name):
    text = FORMS[name][0]
    inline = read(f"<think>\n{text}\n</think>\n\nDone.")
    assert (calls_in(inline), text_in(inline)) == ([], "Done.")
    field = outcome(decode(local(), [stream_of(chunk(reasoning_content=text), chunk("tool_calls", content="Done."))]))
    assert (calls_in(field), text_in(field), field["stop_reason"]) == ([], "Done.", "end_turn")


def test_a_call_after_reasoning_runs():
    seen = read(f"<think>\nLet me see.\n</think>\n\n{FORMS['hermes'][0]}")
    assert calls_in(seen) == LS
    assert seen["parts"][0]["text"] == "Let me see."


def test_a_call_in_text_is_closed_at_the_end_of_the_reply():
    reply = local().decoder()
    text = FORMS["hermes"][0] + "\n"
    early = [*reply.feed(ServerEvent("", json.dumps(chunk(content=text))))]
    assert not [delta for delta in early if isinstance(delta, PartClosed | TextDelta)]
    late = [*reply.feed(ServerEvent("", json.dumps(chunk("stop"))))]
    assert [delta.part.name for delta in late if isinstance(delta, PartClosed)] == ["bash"]


def test_a_cut_stream_has_no_call_from_its_text():
    data = stream_of(chunk(content=FORMS["hermes"][0] + "\n"), done=False)
    seen = outcome(decode(local(), [data]))
    assert (calls_in(seen), seen["complete"]) == ([], False)


def test_a_call_that_the_limit_cut_is_truncated_and_not_text():
    seen = read('<tool_call>\n{"name": "bash", "arguments": {"command": "ls', finish="length")
    assert [(part["name"], part["args_status"]) for part in seen["parts"]] == [("bash", "truncated")]
    assert seen["stop_reason"] == "max_tokens"


def test_text_of_servers_that_parse_calls_themselves_is_not_searched():
    text = FORMS["hermes"][0]
    for base_url in ("https://api.openai.com/v1", "https://api.deepseek.com", "https://api.mistral.ai/v1"):
        assert text_in(read(text, base_url=base_url)) == text


def test_without_tools_on_offer_there_are_no_calls():
    text = FORMS["hermes"][0]
    assert text_in(read(text, tools=())) == text


def test_only_text_that_may_begin_a_call_is_held_back():
    reply = local().decoder()

    def shown(text):
        deltas = reply.feed(ServerEvent("", json.dumps(chunk(content=text))))
        return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))

    assert shown("Hello ") == "Hello "
    assert shown("a < b") == "a < b"
    assert shown(" and <tool") == " and "
    assert shown("box> too") == "<toolbox> too"
    assert shown(" `<tool") == " `<tool"
    assert shown("_call>` [") == "_call>` "
    assert shown("1]") == "[1]"


@given(st.text(alphabet="<>[]{}/`\"'| \nabtool_callTOOL_CALLS=name:,\uff5c▁", max_size=60), st.integers(0, 2**32))
def test_text_without_a_call_is_shown_unchanged_in_any_pieces(text, seed):
    dice = random.Random(seed)  # noqa: S311  cuts need not be secret
    places = sorted(dice.randint(0, len(text)) for _ in range(6))
    seen = read(*(text[start:end] for start, end in itertools.pairwise([0, *places, len(text)]) if start < end))
    assert calls_in(seen) == []
    assert text_in(seen) == text


# ------------------------------------------------------------------ inline reasoning


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<think>\nHm.\n</think>\n\nSo.", "Hm.", "So."),
        ("<think>Hm.</think>So.", "Hm.", "So."),
        ("\n<think>Hm.</think>So.", "Hm.", "So."),
        ("<thinking>Hm.</thinking>\nSo.", "Hm.", "So."),
        ("<think>\n\n</think>\n\nSo.", "", "So."),
        ("<think>a </thin b </think>So.", "a </thin b ", "So."),
        ("<think>One\n\nTwo</think>So <think>x</think>.", "One\n\nTwo", "So <think>x</think>."),
        ("So <think>Hm.</think>", "", "So <think>Hm.</think>"),
        ("<thinker>Hm.</thinker>", "", "<thinker>Hm.</thinker>"),
        ("<thi", "", "<thi"),
        ("<think>never closed", "never closed", ""),
        ("Hm.</think>So.", "", "Hm.</think>So."),
        ("`<think>`", "", "`<think>`"),
    ],
)
def test_reasoning_at_the_beginning_of_the_text_is_removed_from_it(text, thinking, answer):
    for pieces in ([text], list(text)):
        seen = read(*pieces)
        assert "".join(part["text"] for part in seen["parts"] if part["type"] == "thinking") == thinking
        assert text_in(seen) == answer


def test_with_reasoning_in_its_own_field_tags_stay_in_the_text():
    data = stream_of(chunk(reasoning_content="Hm."), chunk("stop", content="<think>is a tag</think>"))
    assert text_in(outcome(decode(local(), [data]))) == "<think>is a tag</think>"


def test_text_of_servers_with_a_reasoning_parser_is_unchanged():
    assert text_in(read("<think>a</think>b", base_url="https://api.openai.com/v1")) == "<think>a</think>b"
    assert not profile_for("https://api.deepseek.com").inline_thinking


def test_inline_reasoning_is_sent_back_only_if_the_profile_says_so():
    thinking = Thinking("Hm.", provider_data='{"field":"content.inline"}')
    with_call = Assistant((thinking, Text("So."), ToolCall("c1", "bash", "{}")), ORIGIN)
    answer = Assistant((thinking, Text("So.")), ORIGIN)

    def contents(base_url):
        encoder = OpenAIChat(base_url).encoder(Prefix("", TOOLS), ModelInfo(ORIGIN))
        for message in (User((Text("Go."),)), with_call, answer):
            encoder.append(message)
        messages = json.loads(b"".join(encoder.body(RequestParams())))["messages"]
        return [message["content"] for message in messages if message["role"] == "assistant"]

    assert contents(LOCAL) == ["<think>\nHm.\n</think>\n\nSo.", "So."]
    assert contents("https://api.minimax.io/v1") == ["<think>\nHm.\n</think>\n\nSo."] * 2
    assert contents("https://api.groq.com/openai/v1") == ["So.", "So."]
