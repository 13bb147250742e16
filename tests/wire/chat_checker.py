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
    if role == "user" and not message.get("content"):
        yield "an empty prompt"


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
