"""Servers that bind what they send to the conversation, and check each request as the strictest of their kind would.

A reply holds thinking that is signed for the exact beginning of its request, items that need their reasoning, or
reasoning in the field that the server wants back. Every thought is a word of its own, so that a request shows which of
them it holds.
"""

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bradawl.core.messages import Assistant, Opaque, Origin, Part, Refusal, Text, Thinking, ToolCall
from bradawl.core.ports import ModelInfo
from bradawl.providers.codec import Codec
from bradawl.providers.compat_table import profile_for
from bradawl.providers.protocols import PROTOCOLS
from bradawl.testing.wire_formats import format_of
from wire import chat_checker, messages_checker, responses_checker
from wire.codecs import BY_API

OPAQUE = frozenset({"server_tool_use"})
_WIRE = {protocol.name: format_of(protocol) for protocol in PROTOCOLS}


class Said(NamedTuple):
    """What a reply consists of: each part is its kind, or a call with its id and arguments."""

    parts: Sequence[str | tuple[str, str]]
    is_cut: bool = False


class Server:
    """One server: its codec, its replies, and what it refuses."""

    def __init__(self, api: str, base_url: str, model: str) -> None:
        self.api, self._base_url = api, base_url
        self.info = ModelInfo(Origin(api, "demo", model))
        self._profile = profile_for(base_url, model).name
        self.thoughts: list[str] = []
        """Every thought that was sent, in order."""
        self._bound: dict[str, str] = {}
        self._sealed: dict[str, str] = {}
        self._count = 0

    def codec(self) -> Codec:
        """A codec for this server."""
        return BY_API[self.api].new(base_url=self._base_url)

    # ------------------------------------------------------------------ checking

    def check(self, body: bytes) -> list[str]:
        """Why the server would refuse the request; empty if it would not."""
        request = json.loads(body)
        first = next(each for each in request.get("messages", request.get("input")) if each.get("role") != "system")
        problems = [] if first.get("role") == "user" else [f"the first message is no prompt: {first}"]
        if isinstance(refused := _WIRE[self.api].read(body), str):
            problems.append(refused)
        return problems + _CHECKS[self.api](self, body)

    def _check_messages(self, body: bytes) -> list[str]:
        return messages_checker.check_request(body, opaque=OPAQUE) + messages_checker.check_signatures(body)

    def _check_responses(self, body: bytes) -> list[str]:
        changed = [
            f"{item['id']!r} was changed"
            for item in json.loads(body)["input"]
            if item.get("type") == "reasoning" and item["encrypted_content"] != self._sealed[item["id"]]
        ]
        return responses_checker.check_request(body, bound=self._bound) + changed

    def _check_chat(self, body: bytes) -> list[str]:
        return chat_checker.check_request(body) + chat_checker.check_rules_of(self._profile, body)

    # ------------------------------------------------------------------ replying

    def reply(self, body: bytes, said: Said) -> Assistant:
        """The reply to a request."""
        self._count += 1
        self._last_reasoning = ""
        parts: list[Part] = []
        for place, part in enumerate(said.parts):
            if self.api == "openai_chat" and (part == "redacted" or (part == "thinking" and place)):
                continue  # there the reasoning of a reply is one text
            parts.append(self._part(body, parts, part, f"{self._count}_{place}"))
        return Assistant(tuple(parts), self.info.origin, complete=not said.is_cut, response_id=f"resp_{self._count}")

    def _part(self, body: bytes, before: Sequence[Part], said: str | tuple[str, str], name: str) -> Part:
        match said:
            case "thinking" | "redacted":
                self.thoughts.append(f"thought{name}.")
                return _THINKING[self.api](self, body, before, is_redacted=said == "redacted")
            case "text":
                return Text(f"I say {name}.", provider_data=self._data_of("msg", name))
            case "refusal":
                return Refusal(f"I will not do {name}.")
            case "opaque" if self.api == "openai_responses":
                return Opaque(json.dumps({"type": "web_search_call", "id": f"ws_{name}", "status": "completed"}))
            case "opaque":
                return Opaque(
                    json.dumps({"type": "server_tool_use", "id": f"srvtoolu_{name}", "name": "w", "input": {}})
                )
            case (call_id, arguments):
                return ToolCall(call_id, "read_file", arguments, provider_data=self._data_of("fc", name))
            case other:
                raise ValueError(other)

    def _data_of(self, kind: str, name: str) -> str:
        if self.api == "anthropic_messages":
            return '{"caller":{"type":"direct"}}' if kind == "fc" else ""
        if self.api == "openai_responses":
            item_id = f"{kind}_{name}"
            if self._last_reasoning:
                self._bound[item_id] = self._last_reasoning
            return json.dumps({"item_id": item_id, **({"phase": "commentary"} if kind == "msg" else {})})
        is_signed = self._profile == "gemini" and kind == "fc"
        return json.dumps({"extra_content": {"google": {"thought_signature": f"S{name}"}}}) if is_signed else ""

    def _sign(self, body: bytes, before: Sequence[Part], *, is_redacted: bool) -> Thinking:
        signature = messages_checker.signature_after(body, [_block_of(part) for part in before])
        if is_redacted:
            return Thinking("", redacted=True, provider_data=json.dumps({"data": signature}))
        return Thinking(self.thoughts[-1], signature=signature)

    def _seal(self, body: bytes, before: Sequence[Part], *, is_redacted: bool) -> Thinking:
        item_id, sealed = f"rs_{len(self.thoughts)}", f"sealed {self.thoughts[-1]}"
        self._sealed[item_id], self._last_reasoning = sealed, item_id
        data = json.dumps({"item_id": item_id, "encrypted_content": sealed})
        return Thinking("" if is_redacted else self.thoughts[-1], provider_data=data)

    def _reason(self, body: bytes, before: Sequence[Part], *, is_redacted: bool) -> Thinking:
        data: dict[str, object] = {"field": _REASONING_FIELDS.get(self._profile, "reasoning_content")}
        if self._profile == "openrouter":
            data["reasoning_details"] = [{"type": "reasoning.encrypted", "data": self.thoughts[-1]}]
        return Thinking(self.thoughts[-1], provider_data=json.dumps(data))


def _block_of(part: Part) -> dict[str, object]:
    """A part of a reply of the Messages protocol as the next request holds it."""
    match part:
        case Thinking(text, signature, redacted, data):
            return (
                {"type": "redacted_thinking", **json.loads(data)}
                if redacted
                else {"type": "thinking", "thinking": text, "signature": signature}
            )
        case Text(text):
            return {"type": "text", "text": text}
        case ToolCall(call_id, name, raw):
            call = {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(raw)}
            return {**call, "caller": {"type": "direct"}}
        case other:
            raise ValueError(other)


_REASONING_FIELDS = {"openrouter": "reasoning", "mistral": "content.thinking", "minimax": "content.inline"}
_Check = Callable[[Server, bytes], list[str]]
_CHECKS: dict[str, _Check] = {
    "anthropic_messages": Server._check_messages,
    "openai_responses": Server._check_responses,
    "openai_chat": Server._check_chat,
}
_THINKING = {"anthropic_messages": Server._sign, "openai_responses": Server._seal, "openai_chat": Server._reason}
SERVERS: dict[str, Callable[[], Server]] = {
    name: lambda api=api, base_url=base_url, model=model: Server(api, base_url, model)
    for name, api, base_url, model in (
        ("claude", "anthropic_messages", "", "claude-opus-5-5"),
        ("claude-budget", "anthropic_messages", "", "claude-sonnet-4-5"),
        ("messages-elsewhere", "anthropic_messages", "https://llm.example/anthropic", "some-model"),
        ("responses", "openai_responses", "", "gpt-5.5"),
        ("chat", "openai_chat", "https://llm.example.com/v1", "some-model"),
        ("openai", "openai_chat", "https://api.openai.com/v1", "gpt-5.5"),
        ("deepseek", "openai_chat", "https://api.deepseek.com", "deepseek-chat"),
        ("kimi", "openai_chat", "https://api.moonshot.ai/v1", "kimi-k3"),
        ("glm", "openai_chat", "https://api.z.ai/api/paas/v4", "glm-5.2"),
        ("mistral", "openai_chat", "https://api.mistral.ai/v1", "mistral-large"),
        ("openrouter", "openai_chat", "https://openrouter.ai/api/v1", "anthropic/claude"),
        ("gemini", "openai_chat", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3"),
        ("minimax", "openai_chat", "https://api.minimax.io/v1", "m3"),
        ("local", "openai_chat", "http://127.0.0.1:8000/v1", "qwen3"),
    )
}
"""A new server, by name."""
