"""The shape of a JSON body for the debug log: field names, types and lengths, without contents. Pure.

Only words of the wire protocols are shown, so that no text of a user, model or server gets into the log.
"""

from typing import cast

import msgspec

_DEPTH = 8
_FIELDS = 40
_ITEMS = 12
_LOOKED_AT = 60
"""The greatest number of items of a list that are analysed, so that logging a long conversation stays cheap."""

_FIELD_NAMES = """
    annotations arguments cache_control cache_creation_input_tokens cache_read_input_tokens call_id choices code
    completion_tokens content created data delta description detail details effort enable_thinking encrypted_content
    error errors event file finish_reason format function id image_url include include_usage index input input_schema
    input_tokens instructions is_error item json_schema max_completion_tokens max_output_tokens max_tokens media_type
    message messages metadata model name object options output output_config output_index output_tokens
    parallel_tool_calls param parameters partial_json phase prompt_cache_key prompt_tokens properties reasoning
    reasoning_content reasoning_details reasoning_effort redacted_thinking refusal request_id required response
    response_format role schema sequence_number service_tier signature source status stop stop_details stop_reason store
    stream stream_options strict summary system text thinking tool_call_id tool_calls tool_choice tool_stream
    tool_use_id tools total_tokens type url usage
"""
_NAMES = frozenset(_FIELD_NAMES.split())
_SPEAKING = frozenset({"role", "type", "object", "code", "status", "finish_reason", "stop_reason"})
_PLAIN_WORDS = """
    adaptive assistant base64 chat.completion chat.completion.chunk developer disabled document enabled ephemeral error
    file function function_call function_call_output image image_url input_file input_image input_text json_schema list
    message model object output_text reasoning reasoning.encrypted_content redacted_thinking refusal string summary_text
    system text thinking tool tool_result tool_use user
    stop length tool_calls content_filter end_turn max_tokens stop_sequence pause_turn completed incomplete failed
    api_error authentication_error billing_error conflict_error context_length_exceeded exceed_context_size_error
    insufficient_quota invalid_api_key invalid_prompt invalid_request_error model_not_found not_found_error
    overloaded_error permission_error rate_limit_error rate_limit_exceeded request_too_large server_error timeout_error
    unavailable_error BadRequestError INVALID_ARGUMENT PERMISSION_DENIED RESOURCE_EXHAUSTED UNAVAILABLE
"""
_WORDS = frozenset(_PLAIN_WORDS.split())


def shape_of_body(body: bytes) -> object:
    """The shape of a JSON body; for other bodies only the length."""
    try:
        return shape(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return f"no JSON({len(body)})"


def shape(value: object, name: str = "", depth: int = 0) -> object:
    """The shape of a decoded value: `str(12)` for text of 12 characters, at most `_ITEMS` different items of a list."""
    if isinstance(value, str):
        return value if name in _SPEAKING and value in _WORDS else f"str({len(value)})"
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return f"object({len(fields)})" if depth >= _DEPTH else _object(fields, depth)
    if isinstance(value, list):
        items = cast("list[object]", value)
        return f"list({len(items)})" if depth >= _DEPTH else _list(items, depth)
    return "null" if value is None else type(value).__name__


def _object(fields: dict[str, object], depth: int) -> dict[str, object]:
    shown: dict[str, object] = {}
    for number, (name, value) in enumerate(fields.items(), 1):
        if number > _FIELDS:
            shown["..."] = f"{len(fields) - _FIELDS} more"
            break
        known = name if name in _NAMES else f"?{number}({len(name)})"
        shown[known] = shape(value, name, depth + 1)
    return shown


def _list(items: list[object], depth: int) -> list[object]:
    """Equal neighbours are counted. A long list is cut to its end, where a conversation grows."""
    runs: list[tuple[object, int]] = []
    for item in items[-_LOOKED_AT:]:
        form = shape(item, depth=depth + 1)
        if runs and runs[-1][0] == form:
            runs[-1] = (form, runs[-1][1] + 1)
        else:
            runs.append((form, 1))
    runs = runs[-_ITEMS:]
    left_out = len(items) - sum(count for _, count in runs)
    shown: list[object] = [f"... {left_out} items before"] if left_out > 0 else []
    for form, count in runs:
        shown += [form] if count == 1 else [form, f"x{count}"]
    return shown
