"""Checks a Messages request against what Anthropic's API requires."""

import base64
import hashlib
import json
import re
from itertools import pairwise

from wire.anthropic_streams import messages
from wire.replay import reject_constant

SAMPLE_API = "anthropic"
"""The protocol's name in recorded streams."""
new_codec = messages
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_KNOWN = {
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "output_config"),
    *("stream", "stop_sequences", "metadata", "service_tier"),
}
_OWN = {
    "text": {"text", "citations"},
    "image": {"source"},
    "document": {"source", "title", "context"},
    "tool_use": {"id", "name", "input", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
}
_BY_ROLE = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def check_request(body: bytes, *, opaque: frozenset[str] = frozenset()) -> list[str]:
    """Violations in a request; empty if a strict server would accept it. `opaque`: further permitted types of block."""
    try:
        request = json.loads(body.decode("utf-8"), parse_constant=reject_constant, object_pairs_hook=_no_twins)
    except ValueError as error:
        return [f"not JSON in UTF-8: {error}"]
    problems = [f"missing {field}" for field in ("model", "messages", "stream") if not request.get(field)]
    problems += [f"{field}: Extra inputs are not permitted" for field in request.keys() - _KNOWN]
    problems += _check_frame(request)
    problems += _check_marks(request)
    turns = request.get("messages") or []
    problems += [f"turn {n}: {what}" for n, turn in enumerate(turns) for what in _check_turn(turn, opaque)]
    return [*problems, *_check_order(turns), *_check_thinking_mode(request)]


def check_signatures(body: bytes) -> list[str]:
    """Thinking that is bound to another beginning of the request than this one; for signatures of `signature_after`."""
    request = json.loads(body)
    blocks = [(turn["role"], one) for turn in request["messages"] for one in turn["content"]]
    return [
        f"block {place}: the `signature` in this `thinking` block is bound to a different conversation"
        for place, (_, one) in enumerate(blocks)
        if (signature := one.get("signature") or one.get("data")) and signature != _signature(request, blocks[:place])
    ]


def signature_after(body: bytes, reply: list[dict]) -> str:
    """The signature of thinking that follows these blocks of the reply to a request."""
    request = json.loads(body)
    blocks = [(turn["role"], one) for turn in request["messages"] for one in turn["content"]]
    return _signature(request, [*blocks, *(("assistant", one) for one in reply)])


def _signature(request, blocks):
    plain = [[role, {key: value for key, value in one.items() if key != "cache_control"}] for role, one in blocks]
    head = [
        [{key: value for key, value in one.items() if key != "cache_control"} for one in request.get(field, ())]
        for field in ("system", "tools")
    ]
    return hashlib.sha256(json.dumps([head, plain], sort_keys=True).encode()).hexdigest()


def _check_thinking_mode(request):
    """Thinking with a budget can't begin or go on in the middle of a tool loop that began without it."""
    turns = request.get("messages") or []
    if request.get("thinking", {}).get("type") != "enabled":
        return
    kinds = [(turn.get("content") or [{}])[0].get("type", "") for turn in turns]
    begins = [place for place, kind in enumerate(kinds) if turns[place]["role"] == "user" and kind != "tool_result"]
    first = max(begins, default=-1) + 1
    if first < len(turns) and kinds[first] not in ("thinking", "redacted_thinking"):
        yield f"turn {first}: Expected `thinking` or `redacted_thinking`, but found `{kinds[first]}`"


def _no_twins(pairs):
    if len(dict(pairs)) != len(pairs) and any(key == "cache_control" for key, _ in pairs):
        raise ValueError("cache_control twice in one block")
    return dict(pairs)


def _check_frame(request):
    limit = request.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        yield f"max_tokens is {limit!r}"
    thinking = request.get("thinking", {"type": "disabled"})
    if thinking.get("type") not in ("adaptive", "enabled", "disabled"):
        yield f"thinking is {thinking!r}"
    if thinking.get("type") == "enabled" and not 1024 <= thinking["budget_tokens"] < limit:
        yield f"thinking budget {thinking['budget_tokens']} for {limit} tokens"
    if request.get("output_config", {}).keys() - {"effort", "format"} or request.get("output_config") == {}:
        yield f"output_config is {request['output_config']!r}"
    if "tools" in request and not request["tools"]:
        yield "tools is empty"
    names = [tool.get("name", "") for tool in request.get("tools", [])]
    if len(set(names)) != len(names):
        yield "two tools of one name"
    for tool in request.get("tools", []):
        if not _NAME.fullmatch(tool.get("name", "")) or tool.get("input_schema", {}).get("type") != "object":
            yield f"bad tool {tool.get('name')!r}"
        known = {"name", "description", "input_schema", "eager_input_streaming", "cache_control"}
        yield from (f"tool: {field}: Extra inputs are not permitted" for field in tool.keys() - known)
    if "system" in request:
        yield from (what for one in request["system"] for what in _check_block(one, frozenset()))


def blocks_in(request):
    """All blocks that may carry a cache marker, in the order in which the server reads them."""
    return [
        *request.get("tools", []),
        *request.get("system", []),
        *(one for turn in request.get("messages", []) for one in turn.get("content", [])),
    ]


def _check_marks(request):
    marked = [one for one in blocks_in(request) if "cache_control" in one]
    if len(marked) > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    for one in marked:
        if one["cache_control"] != {"type": "ephemeral"}:
            yield f"cache_control is {one['cache_control']!r}"
        if one.get("type", "tool") not in ("tool", "text", "image", "document", "tool_use", "tool_result"):
            yield f"cache_control on {one['type']}"


def _check_turn(turn, opaque):
    role, content = turn.get("role"), turn.get("content")
    if role not in _BY_ROLE or turn.keys() != {"role", "content"}:
        yield f"fields {sorted(turn)} of role {role!r}"
        return
    if not isinstance(content, list) or not content:
        yield "content is empty"
        return
    for place, one in enumerate(content):
        kind = one.get("type")
        if kind not in _BY_ROLE[role] | (opaque if role == "assistant" else frozenset()):
            yield f"block {place}: {kind!r} from {role}"
        yield from (f"block {place}: {what}" for what in _check_block(one, opaque))
    if content[-1].get("type") in ("thinking", "redacted_thinking"):
        yield "the final block cannot be thinking"
    kinds = [one.get("type") == "tool_result" for one in content]
    if kinds != sorted(kinds, reverse=True):
        yield "tool_result blocks must come first"


def _check_block(one, opaque):
    kind = one.get("type")
    if kind in opaque:
        return
    for field in one.keys() - _OWN.get(kind, set()) - {"type", "cache_control"}:
        yield f"{kind}.{field}: Extra inputs are not permitted"
    check = _CHECKS.get(kind)
    if check is not None:
        yield from check(one)


def _check_text(one):
    if not isinstance(one.get("text"), str) or not one["text"].strip():
        yield "text content blocks must contain non-whitespace text"


def _check_source(one):
    source = one.get("source", {})
    if one["type"] == "image" and source.get("media_type") not in (
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
    ):
        yield f"image of {source.get('media_type')!r}"
    if source.get("type") == "base64":
        base64.b64decode(source["data"], validate=True)
        if one["type"] == "document" and source.get("media_type") != "application/pdf":
            yield f"document of {source.get('media_type')!r}"
    elif source.get("type") != "text" or one["type"] != "document" or not source.get("data", "").strip():
        yield f"source {source!r}"


def _check_call(one):
    if not _NAME.fullmatch(one.get("id", "")):
        yield f"id {one.get('id')!r}"
    if not _NAME.fullmatch(one.get("name", "")) or not isinstance(one.get("input"), dict):
        yield f"bad call {one}"


def _check_result(one):
    content = one.get("content", [])
    if isinstance(content, str):
        if not content.strip():
            yield "result of white space"
        return
    for inner in content:
        if inner.get("type") not in ("text", "image", "document"):
            yield f"{inner.get('type')!r} in a result"
        if one.get("is_error") and inner.get("type") != "text":
            yield "all content must be type text if is_error is true"
        if "cache_control" in inner:
            yield "cache_control inside a result"
        yield from _check_block(inner, frozenset())


def _check_thinking(one):
    if not isinstance(one.get("thinking"), str) or not one.get("signature"):
        yield "thinking.signature: Field required"


def _check_redacted(one):
    if not one.get("data"):
        yield "redacted_thinking.data: Field required"


_CHECKS = {
    "text": _check_text,
    "image": _check_source,
    "document": _check_source,
    "tool_use": _check_call,
    "tool_result": _check_result,
    "thinking": _check_thinking,
    "redacted_thinking": _check_redacted,
}


def _check_order(turns):
    problems = []
    if turns and turns[0].get("role") != "user":
        problems.append("the first turn is not the user's")
    problems += ["two turns of one role" for one, other in pairwise(turns) if one.get("role") == other.get("role")]
    ids = []
    for turn, following in pairwise([*turns, {"role": "user", "content": []}]):
        calls = [one["id"] for one in turn.get("content", []) if one.get("type") == "tool_use"]
        answers = [one["tool_use_id"] for one in following.get("content", []) if one.get("type") == "tool_result"]
        ids += calls
        if calls != answers:
            problems.append(f"calls {calls} are followed by results of {answers}")
    if any(one.get("type") == "tool_result" for one in (turns or [{}])[0].get("content", [])):
        problems.append("unexpected `tool_use_id` found in `tool_result` blocks")
    if len(set(ids)) != len(ids):
        problems.append("`tool_use` ids must be unique")
    last = turns[-1] if turns else {"content": [{}]}
    text = last["content"][-1].get("text", "") if last.get("content") else ""
    if last.get("role") == "assistant" and text != text.rstrip():
        problems.append("final assistant content cannot end with trailing whitespace")
    return problems
