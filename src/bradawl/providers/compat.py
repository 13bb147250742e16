"""What servers that speak Chat Completions want differently, as data.

Sources: the vendors' API documentation and published client code, checked 2026-11-20.
A profile says what a server needs; a host nobody knows gets the plainest one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

ReasoningReplay = Literal["never", "with_calls", "always"]
"""In which of its own replies a model wants its reasoning back."""

_SAME: Mapping[str, str] = MappingProxyType({})


class CompatProfile(msgspec.Struct, frozen=True):
    """How one family of servers deviates."""

    name: str = "default"
    max_tokens_field: str = "max_tokens"
    has_stream_options: bool = True
    reasoning: ReasoningReplay = "with_calls"
    reasoning_required: bool = False
    """A reply with calls must carry `reasoning_content`, if only an empty one."""
    takes_effort: bool = True
    efforts: Mapping[str, str] = _SAME
    """Our word for an effort to theirs; words that are not here pass through."""
    call_id: Literal["any", "short", "nine"] = "any"
    """`short`: at most 40 characters; `nine`: exactly nine letters and digits."""
    key_header: Literal["authorization", "api-key"] = "authorization"
    extra: tuple[tuple[str, msgspec.Raw], ...] = ()
    """Fields of every request."""


_LOW_HIGH_MAX = MappingProxyType({"none": "low", "minimal": "low", "medium": "high", "xhigh": "max"})
_TRUE = msgspec.Raw(b"true")

_PROFILES: tuple[tuple[str, CompatProfile], ...] = (
    (
        "api.openai.com",
        CompatProfile("openai", max_tokens_field="max_completion_tokens", reasoning="never", call_id="short"),
    ),
    (
        "openai.azure.com",
        CompatProfile(
            "azure",
            max_tokens_field="max_completion_tokens",
            reasoning="never",
            call_id="short",
            key_header="api-key",
        ),
    ),
    ("api.deepseek.com", CompatProfile("deepseek", efforts=_LOW_HIGH_MAX)),
    ("api.moonshot.ai", CompatProfile("kimi", reasoning="always", reasoning_required=True, efforts=_LOW_HIGH_MAX)),
    ("api.moonshot.cn", CompatProfile("kimi", reasoning="always", reasoning_required=True, efforts=_LOW_HIGH_MAX)),
    ("api.kimi.com", CompatProfile("kimi", reasoning="always", reasoning_required=True, efforts=_LOW_HIGH_MAX)),
    ("aliyuncs.com", CompatProfile("qwen", takes_effort=False)),
    (
        "api.z.ai",
        CompatProfile("glm", has_stream_options=False, efforts=_LOW_HIGH_MAX, extra=(("tool_stream", _TRUE),)),
    ),
    (
        "open.bigmodel.cn",
        CompatProfile("glm", has_stream_options=False, efforts=_LOW_HIGH_MAX, extra=(("tool_stream", _TRUE),)),
    ),
    (
        "api.mistral.ai",
        CompatProfile("mistral", has_stream_options=False, reasoning="always", call_id="nine", takes_effort=False),
    ),
    ("api.x.ai", CompatProfile("xai", reasoning="never", takes_effort=False)),
    ("api.groq.com", CompatProfile("groq", reasoning="never", max_tokens_field="max_completion_tokens")),
    ("openrouter.ai", CompatProfile("openrouter", reasoning="always")),
    ("generativelanguage.googleapis.com", CompatProfile("gemini", reasoning="never")),
    ("api.cerebras.ai", CompatProfile("cerebras", reasoning="never", max_tokens_field="max_completion_tokens")),
)

DEFAULT = CompatProfile()


def profile_for(base_url: str) -> CompatProfile:
    """The profile of the host in `base_url`; subdomains share it."""
    host = host_of(base_url)
    for suffix, profile in _PROFILES:
        if host == suffix or host.endswith("." + suffix):
            return profile
    return DEFAULT


def host_of(url: str) -> str:
    """The host of a URL in lower case, without port, user and brackets; empty if there is none."""
    _, has_scheme, rest = url.partition("://")
    if not has_scheme:
        return ""
    for end in "/?#":
        rest = rest.partition(end)[0]
    authority = rest.rpartition("@")[2].lower()
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    return authority.partition(":")[0]


def is_loopback(url: str) -> bool:
    """True when the server runs on this machine."""
    host = host_of(url)
    return host in ("localhost", "::1") or host.endswith(".localhost") or _is_loopback_ipv4(host)


def _is_loopback_ipv4(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(part.isdecimal() for part in parts)
