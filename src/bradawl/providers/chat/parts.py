"""Collects the parts of a Chat Completions reply: text, reasoning, refusal and calls. Pure."""

from collections.abc import Callable, Iterable
from typing import cast

from bradawl.core.deltas import CallDelta, Delta, PartClosed, TextDelta, ThinkingDelta
from bradawl.core.messages import Refusal, Text
from bradawl.providers.chat.calls import CallAssembly, CallSlot, is_object
from bradawl.providers.chat.chunks import ChunkDelta, as_list, joined_text
from bradawl.providers.chat.inline_thinking import Piece
from bradawl.providers.chat.reasoning import Reasoning
from bradawl.providers.chat.text import ReplyText


class ReplyParts:
    """Takes the delta of each chunk and appends the resulting deltas to a list."""

    def __init__(self, new_id: Callable[[], str], text: ReplyText | None, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._text = text if text is not None and not text.is_plain else None
        self._calls = CallAssembly(new_id, warn)
        self._reasoning = Reasoning()
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._places: dict[str, int] = {}
        self._next_place = 0
        self._last_call: CallSlot | None = None
        self.continued: CallSlot | None = None
        """The call to which the last entry of `tool_calls` added only arguments; else None."""

    @property
    def call_count(self) -> int:
        """The number of calls, open ones included."""
        return len(self._calls.slots)

    @property
    def has_refusal(self) -> bool:
        """True if the reply contains a refusal."""
        return bool(self._refusals)

    def take(self, delta: ChunkDelta, deltas: list[Delta]) -> None:
        """Take the delta of one chunk."""
        if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
            self._take_reasoning(delta, deltas)
        content = delta.content
        if content:
            if isinstance(content, str):
                self.add_text(content, deltas)
            else:
                self._take_content_list(content, deltas)
        if delta.refusal and isinstance(delta.refusal, str):
            self._close_previous(None, deltas)
            self._refusals.append(delta.refusal)
            deltas.append(TextDelta(self._place("refusal"), delta.refusal))
        if delta.tool_calls:
            for entry in as_list(delta.tool_calls):
                if is_object(entry):
                    self._take_call(entry, deltas)
        if is_object(delta.function_call):
            self._take_call({"index": 0, "function": delta.function_call}, deltas)

    def repeat(self, slot: CallSlot | None, text: str, deltas: list[Delta]) -> None:
        """Take more text, or more arguments of the continued call."""
        if slot is None:
            self.add_text(text, deltas)
        elif slot.is_closed:
            if text.strip():
                self._warn("arguments_after_close")
        else:
            slot.add(text)
            if slot is not self._last_call:
                self._close_previous(slot, deltas)
            deltas.append(CallDelta(slot.place, slot.id or "", slot.name, text))

    def add_text(self, text: str, deltas: list[Delta]) -> None:
        """Take more of the server's `content`, which may contain reasoning and calls."""
        if self._text is None:
            self._add_answer(text, deltas)
        elif text:
            self._add_pieces(self._text.feed(text), deltas)
            if self._text.is_plain:
                self._text = None

    def _add_pieces(self, pieces: Iterable[Piece], deltas: list[Delta]) -> None:
        for kind, text in pieces:
            if kind == "thinking":
                self._add_thinking("content.inline", text, deltas)
            else:
                self._add_answer(text, deltas)

    def _add_answer(self, text: str, deltas: list[Delta]) -> None:
        if text:
            if self._last_call is not None:
                self._close_previous(None, deltas)
            self._texts.append(text)
            deltas.append(TextDelta(self._place("text"), text))

    def _add_thinking(self, field: str, text: str, deltas: list[Delta]) -> None:
        if text:
            self._close_previous(None, deltas)
            deltas.append(ThinkingDelta(self._place("thinking"), self._reasoning.take_text(field, text)))

    def _place(self, kind: str) -> int:
        place = self._places.get(kind)
        if place is None:
            place = self._places[kind] = self._next_place
            self._next_place += 1
        return place

    def _take_content_list(self, content: object, deltas: list[Delta]) -> None:
        """Take Mistral's content with reasoning: a list of typed pieces."""
        for item in as_list(content):
            if isinstance(item, str):
                self.add_text(item, deltas)
            elif is_object(item):
                if item.get("type") == "thinking":
                    self._add_thinking("content.thinking", joined_text(item.get("thinking")), deltas)
                else:
                    self.add_text(joined_text(item), deltas)

    def _take_reasoning(self, delta: ChunkDelta, deltas: list[Delta]) -> None:
        if self._text is not None:
            self._text.expect_no_thinking()
        field = "reasoning_content" if delta.reasoning_content else "reasoning"
        text: object = delta.reasoning_content or delta.reasoning
        has_text = isinstance(text, str) and bool(text)
        if isinstance(text, str):
            self._add_thinking(field, text, deltas)
        if isinstance(delta.reasoning_details, list) and delta.reasoning_details:
            details = cast("list[object]", delta.reasoning_details)
            place = self._place("thinking")
            if fresh := self._reasoning.take_details(details, has_text=has_text):
                self._close_previous(None, deltas)
                deltas.append(ThinkingDelta(place, fresh))

    # -------------------------------------------------------------- calls

    def _take_call(self, entry: dict[str, object], deltas: list[Delta]) -> None:
        self.continued = None
        if (more := self._calls.continue_call(entry)) is not None:
            slot, arguments = more
            self.continued = slot
            if slot is not self._last_call:
                self._close_previous(slot, deltas)
            deltas.append(CallDelta(slot.place, slot.id or "", slot.name, arguments))
            return
        fields = self._calls.read(entry)
        slot = self._calls.take(fields, self._next_place)
        if slot is None:
            return
        if slot.place == self._next_place:
            self._next_place += 1
            if self._text is not None:
                self._add_answer(self._text.expect_no_calls(), deltas)
        self._close_previous(slot, deltas)
        if not slot.is_closed:
            deltas.append(CallDelta(slot.place, slot.id or "", slot.name, fields.arguments))

    def _close_previous(self, current: CallSlot | None, deltas: list[Delta]) -> None:
        """Another part has begun: close the call before it if its arguments are complete.

        Only the call that changed last can have become complete since the last check.
        """
        previous = self._last_call
        self._last_call = current
        if previous is not None and previous is not current and previous.may_close:
            deltas.append(PartClosed(previous.place, self._calls.close(previous)))

    # -------------------------------------------------------------- the end

    def finish_text(self, rest: str, *, cut: bool, deltas: list[Delta]) -> None:
        """End of the text with `rest`: emit the text held back and the calls found in it."""
        if self._text is None:
            self._add_answer(rest, deltas)
            return
        text, self._text = self._text, None
        pieces, calls = text.finish(cut=cut)
        self._add_pieces([*pieces, ("text", rest)], deltas)
        for call in calls:
            self._warn("calls_in_text")
            slot = self._calls.begin(self._next_place, call.name, call.arguments)
            self._next_place += 1
            deltas.append(CallDelta(slot.place, "", slot.name, call.arguments))

    def close_calls(self, *, cut: bool, deltas: list[Delta], wait: bool = False) -> None:
        """Close the calls at the finish reason; `cut` if it means truncation.

        With `wait` a call with incomplete arguments stays open: some servers send the reason with each event.
        """
        for slot in self._calls.slots:
            if not (slot.is_closed or (wait and slot.is_unfinished)):
                deltas.append(PartClosed(slot.place, self._calls.close(slot, cut=cut)))

    def close_texts(self, deltas: list[Delta]) -> None:
        """Close all parts that are not calls, at the end of the reply."""
        if "text" in self._places:
            deltas.append(PartClosed(self._places["text"], Text("".join(self._texts))))
        if "thinking" in self._places:
            deltas.append(PartClosed(self._places["thinking"], self._reasoning.part()))
        if "refusal" in self._places:
            deltas.append(PartClosed(self._places["refusal"], Refusal("".join(self._refusals))))

    def break_off(self, deltas: list[Delta]) -> None:
        """The stream broke: emit the text held back, without a call that had begun in it."""
        text, self._text = self._text, None
        if text is not None:
            self._add_pieces(text.break_off(), deltas)
        if self.call_count and "thinking" in self._places:
            # The reasoning a call depends on was complete before the call began.
            deltas.append(PartClosed(self._places["thinking"], self._reasoning.part()))
