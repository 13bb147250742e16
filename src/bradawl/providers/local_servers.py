"""Finds model servers on this machine, lists their models and the context lengths they have loaded."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal
from urllib.parse import quote

import msgspec

from bradawl.core.arguments import is_object
from bradawl.core.http import HttpError, HttpRequest
from bradawl.core.ports import Http
from bradawl.providers.hosts import is_loopback
from bradawl.providers.local_server_answers import (
    LocalModel,
    is_model_list,
    llama_props,
    lm_studio,
    lm_studio_v0,
    loaded_names,
    model_list,
    ollama_details,
    ollama_names,
    ollama_running,
    owner_of,
)

_LIMIT_S = 1.0
_PROBE_S = 0.3
_ANSWER_S = 0.2
"""Limit of one request, so that a hanging path leaves time for the others."""
_BODY_LIMIT = 4 * 1024 * 1024
_DETAILED_MODELS = 12
"""The greatest number of models to query for details, at one request each."""

ServerKind = Literal["ollama", "lmstudio", "llamacpp", "vllm", "sglang", "other"]
DEFAULT_PORTS: Mapping[int, ServerKind] = {
    11434: "ollama",
    1234: "lmstudio",
    8080: "llamacpp",
    8000: "vllm",
    30000: "sglang",
}
_OWNERS: Mapping[str, ServerKind] = {
    "library": "ollama",
    "organization_owner": "lmstudio",
    "llamacpp": "llamacpp",
    "vllm": "vllm",
    "sglang": "sglang",
}


class LocalServer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model server that answered."""

    kind: ServerKind
    base_url: str
    """With `/v1`, as in settings."""
    models: tuple[LocalModel, ...] = ()
    problem: str = ""
    """Why its models could not be listed."""


async def discover(http: Http, also: Sequence[str] = ()) -> tuple[LocalServer, ...]:
    """The model servers at the usual ports of this machine, and at those URLs in `also` that are on this machine.

    All are asked concurrently. Takes a second at most, never fails, and loads no model.
    """
    urls = dict.fromkeys([f"http://127.0.0.1:{port}/v1" for port in DEFAULT_PORTS])
    urls |= dict.fromkeys(url.partition("?")[0].rstrip("/") for url in also if is_loopback(url))
    found: dict[str, LocalServer] = {}

    async def ask(url: str) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIMIT_S):
                await _Server(http, url).describe(lambda server: found.__setitem__(url, server))

    async with asyncio.TaskGroup() as group:
        for url in urls:
            group.create_task(ask(url))
    return tuple(found[url] for url in urls if url in found)


async def running_context(http: Http, base_url: str, model: str) -> int | None:
    """The context, in tokens, with which a local server has loaded `model`; None if unknown.

    Takes a second at most and never fails. Servers on other machines are not asked.
    """
    if not is_loopback(base_url):
        return None
    server = _Server(http, base_url.partition("?")[0].rstrip("/"), _ANSWER_S)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LIMIT_S):
            return await server.running(model)
    return None


class _Server:
    """Queries to one server; None where it does not answer."""

    def __init__(self, http: Http, base_url: str, patience_s: float = _LIMIT_S) -> None:
        self._http = http
        self._patience_s = patience_s
        self._base_url = base_url
        self._root = base_url.removesuffix("/v1")
        self._status = 0
        self._software = ""

    # -------------------------------------------------------------- one model

    async def running(self, model: str) -> int | None:
        # Sequentially: a second connection would cost more than it saves.
        for path, read in _LISTS:
            answer = await self._get(path)
            found = [one.context for one in read(answer) if one.is_called(model) and one.context]
            if found:
                return found[0]
            if path == "/v1/models" and (tokens := (await self._llama(model))[0]) is not None:
                return tokens
        running = ollama_running(await self._get("/api/ps"))
        details = await self._show(model, running.get(model) or running.get(f"{model}:latest"))
        return details.context

    # -------------------------------------------------------------- all models

    async def describe(self, report: Callable[[LocalServer], None]) -> None:
        """Report the server, and again with details of its models."""
        answer = await self._get("/v1/models")
        if self._status in (401, 403):
            report(LocalServer("other", self._base_url, problem="It wants a key."))
            return
        if not is_model_list(answer):
            if self._status == 503:
                report(LocalServer("llamacpp", self._base_url, problem="It is still loading its model."))
            return
        listed = model_list(answer)
        kind = await self._kind(answer)
        report(LocalServer(kind, self._base_url, listed))
        if detailed := await self._details(kind, answer):
            report(LocalServer(kind, self._base_url, detailed))

    async def _kind(self, answer: object) -> ServerKind:
        owner = _OWNERS.get(owner_of(answer))
        if owner is not None or "llama.cpp" in self._software:
            return owner or "llamacpp"
        # The list of a server without models does not identify it.
        if _has_models(await self._get("/api/tags")):
            return "ollama"
        return "lmstudio" if _has_models(await self._get("/api/v1/models")) else "other"

    async def _details(self, kind: ServerKind, answer: object) -> tuple[LocalModel, ...]:
        match kind:
            case "ollama":
                return await self._ollama()
            case "lmstudio":
                return lm_studio(await self._get("/api/v1/models")) or lm_studio_v0(await self._get("/api/v0/models"))
            case "llamacpp":
                return await self._llama_models(answer)
            case _:
                return ()

    async def _ollama(self) -> tuple[LocalModel, ...]:
        names = ollama_names(await self._get("/api/tags"))
        running = ollama_running(await self._get("/api/ps"))
        detailed: dict[str, LocalModel] = {}

        async def ask(name: str) -> None:
            detailed[name] = await self._show(name, running.get(name))

        async with asyncio.TaskGroup() as group:
            for name in sorted(names, key=lambda name: name not in running)[:_DETAILED_MODELS]:
                group.create_task(ask(name))
        return tuple(detailed.get(name) or LocalModel(name, running.get(name)) for name in names)

    async def _llama_models(self, answer: object) -> tuple[LocalModel, ...]:
        loaded = loaded_names(answer)
        models: list[LocalModel] = []
        for model in model_list(answer):
            tokens, has_tools = await self._llama(model.name) if model.name in loaded else (None, None)
            models.append(msgspec.structs.replace(model, context=tokens, has_tools=has_tools))
        return tuple(models)

    # -------------------------------------------------------------- questions

    async def _llama(self, model: str) -> tuple[int | None, bool | None]:
        """Without `autoload=false` the query makes a router load the model."""
        return llama_props(await self._get(f"/props?model={quote(model, safe='')}&autoload=false"))

    async def _show(self, model: str, running: int | None) -> LocalModel:
        body = json.dumps({"model": model}).encode()
        return ollama_details(model, await self._ask("POST", "/api/show", body), running)

    async def _get(self, path: str) -> object:
        return await self._ask("GET", path)

    async def _ask(self, method: Literal["GET", "POST"], path: str, body: bytes = b"") -> object:
        headers = (("accept", "application/json"), *((("content-type", "application/json"),) if body else ()))
        pieces = (body,) if body else ()
        request = HttpRequest(method, self._root + path, headers, pieces, _PROBE_S, self._patience_s)
        answer = bytearray()
        try:
            async with self._http.stream(request) as response:
                self._status = response.status
                self._software = response.headers.get("server", "").lower()
                async for chunk in response.chunks():
                    answer += chunk
                    if len(answer) > _BODY_LIMIT:
                        return None
            return json.loads(answer) if response.status == 200 else None
        except (HttpError, ValueError, RecursionError):
            return None


_LISTS: tuple[tuple[str, Callable[[object], tuple[LocalModel, ...]]], ...] = (
    ("/v1/models", model_list),
    ("/api/v1/models", lm_studio),
    ("/api/v0/models", lm_studio_v0),
)


def _has_models(answer: object) -> bool:
    """A list of models as Ollama and LM Studio give it at their own paths; other servers may answer at any path."""
    return is_object(answer) and isinstance(answer.get("models"), list)
