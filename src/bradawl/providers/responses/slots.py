"""Tracks the unfinished items of a Responses reply while their events arrive; `items` closes each.

The protocol identifies them by `output_index`. Gateways omit it, repeat it for every item, or send a new item id
with each event, so an item is also identified by its kind and its call.
"""

from collections.abc import Callable
from typing import Literal

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import ArgumentsStatus, Part, Refusal, Text, Thinking, ToolCall
from bradawl.providers.responses.fields import Fields, as_text, text_of, value_of
from bradawl.providers.responses.replay import join_summaries, summary_of

Kind = Literal["message", "reasoning", "function_call", "other"]
Index = int | float | str | None

_KINDS: dict[str, Kind] = {"message": "message", "reasoning": "reasoning", "function_call": "function_call"}
# `status` is only in replies: the API rejects it in reasoning that is sent back.
_NOT_REPLAYED = frozenset({"type", "id", "encrypted_content", "status"})
_NOTHING = frozenset({b"null", b"[]"})


def kind_of(item_type: object) -> Kind:
    """The kind of an item, from its type."""
    return _KINDS.get(item_type, "other") if isinstance(item_type, str) else "other"


class Texts:
    """Texts that arrive in parallel, by index."""

    def __init__(self) -> None:
        self._by_index: dict[Index, list[str]] = {}

    @property
    def is_empty(self) -> bool:
        """True before the first text."""
        return not self._by_index

    def add(self, index: object, text: str) -> bool:
        """Append to one text; true if it is new and not the first."""
        index = _key_of(index)
        fragments = self._by_index.get(index)
        if fragments is None:
            self._by_index[index] = [text]
            return len(self._by_index) > 1
        fragments.append(text)
        return False

    def replace(self, index: object, text: str) -> bool:
        """Set the whole text; true if none of it had arrived before."""
        index = _key_of(index)
        is_new = index not in self._by_index
        self._by_index[index] = [text]
        return is_new

    def whole(self) -> list[str]:
        """All texts, in the order in which they began."""
        return ["".join(fragments) for fragments in self._by_index.values()]


def _key_of(index: object) -> Index:
    return index if isinstance(index, int | float | str) else None


class Slot:
    """One item. `place` is the index of its part; a refusal in a message has the next one."""

    def __init__(self, place: int, kind: Kind, index: Index) -> None:
        self.place = place
        self.index = index
        self.kind: Kind = kind
        self.is_closed = False
        self.item_id: str | None = None
        self.call_id = ""
        self.name = ""
        self.phase = ""
        self.arguments: list[str] = []
        self.texts = Texts()
        """The texts of a message, or the summaries of reasoning."""
        self.more = Texts()
        """The refusals of a message, or the reasoning text."""

    def learn(self, fields: Fields) -> None:
        """Take ids, name and phase from the item's fields."""
        self.item_id = text_of(fields, "id") or self.item_id
        self.call_id = text_of(fields, "call_id") or self.call_id
        self.name = text_of(fields, "name") or self.name
        self.phase = text_of(fields, "phase") or self.phase


class Slots:
    """All items of one reply."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self.by_index: dict[Index, Slot] = {}
        self._places: set[int] = set()

    def find(self, kind: Kind, index: Index, item_id: object = None, call_id: str = "") -> Slot | None:
        """The item an event is about."""
        at_index = self.by_index.get(index) if index is not None else None
        if at_index is not None and at_index.kind == kind and _may_be(at_index, call_id):
            return at_index
        for slot in reversed(self.all):
            if slot.kind != kind:
                continue
            if (call_id and slot.call_id == call_id) or (item_id and slot.item_id == item_id):
                return slot
            if index is None and not slot.is_closed and not (item_id and slot.item_id) and _may_be(slot, call_id):
                return slot
        return None

    def open(self, kind: Kind, index: Index) -> Slot:
        """Begin an item."""
        place = index * 2 if isinstance(index, int) and index >= 0 else -1
        if place < 0 or place in self._places:
            place = max(self._places, default=-2) + 2
        slot = Slot(place, kind, index)
        self._places.add(place)
        self.all.append(slot)
        if index is not None:
            self.by_index[index] = slot
        return slot


def _may_be(slot: Slot, call_id: str) -> bool:
    return not call_id or not slot.call_id or slot.call_id == call_id


class CallNames:
    """Makes finished calls with unique ids."""

    def __init__(self, new_id: Callable[[], str], warn: Callable[[str], None]) -> None:
        self._new_id = new_id
        self._warn = warn
        self._used: set[str] = set()

    def close(self, slot: Slot, *, cut: bool = False) -> ToolCall:
        """The call as received so far; one that was `cut` never runs."""
        slot.is_closed = True
        if not slot.call_id:
            self._warn("id_generated")
        elif slot.call_id in self._used:
            self._warn("duplicate_call_id")
            slot.call_id = ""
        while not slot.call_id or slot.call_id in self._used:
            slot.call_id = self._new_id()
        self._used.add(slot.call_id)
        raw = "".join(slot.arguments)
        _, status = parse_arguments(raw, cut=cut)
        if status == "ok" and raw.lstrip().startswith('"'):
            self._warn("double_encoded_args")
        ended: ArgumentsStatus = "truncated" if cut and status == "ok" else status
        return ToolCall(slot.call_id, slot.name, raw, ended, provider_data=_data({"item_id": slot.item_id}))


def close_message(slot: Slot) -> list[tuple[int, Part]]:
    """The text and the refusal of a message, if any, each with its index."""
    slot.is_closed = True
    parts: list[tuple[int, Part]] = []
    if text := "".join(slot.texts.whole()):
        data = {"item_id": slot.item_id, "phase": slot.phase} if slot.phase else {"item_id": slot.item_id}
        parts.append((slot.place, Text(text, _data(data))))
    if refusal := "".join(slot.more.whole()):
        parts.append((slot.place + 1, Refusal(refusal)))
    return parts


def close_reasoning(slot: Slot, fields: Fields) -> Thinking | None:
    """The reasoning with the data for its replay; None if there is neither text nor such data.

    `fields` are those of the finished item, empty if the server did not finish it.
    """
    slot.is_closed = True
    summaries = _item_texts(fields, "summary") or slot.texts.whole()
    text = join_summaries(summaries) or join_summaries(_item_texts(fields, "content") or slot.more.whole())
    encrypted = fields.get("encrypted_content")
    if not text and not text_of(fields, "encrypted_content"):
        return None
    data: dict[str, object] = {"item_id": slot.item_id, "encrypted_content": encrypted}
    data |= {
        name: raw for name, raw in fields.items() if name not in _NOT_REPLAYED and bytes(raw).strip() not in _NOTHING
    }
    for name, piece_type in (("summary", "summary_text"), ("content", "reasoning_text")):
        if name in data and not _are_pieces(value_of(fields, name), piece_type):
            del data[name]
    if value_of(fields, "summary") == summary_of(text):
        data.pop("summary", None)
    elif fields:
        data.setdefault("summary", msgspec.Raw(b"[]"))
    return Thinking(text, provider_data=_data(data))


def _are_pieces(value: object, piece_type: str) -> bool:
    """True for a list of texts as in the protocol; the API would reject any other when sent back."""
    if not isinstance(value, list):
        return False
    return all(
        isinstance(piece, dict) and piece.get("type") == piece_type and isinstance(piece.get("text"), str)
        for piece in value
    )


def _item_texts(fields: Fields, name: str) -> list[str]:
    """The texts of a list of typed pieces."""
    pieces = value_of(fields, name)
    if isinstance(pieces, str):
        return [pieces]
    if not isinstance(pieces, list):
        return []
    return [text for piece in pieces if isinstance(piece, dict) and isinstance(text := piece.get("text"), str)]


def take_message(slot: Slot, fields: Fields) -> str:
    """Take a finished message, which replaces its fragments; returns text of which nothing had been shown."""
    content = value_of(fields, "content")
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content}]
    if not isinstance(content, list):
        return ""
    was_shown = not slot.texts.is_empty
    slot.texts, slot.more = Texts(), Texts()
    for index, piece in enumerate(content):
        if isinstance(piece, dict):
            kept = slot.more if piece.get("type") == "refusal" else slot.texts
            if text := as_text(piece.get("refusal") or piece.get("text")):
                kept.replace(index, text)
    return "" if was_shown else "".join(slot.texts.whole())


def _data(data: dict[str, object] | dict[str, str | None]) -> str:
    return msgspec.json.encode(data).decode()
