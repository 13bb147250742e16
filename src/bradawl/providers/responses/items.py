"""Closes the items of a Responses reply: each becomes one part, also if the server repeats it. Pure."""

from collections.abc import Callable

import msgspec

from bradawl.core.deltas import Delta, PartClosed, TextDelta
from bradawl.core.messages import Opaque
from bradawl.providers.encoding import encode_json
from bradawl.providers.responses.fields import Fields, fields_of, text_of, value_of
from bradawl.providers.responses.slots import (
    CallNames,
    Index,
    Kind,
    Slot,
    Slots,
    close_message,
    close_reasoning,
    kind_of,
    take_message,
)


class Items:
    """The items of one reply. `warn` is called with the server's deviations."""

    def __init__(self, new_id: Callable[[], str], warn: Callable[[str], None]) -> None:
        self.slots = Slots()
        self.has_calls = False
        self.has_refusal = False
        self._warn = warn
        self._names = CallNames(new_id, warn)

    def close_item(self, item: msgspec.Raw, index: Index) -> list[Delta]:
        """Close an item; the finished item replaces its fragments."""
        fields = fields_of(item)
        kind = kind_of(value_of(fields, "type"))
        if kind == "other":
            return self._close_other(item, fields, index)
        item_id, call_id = value_of(fields, "id"), text_of(fields, "call_id")
        slot = self.slots.find(kind, index, item_id, call_id)
        if slot is not None and slot.is_closed and self._is_repeated(slot, index, fields):
            return []
        if slot is None or slot.is_closed:
            slot = self.slots.open(kind, index)
        slot.learn(fields)
        match kind:
            case "message":
                return self._close_message(slot, fields)
            case "reasoning":
                thinking = close_reasoning(slot, fields)
                return [] if thinking is None else [PartClosed(slot.place, thinking)]
            case "function_call":
                return self._close_call_item(slot, fields)

    def _is_repeated(self, slot: Slot, index: Index, fields: Fields) -> bool:
        """True if the item repeats that of a closed slot; false if it is another one."""
        if not _is_same(slot, value_of(fields, "id"), text_of(fields, "call_id")):
            return False
        arguments = self._arguments_of(fields) if slot.kind == "function_call" else None
        if arguments is None or arguments == "".join(slot.arguments):
            return True
        if index is not None and slot.index is not None and index != slot.index:
            return False  # some servers give two calls the same id
        self._warn("arguments_after_close")
        return True

    def _close_call_item(self, slot: Slot, fields: Fields) -> list[Delta]:
        arguments = self._arguments_of(fields)
        if arguments is not None:
            slot.arguments = [arguments]
        self.has_calls = True
        return self.close_call(slot, cut=value_of(fields, "status") == "incomplete")

    def _close_message(self, slot: Slot, fields: Fields) -> list[Delta]:
        text = take_message(slot, fields)
        deltas: list[Delta] = [TextDelta(slot.place, text)] if text else []
        for place, part in close_message(slot):
            self.has_refusal = self.has_refusal or place != slot.place
            deltas.append(PartClosed(place, part))
        return deltas

    def _close_other(self, item: msgspec.Raw, fields: Fields, index: Index) -> list[Delta]:
        item_id = value_of(fields, "id")
        known = self.slots.find("other", index, item_id)
        if not fields or (known is not None and _is_same(known, item_id, "")):
            return []
        slot = self.slots.open("other", index)
        slot.learn(fields)
        slot.is_closed = True
        return [PartClosed(slot.place, Opaque(bytes(item).decode()))]

    def take_output(self, response: Fields) -> list[Delta]:
        """Take items that only the finished response has, from servers that stream little or nothing."""
        try:
            output = msgspec.json.decode(response.get("output", b"[]"), type=list[msgspec.Raw] | None) or []
        except msgspec.DecodeError:
            return []
        seen = {slot.kind for slot in self.slots.all}
        deltas: list[Delta] = []
        for index, item in enumerate(output):
            fields = fields_of(item)
            kind = kind_of(value_of(fields, "type"))
            if kind not in seen or self._is_open(kind, fields):
                deltas += self.close_item(item, index if not seen else None)
        return deltas

    def _is_open(self, kind: Kind, fields: Fields) -> bool:
        item_id, call_id = value_of(fields, "id"), text_of(fields, "call_id")
        slot = self.slots.find(kind, None, item_id, call_id)
        return slot is not None and not slot.is_closed

    def close_rest(self, *, cut: bool) -> list[Delta]:
        """Close the unfinished items; calls among them may run only if the response is complete."""
        deltas: list[Delta] = []
        for slot in self.slots.all:
            if slot.is_closed:
                continue
            match slot.kind:
                case "message":
                    deltas += self._close_message(slot, {})
                case "reasoning":
                    if (thinking := close_reasoning(slot, {})) is not None:
                        deltas.append(PartClosed(slot.place, thinking))
                case "function_call":
                    if not cut:
                        self._warn("call_never_closed")
                    self.has_calls = True
                    deltas += self.close_call(slot, cut=cut)
                case "other":
                    pass
        return deltas

    def arguments(self, value: object) -> str | None:
        """The arguments as text; None if missing."""
        if value is None or isinstance(value, str):
            return value
        self._warn("args_not_string")
        return encode_json(value).decode()

    def _arguments_of(self, fields: Fields) -> str | None:
        value = value_of(fields, "arguments")
        if value is None or isinstance(value, str):
            return value
        self._warn("args_not_string")
        return bytes(fields["arguments"]).decode()

    def warn_if_changed(self, slot: Slot, arguments: str | None) -> None:
        """Warn if a closed call, which may be running, gets other arguments."""
        if slot.is_closed and arguments is not None and arguments != "".join(slot.arguments):
            self._warn("arguments_after_close")

    def close_call(self, slot: Slot, *, cut: bool = False) -> list[Delta]:
        """Close the call as received so far; one that was `cut` never runs."""
        return [PartClosed(slot.place, self._names.close(slot, cut=cut))]


def _is_same(slot: Slot, item_id: object, call_id: str) -> bool:
    """True if a finished item is repeated; missing ids distinguish nothing."""
    if call_id and slot.call_id:
        return call_id == slot.call_id
    return not item_id or not slot.item_id or item_id == slot.item_id
