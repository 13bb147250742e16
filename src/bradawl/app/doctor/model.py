"""Checks of the model: its key, whether its endpoint answers and accepts the key, and what the model can do."""

from collections.abc import Mapping, Sequence

from bradawl.app.doctor.check import Check
from bradawl.app.endpoint_check import Verdict, check_list
from bradawl.app.model_list import Connect
from bradawl.app.models_command import models_text
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import SCRIPTED
from bradawl.app.settings.settings import Settings
from bradawl.providers.catalog import Catalog
from bradawl.providers.local_servers import LocalServer

_NEAR = 5


async def model_checks(settings: Settings, environ: Mapping[str, str], connect: Connect) -> list[Check]:
    """The chosen models, the key and the endpoint of the first one."""
    chosen = settings.model
    if chosen.provider == SCRIPTED:
        return [Check("model", "ok", f"the script {chosen.name}")]
    where = f"{chosen.provider}/{chosen.name} at {chosen.base_url} ({chosen.api.replace('_', ' ')})"
    checks = [Check("model", "ok", where)]
    for name, other in (("fallback", settings.fallback), ("small model", settings.small)):
        checks += [Check(name, "ok", f"{other.provider}/{other.name}")] if other is not None else []
    return [*checks, _key_check(chosen), _endpoint_check(await check_list(chosen, environ, connect), chosen)]


def _key_check(chosen: ModelSettings) -> Check:
    if chosen.key_command:
        return Check("key", "ok", "from api_key_command")
    if chosen.key_in_keyring:
        return Check("key", "ok", "from the system keyring")
    return Check("key", "ok", f"from {chosen.key_name}" if chosen.api_key else "none needed")


def _endpoint_check(verdict: Verdict, chosen: ModelSettings) -> Check:
    match verdict.kind:
        case "ok":
            return _listed_check(verdict, chosen.name)
        case "no_list" | "busy":
            return Check("endpoint", "warning", verdict.text)
        case "network":
            hint = "Check the base URL, the network, and that the server runs."
            return Check("endpoint", "problem", verdict.text, hint)
        case "wrong_key":
            text = f"it answers, but does not accept the key: {verdict.text}"
            return Check("endpoint", "problem", text, f"`bradawl login {chosen.provider}` stores another key.")
        case _:
            return Check(
                "endpoint", "problem", verdict.text, f"Check your account at {chosen.provider}, and the base URL."
            )


def _listed_check(verdict: Verdict, model: str) -> Check:
    listed = [str(entry["id"]).removeprefix("models/") for entry in verdict.models]
    names = {name for one in listed for name in (one, one.removesuffix(":latest"))}
    if listed and model not in names:
        near = ", ".join(sorted(listed)[:_NEAR])
        return Check("endpoint", "warning", f"answers, but does not list {model}; it has {near}", "Check `-m`.")
    return Check("endpoint", "ok", f"answers, with {models_text(len(listed))}" if listed else "answers")


def tool_calls_check(chosen: ModelSettings, servers: Sequence[LocalServer]) -> list[Check]:
    """Whether the model can call tools, from its server or from the catalog; nothing for a script."""
    if chosen.provider == SCRIPTED:
        return []
    local = [model for server in servers if server.base_url == chosen.base_url for model in server.models]
    said = next((model.has_tools for model in local if chosen.name in (model.name, *model.aliases)), None)
    source = "its server"
    if said is None:
        catalog, source = Catalog(), "the catalog"
        vendor = catalog.vendor_at(chosen.base_url)
        entry = catalog.look_up(vendor, chosen.name) if vendor else None
        said = None if entry is None or entry.capabilities is None else "tools" in entry.capabilities
    if said is None:
        return [Check("tool calls", "ok", "not known before they are tried")]
    if said:
        return [Check("tool calls", "ok", f"supported, as {source} says")]
    return [Check("tool calls", "warning", f"not supported, as {source} says", "Choose another model with `-m`.")]
