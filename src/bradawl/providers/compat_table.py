"""The table of server quirks: one row per host, local port or model family. `compat` explains the fields.

Sources: the vendors' API documentation, published client code and public issue threads, checked 2026-11-20.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from bradawl.providers.compat import CompatProfile, with_changes
from bradawl.providers.hosts import host_of, is_loopback_host, port_of

_NO_CHANGES: Mapping[str, object] = MappingProxyType({})


class ModelQuirk(NamedTuple):
    """Fields of a profile that differ for the models whose name starts like this."""

    families: tuple[str, ...]
    """Names of profiles it applies to; empty: all."""
    name_start: str
    """In lower case, without or with the vendor in front."""
    fields: Mapping[str, object]


def _words(**words: str) -> Mapping[str, str]:
    return MappingProxyType(words)


_LOW_HIGH_MAX = _words(none="low", minimal="low", medium="high", xhigh="high")
_OFF_OR_LOW_HIGH_MAX = _words(none="", minimal="low", medium="high", xhigh="high")
_LOW_TO_HIGH = _words(none="low", minimal="low", xhigh="high", max="high")
_NONE_TO_HIGH = _words(minimal="low", xhigh="high", max="high")
_UNSIGNED = '{"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}}'
"""Google's documented placeholder for calls that another model made."""

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
"""Hosting services for open models."""
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
"""A server on this machine or in this network. It loads the model at the first request, which takes minutes."""


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
"""For unknown hosts: most are gateways, or private servers with an open model."""

_GROK_DIAL = {"effort_field": "reasoning_effort", "efforts": _NONE_TO_HIGH}
_BY_MODEL = (
    ModelQuirk((), "gpt-oss", {"efforts": _LOW_TO_HIGH}),
    ModelQuirk(("groq", "cerebras"), "gpt-oss", {"effort_field": "reasoning_effort"}),
    ModelQuirk(
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
    ModelQuirk(("groq",), "deepseek-r1", {"reasoning_format": "parsed"}),
    ModelQuirk(("azure",), "mistral", {"max_tokens_field": "max_tokens"}),
    ModelQuirk(("kimi",), "kimi-k2", {"effort_field": "none"}),
    ModelQuirk(("kimi",), "moonshot-v1", {"effort_field": "none", "reasoning_required": False}),
    ModelQuirk(("kimi",), "kimi-k2.5", {"thinking": "type"}),
    ModelQuirk(("kimi",), "kimi-k2.6", {"thinking": "type_keep"}),
    ModelQuirk(("glm",), "glm-5.3", {"efforts": _LOW_HIGH_MAX}),
    ModelQuirk(
        ("xai",),
        "grok-3-mini",
        {**_GROK_DIAL, "efforts": _words(none="low", minimal="low", medium="high", xhigh="high", max="high")},
    ),
    ModelQuirk(("xai",), "grok-4.3", _GROK_DIAL),
    ModelQuirk(("xai",), "grok-4.5", {**_GROK_DIAL, "efforts": _LOW_TO_HIGH}),
    ModelQuirk(
        ("xai",), "grok-4.20-multi-agent", {**_GROK_DIAL, "efforts": _words(none="low", minimal="low", max="xhigh")}
    ),
    ModelQuirk(("openrouter",), "anthropic/", {"cache_control": True}),
)


class CompatTable(NamedTuple):
    """All known deviations of servers of Chat Completions and Responses. The first row that matches a host counts."""

    by_host: tuple[tuple[str, CompatProfile], ...]
    """A host and the profile of its servers; subdomains share it."""
    by_local_port: Mapping[int, CompatProfile]
    """The usual ports of servers on this machine."""
    by_model: tuple[ModelQuirk, ...]
    """Quirks of models; of matching rows the later ones win."""


TABLE = CompatTable(_BY_HOST, _BY_LOCAL_PORT, _BY_MODEL)


def profile_for(
    base_url: str, model: str = "", changes: Mapping[str, object] = _NO_CHANGES, table: CompatTable = TABLE
) -> CompatProfile:
    """The profile of the server at `base_url` for `model`, with the user's own changes.

    Raises `ValueError` with a message for the user if `changes` are not fields of a profile.
    """
    profile = _profile_of_host(host_of(base_url), port_of(base_url), table)
    return with_changes(for_model(profile, model, table), changes)


def _profile_of_host(host: str, port: int | None, table: CompatTable) -> CompatProfile:
    for suffix, profile in table.by_host:
        if host == suffix or host.endswith("." + suffix):
            return profile
    if is_loopback_host(host):
        return table.by_local_port.get(port or 0, _LOCAL)
    return _LOCAL if _is_private(host) else DEFAULT


def for_model(profile: CompatProfile, model: str, table: CompatTable = TABLE) -> CompatProfile:
    """The profile with the quirks of one model; its name may have a vendor and a slash in front."""
    name = model.lower()
    bare = name.rpartition("/")[2]
    changes: dict[str, object] = {}
    for quirk in table.by_model:
        is_family = not quirk.families or profile.name in quirk.families
        if is_family and (name.startswith(quirk.name_start) or bare.startswith(quirk.name_start)):
            changes |= quirk.fields
    return msgspec.structs.replace(profile, **changes) if changes else profile


def _is_private(host: str) -> bool:
    """True for a host in the same network: private IPv4 ranges, and names that exist only there."""
    if host.endswith((".local", ".lan", ".internal")):
        return True
    parts = [int(part) for part in host.split(".") if part.isdecimal() and len(part) <= 3]
    if len(parts) != 4 or host.count(".") != 3:
        return False
    return parts[0] == 10 or parts[:2] == [192, 168] or (parts[0] == 172 and 16 <= parts[1] <= 31)
