"""The codec of OpenAI Responses, the protocol of OpenAI's own models. Sans-I/O."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.codec import Endpoint
from bradawl.providers.deadlines import Deadlines
from bradawl.providers.downgrade import Downgrade
from bradawl.providers.failures import failure_of_response
from bradawl.providers.openai_codec import CodecOptions, OpenAICodec, open_openai_codec
from bradawl.providers.openai_urls import openai_target
from bradawl.providers.responses.requests import ResponsesRequests

if TYPE_CHECKING:
    from bradawl.providers.responses.reply import ResponsesReply

API = "openai_responses"

# Parts of a field are looked for before the field: giving up only the summary keeps the effort.
_PARTS = ("reasoning.summary", "reasoning.encrypted_content")
_PART_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "reasoning summar": "reasoning.summary",
        "encrypted content is not supported": "reasoning.encrypted_content",
    }
)
_FIELDS = ("include", "reasoning", "prompt_cache_key", "max_output_tokens")
_FIELD_ALIASES: Mapping[str, str] = MappingProxyType(
    {"reasoning is not supported": "reasoning", "does not support reasoning": "reasoning"}
)
_LEFT_OUT: Mapping[str, str] = MappingProxyType({"reasoning.encrypted_content": "include"})


class _Refused(msgspec.Struct):
    param: Any = None


class _ErrorBody(msgspec.Struct):
    error: _Refused | None = None


def open_codec(base_url: str, model: str, compat: Mapping[str, object]) -> "tuple[OpenAIResponses, Deadlines]":
    """A codec for the server at `base_url`, and its deadlines. Raises `ValueError` for fields that are none."""
    return open_openai_codec(OpenAIResponses, base_url, model, compat)


class OpenAIResponses(OpenAICodec):
    """The codec of OpenAI Responses for one server; see `OpenAICodec`."""

    api = API

    def __init__(self, base_url: str = "", **options: Unpack[CodecOptions]) -> None:
        super().__init__(base_url, **options)
        self._part_downgrade = Downgrade(_PARTS, _PART_ALIASES, _PARTS)
        self._downgrade = Downgrade(_FIELDS, _FIELD_ALIASES)
        self._left_out: frozenset[str] = frozenset()

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> ResponsesRequests:
        """An encoder for a new conversation with the model of `info`."""
        self._fit_profile_to(info)
        return ResponsesRequests(prefix, info.origin, self._profile, lambda: self._left_out, session_id)

    def decoder(self) -> "ResponsesReply":
        """A decoder for one reply."""
        from bradawl.providers.responses.reply import ResponsesReply

        return ResponsesReply(self._new_id)

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        """URL and headers of a request, credentials included."""
        return openai_target(endpoint, "/responses", self._profile.key_header)

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """The failure that an error response stands for. Header names are in lower case.

        A refusal of an optional field is retryable at once: the next body leaves it out.
        """
        failure = failure_of_response(status, headers, body, self._now_s())
        if failure.kind == "invalid_request" and status in (400, 422):
            param = _param_of(body)
            message = f"{param}: {failure.message}" if param else failure.message
            if self._give_up_field(message):
                return msgspec.structs.replace(failure, retryable=True, retry_after_s=0.0)
        return failure

    def _give_up_field(self, message: str) -> bool:
        """Give up the field that the message refuses; false if there is none or it was given up before."""
        field = self._part_downgrade.take(message) or self._downgrade.take(message)
        if field is None:
            return False
        before = self._left_out
        self._left_out |= {_LEFT_OUT.get(field, field)}
        return self._left_out != before


def _param_of(body: bytes) -> str:
    """The `param` of an error: the message about a value often does not name the field."""
    try:
        error = msgspec.json.decode(body, type=_ErrorBody).error
    except (msgspec.DecodeError, RecursionError):
        return ""
    return error.param if error is not None and isinstance(error.param, str) else ""
