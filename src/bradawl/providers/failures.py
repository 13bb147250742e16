"""Decodes providers' error responses, in all their formats, to a `Failure`.

Sources of codes and texts: the vendors' error pages and public issue threads, checked 2026-11-20.
"""

import json
import re
from collections.abc import Mapping
from typing import cast

import msgspec

from bradawl.core.errors import Failure, FailureKind
from bradawl.core.http import HttpError
from bradawl.providers.retry_headers import retry_after_s

Json = dict[str, object]

_MESSAGE_LIMIT = 2_000
_RETRYABLE_KINDS = frozenset({"rate_limit", "overloaded", "timeout", "connection", "server"})
_RETRYABLE_STATUS = frozenset({408, 409, 425})

_OVERFLOW = (
    r"context_length_exceeded|exceed_context_size|(?:model_)?context_window_exceeded|context length exceeded"
    r"|maximum context length|context length of only|context the overflows|context window"
    r"|(?:greater|longer) than the (?:model'?s? )?(?:maximum )?(?:context|model) length"
    r"|longer than the maximum model length|exceeds? (?:the )?(?:maximum )?model length"
    r"|exceeds? the (?:available )?context|exceeds? (?:the )?context limit|exceed(?:ed)? model token limit"
    r"|input tokens exceed the configured limit|maximum prompt length is|prompt is too long"
    r"|input token count .{0,40}exceeds the maximum|reduce the length of the (?:messages|input|prompt)"
    r"|too large for model with|range of input length should be|current length is \S+ while limit is"
    r"|(?:prompt|input|tokens?|context)\b.{0,60}exceeds the limit of \d+|input is too long|too many input tokens"
    r"|`?max_new_tokens`? must be <=|prompt too long|prompt exceeds max length|too many tokens: total"
)
_NOT_OVERFLOW = r"string_above_max_length|invalid 'user'"
_QUOTA = (
    r"insufficient_quota|billing_hard_limit|billing_error|insufficient[ _](?:account )?(?:balance|credits?|funds|quota)"
    r"|credit[ _]balance|arrearage|quota_exceeded_daily|per_?day|exceeded_current_quota|usage_limit_reached"
    r"|reached your (?:specified )?(?:api )?usage limits?|spend(?:ing)?[ _]limit|out of credits|no credits"
)
_FILTERED = (
    r"content_filter|content_policy_violation|data_inspection_failed|responsibleaipolicyviolation|flagged"
    r"|\b(?:bio|cyber)\w*_policy|prohibited_content|safety_violation"
)
_AUTH = (
    r"invalid_api_key|authentication_error|permission_error|unauthorized|unauthenticated|incorrect api key"
    r"|invalid api key|api key not valid|api_key_invalid|permission_denied|accessdenied|unrecognizedclient"
)
_OVERLOADED = (
    r"overloaded|unavailable_error|insufficient_system_resource|over capacity|serviceunavailable|service_unavailable"
    r"|(?:is|are) (?:too )?busy|loading model|modelnotready"
)
_RATE_LIMITED = r"rate[_ ]?limit|too[_ ]?many_?requests|throttl|resource_exhausted|ramp_limit"
_INVALID = (
    r"invalid_request|badrequest|bad_request|invalid_argument|not_found|unprocessable|invalid_prompt|request_too_large"
    r"|data_residency|validationexception|conflict_error|invalid_\w*image|image_too|unsupported_image|empty_image"
    r"|string_above_max_length|failed_to_download_image|image_\w*(?:failed|not_found|error)"
)
_TIMEOUT = r"timeout|deadline_exceeded|timed_out"
_KEY_SHAPE = r"\b(?:sk|pk|rk|gsk|xai|nvapi|csk|fw|hf|AIza)[-_]?[A-Za-z0-9_\-*.]{12,}"
_TAGS = r"(?is)<(?:script|style).*?</(?:script|style)>|<[^>]*>"
# Patterns are compiled when first used: most runs never see a failure.

_OWN_CODES: Mapping[str, FailureKind] = {
    "1113": "quota",
    "1261": "context_overflow",
    "1301": "content_filter",
    "1302": "rate_limit",
    "1303": "rate_limit",
    "1305": "overloaded",
    "1308": "quota",
    "1310": "quota",
    "tool_use_failed": "server",
    "engine_overloaded_error": "overloaded",
}
"""Numeric codes of z.ai, and codes that the status alone would classify wrongly."""


class ConnectionRefused(HttpError):
    """The connection was refused: no process listens at that address."""

    def __init__(self, message: str) -> None:
        super().__init__("connection", message)


class ErrorFacts(msgspec.Struct):
    """The facts in an error body, independent of its format."""

    message: str = ""
    type: str = ""
    code: str | None = None
    detail: str = ""
    """Text of further fields in which providers put the cause, to search in."""
    request_id: str | None = None
    parameter: str = ""
    """The request field that the error is about."""


def failure_of_response(status: int, headers: Mapping[str, str], body: bytes, now_s: float) -> Failure:
    """The failure that an error response stands for. Header names are in lower case; `now_s` is Unix time."""
    facts = _facts_of_body(status, headers, body)
    kind = _kind_of(status, facts, is_empty=not body.strip())
    retryable = kind in _RETRYABLE_KINDS or status in _RETRYABLE_STATUS
    if kind == "quota":
        # OpenRouter refills some budgets automatically, and then sends a time.
        retryable = status == 402 and "retry-after" in headers
    wish = headers.get("x-should-retry", "").strip().lower()
    if wish in ("true", "false"):
        retryable = wish == "true"
    return Failure(
        kind=kind,
        message=_shown(facts.message or f"HTTP {status} with an empty body."),
        retryable=retryable,
        status=status,
        code=facts.code,
        retry_after_s=retry_after_s(headers, f"{facts.message} {facts.detail}", now_s),
        request_id=_request_id(headers) or facts.request_id,
    )


def failure_of_event(value: object) -> Failure:
    """The failure that an error event of a stream stands for; `value` is the decoded event, or its text."""
    facts = read_error(value) or ErrorFacts(str(value)[:_MESSAGE_LIMIT])
    status = int(facts.code) if facts.code and re.fullmatch(r"[45]\d\d", facts.code) else None
    kind = _kind_of(status, facts, is_empty=False)
    return Failure(
        kind=kind,
        message=_shown(facts.message or "The server reported an error without saying which."),
        retryable=kind in _RETRYABLE_KINDS or status in _RETRYABLE_STATUS,
        status=status,
        code=facts.code,
        retry_after_s=retry_after_s(_headers_in(value), f"{facts.message} {facts.detail}", 0.0),
        request_id=facts.request_id,
    )


def _headers_in(value: object) -> dict[str, str]:
    """The headers that OpenAI puts into an error event, in lower case."""
    error = cast("Json", value).get("error") if isinstance(value, dict) else None
    headers = cast("Json", error).get("headers") if isinstance(error, dict) else None
    if not isinstance(headers, dict):
        return {}
    return {name.lower(): _text(text) for name, text in cast("Json", headers).items()}


def refusal_text(body: bytes) -> str:
    """The message of a refused request and the parameter it is about, as text to search in."""
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        value = cast("object", json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return text[:_MESSAGE_LIMIT]
    facts = read_error(value)
    if facts is None:
        return text[:_MESSAGE_LIMIT]
    return f"{facts.message} Parameter: {facts.parameter}." if facts.parameter else facts.message


def truncated_stream() -> Failure:
    """The failure for a stream that ended before the reply did."""
    hint = "The server closed the connection too early."
    return Failure("connection", "stream ended before a terminal event", True, code="stream_truncated", hint=hint)


def no_reply(data: str) -> Failure:
    """The failure for a document that is not a reply."""
    return Failure("server", f"The server's answer is not a reply: {' '.join(data.split())[:200]}", retryable=True)


def scrub(text: str, secret: str = "") -> str:
    """The text without `secret` and without anything that looks like a key."""
    if len(secret) >= 4:
        text = text.replace(secret, "***")
    return re.sub(_KEY_SHAPE, "***", text)


def _shown(message: str) -> str:
    text = scrub(message)
    return text if len(text) <= _MESSAGE_LIMIT else text[:_MESSAGE_LIMIT] + " ..."


def read_error(value: object) -> ErrorFacts | None:
    """The facts in a decoded error body; None if it does not look like one."""
    body = _unwrapped(value)
    if body is None:
        return None
    error = body.get("error")
    if isinstance(error, dict):
        return _facts_of_object(cast("Json", error), body)
    if isinstance(error, str) and error:
        return _facts_of_object({"message": error, "code": body.get("code"), "type": body.get("type")}, body)
    errors = body.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        return _facts_of_object(cast("Json", errors[0]), body)
    if body.get("detail"):
        return ErrorFacts(_detail_text(body["detail"]), type=_text(body.get("type")))
    if any(body.get(key) for key in ("message", "msg")):
        return _facts_of_object(body, body)
    return None


def _unwrapped(value: object) -> Json | None:
    """The object with the error: Google puts it into a list, the Responses protocol into the reply."""
    if isinstance(value, list) and value:
        return _unwrapped(cast("list[object]", value)[0])
    if not isinstance(value, dict):
        return None
    body = cast("Json", value)
    response = body.get("response")
    return cast("Json", response) if isinstance(response, dict) and "error" in response else body


def _facts_of_object(error: Json, body: Json) -> ErrorFacts:
    message = error.get("message") or error.get("msg") or body.get("message") or ""
    if not isinstance(message, str):
        nested = read_error(message)
        message = nested.message if nested else json.dumps(message, ensure_ascii=False)
    metadata = error.get("metadata")
    if isinstance(metadata, dict):
        message = _with_upstream(message, cast("Json", metadata).get("raw"))
    if isinstance(failed := error.get("failed_generation"), str) and failed:
        message = f"{message} The model wrote: {failed[:300]}"
    code = _code_of(error)
    places = (error.get("type"), error.get("status"), error.get("innererror"), error.get("details"), metadata)
    return ErrorFacts(
        message,
        type=_text(error.get("type") or error.get("__type")),
        code=_text(code) or None,
        detail=" ".join(_text(place) for place in places if place),
        request_id=_text(body.get("request_id")) or None,
        parameter=_text(error.get("param")),
    )


def _code_of(error: Json) -> object:
    """The most specific code: Anthropic puts it into the details."""
    details = error.get("details")
    exact = cast("Json", details).get("error_code") if isinstance(details, dict) else None
    return exact or error.get("code") or error.get("status_code")


def _with_upstream(message: str, raw: object) -> str:
    """OpenRouter puts the upstream's error into a text field."""
    if isinstance(raw, dict):
        raw = json.dumps(raw, ensure_ascii=False)
    if not isinstance(raw, str) or not raw or raw in message:
        return message
    try:
        facts = read_error(json.loads(raw))
    except (ValueError, RecursionError):
        facts = None
    return f"{message}: {facts.message if facts and facts.message else raw}"


def _detail_text(detail: object) -> str:
    """FastAPI's list of fields and what is wrong with each, as text."""
    if isinstance(detail, str):
        return detail
    if isinstance(detail, list):
        lines: list[str] = []
        for item in cast("list[object]", detail):
            if isinstance(item, dict):
                entry = cast("Json", item)
                place = entry.get("loc")
                where = ".".join(str(step) for step in cast("list[object]", place)) if isinstance(place, list) else ""
                lines.append(f"{where}: {_text(entry.get('msg'))}".removeprefix(": "))
            else:
                lines.append(_text(item))
        return "; ".join(lines)
    facts = read_error(detail)
    return facts.message if facts else _text(detail)


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _facts_of_body(status: int, headers: Mapping[str, str], body: bytes) -> ErrorFacts:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if 300 <= status < 400:
        place = headers.get("location", "another place")
        return ErrorFacts(f"The server redirects to {place}, which is not followed: correct the base URL.")
    try:
        value = json.loads(text, strict=False) if text else None
    except (ValueError, RecursionError):
        value = None
    if value is not None:
        return read_error(value) or ErrorFacts(f"HTTP {status}: {text[:500]}")
    if "html" in headers.get("content-type", "") or text[:200].lower().startswith(("<!doctype", "<html")):
        return ErrorFacts(f"HTTP {status}: the answer is a web page, not an API endpoint's: {plain_text(text)}")
    return ErrorFacts(f"HTTP {status}: {text[:500]}" if text else "")


def plain_text(page: str) -> str:
    """The first 200 characters of a web page's text."""
    return " ".join(re.sub(_TAGS, " ", page[:20_000]).split())[:200]


def _request_id(headers: Mapping[str, str]) -> str | None:
    names = ("x-request-id", "request-id", "x-generation-id", "x-trace-id")
    return next((headers[name] for name in names if headers.get(name)), None)


def _kind_of(status: int | None, facts: ErrorFacts, *, is_empty: bool) -> FailureKind:
    own = _OWN_CODES.get(facts.code or "") or _OWN_CODES.get(facts.type)
    if own is not None:
        return own
    words = f"{facts.code or ''} {facts.type} {facts.detail}"
    if _is_overflow(status, facts, words, is_empty=is_empty):
        return "context_overflow"
    return _kind_of_words(status, words, facts.message) or _kind_of_status(status, words)


def _says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _is_overflow(status: int | None, facts: ErrorFacts, words: str, *, is_empty: bool) -> bool:
    if status in (401, 402, 403, 404, 429):
        return False
    if is_empty:
        return status in (400, 413)  # Cerebras's wording
    if _says(_RATE_LIMITED, words):
        return False  # Groq's 413 about tokens per minute mentions lengths too
    text = f"{words} {facts.message}"
    return _says(_OVERFLOW, text) and not _says(_NOT_OVERFLOW, text)


def _kind_of_words(status: int | None, words: str, message: str) -> FailureKind | None:
    text = f"{words} {message}"
    if status == 402 or (_says(_QUOTA, text) and status not in (401, 404)):
        return "quota"
    if _says(_FILTERED, words) or (status == 403 and _says(_FILTERED, message)):
        return "content_filter"
    if status in (401, 403) or (status in (400, None) and _says(_AUTH, text)):
        return "auth"
    searched = text if status is None else words  # without a status only the message tells the kind
    if _says(_RATE_LIMITED, searched) and (status is None or status < 500):
        return "rate_limit"
    if _says(_OVERLOADED, searched):
        return "overloaded"
    if status is None and _says(_TIMEOUT, words):
        return "timeout"
    return None


_KIND_OF_STATUS: Mapping[int, FailureKind] = {
    408: "timeout",
    424: "server",
    429: "rate_limit",
    498: "overloaded",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


def _kind_of_status(status: int | None, words: str) -> FailureKind:
    if status is None:
        return "invalid_request" if _says(_INVALID, words) else "server"
    if status in _KIND_OF_STATUS:
        return _KIND_OF_STATUS[status]
    return "server" if status >= 500 else "invalid_request"
