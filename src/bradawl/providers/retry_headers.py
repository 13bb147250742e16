"""Reads how long a server asks to wait before a retry, from headers and error texts."""

import math
import re
from collections.abc import Mapping

# Patterns are compiled when first used: most runs never see a failure.
_GO_DURATION = r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)"
_GO_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_RETRY_INFO = r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"'
_IN_TEXT = (
    r"(?i)(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+|\d+(?:\.\d+)? (?:second|minute|hour)s?)"
)
_UNIT_WORD = r" (second|minute|hour)s?"
_MOMENTS_S = (1e9, 1e10)
"""A number in this range is a Unix time instead of a duration; the same holds for milliseconds."""
_LIMITS = (
    "x-ratelimit-{}",
    "x-ratelimit-{}-requests",
    "x-ratelimit-{}-tokens",
    "anthropic-ratelimit-requests-{}",
    "anthropic-ratelimit-tokens-{}",
    "anthropic-ratelimit-input-tokens-{}",
    "anthropic-ratelimit-output-tokens-{}",
)
"""Names of rate limit headers; `{}` stands for `remaining` or `reset`."""


def retry_after_s(headers: Mapping[str, str], text: str, now_s: float) -> float | None:
    """Seconds the server asks to wait, never negative; None without a usable value.

    Header names are in lower case; `text` is the error's message and details; `now_s` is Unix time.
    In order of preference: milliseconds, seconds or a date, the reset of an exhausted limit, the text.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    asked = _asked(headers.get("retry-after"), headers.get("date"), now_s)
    if asked is not None:
        return asked
    resets = [_reset(headers, limit, now_s) for limit in _LIMITS]
    known = [seconds for seconds in resets if seconds is not None]
    return max(known) if known else _from_text(text)


def _asked(wish: str | None, server_date: str | None, now_s: float) -> float | None:
    if wish is None:
        return None
    seconds = _until_number(_duration(wish), now_s)
    return _seconds_until(wish, server_date, now_s) if seconds is None and not _is_number(wish) else seconds


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(text: str | None) -> float | None:
    if text is None or not _is_number(text):
        return None
    value = float(text)
    return value if math.isfinite(value) and value >= 0 else None


def _seconds_until(date: str, server_date: str | None, now_s: float) -> float | None:
    """Seconds to an HTTP date, by the server's `Date` header if present: the local clock may be wrong."""
    then = _unix_time(date)
    here = _unix_time(server_date) if server_date else None
    return None if then is None else max(0.0, then - (now_s if here is None else here))


def _unix_time(date: str) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _reset(headers: Mapping[str, str], limit: str, now_s: float) -> float | None:
    if headers.get(limit.format("remaining"), "").strip() != "0":
        return None
    reset = headers.get(limit.format("reset"), "")
    seconds = _until_number(_duration(reset), now_s)
    return _until_moment(reset, now_s) if seconds is None else seconds


def _until_number(value: float | None, now_s: float) -> float | None:
    """Seconds to a Unix time; smaller numbers are durations and stay as they are."""
    earliest, latest = _MOMENTS_S
    for moment_s in () if value is None else (value, value / 1000):
        if earliest <= moment_s < latest:
            return max(0.0, moment_s - now_s)
    return value


def _until_moment(moment: str, now_s: float) -> float | None:
    """Seconds to a time such as `2026-11-20T10:00:00Z`, Anthropic's notation."""
    if "T" not in moment:
        return None
    from datetime import datetime

    try:
        then = datetime.fromisoformat(moment.strip())
    except ValueError:
        return None
    return None if then.tzinfo is None else max(0.0, then.timestamp() - now_s)


def _duration(text: str) -> float | None:
    """A Go duration, for example `6m0s`, or plain seconds."""
    text = text.strip()
    if _is_number(text):
        return _number(text)
    if not text or re.sub(_GO_DURATION, "", text):
        return None
    return sum(float(value) * _GO_UNIT_S[unit] for value, unit in re.findall(_GO_DURATION, text))


def _from_text(text: str) -> float | None:
    if (found := re.search(_RETRY_INFO, text)) is not None:
        return float(found[1])
    if (found := re.search(_IN_TEXT, text)) is not None:
        return _duration(re.sub(_UNIT_WORD, lambda word: word[1][0].lower(), found[1], flags=re.IGNORECASE))
    return None
