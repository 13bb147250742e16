"""The tables of Messages servers (`MessagesProfile`) and of Claude models (`ClaudeFamily`).

Sources: the vendor's documentation and its published SDK, checked 2026-11-20. The family follows from the name,
so that a later model is treated like the newest one in the table.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from bradawl.providers.hosts import host_of

Keys = Literal["x-api-key", "bearer", "both"]
ThinkingStyle = Literal["none", "budget", "adaptive", "always", "on_request"]
"""`budget`: a number of tokens; `adaptive`: the model decides and it can be turned off; `always`: it can't;
`on_request`: for unknown models, adaptive if an effort is requested."""


class MessagesProfile(msgspec.Struct, frozen=True):
    """The deviations of one server, and the fields it has refused."""

    name: str = "default"
    version: str = "2023-06-01"
    """The `anthropic-version` header. Other vendors support the older one only."""
    keys: Keys = "both"
    """The header of the key; OAuth tokens always use `bearer`."""
    has_claude: bool = False
    """Serves Claude, whatever the model's name: supports cache markers and signatures."""
    has_eager_input: bool = False
    """Supports `eager_input_streaming` of tools."""
    has_betas: bool = False
    """Supports the `anthropic-beta` header."""
    takes_cache_control: bool = True
    takes_thinking: bool = True
    takes_budget: bool = True
    takes_effort: bool = True
    takes_format: bool = True
    max_tokens_limit: int | None = None
    """The highest `max_tokens`, learned from a refusal."""
    drops_unbound_thinking: bool = False
    """Asks the server to drop thinking that belongs to another prefix."""


_ANTHROPIC = MessagesProfile(
    "anthropic", "2026-10-21", "x-api-key", has_claude=True, has_eager_input=True, has_betas=True
)
_PROFILES: tuple[tuple[str, MessagesProfile], ...] = (
    ("api.anthropic.com", _ANTHROPIC),
    ("amazonaws.com", MessagesProfile("bedrock", keys="bearer", has_claude=True)),
    ("api.aws", MessagesProfile("bedrock", keys="bearer", has_claude=True)),
    ("aiplatform.googleapis.com", MessagesProfile("vertex", keys="bearer", has_claude=True)),
    ("services.ai.azure.com", MessagesProfile("foundry", keys="x-api-key", has_claude=True)),
    ("openrouter.ai", MessagesProfile("openrouter", keys="bearer")),
    ("minimax.io", MessagesProfile("minimax", keys="bearer")),
    ("minimaxi.com", MessagesProfile("minimax", keys="bearer")),
)
DEFAULT = MessagesProfile()


def messages_profile_for(base_url: str) -> MessagesProfile:
    """The profile of the host in `base_url`; no URL means Anthropic's own."""
    if not base_url:
        return _ANTHROPIC
    host = host_of(base_url)
    for suffix, profile in _PROFILES:
        if host == suffix or host.endswith("." + suffix):
            return profile
    return DEFAULT


class ClaudeFamily(msgspec.Struct, frozen=True):
    """The options of a generation of models."""

    thinking: ThinkingStyle
    efforts: tuple[str, ...] = ()
    """Values of `output_config.effort` in ascending order; empty if the field is not supported."""


_FIVE = ("low", "medium", "high", "xhigh", "max")
_ALWAYS = ClaudeFamily("always", _FIVE)
_ADAPTIVE = ClaudeFamily("adaptive", _FIVE)
_NO_XHIGH = ClaudeFamily("adaptive", ("low", "medium", "high", "max"))
_BUDGET = ClaudeFamily("budget")
_BUDGET_AND_EFFORT = ClaudeFamily("budget", ("low", "medium", "high"))
_PLAIN = ClaudeFamily("none")
_UNKNOWN = ClaudeFamily("on_request", _FIVE)
_FAMILIES: Mapping[str, tuple[tuple[tuple[int, int], ClaudeFamily], ...]] = MappingProxyType(
    {
        "fable": (((0, 0), _ALWAYS),),
        "mythos": (((0, 0), _ALWAYS),),
        "opus": (
            ((5, 5), _ALWAYS),
            ((4, 7), _ADAPTIVE),
            ((4, 6), _NO_XHIGH),
            ((4, 5), _BUDGET_AND_EFFORT),
            ((4, 0), _BUDGET),
        ),
        "sonnet": (((5, 5), _ALWAYS), ((5, 0), _ADAPTIVE), ((4, 6), _NO_XHIGH), ((3, 7), _BUDGET)),
        "haiku": (((5, 0), _ADAPTIVE), ((4, 5), _BUDGET)),
    }
)
"""By name, newest version first: the first one that is not newer than the model applies."""

_KINDS = "|".join(_FAMILIES)
_NEW_NAME = re.compile(rf"claude-({_KINDS})(?:-(\d{{1,2}})(?!\d))?(?:-(\d{{1,2}})(?!\d))?")
_OLD_NAME = re.compile(rf"claude-(\d{{1,2}})(?:-(\d))?-({_KINDS})")


def family_of(model: str) -> ClaudeFamily | None:
    """The family of a model, by its name in any host's notation; None if it is not a Claude."""
    name = model.lower().replace(".", "-")
    if (found := _NEW_NAME.search(name)) is not None:
        kind, major, minor = found.groups()
    elif (found := _OLD_NAME.search(name)) is not None:
        major, minor, kind = found.groups()
    else:
        return _UNKNOWN if "claude" in name else None
    version = (int(major or 99), int(minor or 0))
    return next((family for oldest, family in _FAMILIES[kind] if version >= oldest), _PLAIN)


_SCALE = ("minimal", *_FIVE)
_BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1_024, "low": 4_096, "medium": 10_000, "high": 16_000, "xhigh": 24_000, "max": 32_000}
)
_LEAST_BUDGET = 1_024
"""The API's minimum, in tokens."""


def effort_word(effort: str, words: tuple[str, ...]) -> str | None:
    """The family's value for an effort: the same, else the next lower one, else the lowest."""
    if not words or effort == "none":
        return None
    if effort in words or effort not in _SCALE:
        return effort
    asked = _SCALE.index(effort)
    return next((word for word in reversed(words) if _SCALE.index(word) <= asked), words[0])


def thinking_budget(effort: str, max_tokens: int) -> int | None:
    """The thinking budget in tokens, which leaves a quarter of the reply for the answer; None if too small."""
    budget = min(_BUDGETS.get(effort, _BUDGETS["medium"]), max_tokens * 3 // 4)
    return budget if budget >= _LEAST_BUDGET else None
