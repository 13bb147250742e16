"""The encoder of Responses requests; each message is encoded once. Pure."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from bradawl.core.events import RequestParams
from bradawl.core.messages import Assistant, Document, Image, Message, Note, Origin, Text, ToolResult, ToolResults, User
from bradawl.core.ports import Prefix, ToolSchema
from bradawl.providers.compat import CompatProfile
from bradawl.providers.encoding import (
    UNANSWERED,
    Json,
    data_url,
    encode_json,
    note_text,
    replayable_arguments,
    tool_name,
)
from bradawl.providers.responses.replay import OpenCall, Replay, WireIds

_CACHE_KEY_LENGTH = 64
_REASONING_MODEL = re.compile(r"(?:.*/)?(?:o[1-9](?:-|$)|gpt-[5-9](?!.*chat)|gpt-oss|codex)")


def _tool(schema: ToolSchema) -> Json:
    return {
        "type": "function",
        "name": schema.name,
        "description": schema.description,
        "parameters": schema.parameters,
        "strict": False,
    }


class ResponsesRequests:
    """Encodes the requests of one conversation with `origin`.

    `left_out` gives the fields that the server has refused; it is called for each body.
    """

    def __init__(
        self,
        prefix: Prefix,
        origin: Origin,
        profile: CompatProfile,
        left_out: Callable[[], frozenset[str]],
        session_id: str = "",
    ) -> None:
        self._origin = origin
        self._profile = profile
        self._left_out = left_out
        self._cache_key = session_id
        if len(session_id) > _CACHE_KEY_LENGTH:
            self._cache_key = hashlib.sha256(session_id.encode("utf-8", "replace")).hexdigest()
        self._ids = WireIds()
        self._open: Sequence[OpenCall] = ()
        self._must_narrate = False
        self._input = bytearray()
        system = encode_json(prefix.system)
        tools = encode_json([_tool(schema) for schema in prefix.tools]) if prefix.tools else b""
        self._head = b'{"model":' + encode_json(origin.model)
        if prefix.system:
            self._head += b',"instructions":' + system
        if tools:
            self._head += b',"tools":' + tools
        self._head += b',"input":['
        self._hash = hashlib.sha256(tools + b"\n" + system + b"\n")

    def append(self, message: Message) -> None:
        """Encode the next message of the conversation."""
        match message:
            case User():
                self._answer_open_calls()
                self._add_user([*message.parts], message.notes)
            case Assistant():
                self._answer_open_calls()
                self._add_assistant(message)
            case ToolResults():
                self._add_results(message)

    def body(self, params: RequestParams) -> tuple[bytes, ...]:
        """The request's JSON in pieces; encoded messages are reused."""
        self._answer_open_calls()
        tail = bytearray(b'],"stream":true,"store":false')
        for name, value in self._fields(params).items():
            tail += b"," + encode_json(name) + b":" + encode_json(value)
        tail += b"}"
        return self._head, bytes(self._input), bytes(tail)

    def prefix_hash(self) -> str:
        """sha256 in hex of tools, system and messages as encoded."""
        return self._hash.hexdigest()

    def _fields(self, params: RequestParams) -> Json:
        left_out = self._left_out()
        fields: Json = {"include": ["reasoning.encrypted_content"]}
        if reasoning := self._reasoning(params.effort, with_summary="reasoning.summary" not in left_out):
            fields["reasoning"] = reasoning
        if self._cache_key:
            fields["prompt_cache_key"] = self._cache_key
        if params.max_output_tokens is not None:
            fields["max_output_tokens"] = params.max_output_tokens
        if params.answer_schema:
            fields["text"] = {"format": _answer_format(params.answer_schema)}
        fields |= {name: msgspec.Raw(text.encode()) for name, text in self._profile.extra.items()}
        return {name: value for name, value in fields.items() if name not in left_out}

    def _reasoning(self, effort: str | None, *, with_summary: bool) -> Json:
        """The `reasoning` field; sent only if needed, because models without reasoning reject it."""
        word = self._profile.efforts.get(effort, effort) if effort else ""
        if self._profile.effort_field == "none":
            word = ""
        reasoning: Json = {"effort": word} if word else {}
        knows_it_reasons = bool(word) or _REASONING_MODEL.match(self._origin.model.lower()) is not None
        if with_summary and knows_it_reasons and word != "none":
            reasoning["summary"] = "auto"
        return reasoning

    def _add(self, item: Json) -> None:
        encoded = encode_json(item)
        if self._input:
            self._input += b","
        self._input += encoded
        self._hash.update(encoded)
        self._hash.update(b"\n")

    # -------------------------------------------------------------- users

    def _add_user(self, parts: Sequence[Text | Image | Document], notes: Sequence[Note] = ()) -> None:
        content = self._content([*parts, *(Text(note_text(note)) for note in notes)])
        if content:  # the API rejects an empty prompt
            self._add({"role": "user", "content": content})

    def _content(self, parts: Sequence[Text | Image | Document]) -> list[Json]:
        return [self._piece(part) for part in parts if not isinstance(part, Text) or part.text.strip()]

    def _piece(self, part: Text | Image | Document) -> Json:
        """One part of a prompt or result; a description of it if the server does not accept it."""
        if isinstance(part, Text):
            return {"type": "input_text", "text": part.text}
        url = data_url(part.media_type, part.data)
        if isinstance(part, Image):
            if self._profile.images:
                return {"type": "input_image", "image_url": url, "detail": "auto"}
            return {"type": "input_text", "text": f"[An image ({part.media_type}) that this model can't be shown]"}
        name = part.name or "document"
        if self._profile.documents or self._profile.name == "azure":  # accepts files here, but not in Chat Completions
            return {"type": "input_file", "filename": name, "file_data": url}
        if part.media_type.lower().startswith("text/"):
            return {"type": "input_text", "text": f"{name}:\n{part.data.decode('utf-8', 'replace')}"}
        return {"type": "input_text", "text": f"[A file, {name} ({part.media_type}), that this model can't be shown]"}

    # -------------------------------------------------------------- replies and results

    def _add_assistant(self, message: Assistant) -> None:
        replay = Replay(message, self._ids, is_own=message.origin == self._origin)
        for item in replay.items:
            self._add(item)
        self._open, self._must_narrate = replay.calls, replay.must_narrate

    def _add_results(self, message: ToolResults) -> None:
        """Encode one result for each call of the last reply, in call order; missing results are filled in."""
        by_id: dict[str, list[ToolResult]] = {}
        for result in message.results:
            by_id.setdefault(result.call_id, []).append(result)
        answered = [(call, _answer(call, by_id)) for call in self._open]
        self._open = ()
        if self._must_narrate:
            self._must_narrate = False
            self._narrate(answered, message.notes)
            return
        for call, result in answered:
            notes = message.notes if call is answered[-1][0] else ()
            self._add({"type": "function_call_output", "call_id": call.wire_id, "output": self._output(result, notes)})
        if not answered:
            self._add_user((), message.notes)

    def _output(self, result: ToolResult, notes: Sequence[Note]) -> str | list[Json]:
        words = [note_text(note) for note in notes]
        texts = [part.text for part in result.parts if isinstance(part, Text)]
        if len(texts) == len(result.parts):
            return "\n".join([text for text in ("\n".join(texts),) if text] + words)
        return self._content([*result.parts, *map(Text, words)])

    def _narrate(self, answered: Sequence[tuple[OpenCall, ToolResult]], notes: Sequence[Note]) -> None:
        """Encode the calls of a truncated reply and their results as text."""
        parts: list[Text | Image | Document] = [
            Text("Your reply was cut off before its end. These calls had been made, don't repeat them:")
        ]
        for call, result in answered:
            parts.append(Text(f"{tool_name(call.call.name)} {replayable_arguments(call.call)}"))
            parts.extend(result.parts)
        self._add_user(parts, notes)

    def _answer_open_calls(self) -> None:
        if self._open:
            self._add_results(ToolResults(()))


def _answer(call: OpenCall, by_id: Mapping[str, list[ToolResult]]) -> ToolResult:
    waiting = by_id.get(call.call.id)
    return waiting.pop(0) if waiting else ToolResult(call.call.id, call.call.name, (Text(UNANSWERED),))


def _answer_format(schema: str) -> Json:
    from bradawl.providers.strict_schemas import may_be_strict

    fields: Json = {"type": "json_schema", "name": "answer", "schema": msgspec.Raw(schema.encode())}
    return {**fields, "strict": may_be_strict(schema)}
