"""Converts token counts of the Responses protocol to disjoint buckets."""

from typing import cast

from bradawl.core.usage import Usage
from bradawl.providers.token_counts import count, inside


def read_usage(value: object) -> Usage | None:
    """The counts; None if there are none. The protocol's input includes cached tokens, its output the reasoning."""
    if not isinstance(value, dict) or not ("input_tokens" in value or "output_tokens" in value):
        return None
    usage = cast("dict[str, object]", value)
    prompt, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    details = inside(usage, "input_tokens_details")
    cached = min(count(details.get("cached_tokens")), prompt)
    written = min(count(details.get("cache_write_tokens")), prompt - cached)
    reasoning = count(inside(usage, "output_tokens_details").get("reasoning_tokens"))
    return Usage(
        input=prompt - cached - written,
        output=output,
        cache_read=cached,
        cache_write=written,
        reasoning=min(reasoning, output),
    )
