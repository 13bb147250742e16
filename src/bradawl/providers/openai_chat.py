"""OpenAI Chat Completions, the format that compatible servers speak: a pure codec."""

import os
import re
import time
from collections.abc import Callable, Mapping

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.chat_calls import base36
from bradawl.providers.chat_messages import ChatRequests
from bradawl.providers.chat_reply import ChatReply
from bradawl.providers.codec import Endpoint
from bradawl.providers.compat import CompatProfile, profile_for
from bradawl.providers.failures import failure_of_response

API = "openai_chat"

_FIELD = re.compile(r"\b(stream_options|include_usage|reasoning_effort|max_completion_tokens|max_tokens)\b")


def new_call_id() -> str:
    """A fresh id for a call the server left without one: `call_` and 12 characters of base 36."""
    return "call_" + base36(int.from_bytes(os.urandom(10), "big"), 12)


class OpenAIChat:
    """The codec for the server at `base_url`, whose quirks are known by its host.

    `new_id` names calls without an id; `now_s` is Unix time, for servers that give a date
    to come back at. When the server refuses an optional field, that is remembered.
    """

    api = API

    def __init__(
        self,
        base_url: str = "",
        *,
        profile: CompatProfile | None = None,
        new_id: Callable[[], str] = new_call_id,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._profile = profile or profile_for(base_url)
        self._new_id = new_id
        self._now_s = now_s
        self._given_up: set[str] = set()

    @property
    def profile(self) -> CompatProfile:
        """What is known about the server now."""
        return self._profile

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> ChatRequests:
        """Begin a conversation with the model of `info`."""
        return ChatRequests(prefix, info.origin, lambda: self._profile)

    def decoder(self) -> ChatReply:
        """Begin to read a reply."""
        return ChatReply(self._new_id)

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        """URL and headers of a request, credentials included."""
        base, has_query, query = endpoint.base_url.partition("?")
        url = base.rstrip("/") + "/chat/completions" + (f"?{query}" if has_query else "")
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "bradawl",
        }
        if endpoint.api_key:
            if self._profile.key_header == "authorization":
                headers["authorization"] = f"Bearer {endpoint.api_key}"
            else:
                headers[self._profile.key_header] = endpoint.api_key
        headers.update((name.lower(), value) for name, value in endpoint.headers)
        return url, tuple(headers.items())

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """What a response that is not a reply means. Header names are in lower case.

        A refusal of a field we can do without is retryable at once: the next body leaves it out.
        """
        failure = failure_of_response(status, headers, body, self._now_s())
        if failure.kind == "invalid_request" and status in (400, 422) and self._give_up_field(failure.message):
            return msgspec.structs.replace(failure, retryable=True, retry_after_s=0.0)
        return failure

    def _give_up_field(self, message: str) -> bool:
        """Stop sending the field the server names, once for each field."""
        found = _FIELD.search(message)
        if found is None or not _is_about_the_field(message):
            return False
        changed = self._without(found[1])
        if changed == self._profile or found[1] in self._given_up:
            return False
        self._given_up.add(found[1])
        self._profile = changed
        return True

    def _without(self, field: str) -> CompatProfile:
        if field in ("stream_options", "include_usage"):
            return msgspec.structs.replace(self._profile, has_stream_options=False)
        if field == "reasoning_effort":
            return msgspec.structs.replace(self._profile, takes_effort=False)
        if field != self._profile.max_tokens_field:
            return self._profile
        other = "max_tokens" if field == "max_completion_tokens" else "max_completion_tokens"
        return msgspec.structs.replace(self._profile, max_tokens_field=other)


_REFUSED = re.compile(
    r"unsupported|not supported|unknown|unrecognized|unexpected|not permitted|extra|not allowed|invalid (?:field|param)"
    r"|does not support|only (?:be|allowed)",
    re.IGNORECASE,
)


def _is_about_the_field(message: str) -> bool:
    """A value out of range is the user's to correct; a field nobody knows can be left out."""
    return bool(_REFUSED.search(message))
