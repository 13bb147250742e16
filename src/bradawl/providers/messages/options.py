"""The options of a Messages request: output limit, thinking, effort, schema of the answer. Pure."""

import msgspec

from bradawl.core.events import RequestParams
from bradawl.core.ports import ModelInfo
from bradawl.providers.encoding import Json, encode_json
from bradawl.providers.messages.profile import ClaudeFamily, MessagesProfile, effort_word, thinking_budget

DEFAULT_LIMIT = 32_000
"""Default output limit in tokens: enough for a large file, and supported by every Claude since 3.7."""
UNKNOWN_LIMIT = 8_192
"""Output limit in tokens for unknown models; many servers reject a value above the model's maximum."""


class Options(msgspec.Struct, frozen=True):
    """The effort and thinking of a turn, and the fields of one request as JSON without braces."""

    effort: str | None
    budget: int | None
    encoded: bytes


def options(
    params: RequestParams,
    info: ModelInfo,
    family: ClaudeFamily | None,
    profile: MessagesProfile,
    settled: Options | None,
    *,
    may_begin_thinking: bool = True,
) -> Options:
    """The options of a request. Within a turn, effort and thinking are those of `settled`.

    Without `may_begin_thinking` there is no thinking with a budget.
    """
    max_tokens = params.max_output_tokens or default_limit(info, family, profile)
    effort = params.effort if settled is None else settled.effort
    budget = settled.budget if settled is not None else _budget(effort, max_tokens, family)
    budget = budget if may_begin_thinking else None
    fields: Json = {"max_tokens": max_tokens}
    thinking = _thinking(family, profile, effort, budget, max_tokens)
    if thinking is not None:
        if profile.drops_unbound_thinking:
            thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
        fields["thinking"] = thinking
    config = _output_config(params, family, profile, effort)
    if config:
        fields["output_config"] = config
    return Options(effort, budget, encode_json(fields)[1:-1])


def default_limit(info: ModelInfo, family: ClaudeFamily | None, profile: MessagesProfile) -> int:
    """The output limit in tokens, if the user has not set one."""
    known = info.max_output or profile.max_tokens_limit
    if known is not None:
        return min(DEFAULT_LIMIT, known, profile.max_tokens_limit or known)
    return DEFAULT_LIMIT if family is not None or profile.has_claude else UNKNOWN_LIMIT


def _budget(effort: str | None, max_tokens: int, family: ClaudeFamily | None) -> int | None:
    if family is None or family.thinking != "budget" or effort in (None, "none"):
        return None
    return thinking_budget(effort, max_tokens)


def _thinking(
    family: ClaudeFamily | None, profile: MessagesProfile, effort: str | None, budget: int | None, max_tokens: int
) -> Json | None:
    """The API's `thinking` field; None for the server's default or if it is not supported."""
    if family is None or not profile.takes_thinking:
        return None
    style = family.thinking
    if style == "budget":
        if profile.takes_budget:
            return {"type": "enabled", "budget_tokens": budget} if budget and budget < max_tokens else None
        style = "on_request"
    if style == "none" or (style == "on_request" and effort in (None, "none")):
        return None
    if style == "adaptive" and effort == "none":
        return {"type": "disabled"}
    # Newer models think by default, but return their thinking only on request.
    return {"type": "adaptive", "display": "summarized"}


def _output_config(
    params: RequestParams, family: ClaudeFamily | None, profile: MessagesProfile, effort: str | None
) -> Json:
    config: Json = {}
    if effort and profile.takes_effort and (word := _effort(effort, family)) is not None:
        config["effort"] = word
    if params.answer_schema and takes_schema(family, profile):
        config["format"] = {"type": "json_schema", "schema": msgspec.Raw(params.answer_schema.encode())}
    return config


def _effort(effort: str, family: ClaudeFamily | None) -> str | None:
    if family is None:
        return None if effort == "none" else effort  # requested; after a refusal it is left out
    return "low" if effort == "none" and family.thinking == "always" else effort_word(effort, family.efforts)


def takes_schema(family: ClaudeFamily | None, profile: MessagesProfile) -> bool:
    """True if the schema of the answer goes into the request; otherwise it goes into the prompt."""
    return profile.takes_format and (family is not None or profile.has_claude)
