"""Events that say the same as the one before but for one text, read without parsing them. Pure.

A reply comes in thousands of small events, of which only one string differs: `{"choices":[{"delta":
{"content":"` and `"}}]}` are the same each time. If an event begins and ends like one that has been
read, and what lies between is a JSON string, then the event says the same with another text.
"""

import msgspec

_NEVER = "\0"
_decode = msgspec.json.Decoder(str).decode


class RepeatedEvent:
    """The event that repeats, if there is one."""

    def __init__(self) -> None:
        self._head = self._tail = _NEVER
        self._around = 0

    def text_in(self, data: str) -> str | None:
        """The text of an event that is otherwise the one learnt; None for any other."""
        if not (data.startswith(self._head) and data.endswith(self._tail) and len(data) >= self._around):
            return None
        text = data[len(self._head) : len(data) - len(self._tail)]
        if '"' in text or "\\" in text:
            try:
                return _decode(f'"{text}"')
            except msgspec.DecodeError:
                return None  # another event after all, or half of a character
        return text

    def learn(self, data: str, text: str) -> bool:
        """`data` was read as an event that says nothing new but `text`; false when it is too odd to learn from."""
        quoted = f'"{text}"'
        # Without escapes the text stands there as it is; where it does so twice, one may be something else.
        if not text or "\\" in data or data.count(quoted) != 1:
            return False
        place = data.index(quoted) + 1
        self._head, self._tail = data[:place], data[place + len(text) :]
        self._around = len(self._head) + len(self._tail)
        return True

    def forget(self) -> None:
        """Read the next events whole."""
        self._head = self._tail = _NEVER
