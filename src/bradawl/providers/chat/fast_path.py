"""A fast path for events that differ from the previous one in one string only: no JSON is parsed. Pure.

A reply comes in thousands of small events with the same prefix and suffix: `{"choices":[{"delta":{"content":"`
and `"}}]}`. If an event begins and ends like a parsed one, and a JSON string is between, then it means the same
with another text.
"""

import msgspec

_NEVER = "\0"
_decode = msgspec.json.Decoder(str).decode


class RepeatedEvent:
    """The prefix and suffix of the last learnt event, if any."""

    def __init__(self) -> None:
        self._head = self._tail = _NEVER
        self._around = 0

    def text_in(self, data: str) -> str | None:
        """The text of an event with the learnt prefix and suffix; None for any other."""
        if not (data.startswith(self._head) and data.endswith(self._tail) and len(data) >= self._around):
            return None
        text = data[len(self._head) : len(data) - len(self._tail)]
        if '"' in text or "\\" in text:
            try:
                return _decode(f'"{text}"')
            except msgspec.DecodeError:
                return None  # a different event, or half of a surrogate pair
        return text

    def learn(self, data: str, text: str) -> bool:
        """Learn from `data`, an event whose only news is `text`; false if it is not suitable."""
        quoted = f'"{text}"'
        # The text must occur in the event literally, without escapes, and only once.
        if not text or "\\" in data or data.count(quoted) != 1:
            return False
        place = data.index(quoted) + 1
        self._head, self._tail = data[:place], data[place + len(text) :]
        self._around = len(self._head) + len(self._tail)
        return True

    def forget(self) -> None:
        """Parse the next events in full."""
        self._head = self._tail = _NEVER
