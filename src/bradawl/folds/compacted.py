"""The messages after a compaction, computed from those before and its event alone."""

from collections.abc import Sequence

import msgspec

from bradawl.core.events import Compacted, Shortened
from bradawl.core.messages import Assistant, Message, Note, Opaque, Part, Text, Thinking, ToolResults, User


def compacted(messages: Sequence[Message], event: Compacted) -> list[Message]:
    """The messages after the event: its pins and its summary, then the kept messages without thinking."""
    kept = list(messages[event.kept_from :])
    for each in event.shortened:
        if 0 <= (place := each.message - event.kept_from) < len(kept):
            kept[place] = _shortened(kept[place], each)
    unbound = (without_thinking(message) if isinstance(message, Assistant) else message for message in kept)
    return [*head_of(event), *(message for message in unbound if _says_something(message))]


def head_of(event: Compacted) -> tuple[Message, ...]:
    """The message with the summary and the pins; none if the event has neither."""
    if not (event.summary or event.pins):
        return ()
    texts = [event.summary, *(pin.text for pin in event.pins if pin.kind != "instructions")]
    notes = [Note(pin.id, pin.text, "instructions") for pin in event.pins if pin.kind == "instructions"]
    return (User(tuple(Text(text) for text in texts if text), tuple(notes)),)


def without_thinking(reply: Assistant) -> Assistant:
    """The reply without what is bound to the messages before it: thinking, blocks of unknown kinds, item ids."""
    parts = tuple(_unbound(part) for part in reply.parts if not isinstance(part, Thinking | Opaque))
    free = msgspec.structs.replace(reply, parts=parts, response_id=None)
    return reply if free == reply else free  # what is known of a message stays known


def _unbound(part: Part) -> Part:
    return msgspec.structs.replace(part, provider_data="") if isinstance(part, Text) else part


def _says_something(message: Message) -> bool:
    return not isinstance(message, Assistant) or bool(message.parts)


def _shortened(message: Message, each: Shortened) -> Message:
    if not isinstance(message, ToolResults) or each.result >= len(message.results):
        return message
    results = list(message.results)
    results[each.result] = msgspec.structs.replace(results[each.result], parts=(Text(each.text),))
    return msgspec.structs.replace(message, results=tuple(results))
