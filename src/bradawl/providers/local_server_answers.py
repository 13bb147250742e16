"""Decodes the answers of local model servers about their models; each server has its own format. Pure.

Sources: the servers' API documentation and source, checked 2026-11-20.
"""

import re
from collections.abc import Mapping
from typing import cast

import msgspec


class LocalModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model a local server offers."""

    name: str
    context: int | None = None
    """Tokens of the loaded context; None if not loaded or unknown."""
    longest: int | None = None
    """Tokens of the longest possible context; None if unknown."""
    has_tools: bool | None = None
    """Whether the model can call tools; None if unknown."""
    aliases: tuple[str, ...] = ()
    """Other names the server accepts for it."""

    def is_called(self, name: str) -> bool:
        """True for one of its names, with or without the tag `latest`."""
        return name in (self.name, *self.aliases) or f"{name}:latest" == self.name


def at(value: object, *path: str) -> object:
    """The value at a path of object keys; None if missing."""
    for key in path:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return value


def items(value: object) -> list[object]:
    """The items of a list; empty for any other value."""
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _length(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def model_list(answer: object) -> tuple[LocalModel, ...]:
    """`GET /v1/models`, which all servers have; vLLM and SGLang include the longest context."""
    return tuple(
        LocalModel(
            name,
            _length(at(entry, "max_model_len")),
            _length(at(entry, "max_model_len")) or _length(at(entry, "meta", "n_ctx_train")),
        )
        for entry in items(at(answer, "data"))
        if (name := _text(at(entry, "id")))
    )


def is_model_list(answer: object) -> bool:
    """True if the answer has the form of a list of models."""
    return isinstance(at(answer, "data"), list) and at(answer, "object") in ("list", None)


def owner_of(answer: object) -> str:
    """The owner field of a list's models, in which servers put their own name."""
    return next((owner for entry in items(at(answer, "data")) if (owner := _text(at(entry, "owned_by")))), "")


def loaded_names(answer: object) -> tuple[str, ...]:
    """Names of the models that a llama.cpp router has loaded; all models of any other server."""
    entries = items(at(answer, "data"))
    return tuple(
        name
        for entry in entries
        if (name := _text(at(entry, "id"))) and at(entry, "status", "value") in (None, "loaded")
    )


def llama_props(answer: object) -> tuple[int | None, bool | None]:
    """llama.cpp's `/props`: tokens of one slot, and whether the chat template supports tools."""
    caps = at(answer, "chat_template_caps", "supports_tools")
    return _length(at(answer, "default_generation_settings", "n_ctx")), caps if isinstance(caps, bool) else None


def lm_studio(answer: object) -> tuple[LocalModel, ...]:
    """LM Studio 0.4 and later: models with loaded instances, whose ids may differ from the model's key."""
    found: list[LocalModel] = []
    for entry in items(at(answer, "models")):
        name = _text(at(entry, "key")) or _text(at(entry, "id"))
        if not name or at(entry, "type") in ("embedding", "embeddings"):
            continue
        loaded = items(at(entry, "loaded_instances"))
        contexts = (_length(at(instance, "config", "context_length")) for instance in loaded)
        tools = at(entry, "capabilities", "trained_for_tool_use")
        found.append(
            LocalModel(
                name,
                next((context for context in contexts if context), None),
                _length(at(entry, "max_context_length")),
                tools if isinstance(tools, bool) else None,
                tuple(alias for instance in loaded if (alias := _text(at(instance, "id")))),
            )
        )
    return tuple(found)


def lm_studio_v0(answer: object) -> tuple[LocalModel, ...]:
    """LM Studio before 0.4."""
    return tuple(
        LocalModel(name, _length(at(entry, "loaded_context_length")), _length(at(entry, "max_context_length")))
        for entry in items(at(answer, "data"))
        if (name := _text(at(entry, "id"))) and at(entry, "type") not in ("embedding", "embeddings")
    )


def ollama_names(answer: object) -> tuple[str, ...]:
    """Ollama's `/api/tags`: the models that have been pulled."""
    names = (_text(at(entry, "name")) or _text(at(entry, "model")) for entry in items(at(answer, "models")))
    return tuple(name for name in names if name)


def ollama_running(answer: object) -> Mapping[str, int]:
    """Ollama's `/api/ps`: the loaded models and their context."""
    running: dict[str, int] = {}
    for entry in items(at(answer, "models")):
        tokens = _length(at(entry, "context_length"))
        for key in ("name", "model"):
            if tokens and (name := _text(at(entry, key))):
                running[name] = tokens
    return running


def ollama_details(name: str, answer: object, running: int | None) -> LocalModel:
    """Ollama's `/api/show`: `num_ctx` is the context it will be loaded with; the model's own length is the maximum."""
    set_tokens = re.search(r"^\s*num_ctx\s+(\d{1,9})\s*$", _text(at(answer, "parameters")), re.MULTILINE)
    info = at(answer, "model_info")
    lengths = cast("dict[str, object]", info).items() if isinstance(info, dict) else ()
    longest = next((_length(value) for key, value in lengths if key.endswith(".context_length")), None)
    capabilities = at(answer, "capabilities")
    has_tools = "tools" in cast("list[object]", capabilities) if isinstance(capabilities, list) else None
    return LocalModel(name, running or (int(set_tokens[1]) if set_tokens else None), longest, has_tools)
