"""Checks a Chat Completions request against what every server requires."""

import json
import re

from wire.replay import chat, reject_constant

SAMPLE_API = "openai_chat"
"""The protocol's name in recorded streams."""
new_codec = chat
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ROLES = {"system", "developer", "user", "assistant", "tool"}


def check_request(body: bytes) -> list[str]:
    """Violations in a request; empty if a strict server would accept it."""
    try:
        request = json.loads(body.decode("utf-8"), parse_constant=reject_constant)
    except ValueError as error:
        return [f"not JSON in UTF-8: {error}"]
    problems = [f"missing {field}" for field in ("model", "messages", "stream") if not request.get(field)]
    if "tools" in request and not request["tools"]:
        problems.append("tools is empty")
    for tool in request.get("tools", []):
        function = tool.get("function", {})
        if not _NAME.fullmatch(function.get("name", "")) or function.get("parameters", {}).get("type") != "object":
            problems.append(f"bad tool {function.get('name')!r}")
    waiting: list[str] = []
    for place, message in enumerate(request.get("messages", [])):
        problems += [f"message {place}: {problem}" for problem in _check_message(message, place, waiting)]
    return problems + ([f"calls without answer: {waiting}"] if waiting else [])


def check_rules_of(server: str, body: bytes) -> list[str]:
    """Violations of what one family of servers requires besides, by the name of its profile."""
    messages = json.loads(body)["messages"]
    rules = _RULES_OF.get(server, ())
    return [f"message {n}: {what}" for n in range(len(messages)) for rule in rules for what in rule(messages, n)]


def _requires_reasoning(messages, place):
    message = messages[place]
    if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
        yield f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"


def _requires_nine(messages, place):
    ids = [entry["id"] for entry in messages[place].get("tool_calls", ())] + [messages[place].get("tool_call_id")]
    for call_id in ids:
        if call_id is not None and not re.fullmatch(r"[A-Za-z0-9]{9}", call_id):
            yield f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9"


def _requires_reply_between(messages, place):
    if place and messages[place]["role"] == "user" and messages[place - 1]["role"] == "tool":
        yield "Unexpected role 'user' after role 'tool'"


def _requires_names(messages, place):
    if messages[place]["role"] == "tool" and not messages[place].get("name"):
        yield "a result without the name of its tool"


def _requires_signed_calls(messages, place):
    calls = messages[place].get("tool_calls")
    if calls and not calls[0].get("extra_content", {}).get("google", {}).get("thought_signature"):
        yield "Function call is missing a thought_signature"


def _requires_short(messages, place):
    for entry in messages[place].get("tool_calls", ()):
        if len(entry["id"]) > 40:
            yield f"string too long: {entry['id']}"


_RULES_OF = {
    "openai": (_requires_short,),
    "deepseek": (_requires_reasoning,),
    "kimi": (_requires_reasoning,),
    "mistral": (_requires_nine, _requires_reply_between, _requires_names),
    "gemini": (_requires_signed_calls,),
}


def _check_message(message, place, waiting):
    role = message.get("role")
    if role not in _ROLES:
        yield f"unknown role {role!r}"
    if role == "system" and place:
        yield "system message is not the first"
    if role == "tool":
        if not isinstance(message.get("content"), str):
            yield "the content of a result is not a string"
        if message.get("tool_call_id") in waiting:
            waiting.remove(message["tool_call_id"])
        else:
            yield f"answers no open call: {message.get('tool_call_id')!r}"
    elif waiting:
        yield f"comes before the answers to {waiting}"
        waiting.clear()
    if role == "assistant":
        yield from _check_reply(message, waiting)
    if role == "user":
        yield from _check_prompt(message.get("content"))


def _check_prompt(content):
    if not content or (isinstance(content, str) and not content.strip()):
        yield "an empty prompt"
    for piece in content if isinstance(content, list) else ():
        if piece.get("type") == "text" and not piece.get("text", "").strip():
            yield "an empty text in a prompt"


def _check_reply(message, waiting):
    calls = message.get("tool_calls")
    if not calls and not message.get("content"):
        yield "neither content nor calls"
    if calls is not None and not calls:
        yield "tool_calls is empty"
    for entry in calls or ():
        function = entry.get("function", {})
        if entry.get("type") != "function" or not entry.get("id") or not _NAME.fullmatch(function.get("name", "")):
            yield f"bad call {entry}"
        if entry.get("id") in waiting:
            yield f"id {entry['id']!r} twice"
        try:
            arguments = json.loads(function.get("arguments"), parse_constant=reject_constant)
        except (ValueError, TypeError):
            arguments = None
        if not isinstance(arguments, dict):
            yield f"arguments are no object: {function.get('arguments')!r}"
        waiting.append(entry.get("id"))
