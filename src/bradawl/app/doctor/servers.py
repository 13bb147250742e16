"""Checks of the model servers that run on this machine."""

from collections.abc import Mapping, Sequence
from typing import Final

from bradawl.app.doctor.check import Check
from bradawl.app.local_models import find_local, server_name
from bradawl.app.model_list import Connect
from bradawl.app.settings.load import read_settings
from bradawl.app.settings.providers import PROVIDERS
from bradawl.core.errors import SettingsError
from bradawl.providers.local_servers import LocalServer
from bradawl.safety.name_lists import first_of

_MOST_MODELS: Final = 8
_NO_SERVER: Final = "none of Ollama, LM Studio, llama.cpp, vLLM and SGLang answers on this machine"


def server_checks(servers: Sequence[LocalServer]) -> list[Check]:
    """One for each server that was found."""
    return [_server_check(server) for server in servers] or [Check("local server", "ok", _NO_SERVER)]


async def find_servers(
    connect: Connect, options: Mapping[str, object], environ: Mapping[str, str], cwd: str
) -> tuple[LocalServer, ...]:
    """The servers at their usual ports and at the configured URLs. Raises nothing."""
    try:
        providers = read_settings(options, environ, cwd).given.providers
    except SettingsError:
        providers = PROVIDERS
    return await find_local(connect(None, None), providers, environ)


def _server_check(server: LocalServer) -> Check:
    where = f"{server_name(server)} at {server.base_url}"
    if server.problem:
        return Check("local server", "warning", f"{where}: {server.problem}")
    names = [model.name + (f" ({model.context:,} tokens)" if model.context else "") for model in server.models]
    return Check("local server", "ok", f"{where} answers: {first_of(names, _MOST_MODELS) or 'no models'}")
