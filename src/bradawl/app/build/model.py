"""Builds the model of the settings: its HTTP client, the fallback model behind it, and the debug log."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from bradawl.app.model_endpoint import model_endpoint
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import SCRIPTED
from bradawl.app.settings.settings import Settings, debug_folder
from bradawl.core.messages import Origin
from bradawl.core.ports import Clock, Http, Ids, Model, ModelInfo
from bradawl.workspace.machine import SystemClock, SystemIds

if TYPE_CHECKING:
    from bradawl.providers.cooldown import CoolDowns
    from bradawl.providers.debug_log import DebugLog


def build_model(settings: Settings, clock: Clock, ids: Ids, notify: Callable[[str], None] | None = None) -> Model:
    """The model of the settings, with its fallback model if there is one.

    `notify` is called at most once, when the debug log can't be written.
    """
    log = None
    if settings.debug_log:
        from bradawl.providers.debug_log import DebugLog

        log = DebugLog(debug_folder(settings), on_problem=notify)
    if settings.fallback is None:
        return _one_model(settings.model, settings.environment, clock, ids, None, log)
    from bradawl.providers.cooldown import CoolDowns
    from bradawl.providers.fallback import FallbackModel

    cool_downs = CoolDowns()  # both models may be at one host
    models = (settings.model, settings.fallback)
    return FallbackModel([_one_model(each, settings.environment, clock, ids, cool_downs, log) for each in models])


def build_other_model(settings: Settings, chosen: ModelSettings, notify: Callable[[str], None] | None = None) -> Model:
    """Another model than that of the settings, with their fallback model; `notify` as for `build_model`."""
    fallback = settings.fallback
    if fallback is not None and (fallback.provider, fallback.name) == (chosen.provider, chosen.name):
        fallback = None
    settings = msgspec.structs.replace(settings, model=chosen, fallback=fallback)
    return build_model(settings, SystemClock(), SystemIds(), notify)


def _one_model(
    chosen: ModelSettings,
    environment: Mapping[str, str],
    clock: Clock,
    ids: Ids,
    cool_downs: "CoolDowns | None",
    log: "DebugLog | None",
) -> Model:
    """An HTTP model at its provider's endpoint, or a scripted one."""
    if chosen.provider == SCRIPTED:
        from bradawl.testing.scripted import ScriptedModel

        return ScriptedModel(chosen.name, clock=clock, context_window=chosen.context_window)
    from bradawl.providers.client import HttpModel

    endpoint = model_endpoint(chosen, environment)
    origin = Origin(endpoint.codec.api, chosen.provider, chosen.name)
    info = ModelInfo(origin, chosen.context_window, chosen.price, chosen.max_output)
    return HttpModel(endpoint, build_http(chosen.proxy, chosen.ca_file), clock, ids, info, cool_downs, log)


def build_single_model(chosen: ModelSettings, environment: Mapping[str, str]) -> Model:
    """One model without fallback and debug log, for a request outside of sessions."""
    from bradawl.workspace.machine import SystemClock, SystemIds

    return _one_model(chosen, environment, SystemClock(), SystemIds(), None, None)


def build_http(proxy: str | None, ca_file: str | None) -> Http:
    """The small HTTP/1.1 client; with a proxy or a CA file the library that supports them."""
    if proxy is None and ca_file is None:
        from bradawl.providers.http_h11 import DirectHttp

        return DirectHttp()
    from bradawl.providers.http_httpx2 import Httpx2Http

    return Httpx2Http(proxy=proxy, ca_file=ca_file)
