"""Reads the JSON value out of a model's answer, which may be inside a code fence, and writes JSON Schemas as text."""

import json
import re
from collections.abc import Callable, Mapping

import msgspec

from bradawl.core.errors import SettingsError

FindError = Callable[[object], str]
"""Describes the error in a value; returns an empty string if the value satisfies the schema."""
CheckFor = Callable[[str], FindError]
"""Makes the check for a JSON Schema given as text. Raises `SettingsError` if the text is not a JSON Schema."""
AnswerSchema = str | Mapping[str, object]
"""A JSON Schema as text or as an object."""

_FENCED = r"(?msi)^[ \t]*(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\r?\n(.*?)^[ \t]*\1[ \t]*$"

_ALL_FENCED = r"(?si)\s*(`{3,}|~{3,})[ \t]*(?:json)?[ \t]*\r?\n(.*)\n[ \t]*\1\s*"


class NotJson(ValueError):
    """A text contains no JSON value, or more than one."""


def schema_text(schema: AnswerSchema) -> str:
    """The schema as JSON text for a request. Raises `SettingsError`."""
    if isinstance(schema, str):
        return schema
    try:
        return json.dumps(schema, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"The answer's JSON Schema can't be written as JSON: {error}.") from error


def read_answer(text: str) -> tuple[object, str]:
    """The value of an answer, and its JSON as the model wrote it, without a code fence around it.

    Text around a single fenced block is ignored. Raises `NotJson`.
    """
    try:
        return _value(text), text.strip()
    except NotJson as error:
        inner = _unwrapped(text)
        if inner is None:
            raise
        if not isinstance(inner, str):
            raise NotJson("it holds more than one block of code") from error
    return _value(inner), inner.strip()


def _unwrapped(text: str) -> str | list[str] | None:
    """The content of the only code fence; a list of contents if there are several fences; None without a fence."""
    blocks = [block[2] for block in re.finditer(_FENCED, text)]
    if len(blocks) == 1:
        return blocks[0]
    # The JSON itself may hold fences, so the outermost two are tried as well.
    whole = re.fullmatch(_ALL_FENCED, text)
    if whole and not any(map(_is_json, blocks)):
        return whole[2]
    return blocks or None


def _is_json(text: str) -> bool:
    try:
        _value(text)
    except NotJson:
        return False
    return True


def _value(text: str) -> object:
    if not text.strip():
        raise NotJson("it is empty")
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise NotJson("it is nested too deeply") from error
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise NotJson(f"it is not JSON alone: {error}") from error
