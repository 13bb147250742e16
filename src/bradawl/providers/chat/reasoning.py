"""Collects the reasoning of a Chat Completions reply from the fields that servers use for it."""

from collections.abc import Sequence
from typing import cast

import msgspec

from bradawl.core.messages import Thinking

Json = dict[str, object]

_GROWING = ("text", "summary", "data")


class _Detail:
    """One entry of `reasoning_details`, merged from its fragments."""

    def __init__(self) -> None:
        self.fields: Json = {}
        self.texts: dict[str, list[str]] = {}

    def add(self, entry: Json) -> None:
        for key, value in entry.items():
            if key in _GROWING and isinstance(value, str):
                self.fields.setdefault(key, None)
                self.texts.setdefault(key, []).append(value)
            elif value is not None or key not in self.fields:
                self.fields[key] = value

    def whole(self) -> Json:
        return {**self.fields, **{key: "".join(texts) for key, texts in self.texts.items()}}


class Reasoning:
    """Collects reasoning; each `take...` returns the new text to show."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._field: str | None = None
        self._details: list[_Detail] = []
        self._by_key: dict[tuple[object, object], _Detail] = {}

    @property
    def is_empty(self) -> bool:
        """True if there is no reasoning."""
        return not self._texts and not self._details

    def take_text(self, field: str, text: str) -> str:
        """Take plain text from the field of that name."""
        self._field = self._field or field
        self._texts.append(text)
        return text

    def take_details(self, details: Sequence[object], *, has_text: bool) -> str:
        """Take OpenRouter's `reasoning_details`; their text is ignored if a plain field has it."""
        fresh: list[str] = []
        for entry in details:
            if isinstance(entry, dict):
                fields = cast("Json", entry)
                self._merge(fields)
                fresh.extend(text for key in ("text", "summary") if isinstance(text := fields.get(key), str))
        text = "".join(fresh)
        if has_text or self._field is not None or not text:
            return ""
        self._texts.append(text)
        return text

    def _merge(self, entry: Json) -> None:
        place = entry.get("index")
        if place is None:
            place = entry.get("id")
        key = (entry.get("type"), place if isinstance(place, int | str) else None)
        detail = self._by_key.get(key)
        # Without index and id, two encrypted entries can't be distinguished from two pieces of one.
        if detail is None or (key[1] is None and "data" in entry):
            detail = _Detail()
            self._details.append(detail)
            self._by_key[key] = detail
        detail.add(entry)

    def part(self) -> Thinking:
        """The whole reasoning as a part, with the data needed to replay it."""
        data: Json = {}
        if self._field is not None:
            data["field"] = self._field
        if self._details:
            data["reasoning_details"] = [detail.whole() for detail in self._details]
        return Thinking("".join(self._texts), provider_data=msgspec.json.encode(data).decode() if data else "")
