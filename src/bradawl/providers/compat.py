"""What servers that speak Chat Completions want differently, as data.

Sources: the vendors' API documentation, published client code and public issue threads,
checked 2026-11-20. A profile says what a server needs; a host nobody knows gets the plainest
one. The table of servers is in `compat_table`.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

ReasoningReplay = Literal["never", "with_calls", "always"]
"""In which of its own replies a model wants its reasoning back."""

ThinkingField = Literal["none", "type", "type_keep", "type_clear", "enable_thinking", "template"]
"""How thinking is switched on and off, beside the effort.

`type`: `thinking: {type: enabled|disabled}` when an effort is asked for. `type_keep` and
`type_clear`: the same in every request, with `keep: "all"` or `clear_thinking: false`, so that
earlier reasoning stays in the model's sight. `enable_thinking`: a flag of that name. `template`:
`chat_template_kwargs: {enable_thinking: false}`, and only to switch it off.
"""

AnswerFormat = Literal["json_schema", "json_object", "none"]
WAITS = ("first_byte_s", "idle_s", "content_s")
"""The fields that say how long a server may take; servers of every wire format have them."""
T = TypeVar("T", bound=msgspec.Struct)
_SAME: Mapping[str, str] = MappingProxyType({})


class CompatProfile(msgspec.Struct, frozen=True):
    """How one family of servers deviates. Every field can be set in `[providers.NAME.compat]`."""

    name: str = "default"
    """Of the family, for messages."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the limit of a reply's length is called."""
    stream_options: bool = True
    """Takes `stream_options: {include_usage: true}`; without it many servers count no tokens."""
    system_role: Literal["system", "developer"] = "system"
    """The role of the system prompt."""
    effort_field: Literal["reasoning_effort", "reasoning", "none"] = "reasoning_effort"
    """Where the effort goes: a word, or `reasoning: {effort}`; `none` when the model has no such dial."""
    efforts: Mapping[str, str] = _SAME
    """Our word for an effort to theirs; an empty one leaves it out, words that are not here pass through."""
    fixed_effort: str = ""
    """Sent in every request whatever was asked for; OpenAI's newest want `none` before they take tools here."""
    thinking: ThinkingField = "none"
    """How thinking is switched on and off."""
    reasoning: ReasoningReplay = "with_calls"
    """In which of its own replies a model wants its reasoning back."""
    reasoning_required: bool = False
    """A reply with calls must carry `reasoning_content`, if only an empty one."""
    signed_reasoning: bool = False
    """Reasoning is signed: calls whose reasoning did not come to its end are told in words."""
    reasoning_format: str = ""
    """Groq: `parsed` keeps the reasoning out of the text."""
    call_id: Literal["any", "short", "nine"] = "any"
    """`short`: at most 40 characters; `nine`: exactly nine letters and digits."""
    unsigned_calls: str = ""
    """JSON object put into the first call of a reply that has no signature, for servers that demand one."""
    result_names: bool = False
    """Results carry the name of their tool."""
    assistant_after_results: bool = False
    """A prompt may not follow results: a short reply is put between them."""
    images: bool = True
    """Takes pictures as `image_url`."""
    documents: bool = True
    """Takes `file` parts."""
    typed_schemas: bool = False
    """Every property of a tool's schema must say its type."""
    answers: AnswerFormat = "json_schema"
    """What `response_format` may ask for; the schema is checked here whatever the server does."""
    answers_with_tools: bool = True
    """Takes `response_format` beside tools; where a grammar rules the whole reply, no call could be written."""
    strict: bool = False
    """Takes `strict` with the schema of an answer."""
    tool_stream: bool = False
    """GLM sends arguments as they are written only when asked to with this field."""
    cache_key: bool = False
    """Takes `prompt_cache_key`, which keeps a session's requests where its cache is."""
    cache_control: bool = False
    """Caches only when `cache_control` asks for it (Anthropic's models behind OpenRouter)."""
    key_header: Literal["authorization", "api-key", "x-api-key"] = "authorization"
    """The header that carries the key."""
    text_calls: bool = False
    """The server may pass calls on as the model wrote them, in the text of the reply."""
    inline_thinking: bool = False
    """The server may leave `<think>...</think>` at the beginning of the text."""
    extra: Mapping[str, str] = _SAME
    """Further fields of every request: name to JSON text."""
    first_byte_s: float = 300.0
    """Longest wait for the first byte of a response; models think before they write."""
    idle_s: float = 120.0
    """Longest silence between two bytes."""
    content_s: float = 600.0
    """Longest time in which bytes come but nothing of the reply."""


def with_changes(profile: CompatProfile, changes: Mapping[str, object]) -> CompatProfile:
    """The profile with some fields replaced. Raises `ValueError`, in words for the user."""
    if not changes:
        return profile
    checked = checked_fields(CompatProfile, changes)
    _check_json(checked)
    return msgspec.structs.replace(profile, **{name: getattr(checked, name) for name in changes})


def checked_fields(kind: type[T], changes: Mapping[str, object], also: tuple[str, ...] = ()) -> T:
    """A profile with these fields. Raises `ValueError`, in words for the user; `also` are names they may mean."""
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
