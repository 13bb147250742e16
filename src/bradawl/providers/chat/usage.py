"""The token counts of Chat Completions servers, brought to disjoint buckets."""

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


def is_usage(value: object) -> bool:
    """True when the object counts anything at all."""
    return isinstance(value, dict) and ("prompt_tokens" in value or "completion_tokens" in value)


def read_usage(usage: Mapping[str, object]) -> tuple[Usage, bool]:
    """The counts, and whether reasoning was counted outside the completion (xAI does so)."""
    prompt, output = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    details = _inside(usage, "prompt_tokens_details")
    cached = (
        _count(details.get("cached_tokens"))
        or _count(usage.get("prompt_cache_hit_tokens"))
        or _count(usage.get("cached_tokens"))
    )
    written = _count(details.get("cache_write_tokens"))
    reasoning = _count(_inside(usage, "completion_tokens_details").get("reasoning_tokens")) or _count(
        usage.get("reasoning_tokens")
    )
    is_outside = reasoning > 0 and _count(usage.get("total_tokens")) == prompt + output + reasoning
    if is_outside:
        output += reasoning
    cached = min(cached, prompt)
    written = min(written, prompt - cached)
    counts = Usage(
        input=prompt - cached - written,
        output=output,
        cache_read=cached,
        cache_write=written,
        reasoning=min(reasoning, output),
    )
    return counts, is_outside
