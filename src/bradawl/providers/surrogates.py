"""Joins surrogate pairs whose halves a server sent in two events. Pure."""

from typing import cast

from bradawl.providers.encoding import Json, without_surrogates


class SurrogatePairs:
    """Tracks the strings of a stream of JSON values by their path and joins split surrogate pairs.

    A lone half becomes U+FFFD, because UTF-8 can't encode it.
    """

    def __init__(self) -> None:
        self._halves: dict[str, str] = {}

    @property
    def is_waiting(self) -> bool:
        """True while a first half waits for its second."""
        return bool(self._halves)

    def mend(self, value: object, place: str = "") -> object:
        """The value with surrogate pairs joined; a trailing first half is kept for the next value."""
        if isinstance(value, str):
            return self._mend_text(value, place)
        if isinstance(value, dict):
            return {str(key): self.mend(item, f"{place}.{key}") for key, item in cast("Json", value).items()}
        if isinstance(value, list):
            items = cast("list[object]", value)
            return [self.mend(item, f"{place}[{_number(item, count)}]") for count, item in enumerate(items)]
        return value

    def rest(self, name: str) -> str:
        """U+FFFD for each pending half of the strings with that name, at the end of the stream."""
        left = [place for place in self._halves if place.rpartition(".")[2] == name]
        for place in left:
            del self._halves[place]
        return "\ufffd" * len(left)

    def _mend_text(self, text: str, place: str) -> str:
        text = self._halves.pop(place, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[place] = text[-1]
            text = text[:-1]
        return str(without_surrogates(text))


def _number(item: object, count: int) -> object:
    number = cast("Json", item).get("index") if isinstance(item, dict) else None
    return count if number is None else number
