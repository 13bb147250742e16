"""The encoder of Chat Completions requests; each message is encoded once. Pure."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

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
from bradawl.core.ports import Prefix
from bradawl.providers.chat.params import answer_instructions, encode_tools, request_fields
from bradawl.providers.compat import CompatProfile
from bradawl.providers.encoding import (
    UNANSWERED,
    Json,
    base36,
    data_url,
    digest_of,
    encode_json,
    note_text,
    replayable_arguments,
    tool_name,
)

_NINE = re.compile(r"[A-Za-z0-9]{9}")
_BETWEEN = "I have read the results."
"""The inserted reply between results and a prompt, for servers that require one."""

_INLINE = "content.inline"
"""Marks reasoning that came as `<think>...</think>` in the text."""


def _is_text(document: Document) -> bool:
    kind = document.media_type.partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in ("application/json", "application/xml", "application/toml")


class ChatRequests:
    """Encodes the requests of one conversation with `origin`.

    `profile` is called for each body, because it changes when the server refuses a field.
    """

    def __init__(
        self, prefix: Prefix, origin: Origin, profile: Callable[[], CompatProfile], session_id: str = ""
    ) -> None:
        self._origin = origin
        self._profile = profile
        self._session_id = session_id
        self._unanswered: dict[str, str] = {}
        self._calls_to_narrate: tuple[ToolCall, ...] = ()
        self._last_role = ""
        self._messages = bytearray()
        self._start = b'{"model":' + encode_json(origin.model) + b',"messages":['
        self._system = prefix.system
        self._tools = encode_tools(prefix.tools, profile())
        self._hash = hashlib.sha256(self._tools)
        self._hash.update(encode_json(prefix.system) + b"\n")

    def append(self, message: Message) -> None:
        """Encode the next message of the conversation."""
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
        """The request's JSON in pieces; encoded messages are reused."""
        self._answer_open_calls()
        profile = self._profile()
        head = bytearray(self._start)
        instructions = answer_instructions(profile, params, has_tools=bool(self._tools))
        system = "\n\n".join(text for text in (self._system, instructions) if text)
        if system:
            head += encode_json({"role": profile.system_role, "content": system})
            head += b"," if self._messages else b""
        tail = bytearray(b"]")
        fields = request_fields(profile, params, tools=self._tools, session_id=self._session_id)
        for name, value in fields.items():
            tail += b"," + encode_json(name) + b":" + encode_json(value)
        tail += b"}"
        return bytes(head), bytes(self._messages), bytes(tail)

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
        self._last_role = str(message["role"])

    # -------------------------------------------------------------- users

    def _add_user(self, message: User) -> None:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        notes = [note_text(note) for note in message.notes]
        if len(texts) == len(message.parts):
            self._add_prompt("\n\n".join([*texts, *notes]))
            return
        content = [self._piece(part) for part in message.parts if not isinstance(part, Text) or part.text]
        content.extend({"type": "text", "text": text} for text in notes)
        self._add_prompt(content)

    def _add_prompt(self, content: str | list[Json]) -> None:
        if self._last_role == "tool" and self._profile().assistant_after_results:
            self._add({"role": "assistant", "content": _BETWEEN})
        if not isinstance(content, str) and all(piece["type"] == "text" for piece in content):
            content = "\n\n".join(str(piece["text"]) for piece in content)
        self._add({"role": "user", "content": content})

    def _piece(self, part: Text | Image | Document) -> Json:
        """One part of a prompt. Media the server does not accept are replaced by their text or by a description."""
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        profile = self._profile()
        if isinstance(part, Image):
            if profile.images:
                return {"type": "image_url", "image_url": {"url": data_url(part.media_type, part.data)}}
            return {"type": "text", "text": f"[An image ({part.media_type}) that this model can't be shown]"}
        name = part.name or "document"
        if profile.documents:
            url = data_url(part.media_type, part.data)
            return {"type": "file", "file": {"filename": name, "file_data": url}}
        if _is_text(part):
            return {"type": "text", "text": f"{name}:\n{part.data.decode('utf-8', 'replace')}"}
        return {"type": "text", "text": f"[A file, {name} ({part.media_type}), that this model can't be shown]"}

    # -------------------------------------------------------------- replies

    def _add_assistant(self, message: Assistant) -> None:
        is_own = message.origin == self._origin
        text = "".join(part.text for part in message.parts if isinstance(part, Text | Refusal))
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        thinking = [part for part in message.parts if isinstance(part, Thinking)]
        if calls and self._must_narrate(message, thinking):
            self._calls_to_narrate, calls = tuple(calls), []
        fields = self._reasoning(thinking, has_calls=bool(calls)) if is_own and (message.complete or calls) else {}
        inline = fields.pop(_INLINE, "")
        content = fields.pop("content", None)
        if isinstance(content, list) and text:
            content.append({"type": "text", "text": text})
        if not (text or calls or content):
            return  # servers reject a message with only reasoning
        encoded: Json = {"role": "assistant", "content": content or f"{inline}{text}" or None}
        if calls and self._profile().reasoning_required:
            encoded["reasoning_content"] = ""
        encoded |= fields
        if calls:
            encoded["tool_calls"] = self._calls(calls, is_own=is_own)
            self._unanswered = {call.id: call.name for call in calls}
        self._add(encoded)

    def _must_narrate(self, message: Assistant, thinking: Sequence[Thinking]) -> bool:
        """True if the calls of a truncated reply must be replayed as text, because their reasoning is not signed."""
        if message.complete or message.origin != self._origin or not self._profile().signed_reasoning:
            return False
        return any(not part.provider_data for part in thinking)

    def _reasoning(self, thinking: Sequence[Thinking], *, has_calls: bool) -> Json:
        """The reasoning in the fields it came in, if the profile asks for it."""
        profile = self._profile()
        fields: Json = {}
        if profile.reasoning == "never" or (profile.reasoning == "with_calls" and not has_calls):
            return fields
        for part in thinking:
            data = msgspec.json.decode(part.provider_data, type=dict[str, object]) if part.provider_data else {}
            field = data.get("field") or ("reasoning_content" if profile.reasoning_required else None)
            if field == "content.thinking":
                piece = {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
                fields["content"] = [piece]
            elif field == _INLINE:
                fields[_INLINE] = f"<think>\n{part.text}\n</think>\n\n"
            elif isinstance(field, str):
                fields[field] = part.text
            if "reasoning_details" in data:
                fields["reasoning_details"] = data["reasoning_details"]
        return fields

    def _calls(self, calls: Sequence[ToolCall], *, is_own: bool) -> list[Json]:
        encoded = [self._call(call, is_own=is_own) for call in calls]
        unsigned = self._profile().unsigned_calls
        if unsigned and not any(is_own and call.provider_data for call in calls):
            encoded[0] |= msgspec.json.decode(unsigned, type=dict[str, msgspec.Raw])
        return encoded

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
        """Encode one result for each call of the last reply, in call order; missing results are filled in."""
        by_id = {result.call_id: result for result in message.results}
        notes = "\n".join(note_text(note) for note in message.notes)
        if self._calls_to_narrate:
            self._narrate_calls(by_id, notes)
            return
        waiting, self._unanswered = self._unanswered, {}
        results = [
            by_id.get(call_id) or ToolResult(call_id, name, (Text(UNANSWERED),)) for call_id, name in waiting.items()
        ]
        for result in results:
            text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
            if result is results[-1] and notes:
                text = f"{text}\n{notes}" if text else notes
            answer: Json = {"role": "tool", "tool_call_id": self._call_id(result.call_id), "content": text}
            if self._profile().result_names:
                answer["name"] = tool_name(waiting[result.call_id])
            self._add(answer)
        if notes and not results:
            self._add_prompt(notes)
        self._add_attachments(results)

    def _narrate_calls(self, by_id: Mapping[str, ToolResult], notes: str) -> None:
        """Encode the calls of a truncated reply and their results as text."""
        calls, self._calls_to_narrate = self._calls_to_narrate, ()
        lines = ["Your reply was cut off before its end. These calls had been made, don't repeat them:"]
        results: list[ToolResult] = []
        for call in calls:
            result = by_id.get(call.id) or ToolResult(call.id, call.name, (Text(UNANSWERED),))
            results.append(result)
            text = "\n".join(part.text for part in result.parts if isinstance(part, Text))
            lines.append(f"{tool_name(call.name)} {replayable_arguments(call)}\n{text}")
        self._add_prompt("\n\n".join([*lines, notes] if notes else lines))
        self._add_attachments(results)

    def _add_attachments(self, results: Sequence[ToolResult]) -> None:
        content: list[Json] = []
        for result in results:
            attached = [part for part in result.parts if not isinstance(part, Text)]
            if attached:
                content.append({"type": "text", "text": f"Attached to the result of {result.name or 'the tool'}:"})
                content.extend(self._piece(part) for part in attached)
        if content:
            self._add_prompt(content)

    def _answer_open_calls(self) -> None:
        if self._unanswered or self._calls_to_narrate:
            self._add_results(ToolResults(()))
