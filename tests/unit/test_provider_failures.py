"""Error responses of providers become a `Failure`: its message, kind, code and time to wait."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bradawl.providers.advice import key_variable
from bradawl.providers.failures import failure_of_event, failure_of_response, read_error, refusal_text, scrub

NOW = 1_790_000_000.0


def failure(status, body="", **headers):
    data = body if isinstance(body, str) else json.dumps(body)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return failure_of_response(status, names, data.encode(), NOW)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"error": {"message": "m", "type": "t", "param": None, "code": "c"}}, "m", "c"),
        ({"error": {"message": "m", "code": 400}}, "m", "400"),
        ({"object": "error", "message": "m", "type": "BadRequestError", "code": 400}, "m", "400"),
        ({"error": "m", "code": "c"}, "m", "c"),
        ([{"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}}], "m", "400"),
        ({"detail": "m"}, "m", None),
        (
            {"detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]},
            "body.model: Field required",
            None,
        ),
        ({"message": "m"}, "m", None),
        ({"type": "error", "error": {"type": "api_error", "message": "m"}}, "m", None),
        ({"code": "InvalidParameter", "message": "m", "request_id": "q"}, "m", "InvalidParameter"),
        ({"errors": [{"message": "m", "code": 7}]}, "m", "7"),
        (
            {"error": {"message": "Provider error", "metadata": {"raw": '{"error":{"message":"deep"}}'}}},
            "Provider error: deep",
            None,
        ),
        ("plain words", "HTTP 400: plain words", None),
        ({"strange": 1}, 'HTTP 400: {"strange": 1}', None),
    ],
)
def test_every_envelope_gives_message_and_code(body, message, code):
    seen = failure(400, body)
    assert (seen.message, seen.code, seen.status, seen.kind) == (message, code, 400, "invalid_request")


def test_web_pages_and_empty_bodies_have_a_message():
    page = failure(502, "<!DOCTYPE html><style>b{}</style><h1>Bad  gateway</h1>", content_type="text/html")
    assert (page.kind, "Bad gateway" in page.message, "<h1>" in page.message) == ("server", True, False)
    assert "empty" in failure(500).message


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    "Input tokens exceed the configured limit of 272000 tokens",
    "Your input exceeds the context window of this model",
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 1 + 2 > 3",
    "The input token count (5) exceeds the maximum number of tokens allowed (4)",
    "This model's maximum prompt length is 4 but the request contains 5 tokens.",
    "Please reduce the length of the messages or completion",
    "Your request exceeded model token limit: 4 (requested: 5)",
    "Prompt contains 5 tokens and 0 draft tokens, too large for model with 4 maximum context length",
    "Range of input length should be [1, 4]",
    "the request exceeds the available context size",
    "Trying to keep the first 5 tokens when context the overflows",
    "Current length is 5 while limit is 4",
    "context window exceeds limit",
    "prompt token count of 5 exceeds the limit of 4",
    "Input is too long for requested model.",
    "`inputs` tokens + `max_new_tokens` must be <= 4",
    "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "Requested token count exceeds the model's maximum context length of 8192 tokens.",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "Too many input tokens. Max input tokens: 128000, request input token count: 130000",
    "Prompt exceeds max length",
    "Input is too long.",
    "openrouter error: This endpoint's maximum context length is 4 tokens. However, you requested about 5 tokens",
]


@pytest.mark.parametrize("message", OVERFLOWS)
def test_a_full_context_is_recognised_inside_a_stream(message):
    for event in ({"error": {"message": message}}, {"type": "error", "message": message}, message):
        assert (failure_of_event(event).kind, failure_of_event(event).retryable) == ("context_overflow", False)


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 99999. This model supports at most 16384 completion tokens.",
        "max_tokens: 300000 > 128000, which is the maximum allowed number of output tokens",
        "image exceeds the limit of 20 MB",
        "Invalid 'user': string too long. Expected a string with maximum length 64 of the context window",
        "Too many tools: 200 > 128",
    ],
)
def test_other_size_limits_are_no_full_context(message):
    assert failure(400, {"error": {"message": message}}).kind == "invalid_request"


@pytest.mark.parametrize("message", OVERFLOWS)
def test_a_full_context_is_recognised_in_every_wording(message):
    seen = failure(400, {"error": {"message": message}})
    assert (seen.kind, seen.retryable) == ("context_overflow", False)


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "context_overflow", False),
        (400, {"error": {"message": "x", "type": "exceed_context_size_error"}}, "context_overflow", False),
        (400, "", "context_overflow", False),
        (413, "", "context_overflow", False),
        (
            413,
            {
                "error": {
                    "message": "Request too large: reduce the length of the messages",
                    "type": "tokens",
                    "code": "rate_limit_exceeded",
                }
            },
            "rate_limit",
            True,
        ),
        (
            400,
            {"error": {"message": "maximum context window of field", "code": "string_above_max_length"}},
            "invalid_request",
            False,
        ),
        (401, {"error": {"message": "no"}}, "auth", False),
        (403, {"error": {"message": "no"}}, "auth", False),
        (403, {"error": {"message": "Your input was flagged"}}, "content_filter", False),
        (400, {"code": "invalid argument", "error": "Incorrect API key provided"}, "auth", False),
        (402, {"error": {"message": "pay"}}, "quota", False),
        (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, "quota", False),
        (429, {"error": {"message": "x", "code": "1113"}}, "quota", False),
        (
            429,
            [{"error": {"code": 429, "message": "quota", "details": [{"quotaId": "RequestsPerDay"}]}}],
            "quota",
            False,
        ),
        (
            429,
            [
                {
                    "error": {
                        "code": 429,
                        "message": "You exceeded your current quota",
                        "details": [{"quotaId": "PerMinute"}],
                    }
                }
            ],
            "rate_limit",
            True,
        ),
        (429, {"error": {"message": "slow"}}, "rate_limit", True),
        (429, {"error": {"message": "x", "type": "engine_overloaded_error"}}, "overloaded", True),
        (400, {"code": "Throttling.RateQuota", "message": "x"}, "rate_limit", True),
        (400, {"error": {"message": "x", "code": "data_inspection_failed"}}, "content_filter", False),
        (
            400,
            {"error": {"message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
            "content_filter",
            False,
        ),
        (400, {"error": {"message": "x", "code": "tool_use_failed"}}, "server", True),
        (404, {"error": {"message": "no model"}}, "invalid_request", False),
        (408, "x", "timeout", True),
        (409, "x", "invalid_request", True),
        (422, {"detail": "x"}, "invalid_request", False),
        (425, "x", "invalid_request", True),
        (498, "x", "overloaded", True),
        (500, "x", "server", True),
        (502, "x", "server", True),
        (503, {"error": {"message": "Loading model", "type": "unavailable_error"}}, "overloaded", True),
        (504, "x", "timeout", True),
        (529, "x", "overloaded", True),
        (599, "x", "server", True),
        (302, "", "invalid_request", False),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, "invalid_request", False),
        (
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "You have reached your specified API usage limits.",
                },
            },
            "quota",
            False,
        ),
        (402, {"type": "error", "error": {"type": "billing_error", "message": "x"}}, "quota", False),
        (409, {"type": "error", "error": {"type": "conflict_error", "message": "x"}}, "invalid_request", True),
        (
            413,
            {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}},
            "invalid_request",
            False,
        ),
        (
            429,
            {
                "type": "error",
                "error": {
                    "type": "rate_limit_error",
                    "message": "x",
                    "details": {"error_code": "ramp_limit_exceeded"},
                },
            },
            "rate_limit",
            True,
        ),
        (504, {"type": "error", "error": {"type": "timeout_error", "message": "x"}}, "timeout", True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "overloaded", True),
        (400, {"__type": "ThrottlingException", "message": "Too many tokens, please wait."}, "rate_limit", True),
        (424, {"message": "The model could not be run."}, "server", True),
        (429, {"error": {"message": "x", "code": "1308"}}, "quota", False),
        (400, {"code": "Arrearage", "message": "x"}, "quota", False),
        (429, {"error": {"type": "usage_limit_reached", "message": "x"}}, "quota", False),
    ],
)
def test_status_and_body_determine_the_kind_of_failure(status, body, kind, retryable):
    seen = failure(status, body)
    assert (seen.kind, seen.retryable) == (kind, retryable)


def test_a_header_overrides_whether_to_retry():
    assert failure(500, "x", x_should_retry="false").retryable is False
    assert failure(400, "x", x_should_retry="true").retryable is True


def test_a_budget_that_refills_is_retried():
    assert failure(402, {"error": {"message": "pay"}}, retry_after="3").retryable is True


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry_after_ms": "1500", "retry_after": "9"}, "", 1.5),
        ({"retry_after": "1m30s"}, "", 90.0),
        ({"retry_after": "1790000030"}, "", 30.0),
        ({"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1790000030000"}, "", 30.0),
        ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "1790000030"}, "", 30.0),
        ({}, "Please try again in 20 minutes.", 1200.0),
        ({}, "Please try again in 1h2m3.5s.", 3723.5),
        ({"retry_after": "7"}, "", 7.0),
        ({"retry_after": "0.5"}, "", 0.5),
        ({"retry_after": "Mon, 21 Sep 2026 14:13:40 GMT", "date": "Mon, 21 Sep 2026 14:13:20 GMT"}, "", 20.0),
        ({"retry_after": "Mon, 21 Sep 2026 14:13:50 GMT"}, "", 30.0),
        ({"retry_after": "Mon, 21 Sep 2020 00:00:00 GMT"}, "", 0.0),
        ({"retry_after": "-3"}, "", None),
        ({"retry_after": "nan"}, "", None),
        ({"retry_after": "inf"}, "", None),
        ({"retry_after": "soon"}, "", None),
        ({"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "6m0s"}, "", 360.0),
        ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "120ms"}, "", 0.12),
        ({"x_ratelimit_remaining_requests": "5", "x_ratelimit_reset_requests": "1h"}, "", None),
        ({"x_ratelimit_remaining_requests": "0", "x_ratelimit_reset_requests": "later"}, "", None),
        ({}, "Please try again in 6.57s.", 6.57),
        ({}, "Please try again in 1m2s.", 62.0),
        ({}, "Retry after 20 seconds", 20.0),
        ({}, "no idea", None),
    ],
)
def test_the_requested_wait_is_read_from_headers_and_texts(headers, text, seconds):
    assert failure(429, {"error": {"message": text}}, **headers).retry_after_s == pytest.approx(seconds)


def test_geminis_retry_info_is_read():
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    assert failure(429, [{"error": {"message": "m", "details": details}}]).retry_after_s == 34.0


@pytest.mark.parametrize("name", ["x_request_id", "request_id", "x_generation_id", "x_trace_id"])
def test_the_request_id_is_kept(name):
    assert failure(500, "x", **{name: "req_1"}).request_id == "req_1"


def test_keys_are_removed_from_texts():
    assert scrub("key hunter2-long is wrong", "hunter2-long") == "key *** is wrong"
    assert "abcdef" not in scrub("Incorrect API key provided: sk-proj-abcdef1234567890")
    assert scrub("task-runner and disk-usage-percentage stay") == "task-runner and disk-usage-percentage stay"


def test_the_variable_of_a_key_follows_from_the_provider():
    assert key_variable("openai") == "OPENAI_API_KEY"
    assert key_variable("my-proxy.1") == "MY_PROXY_1_API_KEY"


@pytest.mark.parametrize(
    ("event", "kind", "retryable"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded", True),
        ({"type": "error", "error": {"type": "api_error", "message": "x"}}, "server", True),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, "rate_limit", True),
        ({"type": "error", "error": {"type": "authentication_error", "message": "x"}}, "auth", False),
        ({"type": "error", "error": {"type": "not_found_error", "message": "x"}}, "invalid_request", False),
        ({"type": "error", "error": {"type": "timeout_error", "message": "x"}}, "timeout", True),
        ({"code": "server_error", "message": "x"}, "server", True),
        ({"code": "rate_limit_exceeded", "message": "x"}, "rate_limit", True),
        ({"code": "invalid_prompt", "message": "x"}, "invalid_request", False),
        ({"code": "data_residency_mismatch", "message": "x"}, "invalid_request", False),
        ({"code": "bio_policy", "message": "x"}, "content_filter", False),
        ({"code": "image_content_policy_violation", "message": "x"}, "content_filter", False),
        ({"code": "image_too_large", "message": "x"}, "invalid_request", False),
        ({"code": "insufficient_quota", "message": "x"}, "quota", False),
        (
            {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "x"}}},
            "context_overflow",
            False,
        ),
        ({"error": {"message": "Rate limit exceeded"}}, "rate_limit", True),
        ({"error": {"code": 429, "message": "x"}}, "rate_limit", True),
        ({"error": "string error"}, "server", True),
    ],
)
def test_code_and_type_determine_the_kind_of_an_error_inside_a_stream(event, kind, retryable):
    seen = failure_of_event(event)
    assert (seen.kind, seen.retryable) == (kind, retryable)


def test_the_most_specific_code_is_kept():
    seen = failure(429, {"error": {"type": "rate_limit_error", "message": "m", "details": {"error_code": "ramp"}}})
    assert seen.code == "ramp"


def test_text_that_a_model_wrote_instead_of_a_call_is_in_the_message():
    seen = failure(400, {"error": {"message": "m", "code": "tool_use_failed", "failed_generation": "<function=x"}})
    assert seen.message == "m The model wrote: <function=x"


def test_a_refused_parameter_is_found_in_json_and_in_plain_text():
    assert "stream_options" in refusal_text(b'{"error":{"message":"Not supported","param":"stream_options"}}')
    assert refusal_text(b"no json: stream_options") == "no json: stream_options"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "code", "type", "metadata", "raw", "details", "response", "errors"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(st.integers(0, 999), st.binary(max_size=80) | _JSON.map(lambda value: json.dumps(value).encode()))
def test_any_response_gives_a_failure(status, body):
    seen = failure_of_response(status, {}, body, NOW)
    assert seen.message
    refusal_text(body)


@given(_JSON)
def test_any_event_gives_a_failure(value):
    assert failure_of_event(value).message
    read_error(value)


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry", "x-ratelimit-remaining-tokens", "date"]),
        st.text(max_size=30),
    )
)
def test_any_headers_give_a_finite_wait_or_none(headers):
    wait_s = failure_of_response(429, headers, b"", NOW).retry_after_s
    assert wait_s is None or 0 <= wait_s < float("inf")


def test_an_error_in_a_stream_may_contain_headers_and_its_own_codes():
    limits = {"x-ratelimit-remaining-tokens": "0", "X-RateLimit-Reset-Tokens": "6.57s", "other": 5}
    seen = failure_of_event({"error": {"code": "rate_limit_exceeded", "message": "slow down", "headers": limits}})
    assert (seen.kind, seen.retry_after_s) == ("rate_limit", 6.57)
    assert failure_of_event({"error": {"message": "Service is too busy."}}).kind == "overloaded"
    assert failure_of_event({"error": {"message": "x", "code": "string_above_max_length"}}).kind == "invalid_request"
    assert failure_of_event({"error": {"message": "x", "headers": [1]}}).retry_after_s is None
