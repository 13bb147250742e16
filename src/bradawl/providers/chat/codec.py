"""The codec of OpenAI Chat Completions, which compatible servers speak too. Sans-I/O."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.chat.requests import ChatRequests
from bradawl.providers.codec import Endpoint
from bradawl.providers.compat import CompatProfile, ThinkingField
from bradawl.providers.deadlines import Deadlines
from bradawl.providers.downgrade import Downgrade
from bradawl.providers.failures import failure_of_response, refusal_text
from bradawl.providers.openai_codec import CodecOptions, OpenAICodec, open_openai_codec
from bradawl.providers.openai_urls import openai_target

if TYPE_CHECKING:
    from bradawl.providers.chat.reply import ChatReply

API = "openai_chat"

_BAD_GENERATION_RETRIES = 1
"""Groq rejects a malformed call of its model; the second attempt often succeeds, the third hardly ever."""

_FIXED = "reasoning_effort_none"
_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "set reasoning_effort to": _FIXED,
        "include_usage": "stream_options",
        "json_schema": "response_format",
        "json mode": "response_format",
        "response mime type": "response_format",
        "role developer": "developer",
        "developer role": "developer",
        "developer message": "developer",
    }
)
_BY_MENTION = ("developer", "response_format", "strict", _FIXED)
_OFF: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "stream_options": {"stream_options": False},
        "reasoning_effort": {"effort_field": "none", "fixed_effort": ""},
        _FIXED: {"effort_field": "reasoning_effort", "fixed_effort": "none"},
        "reasoning": {"effort_field": "none"},
        "thinking": {"thinking": "none"},
        "enable_thinking": {"thinking": "none"},
        "chat_template_kwargs": {"thinking": "none"},
        "reasoning_format": {"reasoning_format": ""},
        "prompt_cache_key": {"cache_key": False},
        "cache_control": {"cache_control": False},
        "tool_stream": {"tool_stream": False},
        "response_format": {"answers": "none"},
        "strict": {"strict": False},
        "developer": {"system_role": "system"},
        "max_tokens": {"max_tokens_field": "max_completion_tokens"},
        "max_completion_tokens": {"max_tokens_field": "max_tokens"},
    }
)
"""The changes of the profile after the server has refused a field."""


def open_codec(base_url: str, model: str, compat: Mapping[str, object]) -> "tuple[OpenAIChat, Deadlines]":
    """A codec for the server at `base_url`, and its deadlines. Raises `ValueError` for fields that are none."""
    return open_openai_codec(OpenAIChat, base_url, model, compat)


class OpenAIChat(OpenAICodec):
    """The codec of OpenAI Chat Completions for one server; see `OpenAICodec`."""

    api = API

    def __init__(self, base_url: str = "", **options: Unpack[CodecOptions]) -> None:
        super().__init__(base_url, **options)
        self._downgrade = Downgrade([*_OFF, *self._profile.extra], _ALIASES, _BY_MENTION)
        self._tools: dict[str, msgspec.Raw] = {}
        self._bad_generations = 0

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> ChatRequests:
        """An encoder for a new conversation with the model of `info`."""
        self._fit_profile_to(info)
        self._tools |= {tool.name: tool.parameters for tool in prefix.tools}
        return ChatRequests(prefix, info.origin, lambda: self._profile, session_id)

    def decoder(self) -> "ChatReply":
        """A decoder for one reply."""
        from bradawl.providers.chat.reply import ChatReply
        from bradawl.providers.chat.text import ReplyText

        return ChatReply(self._new_id, ReplyText(self._profile, self._tools), self._note_reply)

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        """URL and headers of a request, credentials included."""
        return openai_target(endpoint, "/chat/completions", self._profile.key_header)

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """The failure that an error response stands for. Header names are in lower case.

        A refusal of an optional field is retryable at once: the next body leaves it out.
        """
        failure = failure_of_response(status, headers, body, self._now_s())
        if failure.code == "tool_use_failed":
            self._bad_generations += 1
            return msgspec.structs.replace(failure, retryable=self._bad_generations <= _BAD_GENERATION_RETRIES)
        if failure.kind == "invalid_request" and status in (400, 422) and self._give_up_field(refusal_text(body)):
            return msgspec.structs.replace(failure, retryable=True, retry_after_s=0.0)
        return failure

    def _note_reply(self) -> None:
        self._bad_generations = 0

    def _give_up_field(self, message: str) -> bool:
        """Give up the field that the message refuses; false if there is none or it was given up before."""
        field = self._downgrade.take(message, _fields_in_use(self._profile))
        if field is None:
            return False
        if field in self._profile.extra:
            kept = {name: text for name, text in self._profile.extra.items() if name != field}
            self._profile = msgspec.structs.replace(self._profile, extra=kept)
        self._profile = msgspec.structs.replace(self._profile, **_OFF.get(field, {}))
        return True


_SWITCHES: Mapping[ThinkingField, str] = MappingProxyType(
    {"none": "", "enable_thinking": "enable_thinking", "template": "chat_template_kwargs"}
)


def _fields_in_use(profile: CompatProfile) -> frozenset[str]:
    """The fields that a request may have with this profile, and that can be given up."""
    used = {
        "stream_options": profile.stream_options,
        "reasoning_effort": profile.effort_field == "reasoning_effort",
        "reasoning": profile.effort_field == "reasoning",
        "reasoning_format": bool(profile.reasoning_format),
        "prompt_cache_key": profile.cache_key,
        "cache_control": profile.cache_control,
        "tool_stream": profile.tool_stream,
        "response_format": profile.answers != "none",
        "strict": profile.strict,
        "developer": profile.system_role == "developer",
        _FIXED: True,
        profile.max_tokens_field: True,
        _SWITCHES.get(profile.thinking, "thinking"): True,
        **dict.fromkeys(profile.extra, True),
    }
    return frozenset(name for name, is_used in used.items() if is_used)
