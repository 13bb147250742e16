"""Assembles the tool calls of a Chat Completions stream from the deltas in `tool_calls`.

Follows the protocol, and interprets the deviations that servers are known for: no index, one index for all
calls, ids that are missing, repeated or change, names that repeat or grow, arguments as an object.
"""

import re
from collections.abc import Callable
from typing import Literal, TypeGuard

import msgspec

from bradawl.core.arguments import parse_arguments
from bradawl.core.messages import ToolCall

_MARKS = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
_OWN_FIELDS = frozenset({"id", "index", "type", "function"})

Progress = Literal["blank", "inside", "whole", "broken"]


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    """True for a JSON object."""
    return isinstance(value, dict)


class ObjectScan:
    """Tracks whether a JSON object is complete while its fragments arrive; each character is scanned once."""

    def __init__(self) -> None:
        self.progress: Progress = "blank"
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> None:
        """Scan the next fragment."""
        if self.progress == "broken":
            return
        if self._escaped and text:
            text = text[1:]
            self._escaped = False
        if self.progress == "blank":
            text = text.lstrip()
            if text and text[0] != "{":
                self.progress = "broken"
                return
        if self.progress == "whole":
            self.progress = "broken" if text.strip() else "whole"
            return
        self._follow(text)

    def _follow(self, text: str) -> None:
        for found in _MARKS.finditer(text):
            mark = found[0]
            if mark[0] == "\\":
                self._escaped = mark == "\\"
            elif mark == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += 1 if mark in "{[" else -1
            if self._depth == 0 and not self._in_string and mark == "}":
                self.progress = "broken" if text[found.end() :].strip() else "whole"
                return
        if self._depth:
            self.progress = "inside"


class CallSlot:
    """A call whose arguments are still arriving."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.id: str | None = None
        self.name = ""
        self.is_closed = False
        self.extra: dict[str, object] = {}
        self._fragments: list[str] = []
        self._scan = ObjectScan()
        self._scanned = 0
        self._object: dict[str, object] | None = None

    def add(self, fragment: str) -> None:
        """Append a fragment of the arguments."""
        if fragment:
            self._fragments.append(fragment)

    @property
    def raw_arguments(self) -> str:
        """All fragments so far."""
        return "".join(self._fragments)

    @property
    def is_blank(self) -> bool:
        """True while the arguments are empty."""
        self._catch_up()
        return self._scan.progress == "blank"

    @property
    def is_unfinished(self) -> bool:
        """True when the arguments so far are the beginning of a JSON object."""
        self._catch_up()
        return self._scan.progress == "inside"

    @property
    def is_whole(self) -> bool:
        """True when the arguments so far are one complete JSON object."""
        self._catch_up()
        if self._scan.progress != "whole":
            return False
        if self._object is None:
            arguments, status = parse_arguments(self.raw_arguments)
            if status != "ok" or arguments is None:
                self._scan.progress = "broken"
                return False
            self._object = arguments
        return True

    @property
    def may_close(self) -> bool:
        """True when the call may be closed before the reply ends; not for `{}`, which may be a placeholder."""
        return not self.is_closed and bool(self.name) and self.is_whole and bool(self._object)

    def _catch_up(self) -> None:
        for fragment in self._fragments[self._scanned :]:
            self._scan.feed(fragment)
        self._scanned = len(self._fragments)

    def learn_name(self, name: str) -> None:
        """Take a name that may repeat, extend, or continue the name so far."""
        if not self.is_closed:
            self.name = name if name.startswith(self.name) else self.name + name


class CallDeltaFields(msgspec.Struct):
    """One entry of `tool_calls`, normalised."""

    index: int | None
    id: str | None
    name: str | None
    arguments: str
    extra: dict[str, object]


def _text_or_none(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


class CallAssembly:
    """All calls of one reply. `take` returns the slot that a delta belongs to, `close` the finished call."""

    def __init__(self, new_id: Callable[[], str], warn: Callable[[str], None]) -> None:
        self._new_id = new_id
        self._warn = warn
        self._by_index: dict[int, CallSlot] = {}
        self._by_id: dict[str, CallSlot] = {}
        self._used_ids: set[str] = set()
        self.slots: list[CallSlot] = []

    def read(self, entry: dict[str, object]) -> CallDeltaFields:
        """The fields of one entry of `tool_calls`."""
        function = entry.get("function")
        if not is_object(function):
            function = {}
        arguments = function.get("arguments")
        if arguments is None:
            arguments = ""
        elif not isinstance(arguments, str):
            self._warn("args_not_string")
            arguments = msgspec.json.encode(arguments).decode()
        index = entry.get("index")
        extra = {key: value for key, value in entry.items() if key not in _OWN_FIELDS and value is not None}
        return CallDeltaFields(
            index=index if isinstance(index, int) and not isinstance(index, bool) else None,
            id=_text_or_none(entry.get("id")),
            name=_text_or_none(function.get("name")),
            arguments=arguments,
            extra=extra,
        )

    def continue_call(self, entry: dict[str, object]) -> tuple[CallSlot, str] | None:
        """Fast path: an entry with only arguments for the open call at that index."""
        function = entry.get("function")
        if len(entry) != 2 or not is_object(function) or len(function) != 1:
            return None
        index, arguments = entry.get("index"), function.get("arguments")
        slot = self._by_index.get(index) if isinstance(index, int) else None
        if slot is None or slot.is_closed or not isinstance(arguments, str):
            return None
        slot.add(arguments)
        return slot, arguments

    def take(self, delta: CallDeltaFields, next_place: int) -> CallSlot | None:
        """Add a delta to its call, or to a new one at `next_place`; None if the delta is empty."""
        slot = self._find(delta)
        if slot is None:
            if not (delta.id or delta.name or delta.arguments.strip()):
                return None
            slot = CallSlot(next_place)
            self.slots.append(slot)
            if delta.index is not None:
                self._by_index[delta.index] = slot
        self._learn_id(slot, delta.id)
        if delta.name:
            slot.learn_name(delta.name)
        slot.extra.update(delta.extra)
        if slot.is_closed:
            if delta.arguments.strip():
                self._warn("arguments_after_close")
        else:
            slot.add(delta.arguments)
        return slot

    def begin(self, place: int, name: str, arguments: str) -> CallSlot:
        """Begin a call that is not from `tool_calls`."""
        slot = CallSlot(place)
        slot.learn_name(name)
        slot.add(arguments)
        self.slots.append(slot)
        return slot

    def close(self, slot: CallSlot, *, cut: bool = False) -> ToolCall:
        """The call as received so far; `cut` if the reply was truncated."""
        slot.is_closed = True
        if slot.id is None:
            self._warn("id_generated")
        elif slot.id in self._used_ids:
            self._warn("duplicate_call_id")
            slot.id = None
        if slot.id is None:
            slot.id = self._fresh_id()
        self._used_ids.add(slot.id)
        raw = slot.raw_arguments
        _, status = parse_arguments(raw, cut=cut)
        if status == "ok" and raw.lstrip().startswith('"'):
            self._warn("double_encoded_args")
        data = msgspec.json.encode(slot.extra).decode() if slot.extra else ""
        return ToolCall(slot.id, slot.name, raw, status, provider_data=data)

    def _fresh_id(self) -> str:
        while (fresh := self._new_id()) in self._used_ids or fresh in self._by_id:
            pass
        return fresh

    def _learn_id(self, slot: CallSlot, call_id: str | None) -> None:
        if call_id is None or slot.id == call_id:
            return
        if slot.id is not None:
            self._warn("call_id_changed")
        elif not slot.is_closed:
            slot.id = call_id
            self._by_id.setdefault(call_id, slot)

    def _find(self, delta: CallDeltaFields) -> CallSlot | None:
        if delta.index is None:
            self._warn("index_missing")
            return self._find_without_index(delta)
        slot = self._by_index.get(delta.index)
        if slot is None:
            return self._find_at_new_index(delta)
        if delta.name and self._begins_anew(delta, slot):
            self._warn("index_reused")
            return None
        return slot

    @staticmethod
    def _begins_anew(delta: CallDeltaFields, slot: CallSlot) -> bool:
        """True if an entry with a name begins the next call: the previous one is complete and the header is new."""
        if delta.id is not None and slot.id is not None and delta.id != slot.id:
            return slot.is_whole
        repeats = delta.id is not None and delta.id == slot.id
        return not repeats and bool(delta.arguments.strip()) and slot.is_whole

    def _find_at_new_index(self, delta: CallDeltaFields) -> CallSlot | None:
        if not self.slots:
            return None
        known = self._by_id.get(delta.id) if delta.id else None
        if delta.name:
            # A server that increments the index with each fragment repeats the header unchanged.
            repeats = known is not None and known.name == delta.name and not known.is_blank and not known.is_whole
            return known if repeats else None
        if known is not None:
            return known
        last = self.slots[-1]
        is_empty = not delta.arguments.strip() and delta.id is None
        return last if is_empty or not last.is_whole else None

    def _find_without_index(self, delta: CallDeltaFields) -> CallSlot | None:
        known = self._by_id.get(delta.id) if delta.id else None
        if known is not None:
            repeats_id = bool(delta.name and delta.arguments.strip()) and known.is_whole
            return None if repeats_id else known
        if not self.slots:
            return None
        last = self.slots[-1]
        if delta.name and (delta.name != last.name or last.is_whole):
            return None
        return last
