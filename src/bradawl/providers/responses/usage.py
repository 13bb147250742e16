"""The token counts of Responses servers, brought to disjoint buckets."""

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


def read_usage(value: object) -> Usage | None:
    """The counts; None when the object counts nothing. Input includes what was cached, output the reasoning."""
    if not isinstance(value, dict) or not ("input_tokens" in value or "output_tokens" in value):
        return None
    usage = cast("dict[str, object]", value)
    prompt, output = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    details = _inside(usage, "input_tokens_details")
    cached = min(_count(details.get("cached_tokens")), prompt)
    written = min(_count(details.get("cache_write_tokens")), prompt - cached)
    reasoning = _count(_inside(usage, "output_tokens_details").get("reasoning_tokens"))
    return Usage(
        input=prompt - cached - written,
        output=output,
        cache_read=cached,
        cache_write=written,
        reasoning=min(reasoning, output),
    )
