"""The fields of a Chat Completions request besides its messages, by the server's profile. Pure."""

from typing import cast

import msgspec

from bradawl.core.events import RequestParams
from bradawl.core.ports import ToolSchema
from bradawl.providers.compat import CompatProfile
from bradawl.providers.encoding import Json, encode_json, schema_in_words
from bradawl.providers.strict_schemas import may_be_strict

_IN_THE_HEAD = frozenset({"model", "messages"})


def encode_tools(tools: tuple[ToolSchema, ...], profile: CompatProfile) -> bytes:
    """The tools as JSON; empty when there are none."""
    return encode_json([_tool(schema, profile) for schema in tools]) if tools else b""


def _tool(schema: ToolSchema, profile: CompatProfile) -> Json:
    parameters: object = schema.parameters
    if profile.typed_schemas:
        parameters = typed_schema(msgspec.json.decode(schema.parameters))
    return {
        "type": "function",
        "function": {"name": schema.name, "description": schema.description, "parameters": parameters},
    }


_TYPE_OF = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_SAYS_ITS_TYPE = frozenset({"type", "anyOf", "oneOf", "allOf", "$ref", "not", "if"})


def typed_schema(schema: object) -> object:
    """A JSON Schema whose properties all have a `type`, derived from `enum` or `const` where it is missing."""
    if not isinstance(schema, dict):
        return schema
    typed = {key: _typed_member(key, value) for key, value in cast("Json", schema).items()}
    properties = typed.get("properties")
    if isinstance(properties, dict):
        typed["properties"] = {name: _with_type(value) for name, value in cast("Json", properties).items()}
    return typed


def _typed_member(key: str, value: object) -> object:
    if key in ("properties", "$defs", "definitions") and isinstance(value, dict):
        return {name: typed_schema(item) for name, item in cast("Json", value).items()}
    if key in ("items", "additionalProperties"):
        return typed_schema(value)
    if key in ("anyOf", "oneOf", "allOf") and isinstance(value, list):
        return [_with_type(typed_schema(item)) for item in cast("list[object]", value)]
    return value


def _with_type(schema: object) -> object:
    if not isinstance(schema, dict) or not _SAYS_ITS_TYPE.isdisjoint(cast("Json", schema)):
        return cast("object", schema)
    fields = cast("Json", schema)
    values = fields.get("enum")
    examples = (
        cast("list[object]", values) if isinstance(values, list) else [fields[k] for k in ("const",) if k in fields]
    )
    kinds = {_TYPE_OF[type(example)] for example in examples if type(example) in _TYPE_OF}
    if len(kinds) == 1:
        return {"type": kinds.pop(), **fields}
    return {"type": "object" if "properties" in fields else "array" if "items" in fields else "string", **fields}


def request_fields(
    profile: CompatProfile, params: RequestParams, *, tools: bytes, session_id: str
) -> dict[str, object]:
    """All fields but model and messages, by name. The user's `extra` takes precedence."""
    fields: dict[str, object] = {"stream": True}
    if profile.stream_options:
        fields["stream_options"] = {"include_usage": True}
    if tools:
        fields["tools"] = msgspec.Raw(tools)
        if profile.tool_stream:
            fields["tool_stream"] = True
    if params.max_output_tokens is not None:
        fields[profile.max_tokens_field] = params.max_output_tokens
    fields |= _reasoning(profile, params.effort)
    if (asked := answer_format(profile, params, has_tools=bool(tools))) is not None:
        fields["response_format"] = asked
    if profile.cache_key and session_id:
        fields["prompt_cache_key"] = session_id
    if profile.cache_control:
        fields["cache_control"] = {"type": "ephemeral"}
    fields |= {name: msgspec.Raw(text.encode()) for name, text in profile.extra.items() if name not in _IN_THE_HEAD}
    return fields


def _reasoning(profile: CompatProfile, effort: str | None) -> Json:
    """The fields for effort and thinking."""
    word = profile.efforts.get(effort, effort) if effort else ""
    is_off = effort == "none" and word in ("", "none")
    fields = _thinking(profile, is_asked=bool(effort), is_off=is_off)
    if is_off and profile.thinking != "none":
        word = ""
    word = profile.fixed_effort or word
    if word and profile.effort_field == "reasoning_effort":
        fields["reasoning_effort"] = word
    elif word and profile.effort_field == "reasoning":
        fields["reasoning"] = {"effort": word}
    if profile.reasoning_format:
        fields["reasoning_format"] = profile.reasoning_format
    return fields


def _thinking(profile: CompatProfile, *, is_asked: bool, is_off: bool) -> Json:
    switch = "disabled" if is_off else "enabled"
    match profile.thinking:
        case "type" if is_asked:
            return {"thinking": {"type": switch}}
        case "type_keep":
            return {"thinking": {"type": switch} if is_off else {"type": switch, "keep": "all"}}
        case "type_clear":
            return {"thinking": {"type": switch} if is_off else {"type": switch, "clear_thinking": False}}
        case "enable_thinking" if is_asked:
            return {"enable_thinking": not is_off}
        case "template" if is_off:
            return {"chat_template_kwargs": {"enable_thinking": False}}
        case _:
            return {}


# ------------------------------------------------------------------ answers of a given form


def answer_format(profile: CompatProfile, params: RequestParams, *, has_tools: bool) -> Json | None:
    """The `response_format` of a request; None without a schema or if the server does not support it."""
    if not params.answer_schema or (has_tools and not profile.answers_with_tools):
        return None
    if profile.answers == "json_object":
        return {"type": "json_object"}
    if profile.answers == "none":
        return None
    schema: Json = {"name": "answer", "schema": msgspec.Raw(params.answer_schema.encode())}
    if profile.strict:
        schema["strict"] = may_be_strict(params.answer_schema)
    return {"type": "json_schema", "json_schema": schema}


def answer_instructions(profile: CompatProfile, params: RequestParams, *, has_tools: bool) -> str:
    """The schema as an instruction in the prompt, if it is not in `response_format`; else empty."""
    asked = answer_format(profile, params, has_tools=has_tools)
    if not params.answer_schema or (asked is not None and asked["type"] == "json_schema"):
        return ""
    return schema_in_words(params.answer_schema)
