"""Converts token counts of the Messages protocol to disjoint buckets."""

from collections.abc import Mapping

from bradawl.core.usage import Usage
from bradawl.providers.token_counts import count, inside


def merge_usage(known: Mapping[str, object], report: Mapping[str, object]) -> dict[str, object]:
    """Merge cumulative counts: a later value replaces an earlier one, null does not."""
    return {**known, **{key: value for key, value in report.items() if value is not None}}


def read_usage(usage: Mapping[str, object]) -> Usage:
    """The counts; the API's `input_tokens` excludes tokens read from or written to the cache."""
    output = count(usage.get("output_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    if not written:
        written = sum(map(count, inside(usage, "cache_creation").values()))
    return Usage(
        input=count(usage.get("input_tokens")),
        output=output,
        cache_read=count(usage.get("cache_read_input_tokens")),
        cache_write=written,
        reasoning=min(count(inside(usage, "output_tokens_details").get("thinking_tokens")), output),
    )
