"""Asks a model server on this machine for the context length it really runs with."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import cast
from urllib.parse import quote

from bradawl.core.ports import Http, HttpError, HttpRequest
from bradawl.providers.compat import is_loopback

_LIMIT_S = 1.0
_PROBE_S = 0.2
_BODY_LIMIT = 4 * 1024 * 1024

_Reader = Callable[[object, str], int | None]


async def running_context(http: Http, base_url: str, model: str) -> int | None:
    """Tokens of context the server at `base_url` has loaded `model` with, or None if nobody says.

    Takes a second at most and never fails. Servers elsewhere are not asked.
    """
    if not is_loopback(base_url):
        return None
    root = base_url.partition("?")[0].rstrip("/").removesuffix("/v1")
    probes: tuple[tuple[str, _Reader], ...] = (
        ("/v1/models", _of_model_list),
        (f"/props?model={quote(model, safe='')}&autoload=false", _of_props),
        ("/api/v1/models", _of_lm_studio),
        ("/api/v0/models", _of_lm_studio_v0),
        ("/api/ps", _of_ollama),
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(_LIMIT_S):
            # One after the other: a second connection would cost more than the few answers.
            for path, read in probes:
                if (tokens := await _ask(http, root + path, read, model)) is not None:
                    return tokens
    return None


async def _ask(http: Http, url: str, read: _Reader, model: str) -> int | None:
    request = HttpRequest("GET", url, (), connect_timeout_s=_PROBE_S, idle_timeout_s=_PROBE_S)
    body = bytearray()
    try:
        async with http.stream(request) as response:
            if response.status != 200:
                return None
            async for chunk in response.chunks():
                body += chunk
                if len(body) > _BODY_LIMIT:
                    return None
        return read(json.loads(body), model)
    except (HttpError, ValueError, RecursionError):
        return None


def _at(value: object, *path: str) -> object:
    for key in path:
        value = cast("dict[str, object]", value).get(key) if isinstance(value, dict) else None
    return value


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _length(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _of_model_list(answer: object, model: str) -> int | None:
    """vLLM and SGLang."""
    entries = [entry for entry in _items(_at(answer, "data")) if _at(entry, "id") == model]
    return next((length for entry in entries if (length := _length(_at(entry, "max_model_len")))), None)


def _of_props(answer: object, _model: str) -> int | None:
    """llama.cpp: the length of one slot."""
    return _length(_at(answer, "default_generation_settings", "n_ctx"))


def _of_lm_studio(answer: object, model: str) -> int | None:
    """LM Studio from 0.4: the loaded instance, whose id may differ from the model's key."""
    for entry in _items(_at(answer, "models")):
        for instance in _items(_at(entry, "loaded_instances")):
            if model in (_at(entry, "key"), _at(entry, "id"), _at(instance, "id")):
                return _length(_at(instance, "config", "context_length"))
    return None


def _of_lm_studio_v0(answer: object, model: str) -> int | None:
    entries = [entry for entry in _items(_at(answer, "data")) if _at(entry, "id") == model]
    return next((length for entry in entries if (length := _length(_at(entry, "loaded_context_length")))), None)


def _of_ollama(answer: object, model: str) -> int | None:
    """Ollama lists what is loaded; a name without a tag means `latest`."""
    names = (model, model if ":" in model else f"{model}:latest")
    for entry in _items(_at(answer, "models")):
        if _at(entry, "name") in names or _at(entry, "model") in names:
            return _length(_at(entry, "context_length"))
    return None
