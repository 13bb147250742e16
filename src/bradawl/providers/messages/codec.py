"""The codec of Anthropic Messages: for Anthropic, clouds that resell it, and compatible servers. Sans-I/O."""

import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.errors import Failure
from bradawl.core.ports import ModelInfo, Prefix
from bradawl.providers.codec import Endpoint
from bradawl.providers.deadlines import Deadlines, deadlines_for
from bradawl.providers.downgrade import Downgrade
from bradawl.providers.encoding import new_call_id, untyped
from bradawl.providers.failures import failure_of_response
from bradawl.providers.messages.errors import with_code
from bradawl.providers.messages.options import DEFAULT_LIMIT, UNKNOWN_LIMIT
from bradawl.providers.messages.profile import MessagesProfile, family_of, messages_profile_for
from bradawl.providers.messages.requests import MessagesRequests

if TYPE_CHECKING:
    from bradawl.providers.messages.reply import MessagesReply

API = "anthropic_messages"

_INTERLEAVED = "interleaved-thinking-2025-05-14"
_BINDING = "thinking-binding-controls-2026-08-01"
_OAUTH = "oauth-2025-04-20"
_UNBOUND = re.compile(r"bound to a different|signature.{0,40}thinking.{0,80}(?:different|prefix)", re.IGNORECASE)
_TOO_LONG = re.compile(r"max_tokens\D{0,20}(\d+)\s*>\s*(\d+)")
_OPTIONAL: Mapping[str, str] = {
    "eager_input_streaming": "has_eager_input",
    "cache_control": "takes_cache_control",
    "output_config.format": "takes_format",
    "output_config.effort": "takes_effort",
    "budget_tokens": "takes_budget",
    "thinking": "takes_thinking",
    "anthropic-beta": "has_betas",
}
"""Fields that a server may refuse, and the profile's field that leaves each out."""
_ALIASES: Mapping[str, str] = {
    '"thinking.type.enabled"': "budget_tokens",
    "effort parameter": "output_config.effort",
    "adaptive thinking is not supported": "thinking",
    "output_format": "output_config.format",
}


def open_codec(base_url: str, model: str, compat: Mapping[str, object]) -> "tuple[AnthropicMessages, Deadlines]":
    """A codec for the server at `base_url`, and its deadlines. Raises `ValueError` for fields that are none."""
    del model
    profile, deadlines = messages_profile_for(base_url), deadlines_for(base_url)
    if compat:
        from bradawl.providers.compat import WAITS, checked_fields

        waits = {name: value for name, value in compat.items() if name in WAITS}
        own = {name: value for name, value in compat.items() if name not in WAITS}
        checked_fields(MessagesProfile, own, WAITS)
        checked_fields(Deadlines, waits)
        profile, deadlines = msgspec.structs.replace(profile, **own), msgspec.structs.replace(deadlines, **waits)
    return AnthropicMessages(base_url, profile=profile), deadlines


class AnthropicMessages:
    """The codec for the server at `base_url`; the profile of its host is the default.

    `new_id` gives ids to calls without one. `now_s` gives Unix time, for retry times sent as a date.
    An optional field that the server refuses is left out of later requests.
    """

    api = API

    def __init__(
        self,
        base_url: str = "",
        *,
        profile: MessagesProfile | None = None,
        new_id: Callable[[], str] = new_call_id,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._profile = profile or messages_profile_for(base_url)
        self._new_id = new_id
        self._now_s = now_s
        self._downgrade = Downgrade(_OPTIONAL, _ALIASES, by_mention=("output_config.format", "output_config.effort"))

    @property
    def profile(self) -> MessagesProfile:
        """The server's profile, without the fields it has refused."""
        return self._profile

    def encoder(self, prefix: Prefix, info: ModelInfo, session_id: str = "") -> MessagesRequests:
        """An encoder for a new conversation with the model of `info`."""
        return MessagesRequests(prefix, info, lambda: self._profile)

    def decoder(self) -> "MessagesReply":
        """A decoder for one reply."""
        from bradawl.providers.messages.reply import MessagesReply

        return MessagesReply(self._new_id)

    def target(self, endpoint: Endpoint) -> tuple[str, tuple[tuple[str, str], ...]]:
        """URL and headers of a request, credentials included. The base URL may end in `/v1` or not."""
        base, has_query, query = endpoint.base_url.partition("?")
        base = base.rstrip("/").removesuffix("/messages")
        url = base + ("/messages" if base.endswith("/v1") else "/v1/messages") + (f"?{query}" if has_query else "")
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "user-agent": "bradawl",
            "anthropic-version": self._profile.version,
        }
        headers |= self._credentials(endpoint)
        betas = self._betas(endpoint)
        for name, value in endpoint.headers:
            if name.lower() == "anthropic-beta":
                betas += [beta.strip() for beta in value.split(",") if beta.strip() and beta.strip() not in betas]
            else:
                headers[name.lower()] = value
        if betas:
            headers["anthropic-beta"] = ",".join(betas)
        return url, tuple(headers.items())

    def _credentials(self, endpoint: Endpoint) -> dict[str, str]:
        key = endpoint.api_key
        if not key:
            return {}
        bearer = {"authorization": f"Bearer {key}"}
        if _is_token(endpoint) or self._profile.keys == "bearer":
            return bearer
        return {"x-api-key": key} if self._profile.keys == "x-api-key" else {"x-api-key": key, **bearer}

    def _betas(self, endpoint: Endpoint) -> list[str]:
        betas = [_OAUTH] if endpoint.api_key.startswith("sk-ant-oat") else []
        if self._profile.has_betas:
            family = family_of(endpoint.model)
            if family is not None and family.thinking == "budget" and self._profile.takes_budget:
                betas.append(_INTERLEAVED)
        if self._profile.drops_unbound_thinking:
            betas.append(_BINDING)
        return betas

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """The failure that an error response stands for. Header names are in lower case.

        A refusal of an optional field is retryable at once: the next body leaves it out.
        """
        error = untyped(body.decode("utf-8", "replace"))
        failure = with_code(failure_of_response(status, headers, body, self._now_s()), error)
        if failure.kind == "invalid_request" and status in (400, 422) and self._adapt(failure.message):
            return msgspec.structs.replace(failure, retryable=True, retry_after_s=0.0)
        return failure

    def _adapt(self, message: str) -> bool:
        """Adapt the profile to the server's message; each change is made once."""
        changed = self._profile
        if _UNBOUND.search(message):
            changed = msgspec.structs.replace(changed, drops_unbound_thinking=changed.name == "anthropic")
        elif (found := _TOO_LONG.search(message)) and int(found[1]) in (DEFAULT_LIMIT, UNKNOWN_LIMIT):
            # Only bradawl's own default is corrected; a limit set by the user stays.
            changed = msgspec.structs.replace(changed, max_tokens_limit=max(1, int(found[2])))
        elif (refused := self._downgrade.take(message, _in_question(message))) is not None:
            changed = msgspec.structs.replace(changed, **{_OPTIONAL[refused]: False})
        if changed == self._profile:
            return False
        self._profile = changed
        return True


def _in_question(message: str) -> Collection[str]:
    """The fields that a refusal can be about; within the messages only cache markers can be left out."""
    return ("cache_control",) if message.startswith("messages.") else _OPTIONAL


def _is_token(endpoint: Endpoint) -> bool:
    """True for a credential that only works as a bearer token."""
    return endpoint.api_key.startswith("sk-ant-oat") or endpoint.key_name.endswith("AUTH_TOKEN")
