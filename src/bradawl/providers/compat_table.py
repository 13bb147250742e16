"""The servers and models whose ways are known. Data; see `compat` for what the fields mean.

Sources: the vendors' API documentation, published client code and public issue threads, checked 2026-11-20.
"""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from bradawl.providers.compat import CompatProfile, with_changes
from bradawl.providers.hosts import host_of, is_loopback_host, port_of

_NO_CHANGES: Mapping[str, object] = MappingProxyType({})


def _words(**words: str) -> Mapping[str, str]:
    return MappingProxyType(words)


_LOW_HIGH_MAX = _words(none="low", minimal="low", medium="high", xhigh="high")
_OFF_OR_LOW_HIGH_MAX = _words(none="", minimal="low", medium="high", xhigh="high")
_LOW_TO_HIGH = _words(none="low", minimal="low", xhigh="high", max="high")
_NONE_TO_HIGH = _words(minimal="low", xhigh="high", max="high")
_UNSIGNED = '{"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}}'
"""Google's own word for calls that another model made."""

_OPENAI = CompatProfile(
    "openai",
    max_tokens_field="max_completion_tokens",
    reasoning="never",
    call_id="short",
    strict=True,
    cache_key=True,
)
_AZURE = msgspec.structs.replace(_OPENAI, name="azure", key_header="api-key", documents=False)
_DEEPSEEK = CompatProfile(
    "deepseek",
    efforts=_OFF_OR_LOW_HIGH_MAX,
    thinking="type",
    reasoning_required=True,
    images=False,
    documents=False,
    answers="json_object",
)
_KIMI = CompatProfile(
    "kimi",
    reasoning="always",
    reasoning_required=True,
    efforts=_LOW_HIGH_MAX,
    documents=False,
    typed_schemas=True,
    cache_key=True,
)
_GLM = CompatProfile(
    "glm",
    stream_options=False,
    efforts=_OFF_OR_LOW_HIGH_MAX,
    thinking="type_clear",
    reasoning="always",
    documents=False,
    answers="json_object",
    tool_stream=True,
    idle_s=600.0,
)
_MINIMAX = CompatProfile("minimax", reasoning="always", effort_field="none", inline_thinking=True, documents=False)
_CEREBRAS = CompatProfile(
    "cerebras",
    max_tokens_field="max_completion_tokens",
    reasoning="never",
    effort_field="none",
    images=False,
    documents=False,
    strict=True,
    inline_thinking=True,
)
_HOSTED_OPEN = CompatProfile(
    "hosted", efforts=_NONE_TO_HIGH, documents=False, answers_with_tools=False, text_calls=True, inline_thinking=True
)
"""Those who run open models for others."""
_LOCAL = CompatProfile(
    "local",
    efforts=_NONE_TO_HIGH,
    thinking="template",
    documents=False,
    answers_with_tools=False,
    text_calls=True,
    inline_thinking=True,
    first_byte_s=600.0,
    idle_s=600.0,
)
"""A server on this machine or in this network. It loads a model at its first request: minutes of silence."""


def _named(profile: CompatProfile, name: str) -> CompatProfile:
    return msgspec.structs.replace(profile, name=name)


_BY_HOST: tuple[tuple[str, CompatProfile], ...] = (
    ("api.openai.com", _OPENAI),
    ("openai.azure.com", _AZURE),
    ("cognitiveservices.azure.com", _AZURE),
    ("services.ai.azure.com", _AZURE),
    ("api.deepseek.com", _DEEPSEEK),
    ("api.moonshot.ai", _KIMI),
    ("api.moonshot.cn", _KIMI),
    ("api.kimi.com", _KIMI),
    (
        "aliyuncs.com",
        CompatProfile("qwen", effort_field="none", thinking="enable_thinking", documents=False, answers="json_object"),
    ),
    ("api.z.ai", _GLM),
    ("open.bigmodel.cn", _GLM),
    ("api.minimax.io", _MINIMAX),
    ("api.minimaxi.com", _MINIMAX),
    (
        "api.mistral.ai",
        CompatProfile(
            "mistral",
            stream_options=False,
            reasoning="always",
            effort_field="none",
            call_id="nine",
            result_names=True,
            assistant_after_results=True,
            documents=False,
            strict=True,
        ),
    ),
    ("api.x.ai", CompatProfile("xai", reasoning="never", effort_field="none", documents=False, strict=True)),
    (
        "api.groq.com",
        CompatProfile(
            "groq",
            reasoning="never",
            effort_field="none",
            max_tokens_field="max_completion_tokens",
            documents=False,
            answers_with_tools=False,
        ),
    ),
    (
        "openrouter.ai",
        CompatProfile(
            "openrouter",
            reasoning="always",
            signed_reasoning=True,
            effort_field="reasoning",
            efforts=_words(max="xhigh"),
            strict=True,
            inline_thinking=True,
        ),
    ),
    (
        "generativelanguage.googleapis.com",
        CompatProfile(
            "gemini",
            reasoning="never",
            efforts=_NONE_TO_HIGH,
            unsigned_calls=_UNSIGNED,
            documents=False,
            answers_with_tools=False,
        ),
    ),
    ("api.cerebras.ai", _CEREBRAS),
    ("api.fireworks.ai", _named(_HOSTED_OPEN, "fireworks")),
    ("api.together.xyz", _named(_HOSTED_OPEN, "together")),
    ("api.together.ai", _named(_HOSTED_OPEN, "together")),
    ("router.huggingface.co", _named(_HOSTED_OPEN, "huggingface")),
)

_BY_LOCAL_PORT: Mapping[int, CompatProfile] = MappingProxyType(
    {
        11434: msgspec.structs.replace(_LOCAL, name="ollama", thinking="none"),
        1234: msgspec.structs.replace(_LOCAL, name="lmstudio", thinking="none"),
        8080: _named(_LOCAL, "llamacpp"),
        8000: _named(_LOCAL, "vllm"),
        30000: _named(_LOCAL, "sglang"),
    }
)

DEFAULT = CompatProfile(text_calls=True, inline_thinking=True)
"""A host nobody knows is most likely a gateway, or somebody's own server with an open model."""

_GROK_DIAL = {"effort_field": "reasoning_effort", "efforts": _NONE_TO_HIGH}
_BY_MODEL: tuple[tuple[tuple[str, ...], str, Mapping[str, object]], ...] = (
    ((), "gpt-oss", {"efforts": _LOW_TO_HIGH}),
    (("groq", "cerebras"), "gpt-oss", {"effort_field": "reasoning_effort"}),
    (
        ("groq",),
        "qwen3",
        {
            "effort_field": "reasoning_effort",
            "efforts": _words(
                minimal="default", low="default", medium="default", high="default", xhigh="default", max="default"
            ),
            "reasoning_format": "parsed",
        },
    ),
    (("groq",), "deepseek-r1", {"reasoning_format": "parsed"}),
    (("azure",), "mistral", {"max_tokens_field": "max_tokens"}),
    (("kimi",), "kimi-k2", {"effort_field": "none"}),
    (("kimi",), "moonshot-v1", {"effort_field": "none", "reasoning_required": False}),
    (("kimi",), "kimi-k2.5", {"thinking": "type"}),
    (("kimi",), "kimi-k2.6", {"thinking": "type_keep"}),
    (("glm",), "glm-5.3", {"efforts": _LOW_HIGH_MAX}),
    (
        ("xai",),
        "grok-3-mini",
        {**_GROK_DIAL, "efforts": _words(none="low", minimal="low", medium="high", xhigh="high", max="high")},
    ),
    (("xai",), "grok-4.3", _GROK_DIAL),
    (("xai",), "grok-4.5", {**_GROK_DIAL, "efforts": _LOW_TO_HIGH}),
    (("xai",), "grok-4.20-multi-agent", {**_GROK_DIAL, "efforts": _words(none="low", minimal="low", max="xhigh")}),
    (("openrouter",), "anthropic/", {"cache_control": True}),
)
"""Families (all, when none is named), how the model's name begins (behind a vendor and a slash, or with
them), and what is different. Later rows win."""


def profile_for(base_url: str, model: str = "", changes: Mapping[str, object] = _NO_CHANGES) -> CompatProfile:
    """The profile of the server at `base_url` for `model`, with what the user knows better.

    Subdomains share their host's. Raises `ValueError`, in words for the user, for changes that are none.
    """
    profile = profile_of_host(host_of(base_url), port_of(base_url))
    return with_changes(for_model(profile, model), changes)


def profile_of_host(host: str, port: int | None) -> CompatProfile:
    """What is known about the server at a host."""
    for suffix, profile in _BY_HOST:
        if host == suffix or host.endswith("." + suffix):
            return profile
    if is_loopback_host(host):
        return _BY_LOCAL_PORT.get(port or 0, _LOCAL)
    return _LOCAL if _is_near(host) else DEFAULT


def for_model(profile: CompatProfile, model: str) -> CompatProfile:
    """The profile with what is different about one model."""
    name = model.lower()
    bare = name.rpartition("/")[2]
    changes: dict[str, object] = {}
    for families, beginning, fields in _BY_MODEL:
        if (not families or profile.name in families) and (name.startswith(beginning) or bare.startswith(beginning)):
            changes |= fields
    return msgspec.structs.replace(profile, **changes) if changes else profile


def _is_near(host: str) -> bool:
    """A machine in the same network: private IPv4 ranges and names that only exist there."""
    if host.endswith((".local", ".lan", ".internal")):
        return True
    parts = [int(part) for part in host.split(".") if part.isdecimal() and len(part) <= 3]
    if len(parts) != 4 or host.count(".") != 3:
        return False
    return parts[0] == 10 or parts[:2] == [192, 168] or (parts[0] == 172 and 16 <= parts[1] <= 31)
