"""Encodes a reply as input items of the next Responses request. Pure.

The server binds reasoning to the item that follows it: `rs_` before `fc_` or `msg_`, unmodified. It rejects
reasoning without that item, and an item's id without its reasoning. Reasoning can be sent back only with its
encrypted content, because requests use `store: false`.
"""

import re
from typing import Literal

import msgspec

from bradawl.core.messages import Assistant, Opaque, Refusal, Text, Thinking, ToolCall, calls_of
from bradawl.providers.encoding import Json, digest_of, replayable_arguments, tool_name
from bradawl.providers.responses.fields import Fields, decoded, fields_of, text_of

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ITEM_ID = re.compile(r"(?:rs|fc|msg)_[A-Za-z0-9_-]{0,60}[A-Za-z0-9-]")
_ID_LIMIT = 64
_BETWEEN_SUMMARIES = "\n\n"


def summary_of(text: str) -> list[dict[str, str]]:
    """The summary of a reasoning item from its text, whose parts are separated by blank lines."""
    return [{"type": "summary_text", "text": piece} for piece in text.split(_BETWEEN_SUMMARIES)] if text else []


def join_summaries(texts: list[str]) -> str:
    """The parts of a summary joined to one text."""
    return _BETWEEN_SUMMARIES.join(texts)


class OpenCall(msgspec.Struct, frozen=True):
    """A call without a result yet."""

    call: ToolCall
    wire_id: str
    """The call's id as sent."""


class WireIds:
    """The ids of one conversation as sent: valid, unique, and the same in every encoding."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._count = 0

    def call(self, call_id: str) -> str:
        """The id for a call and its result."""
        if _CALL_ID.fullmatch(call_id) and self._take(call_id):
            return call_id
        self._count += 1
        return f"call_{digest_of(f'{self._count} {call_id}'):x}"

    def item(self, item_id: str, prefix: str) -> str:
        """The server's id of an item; empty if it can't be sent back."""
        is_legal = item_id.startswith(prefix) and len(item_id) <= _ID_LIMIT and _ITEM_ID.fullmatch(item_id)
        return item_id if is_legal and self._take(item_id) else ""

    def may_send(self, raw_id: msgspec.Raw | None) -> bool:
        """True if an item can be sent back unchanged: its id, if any, is valid and not sent before."""
        item_id: object = None if raw_id is None else decoded(raw_id)
        return item_id is None or (isinstance(item_id, str) and 0 < len(item_id) <= _ID_LIMIT and self._take(item_id))

    def message(self, text: str) -> str:
        """A generated id for a message without one."""
        self._count += 1
        return f"msg_{digest_of(f'{self._count} {text}'):x}"

    def _take(self, wire_id: str) -> bool:
        is_new = wire_id not in self._used
        self._used.add(wire_id)
        return is_new


class Replay:
    """One reply as `items`; `calls` need results, as items or, if `must_narrate`, as text."""

    def __init__(self, message: Assistant, ids: WireIds, *, is_own: bool) -> None:
        self.items: list[Json] = []
        self._ids = ids
        self._is_own = is_own
        self._is_cut = not message.complete
        self._reasoning: list[Json] = []
        self._binding: Literal["none", "kept", "lost"] = "none"
        self._answered = _answered_items(message) if is_own else set[bytes]()
        self.must_narrate = is_own and self._is_cut and _has_unsigned_calls(message)
        self.calls = tuple(OpenCall(call, self._ids.call(call.id)) for call in calls_of(message))
        calls = iter(self.calls)
        for part in message.parts:
            match part:
                case Thinking():
                    self._add_thinking(part)
                case Text():
                    self._add_text(part)
                case Refusal(text):
                    self._add_refusal(text)
                case ToolCall():
                    self._add_call(next(calls))
                case Opaque(data):
                    self._add_opaque(data)
                case _:
                    pass  # no model of this protocol replies with images or files

    def _add(self, item: Json) -> None:
        self.items += self._reasoning
        self._reasoning = []
        self.items.append(item)

    def _unbind(self) -> None:
        """Drop the pending reasoning; the item after it is sent without its id."""
        self._reasoning = []
        self._binding = "lost"

    def _add_thinking(self, part: Thinking) -> None:
        if not self._is_own or self.must_narrate:
            return
        fields = fields_of(part.provider_data)
        if not _is_signed(fields):
            self._unbind()
            return
        item: Json = {"type": "reasoning"}
        if item_id := self._ids.item(text_of(fields, "item_id"), "rs_"):
            item["id"] = item_id
        item["summary"] = fields.pop("summary", None) or summary_of(part.text)
        item |= {name: value for name, value in fields.items() if name != "item_id"}
        self._reasoning.append(item)
        self._binding = "kept"

    def _add_text(self, part: Text) -> None:
        if not part.text.strip():
            return
        fields = fields_of(part.provider_data) if self._is_own else {}
        if self._is_cut and not fields:
            self._unbind()  # the text is incomplete, so it is not the item that the reasoning is bound to
        content = {"type": "output_text", "text": part.text, "annotations": list[object]()}
        self._add_message(part.text, content, fields)

    def _add_refusal(self, text: str) -> None:
        if text.strip() and self._is_own:
            self._add_message(text, {"type": "refusal", "refusal": text}, {})
        elif text.strip():
            self._add_message(text, {"type": "output_text", "text": text, "annotations": list[object]()}, {})

    def _add_message(self, text: str, content: Json, fields: Fields) -> None:
        item_id = self._ids.item(text_of(fields, "item_id"), "msg_") if self._binding == "kept" else ""
        item: Json = {
            "type": "message",
            "role": "assistant",
            "id": item_id or self._ids.message(text),
            "status": "completed",
            "content": [content],
        }
        if phase := text_of(fields, "phase"):
            item["phase"] = phase
        self._add(item)

    def _add_call(self, call: OpenCall) -> None:
        if self.must_narrate:
            return
        item: Json = {
            "type": "function_call",
            "call_id": call.wire_id,
            "name": tool_name(call.call.name),
            "arguments": replayable_arguments(call.call),
        }
        if self._binding == "kept":
            item_id = self._ids.item(text_of(fields_of(call.call.provider_data), "item_id"), "fc_")
            item |= {"id": item_id} if item_id else {}
        self._add(item)

    def _add_opaque(self, data: str) -> None:
        """An item of unknown kind, unchanged; left out if it needs a result that bradawl can't give."""
        fields = fields_of(data) if self._is_own and not self.must_narrate else {}
        if not text_of(fields, "type"):
            return
        call_id = _call_id_of(fields)
        is_unanswered = bool(call_id) and call_id not in self._answered
        if self._binding != "lost" and not is_unanswered and self._ids.may_send(fields.get("id")):
            self._add(dict(fields))


def _is_signed(fields: Fields) -> bool:
    return bool(text_of(fields, "encrypted_content"))


def _has_unsigned_calls(message: Assistant) -> bool:
    """True if a call is bound to reasoning that can't be sent back."""
    is_signed = True
    for part in message.parts:
        if isinstance(part, Thinking):
            is_signed = is_signed and _is_signed(fields_of(part.provider_data))
        elif isinstance(part, ToolCall) and not is_signed:
            return True
    return False


def _answered_items(message: Assistant) -> set[bytes]:
    """Ids of the calls among items of unknown kinds whose output is present."""
    called: set[bytes] = set()
    answered: set[bytes] = set()
    for part in message.parts:
        fields = fields_of(part.provider_data) if isinstance(part, Opaque) else {}
        call_id = _call_id_of(fields)
        if text_of(fields, "type").endswith("_output"):
            answered |= {call_id} & called
        else:
            called.add(call_id)
    return answered


def _call_id_of(fields: Fields) -> bytes:
    """The call id; empty if missing."""
    return bytes(fields.get("call_id", b"")).strip().removeprefix(b"null")
