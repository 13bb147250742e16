"""Parsers for the notations in which models write tool calls into text. Pure."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import msgspec

from bradawl.providers.encoding import Json

_JSON = json.JSONDecoder(strict=False)
_CALL_KEYS = frozenset({"name", "type", "id", "arguments", "parameters", "function"})
# Patterns are compiled when first used: few models write calls into their text.
_QWEN = r"(?s)\s*<function=([^>\s]+)>(.*?)</function>\s*(?:</tool_call>)?"
_QWEN_PARAMETER = r"(?s)<parameter=([^>\s]+)>(.*?)</parameter>\s*"
_GLM = r"(?s)\s*([A-Za-z_][\w.-]*)\s*((?:<arg_key>.*)?)</tool_call>"
_GLM_ARGUMENT = r"(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>\s*"
_KIMI = (
    r"(?s)\s*<\|tool_call_begin\|>\s*(?:functions\.)?([\w.-]+?)(?::\d+)?"
    r"\s*<\|tool_call_argument_begin\|>(.*?)<\|tool_call_end\|>"
)
_DEEPSEEK = (
    r"(?s)\s*<\uff5ctool▁call▁begin\uff5c>(?:function<\uff5ctool▁sep\uff5c>)?([\w.-]+)"
    r"(?:<\uff5ctool▁sep\uff5c>|\s*\n)(.*?)<\uff5ctool▁call▁end\uff5c>"
)
_JSON_FENCE = r"(?s)\s*```(?:json)?\s*(.*?)\s*```\s*"
_MISTRAL = r"\s*([A-Za-z_][\w.-]*)\s*(?:\[CALL_ID\][^\[{]*)?(?:\[ARGS\])?\s*(?=\{)"
_BEGUN_NAME = r'"name"\s*:\s*"([^"\\]+)"|<function=([^>\s]+)>|\[TOOL_CALLS\]\s*([A-Za-z_][\w.-]*)'
_BEGUN_ARGUMENTS = r'"(?:arguments|parameters)"\s*:\s*|\[ARGS\]'
_END_TOKENS = r"(?:\s|<\|im_end\|>|<\|eot_id\|>|<\|eom_id\|>|</s>|</tool_call>)*"


class WrittenCall(msgspec.Struct, frozen=True):
    """A call parsed from the text."""

    name: str
    arguments: str
    """JSON text; of a truncated call its beginning."""
    is_cut: bool = False


class Unfinished(msgspec.Struct, frozen=True):
    """The block may still become a call."""


Found = tuple[WrittenCall, ...] | Unfinished
"""The calls of a block, empty if it contains none."""

_UNFINISHED = Unfinished()


class TextCallParser:
    """Parses blocks of text as calls of the given tools: name to JSON Schema."""

    def __init__(self, tools: Mapping[str, msgspec.Raw]) -> None:
        self._tools = tools
        self._readers: Mapping[str, Callable[[str], Found]] = {
            "<tool_call>": self._read_tool_call,
            "<function=": self._read_function,
            "<|python_tag|>": self._read_json_calls,
            "[TOOL_CALLS]": self._read_mistral,
            "<|tool_calls_section_begin|>": self._read_kimi,
            "<\uff5ctool▁calls▁begin\uff5c>": self._read_deepseek,
        }

    def read(self, opener: str, block: str) -> Found:
        """The calls in a block that begins with `opener`; an empty one for a reply that is only a call."""
        reader = self._readers.get(opener)
        if reader is None:
            return self._read_bare(block)
        return reader(block if opener == "<function=" else block[len(opener) :])

    def truncated_call(self, block: str) -> WrittenCall | None:
        """The beginning of a call that the end of the reply truncated; None if its tool is unknown."""
        found = re.search(_BEGUN_NAME, block)
        name = next((one for one in found.groups() if one), "") if found else ""
        if name not in self._tools:
            return None
        start = re.search(_BEGUN_ARGUMENTS, block)
        return WrittenCall(name, block[start.end() :] if start else "{", is_cut=True)

    def _all(self, calls: Iterator[tuple[str, object]]) -> Found:
        """The calls, if each is for a given tool and its arguments are an object."""
        read: list[WrittenCall] = []
        for name, arguments in calls:
            if isinstance(arguments, str):
                arguments = _object_in(arguments)
            if name not in self._tools or not isinstance(arguments, dict):
                return ()
            read.append(WrittenCall(name, json.dumps(arguments, ensure_ascii=False)))
        return tuple(read)

    # -------------------------------------------------------------- JSON

    def _read_bare(self, block: str) -> Found:
        return self._read_json_calls(block, is_bare=True)

    def _read_json_calls(self, block: str, *, is_bare: bool = False) -> Found:
        """One call, a list of calls, or several in sequence."""
        values: list[object] = []
        rest = block
        while not values or rest.strip():
            value, rest = _first_value(rest.lstrip())
            if value is None:
                return _UNFINISHED if rest == "" else ()
            values.extend(cast("list[object]", value) if isinstance(value, list) else [value])
            rest = rest[_tokens_end(rest) :].lstrip().removeprefix(";")
        if is_bare and any(
            isinstance(value, dict) and not _CALL_KEYS.issuperset(cast("Json", value)) for value in values
        ):
            return ()
        return self._all(map(_name_and_arguments, values))

    def _read_tool_call(self, block: str) -> Found:
        inside = block.lstrip()
        if inside.startswith("{"):
            return self._read_json_calls(inside)
        if inside.startswith("<function="):
            return self._read_function(inside)
        if not inside or "<function=".startswith(inside):
            return _UNFINISHED
        found = re.fullmatch(_GLM, inside)
        if found is None:
            return _UNFINISHED if "</tool_call>" not in inside else ()
        arguments, left = _pairs(_GLM_ARGUMENT, found[2])
        return () if left.strip() else self._all(iter([(found[1], self._typed(found[1], arguments))]))

    # -------------------------------------------------------------- tags

    def _read_function(self, block: str) -> Found:
        """Qwen3-Coder's tags, or Llama's tags around JSON."""
        calls: list[tuple[str, object]] = []
        rest = block
        while rest.strip():
            found = re.match(_QWEN, rest)
            if found is None:
                return _UNFINISHED
            name, inside = found[1], found[2].strip()
            arguments, left = _pairs(_QWEN_PARAMETER, found[2].lstrip())
            calls.append((name, inside if inside.startswith("{") else self._typed(name, arguments)))
            if left.strip() and not inside.startswith("{"):
                return _UNFINISHED
            rest = rest[found.end() :]
        return self._all(iter(calls))

    def _typed(self, name: str, arguments: Mapping[str, str]) -> Json:
        """Arguments given as text, converted to the types of the tool's schema."""
        if name not in self._tools:
            return {}
        schema = cast("object", msgspec.json.decode(self._tools[name]))
        properties = cast("Json", schema).get("properties") if isinstance(schema, dict) else None
        known = cast("Json", properties) if isinstance(properties, dict) else {}
        return {key: _as_typed(text, known.get(key)) for key, text in arguments.items()}

    # -------------------------------------------------------------- sections

    def _read_kimi(self, block: str) -> Found:
        return self._read_section(_KIMI, block, "<|tool_calls_section_end|>")

    def _read_deepseek(self, block: str) -> Found:
        return self._read_section(_DEEPSEEK, block, "<\uff5ctool▁calls▁end\uff5c>")

    def _read_section(self, form: str, block: str, closer: str) -> Found:
        calls: list[tuple[str, object]] = []
        place = 0
        while (found := re.compile(form).match(block, place)) is not None:
            fenced = re.fullmatch(_JSON_FENCE, found[2])
            calls.append((found[1], fenced[1] if fenced else found[2]))
            place = found.end()
        rest = block[place:].strip()
        if rest == closer and calls:
            return self._all(iter(calls))
        return () if rest.startswith(closer) else _UNFINISHED

    def _read_mistral(self, block: str) -> Found:
        if block.lstrip()[:1] in ("[", "{"):
            return self._read_json_calls(block)
        calls: list[tuple[str, object]] = []
        rest = block
        while rest.strip():
            found = re.match(_MISTRAL, rest)
            if found is None:
                return () if "{" in rest else _UNFINISHED
            value, rest = _first_value(rest[found.end() :])
            if value is None:
                return _UNFINISHED if rest == "" else ()
            calls.append((found[1], value))
            rest = rest[_tokens_end(rest) :].lstrip().removeprefix("[TOOL_CALLS]")
        return self._all(iter(calls))


def _tokens_end(text: str) -> int:
    found = re.match(_END_TOKENS, text)
    return found.end() if found else 0


def _first_value(text: str) -> tuple[object, str]:
    """The JSON value at the beginning of a text and the rest; (None, "") if the text ends within the value."""
    try:
        value, end = _JSON.raw_decode(text)
    except json.JSONDecodeError as error:
        is_cut = not text[error.pos :].strip() or error.msg.startswith(("Unterminated string", "Invalid \\u"))
        return None, "" if is_cut else text
    except RecursionError:
        return None, text
    return cast("object", value), text[end:]


def _object_in(text: str) -> object:
    try:
        return cast("object", json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return None


def _name_and_arguments(value: object) -> tuple[str, object]:
    if not isinstance(value, dict):
        return "", None
    fields = cast("Json", value)
    inner = fields.get("function")
    if isinstance(inner, dict):
        fields = cast("Json", inner)
    name = fields.get("name")
    arguments = fields.get("arguments", fields.get("parameters"))
    return (name if isinstance(name, str) else ""), arguments


def _pairs(form: str, text: str) -> tuple[dict[str, str], str]:
    """The pairs of keys and values in sequence, and the rest of the text."""
    pairs: dict[str, str] = {}
    place = 0
    while (found := re.compile(form).match(text, place)) is not None:
        pairs[found[1].strip()] = found[2].removeprefix("\n").removesuffix("\n")
        place = found.end()
    return pairs, text[place:]


def _as_typed(text: str, schema: object) -> object:
    """A value given as text: a string if the schema allows one, else decoded as JSON."""
    kinds = _kinds_of(schema)
    if "string" in kinds or not kinds:
        return None if text.strip() == "null" and "null" in kinds else text
    value = _object_in(text.strip())
    if value is None and text.strip().lower() in ("true", "false"):
        return text.strip().lower() == "true"
    return text if value is None and text.strip() != "null" else value


def _kinds_of(schema: object) -> frozenset[str]:
    """The types that a schema allows; empty if it has none."""
    if not isinstance(schema, dict):
        return frozenset()
    fields = cast("Json", schema)
    kind = fields.get("type")
    kinds = cast("list[object]", kind) if isinstance(kind, list) else [kind]
    found = {one for one in kinds if isinstance(one, str)}
    values = fields.get("enum")
    if isinstance(values, list) and any(isinstance(one, str) for one in cast("list[object]", values)):
        found.add("string")
    for key in ("anyOf", "oneOf"):
        inner = fields.get(key)
        if isinstance(inner, list):
            found.update(*(_kinds_of(one) for one in cast("list[object]", inner)))
    if "$ref" in fields and not found:
        found.add("object")
    return frozenset(found)
