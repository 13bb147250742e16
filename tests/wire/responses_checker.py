"""Checks a Responses request against what a strict server requires."""

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from bradawl.providers.responses.codec import OpenAIResponses
from wire.replay import numbered_ids, reject_constant

SAMPLE_API = "openai_responses"
"""The protocol's name in recorded streams."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ITEM_ID = {
    "message": re.compile(r"msg_[A-Za-z0-9_-]{0,59}[A-Za-z0-9-]"),
    "function_call": re.compile(r"fc_[A-Za-z0-9_-]{0,60}[A-Za-z0-9-]"),
    "reasoning": re.compile(r"rs_[A-Za-z0-9_-]{0,60}[A-Za-z0-9-]"),
}
_FIELDS = {"model", "instructions", "input", "tools", "stream", "store", "include", "text"}
_FIELDS |= {"reasoning", "prompt_cache_key", "max_output_tokens"}
_INPUT = {"input_text": "text", "input_image": "image_url", "input_file": "file_data"}
_OUTPUT = {"output_text": "text", "refusal": "refusal"}
NOTHING_BOUND: Mapping[str, str] = MappingProxyType({})


def responses(base_url: str = "") -> OpenAIResponses:
    """A codec with predictable ids."""
    return OpenAIResponses(base_url, new_id=numbered_ids(), now_s=lambda: 1_790_000_000.0)


new_codec = responses


def check_request(body: bytes, *, bound: Mapping[str, str] = NOTHING_BOUND) -> list[str]:
    """Violations in a request; empty if a strict server would accept it.

    `bound` names, for ids of messages and calls, the reasoning item that they were received with.
    """
    try:
        request = json.loads(body.decode("utf-8"), parse_constant=reject_constant)
    except ValueError as error:
        return [f"not JSON in UTF-8: {error}"]
    problems = [f"missing {field}" for field in ("model", "input", "stream") if not request.get(field)]
    problems += [f"unknown field {field}" for field in request.keys() - _FIELDS]
    if request.get("store") is not False:
        problems.append("would be stored")
    if "tools" in request and not request["tools"]:
        problems.append("tools is empty")
    for tool in request.get("tools", ()):
        is_good = _NAME.fullmatch(tool.get("name", "")) and tool.get("parameters", {}).get("type") == "object"
        if tool.get("type") != "function" or not is_good or not isinstance(tool.get("strict"), bool):
            problems.append(f"bad tool {tool}")
    conversation = _Conversation(bound)
    for place, item in enumerate(request.get("input", ())):
        problems += [f"item {place}: {problem}" for problem in conversation.take(item)]
    return problems + [f"at the end: {problem}" for problem in conversation.end()]


class _Conversation:
    """Checks the rules between items."""

    def __init__(self, bound):
        self.bound = bound
        self.waiting = []
        self.others = set()
        self.call_ids = set()
        self.item_ids = set()
        self.reasoning = None
        self.is_bound = False

    def take(self, item):
        kind = item.get("type", "message")
        yield from self._check_id(item, kind)
        if kind == "message" and item.get("role") == "assistant":
            yield from _check_content(item.get("content"), _OUTPUT)
            if item.get("phase") not in (None, "commentary", "final_answer"):
                yield f"unknown phase {item['phase']!r}"
        elif kind == "message":
            yield from self._check_user(item)
        elif kind == "reasoning":
            yield from self._check_reasoning(item)
        elif kind == "function_call":
            yield from self._check_call(item)
        elif kind == "function_call_output":
            yield from self._check_output(item)
        elif item.get("call_id") and not kind.endswith("_output"):
            self.others.add(item["call_id"])
        else:
            self.others.discard(item.get("call_id"))
        if kind != "reasoning":
            self.reasoning = None

    def end(self):
        if self.waiting or self.others:
            yield f"no output for {[*self.waiting, *self.others]}"
        if self.reasoning is not None:
            yield "reasoning without its following item"

    def _check_id(self, item, kind):
        item_id = item.get("id")
        if item_id is None:
            if kind == "message" and item.get("role") == "assistant":
                yield "an assistant's message without id"
            return
        if kind in _ITEM_ID and not _ITEM_ID[kind].fullmatch(item_id):
            yield f"illegal id {item_id!r}"
        if item_id in self.item_ids:
            yield f"duplicate id {item_id!r}"
        if (required := self.bound.get(item_id)) is not None and required not in self.item_ids:
            yield f"{item_id!r} was provided without its required reasoning item {required!r}"
        self.item_ids.add(item_id)

    def _check_user(self, item):
        if item.get("role") != "user":
            yield f"unknown role {item.get('role')!r}"
        yield from _check_content(item.get("content"), _INPUT)
        if self.waiting:
            yield f"comes before the outputs of {self.waiting}"
        if self.reasoning is not None:
            yield "reasoning without its following item"
        self.is_bound = False

    def _check_reasoning(self, item):
        if not isinstance(item.get("encrypted_content"), str) or not item["encrypted_content"]:
            yield f"item {item.get('id')!r} is not stored and has no encrypted content"
        for piece in item.get("summary", [{}]):
            if piece.get("type") != "summary_text" or not isinstance(piece.get("text"), str):
                yield f"bad summary {piece}"
        if "status" in item:
            yield "unknown parameter status"
        self.reasoning = item
        self.is_bound = True

    def _check_call(self, item):
        if not _NAME.fullmatch(item.get("name", "")) or not _CALL_ID.fullmatch(item.get("call_id", "")):
            yield f"bad call {item}"
        if item.get("id") and not self.is_bound:
            yield f"{item['id']!r} without its required reasoning item"
        if item.get("call_id") in self.call_ids:
            yield f"call id {item['call_id']!r} twice"
        try:
            arguments = json.loads(item.get("arguments"), parse_constant=reject_constant)
        except (ValueError, TypeError):
            arguments = None
        if not isinstance(arguments, dict):
            yield f"arguments are no object: {item.get('arguments')!r}"
        self.call_ids.add(item.get("call_id"))
        self.waiting.append(item.get("call_id"))

    def _check_output(self, item):
        if self.waiting[:1] != [item.get("call_id")]:
            yield f"output of {item.get('call_id')!r} while waiting for {self.waiting}"
        else:
            self.waiting.pop(0)
        if self.reasoning is not None:
            yield "reasoning without its following item"
        if not isinstance(item.get("output"), str):
            yield from _check_content(item.get("output"), _INPUT)


def _check_content(content, kinds):
    if not isinstance(content, list) or not content:
        yield f"bad content {content!r}"
        return
    for piece in content:
        field = kinds.get(piece.get("type"))
        if field is None or not isinstance(piece.get(field), str) or not piece[field].strip():
            yield f"bad piece {piece}"
