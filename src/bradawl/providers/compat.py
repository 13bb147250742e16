"""The fields in which servers of Chat Completions and Responses deviate (`CompatProfile`), and the check of the
user's own. `compat_table` has the values for known servers.

Sources: the vendors' API documentation, published client code and public issue threads, checked 2026-11-20.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

ReasoningReplay = Literal["never", "with_calls", "always"]
"""Which earlier replies are sent back with their reasoning."""

ThinkingField = Literal["none", "type", "type_keep", "type_clear", "enable_thinking", "template"]
"""The field that switches thinking on and off, beside the effort.

`type`: `thinking: {type: enabled|disabled}` when an effort is requested. `type_keep` and
`type_clear`: the same in every request, with `keep: "all"` or `clear_thinking: false`, so that
the model sees earlier reasoning. `enable_thinking`: a flag of that name. `template`:
`chat_template_kwargs: {enable_thinking: false}`, and only to switch it off.
"""

AnswerFormat = Literal["json_schema", "json_object", "none"]
WAITS = ("first_byte_s", "idle_s", "content_s")
"""The timeouts among the fields; they hold for every wire protocol."""
T = TypeVar("T", bound=msgspec.Struct)
_SAME: Mapping[str, str] = MappingProxyType({})


class CompatProfile(msgspec.Struct, frozen=True):
    """The deviations of one family of servers. Every field can be set in `[providers.NAME.compat]`."""

    name: str = "default"
    """The family's name, for messages."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The field for the maximum number of output tokens."""
    stream_options: bool = True
    """Accepts `stream_options: {include_usage: true}`; without it many servers report no usage."""
    system_role: Literal["system", "developer"] = "system"
    """The role of the system prompt."""
    effort_field: Literal["reasoning_effort", "reasoning", "none"] = "reasoning_effort"
    """The field for the effort: `reasoning_effort`, `reasoning: {effort}`, or `none` where there is no such setting."""
    efforts: Mapping[str, str] = _SAME
    """Maps bradawl's efforts to the server's words. An empty word omits the field; other efforts are sent unchanged."""
    fixed_effort: str = ""
    """Sent in every request instead of the requested effort. OpenAI's newest models accept tools only with `none`."""
    thinking: ThinkingField = "none"
    """The field that switches thinking on and off."""
    reasoning: ReasoningReplay = "with_calls"
    """Which earlier replies are sent back with their reasoning."""
    reasoning_required: bool = False
    """A reply with calls must have the field `reasoning_content`, even if it is empty."""
    signed_reasoning: bool = False
    """Reasoning is signed: calls whose reasoning is incomplete are replayed as text."""
    reasoning_format: str = ""
    """Groq: `parsed` keeps the reasoning out of the text."""
    call_id: Literal["any", "short", "nine"] = "any"
    """`short`: at most 40 characters; `nine`: exactly nine letters and digits."""
    unsigned_calls: str = ""
    """JSON object merged into the first call of a reply without a signature, for servers that require one."""
    result_names: bool = False
    """Results include the name of their tool."""
    assistant_after_results: bool = False
    """The server rejects a prompt right after results: a short reply is inserted."""
    images: bool = True
    """Accepts images as `image_url`."""
    documents: bool = True
    """Accepts `file` parts."""
    typed_schemas: bool = False
    """Every property of a tool's schema needs a `type`."""
    answers: AnswerFormat = "json_schema"
    """What `response_format` may request. bradawl checks the answer against the schema in any case."""
    answers_with_tools: bool = True
    """Accepts `response_format` together with tools. With a grammar for the whole reply no call can be generated."""
    strict: bool = False
    """Accepts `strict` with the schema of an answer."""
    tool_stream: bool = False
    """GLM streams arguments only with this field."""
    cache_key: bool = False
    """Accepts `prompt_cache_key`, which routes a session's requests to its cache."""
    cache_control: bool = False
    """Caches only with `cache_control` (Anthropic's models behind OpenRouter)."""
    key_header: Literal["authorization", "api-key", "x-api-key"] = "authorization"
    """The header that carries the key."""
    text_calls: bool = False
    """The server may leave calls in the text of the reply, in the model's own notation."""
    inline_thinking: bool = False
    """The server may leave `<think>...</think>` at the beginning of the text."""
    extra: Mapping[str, str] = _SAME
    """Additional fields of every request: name to JSON text."""
    first_byte_s: float = 300.0
    """Longest wait for the first byte of a response; reasoning models take their time."""
    idle_s: float = 120.0
    """Longest silence between two bytes."""
    content_s: float = 600.0
    """Longest time with bytes but without content of the reply."""


def with_changes(profile: CompatProfile, changes: Mapping[str, object]) -> CompatProfile:
    """The profile with some fields replaced. Raises `ValueError` with a message for the user."""
    if not changes:
        return profile
    checked = checked_fields(CompatProfile, changes)
    _check_json(checked)
    return msgspec.structs.replace(profile, **{name: getattr(checked, name) for name in changes})


def checked_fields(kind: type[T], changes: Mapping[str, object], also: tuple[str, ...] = ()) -> T:
    """A profile with these fields. `also` are further names to suggest for a misspelt one.

    Raises `ValueError` with a message for the user."""
    known = (*kind.__struct_fields__, *also)
    for name, value in changes.items():
        if name not in kind.__struct_fields__:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            guess = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}."
            raise ValueError(f"`{name}` is not a field of compat; {guess}")
        if isinstance(value, int | float) and not isinstance(value, bool) and not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be a number above 0, not {value!r}.")
        try:
            msgspec.convert({name: value}, kind)
        except msgspec.ValidationError as error:
            hint: object = get_type_hints(kind)[name]
            words = ", ".join(map(str, get_args(hint))) if get_origin(hint) is Literal else ""
            wanted = f"must be one of {words}, not {value!r}" if words else f"must be another kind of value: {error}"
            raise ValueError(f"`{name}` {wanted}.") from error
    return msgspec.convert(dict(changes), kind)


def _check_json(profile: CompatProfile) -> None:
    texts = {f"extra.{name}": text for name, text in profile.extra.items()}
    for name, text in texts.items():
        try:
            msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise ValueError(f'`{name}` must be JSON in a string, for example "true", not {text!r}.') from error
    if profile.unsigned_calls:
        try:
            msgspec.json.decode(profile.unsigned_calls, type=dict[str, msgspec.Raw])
        except msgspec.DecodeError as error:
            raise ValueError(
                f"`unsigned_calls` must be a JSON object in a string, not {profile.unsigned_calls!r}."
            ) from error
