"""Converts token counts of Chat Completions to disjoint buckets."""

from collections.abc import Mapping

from bradawl.core.usage import Usage
from bradawl.providers.token_counts import count, inside


def is_usage(value: object) -> bool:
    """True if the object has any token count."""
    return isinstance(value, dict) and ("prompt_tokens" in value or "completion_tokens" in value)


def read_usage(usage: Mapping[str, object]) -> tuple[Usage, bool]:
    """The counts, and whether reasoning was counted outside the completion (xAI) and is added to the output."""
    prompt, output = count(usage.get("prompt_tokens")), count(usage.get("completion_tokens"))
    details = inside(usage, "prompt_tokens_details")
    cached = (
        count(details.get("cached_tokens"))
        or count(usage.get("prompt_cache_hit_tokens"))
        or count(usage.get("cached_tokens"))
    )
    written = count(details.get("cache_write_tokens"))
    reasoning = count(inside(usage, "completion_tokens_details").get("reasoning_tokens")) or count(
        usage.get("reasoning_tokens")
    )
    is_outside = reasoning > 0 and count(usage.get("total_tokens")) == prompt + output + reasoning
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
