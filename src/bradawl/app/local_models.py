"""Shows the local model servers that `providers.local_servers` finds, and the commands to use their models."""

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
    """Model servers on this machine: at their usual ports and at the providers' configured URLs. Closes `http`.

    Takes a second at most and raises nothing.
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


def server_name(server: LocalServer) -> str:
    """The product name of a server."""
    return _NAMES[server.kind]


def command_for(server: LocalServer, model: LocalModel) -> str:
    """The command that starts bradawl with one model of a server."""
    known = PROVIDERS.get(server.kind)
    if known is not None and known.base_url == server.base_url:
        return f"bradawl -m {known.name}/{model.name}"
    provider = known.name if known is not None else "openai"
    return f"bradawl -m {provider}/{model.name} --base-url {server.base_url}"


def suggestions(servers: Iterable[LocalServer]) -> tuple[str, ...]:
    """For a user without a configured provider: the servers that run here, and the commands to use their models.

    None of them is chosen by default: a model that happens to be loaded is rarely the right one for a project.
    """
    lines: list[str] = []
    for server in servers:
        if server.problem:
            lines.append(f"{server_name(server)} runs at {server.base_url}. {server.problem}")
        elif not server.models:
            lines.append(f"{server_name(server)} runs at {server.base_url}, but has no models yet.")
        else:
            lines.append(f"{server_name(server)} runs at {server.base_url}. To use it:")
            lines += _commands(server)
    return tuple(lines)


def _commands(server: LocalServer) -> list[str]:
    models = best_first(server.models)
    lines = [f"  {command_for(server, model)}{_remark(model)}" for model in models[:_SHOWN]]
    left = len(models) - len(lines)
    return [*lines, f"  and {left} more"] if left > 0 else lines


def best_first(models: Sequence[LocalModel]) -> list[LocalModel]:
    """Models that support tools first, then loaded ones, otherwise in the server's order."""
    return sorted(models, key=lambda model: (model.has_tools is False, model.context is None))


def _remark(model: LocalModel) -> str:
    remarks: list[str] = []
    if model.has_tools is False:
        remarks.append("not made for tools")
    if model.context is not None:
        remarks.append(f"context of {model.context:,} tokens")
    return f"   ({', '.join(remarks)})" if remarks else ""
