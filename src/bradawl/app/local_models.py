"""Local model servers for the eye: what runs on this machine, and what to type to use it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from bradawl.app.settings.providers import PROVIDERS, Provider, url_of_variable
from bradawl.core.ports import Http
from bradawl.providers.local_server_answers import LocalModel
from bradawl.providers.local_servers import LocalServer, discover

_NAMES: Final = {
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "other": "A model server",
}
_SHOWN: Final = 5


async def find_local(
    http: Http, providers: Mapping[str, Provider], environ: Mapping[str, str]
) -> tuple[LocalServer, ...]:
    """The model servers on this machine, at their usual ports and where providers were moved to; closes `http`.

    Takes a second at most and never fails.
    """
    moved = (
        url_of_variable(name, text)
        for one in providers.values()
        for name in (one.base_url_name, *one.url_names)
        if (text := environ.get(name, "").strip())
    )
    try:
        return await discover(http, [*moved, *(one.base_url for one in providers.values() if one.base_url)])
    finally:
        await http.aclose()


def name_of(server: LocalServer) -> str:
    """What a server calls itself."""
    return _NAMES[server.kind]


def command_for(server: LocalServer, model: LocalModel) -> str:
    """What to type to work with one model."""
    known = PROVIDERS.get(server.kind)
    if known is not None and known.base_url == server.base_url:
        return f"bradawl -m {known.name}/{model.name}"
    provider = known.name if known is not None else "openai"
    return f"bradawl -m {provider}/{model.name} --base-url {server.base_url}"


def suggestions(servers: Iterable[LocalServer]) -> tuple[str, ...]:
    """Lines for somebody who has set up nothing: what runs here already, and what to type; none if nothing does.

    The choice stays the user's: a model that happens to be loaded is seldom the one to trust with a project.
    """
    lines: list[str] = []
    for server in servers:
        if server.problem:
            lines.append(f"{name_of(server)} runs at {server.base_url}. {server.problem}")
        elif not server.models:
            lines.append(f"{name_of(server)} runs at {server.base_url}, but has no models yet.")
        else:
            lines.append(f"{name_of(server)} runs at {server.base_url}. To use it:")
            lines += _commands(server)
    return tuple(lines)


def _commands(server: LocalServer) -> list[str]:
    models = best_first(server.models)
    lines = [f"  {command_for(server, model)}{_remark(model)}" for model in models[:_SHOWN]]
    left = len(models) - len(lines)
    return [*lines, f"  and {left} more"] if left > 0 else lines


def best_first(models: Sequence[LocalModel]) -> list[LocalModel]:
    """Models made for tools before the others, loaded ones before the rest, otherwise as the server lists them."""
    return sorted(models, key=lambda model: (model.has_tools is False, model.context is None))


def _remark(model: LocalModel) -> str:
    remarks: list[str] = []
    if model.has_tools is False:
        remarks.append("not made for tools")
    if model.context is not None:
        remarks.append(f"context of {model.context:,} tokens")
    return f"   ({', '.join(remarks)})" if remarks else ""
