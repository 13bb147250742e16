"""Values of a run as JSON: lines, arguments of calls, stop reasons. What the encoder refuses is replaced."""

import os
from collections.abc import Mapping
from typing import Final, Literal, cast

import msgspec

from bradawl.core.arguments import Arguments, parse_arguments
from bradawl.core.messages import StopReason
from bradawl.safety.control_characters import json_for_terminals

_MOST_LEVELS: Final = 100


def json_line(value: object) -> str:
    """A value on one line, with its newline; control characters are escaped.

    Half characters, which models send, and deep lists are replaced.
    """
    try:
        encoded = msgspec.json.encode(value)
    except (ValueError, RecursionError):
        encoded = msgspec.json.encode(_encodable(value, 0))
    return json_for_terminals(encoded.decode()) + "\n"


def new_uuid() -> str:
    """A random UUID. The module `uuid` costs more to import than this."""
    number = (int.from_bytes(os.urandom(16)) & ~(0xF << 76 | 0x3 << 62)) | 0x4 << 76 | 0x2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _encodable(value: object, level: int) -> object:
    if isinstance(value, msgspec.Struct):
        return _encodable(_fields(value), level)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if not isinstance(value, dict | list | tuple):
        return value
    if level > _MOST_LEVELS:
        return "[nested too deeply]"
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value).items()
        return {_encodable(str(key), 0): _encodable(each, level + 1) for key, each in pairs}
    return [_encodable(each, level + 1) for each in cast("list[object]", value)]


def _fields(value: msgspec.Struct) -> dict[str, object]:
    config, names = value.__struct_config__, zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
    tag = {config.tag_field: config.tag} if config.tag_field else {}
    found = {encoded: getattr(value, name) for name, encoded in names}
    return {**tag, **{name: each for name, each in found.items() if each is not msgspec.UNSET}}


def call_input(raw_arguments: str) -> Arguments:
    """The arguments of a call. What can't be an object in JSON is its text, under `_raw`."""
    arguments, _ = parse_arguments(raw_arguments)
    if arguments is not None and _is_encodable(arguments):
        return arguments
    return {"_raw": raw_arguments.encode("utf-8", "replace").decode()}


def _is_encodable(value: object) -> bool:
    try:
        msgspec.json.encode(value)
    except (ValueError, RecursionError):
        return False
    return True


Stop = Literal[
    "end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal", "pause_turn", "model_context_window_exceeded"
]
_STOPS: Final[Mapping[StopReason, Stop]] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "refusal": "refusal",
    "content_filter": "refusal",
    "pause": "pause_turn",
    "context_overflow": "model_context_window_exceeded",
}


def stop_of(reason: StopReason | None) -> Stop | None:
    """The stop reason in the words of the Anthropic Messages API; None if there is none for it."""
    return _STOPS.get(reason) if reason is not None else None
