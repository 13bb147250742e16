"""The token counts of Messages servers, brought to disjoint buckets."""

from collections.abc import Mapping
from typing import cast

from bradawl.core.usage import Usage


def _count(value: object) -> int:
    """A token count as servers write it: an integer, a float, digits in a string, or nothing."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 2**53 else 0


def _inside(usage: Mapping[str, object], key: str) -> Mapping[str, object]:
    details = usage.get(key)
    return cast("dict[str, object]", details) if isinstance(details, dict) else {}


def merge_usage(known: Mapping[str, object], report: Mapping[str, object]) -> dict[str, object]:
    """Counts are totals so far: a later one replaces an earlier one, but null says nothing."""
    return {**known, **{key: value for key, value in report.items() if value is not None}}


def read_usage(usage: Mapping[str, object]) -> Usage:
    """The counts; the API's `input_tokens` leaves out what was read from or written to the cache."""
    output = _count(usage.get("output_tokens"))
    written = _count(usage.get("cache_creation_input_tokens"))
    if not written:
        written = sum(map(_count, _inside(usage, "cache_creation").values()))
    return Usage(
        input=_count(usage.get("input_tokens")),
        output=output,
        cache_read=_count(usage.get("cache_read_input_tokens")),
        cache_write=written,
        reasoning=min(_count(_inside(usage, "output_tokens_details").get("thinking_tokens")), output),
    )
