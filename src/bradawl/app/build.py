"""The composition root: the one place where concrete classes of several rooms meet."""

import os
from collections.abc import Mapping, Sequence
from shutil import which
from sysconfig import get_path
from typing import Any

from bradawl import __version__
from bradawl.agent.agent import Agent
from bradawl.agent.limits import Limits
from bradawl.app.environment import SystemPrompt
from bradawl.app.headless import NobodyApprover
from bradawl.app.providers import PROVIDERS, SCRIPTED
from bradawl.app.settings import Settings
from bradawl.app.system import SystemClock, SystemIds
from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin
from bradawl.core.permissions import Policy
from bradawl.core.ports import Approver, Clock, Ids, Model, ModelInfo, Tool
from bradawl.session.store import LocalStore
from bradawl.tools.bash import Bash
from bradawl.tools.edit_file import EditFile
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.tools.read_file import ReadFile
from bradawl.tools.write_file import WriteFile
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses


def build_agent(
    settings: Settings, approver: Approver | None = None, tools: Sequence[Tool[Any]] | None = None
) -> Agent:
    """An agent as the settings say. Without an approver whatever would ask is refused.

    It owns connections and a folder for its shell: `aclose` it. Raises `SettingsError`.
    """
    clock, ids = SystemClock(), SystemIds()
    project = os.path.realpath(settings.cwd)
    processes = LocalProcesses(environment=without_keys(settings.environment))
    policy = Policy("bypass" if settings.yolo else "default")
    return Agent(
        model=build_model(settings, clock, ids),
        tools=build_tools() if tools is None else tuple(tools),
        store=LocalStore(settings.home, project, clock, ids),
        files=LocalFiles(home=settings.user_home),
        processes=processes,
        approver=approver or NobodyApprover(),
        clock=clock,
        ids=ids,
        policy=lambda: policy,
        system_prompt=SystemPrompt(project, processes, user_present=not settings.headless),
        project=project,
        version=__version__,
        limits=Limits(max_steps=settings.max_steps),
        params=RequestParams(settings.max_output_tokens, settings.effort),
        on_close=processes.close,
    )


def build_tools() -> tuple[Tool[Any], ...]:
    """The tools a model is offered, in the order it sees them. A tool of your own is one more line here."""
    return (
        Bash(),
        ReadFile(),
        WriteFile(),
        EditFile(),
        Glob(),
        Grep(find_ripgrep()),
    )


def without_keys(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables commands may see: those that hold providers' keys are none of a model's business."""
    keys = {name for known in PROVIDERS.values() for name in known.key_names}
    return {name: value for name, value in environment.items() if name not in keys}


def find_ripgrep() -> str | None:
    """`rg` on the PATH, else the one installed beside this program."""
    return which("rg") or which("rg", path=get_path("scripts"))


def build_model(settings: Settings, clock: Clock, ids: Ids) -> Model:
    """The model behind its provider's endpoint, or a scripted one."""
    chosen = settings.model
    if chosen.provider == SCRIPTED:
        from bradawl.testing.scripted import ScriptedModel

        return ScriptedModel(chosen.name, clock=clock, context_window=chosen.context_window)

    from bradawl.providers.client import HttpModel
    from bradawl.providers.codec import Endpoint
    from bradawl.providers.http_httpx2 import Httpx2Http
    from bradawl.providers.openai_chat import OpenAIChat

    codec = OpenAIChat(chosen.base_url)
    endpoint = Endpoint(chosen.provider, chosen.base_url, chosen.name, chosen.api_key, key_name=chosen.key_name)
    http = Httpx2Http(proxy=chosen.proxy, ca_file=chosen.ca_file)
    info = ModelInfo(Origin(codec.api, chosen.provider, chosen.name), chosen.context_window)
    return HttpModel(codec, endpoint, http, clock, ids, info)
