"""Writes Chat Completions requests: each message is encoded once, behind the ones before it. Pure."""

import hashlib
import re
from collections.abc import Callable, Sequence

import msgspec

from bradawl.core.events import RequestParams
from bradawl.core.messages import (
    Assistant,
    Document,
    Image,
    Message,
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
from bradawl.providers.chat_calls import base36
from bradawl.providers.compat import CompatProfile
from bradawl.providers.encoding import (
    UNANSWERED,
    Json,
    data_url,
    digest_of,
    encode_json,
    note_text,
    replayable_arguments,
    tool_name,
)

_NINE = re.compile(r"[A-Za-z0-9]{9}")


def _attachment(part: Image | Document) -> Json:
    url = data_url(part.media_type, part.data)
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": part.name or "document", "file_data": url}}


def _tool(schema: ToolSchema) -> Json:
    function = {"name": schema.name, "description": schema.description, "parameters": schema.parameters}
    return {"type": "function", "function": function}


class ChatRequests:
    """The requests of one conversation with `origin`.

    `profile` is asked anew for each body, because a server may turn out to refuse a field.
    """

    def __init__(self, prefix: Prefix, origin: Origin, profile: Callable[[], CompatProfile]) -> None:
        self._origin = origin
        self._profile = profile
        self._unanswered: tuple[str, ...] = ()
        self._messages = bytearray()
        self._head = b'{"model":' + encode_json(origin.model) + b',"messages":['
        self._tools = encode_json([_tool(schema) for schema in prefix.tools]) if prefix.tools else b""
        self._hash = hashlib.sha256(self._tools)
        if prefix.system:
            self._add({"role": "system", "content": prefix.system})

    def append(self, message: Message) -> None:
        """Encode a message behind the ones before it."""
        match message:
            case User():
                self._answer_open_calls()
                self._add_user(message)
            case Assistant():
                self._answer_open_calls()
                self._add_assistant(message)
            case ToolResults():
                self._add_results(message)

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        """The request's JSON in pieces; nothing is encoded again."""
        self._answer_open_calls()
        profile = self._profile()
        tail = bytearray(b'],"stream":true')
        if profile.has_stream_options:
            tail += b',"stream_options":{"include_usage":true}'
        if self._tools:
            tail += b',"tools":' + self._tools
        if params.max_output_tokens is not None:
            tail += b"," + encode_json(profile.max_tokens_field) + b":" + encode_json(params.max_output_tokens)
        if params.effort and profile.takes_effort:
            tail += b',"reasoning_effort":' + encode_json(profile.efforts.get(params.effort, params.effort))
        for name, value in profile.extra:
            tail += b"," + encode_json(name) + b":" + bytes(value)
        tail += b"}"
        return self._head, bytes(self._messages), bytes(tail)

    def prefix_hash(self) -> str:
        """sha256 in hex of tools, system and messages as encoded."""
        return self._hash.hexdigest()

    def _add(self, message: Json) -> None:
        encoded = encode_json(message)
        if self._messages:
            self._messages += b","
        self._messages += encoded
        self._hash.update(encoded)
        self._hash.update(b"\n")

    # -------------------------------------------------------------- users

    def _add_user(self, message: User) -> None:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        notes = [note_text(note) for note in message.notes]
        if len(texts) == len(message.parts):
            self._add({"role": "user", "content": "\n\n".join([*texts, *notes])})
            return
        content: list[Json] = []
        for part in message.parts:
            if not isinstance(part, Text):
                content.append(_attachment(part))
            elif part.text:
                content.append({"type": "text", "text": part.text})
        content.extend({"type": "text", "text": text} for text in notes)
        self._add({"role": "user", "content": content})

    # -------------------------------------------------------------- replies

    def _add_assistant(self, message: Assistant) -> None:
        is_own = message.origin == self._origin
        text = "".join(part.text for part in message.parts if isinstance(part, Text | Refusal))
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        thinking = [part for part in message.parts if isinstance(part, Thinking)]
        fields = self._reasoning(thinking, has_calls=bool(calls)) if is_own and message.complete else {}
        content = fields.pop("content", None)
        if isinstance(content, list) and text:
            content.append({"type": "text", "text": text})
        if not (text or calls or content):
            return  # reasoning alone is no message to any server
        encoded: Json = {"role": "assistant", "content": content or text or None}
        if calls and self._profile().reasoning_required:
            encoded["reasoning_content"] = ""
        encoded |= fields
        if calls:
            encoded["tool_calls"] = [self._call(call, is_own=is_own) for call in calls]
            self._unanswered = tuple(call.id for call in calls)
        self._add(encoded)

    def _reasoning(self, thinking: Sequence[Thinking], *, has_calls: bool) -> Json:
        """The reasoning in the fields it came in, if this server wants it back."""
        policy = self._profile().reasoning
        fields: Json = {}
        if policy == "never" or (policy == "with_calls" and not has_calls):
            return fields
        for part in thinking:
            data = msgspec.json.decode(part.provider_data, type=dict[str, object]) if part.provider_data else {}
            field = data.get("field")
            if field == "content.thinking":
                piece = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
                fields["content"] = [piece]
            elif isinstance(field, str):
                fields[field] = part.text
            if "reasoning_details" in data:
                fields["reasoning_details"] = data["reasoning_details"]
        return fields

    def _call(self, call: ToolCall, *, is_own: bool) -> Json:
        encoded: Json = {
            "id": self._call_id(call.id),
            "type": "function",
            "function": {"name": tool_name(call.name), "arguments": replayable_arguments(call)},
        }
        if is_own and call.provider_data:
            encoded |= msgspec.json.decode(call.provider_data, type=dict[str, msgspec.Raw])
        return encoded

    def _call_id(self, call_id: str) -> str:
        rule = self._profile().call_id
        if rule == "nine" and not _NINE.fullmatch(call_id):
            return base36(digest_of(call_id), 9)
        if rule == "short" and len(call_id) > 40:
            return "call_" + base36(digest_of(call_id), 12)
        return call_id

    # -------------------------------------------------------------- results

    def _add_results(self, message: ToolResults) -> None:
        """Every call of the reply before gets one answer, in call order, whatever was handed in."""
        by_id = {result.call_id: result for result in message.results}
        results = [by_id.get(call_id) or ToolResult(call_id, "", (Text(UNANSWERED),)) for call_id in self._unanswered]
        self._unanswered = ()
        notes = "\n".join(note_text(note) for note in message.notes)
        for result in results:
            text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
            if result is results[-1] and notes:
                text = f"{text}\n{notes}" if text else notes
            self._add({"role": "tool", "tool_call_id": self._call_id(result.call_id), "content": text})
        if notes and not results:
            self._add({"role": "user", "content": notes})
        self._add_attachments(results)

    def _add_attachments(self, results: Sequence[ToolResult]) -> None:
        content: list[Json] = []
        for result in results:
            attached = [part for part in result.parts if not isinstance(part, Text)]
            if attached:
                content.append({"type": "text", "text": f"Attached to the result of {result.name or 'the tool'}:"})
                content.extend(_attachment(part) for part in attached)
        if content:
            self._add({"role": "user", "content": content})

    def _answer_open_calls(self) -> None:
        if self._unanswered:
            self._add_results(ToolResults(()))
