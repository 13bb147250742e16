"""The composition root: the one place where concrete classes of several rooms meet."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bradawl import __version__
from bradawl.agent.agent import Agent
from bradawl.agent.limits import Limits
from bradawl.app.environment import SystemPrompt
from bradawl.app.git_files import read_whole
from bradawl.app.git_status import GitStatus
from bradawl.app.headless import NobodyApprover
from bradawl.app.json_schema import check_for
from bradawl.app.model_settings import ModelSettings
from bradawl.app.own_programs import find_ripgrep, for_key_command, programs_for, search_path
from bradawl.app.policies import Policies
from bradawl.app.providers import PROVIDERS, SCRIPTED
from bradawl.app.settings import NoSandbox, Settings, debug_folder
from bradawl.app.sources import homes
from bradawl.app.system import SystemClock, SystemIds
from bradawl.core.errors import SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin
from bradawl.core.permissions import Sandbox
from bradawl.core.ports import Approver, Clock, Http, Ids, Model, ModelInfo, Tool
from bradawl.core.retry import RetryBudget
from bradawl.safety.git_config import GitConfig
from bradawl.safety.programs import TrustedPrograms, own_places
from bradawl.session.store import LocalStore, project_folder
from bradawl.tools.agent import AgentTool
from bradawl.tools.ask_user import AskUser
from bradawl.tools.bash import Bash
from bradawl.tools.bash_kill import BashKill
from bradawl.tools.bash_output import BashOutput
from bradawl.tools.edit_file import EditFile
from bradawl.tools.glob import Glob
from bradawl.tools.grep import Grep
from bradawl.tools.multi_edit import MultiEdit
from bradawl.tools.read_file import ReadFile
from bradawl.tools.todo_write import TodoWrite
from bradawl.tools.web_fetch import WebFetch
from bradawl.tools.write_file import WriteFile
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses

if TYPE_CHECKING:
    from bradawl.providers.client import Line
    from bradawl.providers.codec import Codec
    from bradawl.providers.compat import CompatProfile
    from bradawl.providers.cooldown import CoolDowns
    from bradawl.providers.deadlines import Deadlines
    from bradawl.providers.debug_log import DebugLog
    from bradawl.providers.keys import KeySource
    from bradawl.safety.sandbox.choice import SandboxChoice
    from bradawl.safety.sandbox.confinement import Layout
    from bradawl.tools.exit_plan import ExitPlan
    from bradawl.tools.web.addresses import PublicAddresses


_WITH_A_USER = RetryBudget(deadline_s=120.0, longest_wait_s=60.0)
"""Who waits at the terminal would rather be told and decide."""


def build_agent(
    settings: Settings,
    approver: Approver | None = None,
    tools: Sequence[Tool[Any]] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Agent:
    """An agent as the settings say. Without an approver whatever would ask is refused.

    `tell` hears what goes wrong beside the work, such as a log that can't be written.
    The agent owns connections and a folder for its shell: `aclose` it. Raises `SettingsError`.
    """
    clock, ids = SystemClock(), SystemIds()
    place = place_of(settings)
    store = LocalStore(settings.home, place.project, clock, ids)
    programs = programs_for(settings.environment, place)
    environment = without_keys(settings.environment, settings.key_names)
    environment["PATH"] = search_path(environment, programs)
    sandbox = choose_sandbox(settings, place, environment, programs)
    held_by = None if sandbox is None else sandbox.confinement
    processes = LocalProcesses(environment, confinement=held_by, programs=programs)
    git = GitConfig(read_whole, environment, settings.user_home)
    status = GitStatus(git, processes, programs.find("git"), place.private)
    found = Sandbox if sandbox is None else lambda: sandbox.sandbox
    scratch = (sandbox.layout.scratch,) if sandbox else ()
    policies = Policies(settings, (*place.roots, *scratch), place.own, place.blobs, found)
    seen = _as_commands_see(sandbox)
    held = None if seen is None else LocalFiles(settings.user_home, seen, only_held=True)
    surroundings = Surroundings(place, git, found, held, programs)
    headless = settings.headless or approver is None
    small = settings.small and msgspec.structs.replace(settings, model=settings.small, fallback=None)
    return Agent(
        model=build_model(settings, clock, ids, tell),
        small_model=build_model(small, clock, ids, tell) if small else None,
        tools=_offered(_tools(settings, surroundings, headless, tell), policies) if tools is None else _distinct(tools),
        store=store,
        files=LocalFiles(settings.user_home, seen),
        processes=processes,
        approver=approver or NobodyApprover(),
        clock=clock,
        ids=ids,
        policy=policies,
        system_prompt=_prompt(settings, place, status, sandbox),
        project=place.project,
        version=__version__,
        limits=Limits(max_steps=settings.max_steps),
        retry=RetryBudget() if settings.headless else _WITH_A_USER,
        params=RequestParams(settings.max_output_tokens, settings.effort, settings.answer_schema),
        check_for=check_for,
        on_close=partial(_close, processes, sandbox),
    )


class Place(NamedTuple):
    """Where the work is done, and what belongs to bradawl itself. Absolute, resolved."""

    project: str
    roots: tuple[str, ...]
    own: tuple[str, ...]
    blobs: str
    cache: str
    """Made when first needed."""
    state: str
    private: str
    """For files of a run that no command may change."""


def place_of(settings: Settings) -> Place:
    """The folders of a workspace."""
    project = os.path.realpath(settings.cwd)
    home = homes(settings.environment, settings.cwd)
    data = os.path.realpath(settings.home)
    folder = str(project_folder(Path(data), project))
    own = tuple(dict.fromkeys((data, os.path.realpath(home.config))))
    blobs, cache, state, private = (str(Path(folder, name)) for name in ("blobs", "cache", "sandbox", "git"))
    return Place(project, (project, *settings.add_dirs), own, blobs, cache, state, private)


def choose_sandbox(
    settings: Settings, place: Place, environment: Mapping[str, str], programs: TrustedPrograms | None = None
) -> "SandboxChoice | None":
    """What will hold commands, not yet looked for; None where nobody wants it. Raises `NoSandbox`."""
    if settings.sandbox == "off":
        return None
    from bradawl.safety.sandbox.choice import SandboxChoice

    choice = SandboxChoice(
        layout_of(settings, place), environment, programs or programs_for(settings.environment, place)
    )
    if settings.sandbox == "required" and not choice.sandbox.name:
        why = "; ".join(choice.why)
        choice.close()
        raise NoSandbox(f"A sandbox is required, and there is none: {why}. `bradawl doctor` says more.")
    return choice


def layout_of(settings: Settings, place: Place) -> "Layout":
    """What a sandbox would show, protect and hide."""
    from bradawl.safety.sandbox.confinement import Layout

    return Layout(
        roots=place.roots,
        home=os.path.realpath(settings.user_home) if settings.user_home else "",
        own=place.own,
        readable=(place.blobs,),
        cache=place.cache,
        state=place.state,
        installation=own_places(place.roots),
        kept_variables=settings.kept_variables,
    )


def look_for_sandbox(settings: Settings) -> Sandbox:
    """What would hold commands here. Waits for it."""
    choice = choose_sandbox(settings, place_of(settings), settings.environment)
    if choice is None:
        return Sandbox()
    try:
        return choice.sandbox
    finally:
        choice.close()


def _close(processes: LocalProcesses, sandbox: "SandboxChoice | None") -> None:
    processes.close()
    if sandbox is not None:
        sandbox.close()


def _as_commands_see(sandbox: "SandboxChoice | None") -> Callable[[str], str] | None:
    """The real path of what commands call so: those in a sandbox have a `/tmp` of their own."""
    if sandbox is None:
        return None

    def real(path: str) -> str:
        held = sandbox.confinement()
        return path if held is None else held.outside(path)

    return real


def _prompt(
    settings: Settings,
    place: Place,
    git: GitStatus,
    sandbox: "SandboxChoice | None",
) -> Callable[[], Awaitable[str]]:
    write = SystemPrompt(
        place.project,
        user_present=not settings.headless,
        is_trusted=settings.is_trusted,
        git=git,
    )
    if sandbox is None:
        return write

    async def write_and_look() -> str:
        sandbox.begin()  # the model takes longer to answer than this to be found out
        return await write()

    return write_and_look


def _offered(tools: tuple[Tool[Any], ...], policies: Policies) -> tuple[Tool[Any], ...]:
    """Without those that are refused whatever they are called with."""
    if not policies.has_rules:
        return tools
    from bradawl.safety.rules import hidden_tools

    hidden = hidden_tools(policies.fixed, [tool.name for tool in tools])
    return tuple(tool for tool in tools if tool.name not in hidden)


class Surroundings(NamedTuple):
    """What tools have to know of where they work."""

    place: Place
    git: GitConfig
    """Knows what git's configuration would start."""
    sandbox: Callable[[], Sandbox]
    """What holds commands."""
    held: LocalFiles | None
    """The machine as commands see it, where that differs."""
    programs: TrustedPrograms
    """Finds what bradawl starts on its own account."""


def _tools(
    settings: Settings, around: Surroundings, headless: bool, tell: Callable[[str], None] | None
) -> tuple[Tool[Any], ...]:
    """Ours, and those the user wrote or installed; what is wrong with one is told, and the rest goes on."""
    own = build_tools(settings, around, headless=headless)
    if not settings.user_tools:
        return own
    from bradawl.extensions.user_tools import site_folders, user_tools

    found = user_tools(Path(settings.home, "tools"), site_folders(), [each.name for each in own])
    if tell is not None:
        for warning in found.warnings:
            tell(warning)
    return (*own, *found.tools)


def _distinct(tools: Sequence[Tool[Any]]) -> tuple[Tool[Any], ...]:
    from bradawl.tools.custom import with_distinct_names

    return with_distinct_names(tools)


def _way_to(settings: Settings, url: str, addresses: "PublicAddresses | None") -> Http:
    """To one address, without following it elsewhere. Raises `HttpError`."""
    from bradawl.app.proxy import proxy_for
    from bradawl.core.http import HttpError
    from bradawl.providers.http_rules import system_trust, trust_in

    ca_file = settings.model.ca_file
    try:
        proxy = proxy_for(url, settings.environment, settings.proxy, "proxy")
    except SettingsError as error:
        raise HttpError("connection", str(error)) from error
    if proxy is not None:
        from bradawl.providers.http_httpx2 import Httpx2Http

        return Httpx2Http(proxy, ca_file, redirects=0)
    from bradawl.providers.http_h11 import DirectHttp

    trust = system_trust if ca_file is None else partial(trust_in, ca_file)
    return DirectHttp(trust, addresses=addresses, redirects=0)


def build_tools(
    settings: Settings | None = None, around: Surroundings | None = None, *, headless: bool = True
) -> tuple[Tool[Any], ...]:
    """The tools a model is offered, in the order it sees them. A tool of your own is one more line here.

    `headless`: nobody is there whom a tool could ask. Without settings there is none that reaches the network, and
    without surroundings none knows of a workspace, of git's configuration or of a sandbox.
    """
    rg = find_ripgrep(around.programs if around else None)
    return (
        _bash(settings, around, user_is_there=not headless) if settings and around else Bash(),
        BashOutput(),
        BashKill(),
        ReadFile(),
        WriteFile(),
        EditFile(),
        MultiEdit(),
        Glob(rg, _own_ignore_file),
        _grep(rg, settings, around),
        AgentTool(),
        TodoWrite(),
        *((WebFetch(partial(_way_to, settings), allow_private=settings.allow_private_fetch),) if settings else ()),
        *(() if headless else (AskUser(),)),
        *_exit_plan(settings, headless=headless),
    )


def _exit_plan(settings: Settings | None, *, headless: bool) -> "tuple[ExitPlan, ...]":
    """The way out of plan mode, where somebody may enter it or the run begins in it."""
    mode = settings.permission_mode if settings else None
    if headless and mode != "plan":
        return ()
    from bradawl.tools.exit_plan import ExitPlan

    if settings is None or not settings.is_mode_fixed or mode is None:
        return (ExitPlan(),)
    return () if mode == "plan" else (ExitPlan((mode,)),)


def _grep(rg: str | None, settings: Settings | None, around: Surroundings | None) -> Grep:
    home, own = settings.user_home if settings else "", around.place.own if around else ()
    return Grep(rg, ignore_file=_own_ignore_file, home=home, own=own)


def _own_ignore_file(root: str) -> str | None:
    from bradawl.workspace.walk import own_ignore_file  # most runs search nothing

    return own_ignore_file(root)


def _bash(settings: Settings, around: Surroundings, *, user_is_there: bool) -> Bash:
    environment = settings.environment
    return Bash(
        home=environment.get("HOME", ""),
        search_path=search_path(environment, around.programs),
        workspace=around.place.roots,
        changeable=around.programs.untrusted,
        git_is_safe=around.git.is_safe,
        resolve=around.held.resolve if around.held else None,
        sandbox=around.sandbox,
        user_is_there=user_is_there,
    )


def without_keys(environment: Mapping[str, str], key_names: Sequence[str] = ()) -> dict[str, str]:
    """The variables commands may see: those that hold providers' keys are none of a model's business."""
    keys = {name for known in PROVIDERS.values() for name in known.key_names}.union(key_names)
    return {name: value for name, value in environment.items() if name not in keys}


def build_model(settings: Settings, clock: Clock, ids: Ids, tell: Callable[[str], None] | None = None) -> Model:
    """The model of the settings, with the one that takes over behind it if there is one.

    `tell` is told, once, when a debug log that was asked for can't be written.
    """
    log = None
    if settings.debug_log:
        from bradawl.providers.debug_log import DebugLog

        log = DebugLog(debug_folder(settings), on_problem=tell)
    if settings.fallback is None:
        return _one_model(settings.model, settings, clock, ids, None, log)
    from bradawl.providers.cooldown import CoolDowns
    from bradawl.providers.fallback import FallbackModel

    cool_downs = CoolDowns()  # both may be at one host
    models = (settings.model, settings.fallback)
    return FallbackModel([_one_model(each, settings, clock, ids, cool_downs, log) for each in models])


def _one_model(
    chosen: ModelSettings,
    settings: Settings,
    clock: Clock,
    ids: Ids,
    cool_downs: "CoolDowns | None",
    log: "DebugLog | None",
) -> Model:
    """The model behind its provider's endpoint, or a scripted one."""
    if chosen.provider == SCRIPTED:
        from bradawl.testing.scripted import ScriptedModel

        return ScriptedModel(chosen.name, clock=clock, context_window=chosen.context_window)
    from bradawl.providers.client import HttpModel

    line = build_line(chosen, settings.environment)
    origin = Origin(line.codec.api, chosen.provider, chosen.name)
    info = ModelInfo(origin, chosen.context_window, chosen.price, chosen.max_output)
    return HttpModel(line, build_http(chosen.proxy, chosen.ca_file), clock, ids, info, cool_downs, log)


def build_line(chosen: ModelSettings, environment: Mapping[str, str]) -> "Line":
    """How a model that is no script is reached: wire format, endpoint, key and patience."""
    from bradawl.providers.client import Line
    from bradawl.providers.codec import Endpoint
    from bradawl.providers.keys import FixedKey

    keys: KeySource = FixedKey(chosen.api_key)
    if chosen.key_command:
        from bradawl.app.keys import CommandKey

        keys = CommandKey(chosen.key_command, chosen.provider, for_key_command(environment))
    endpoint = Endpoint(
        chosen.provider,
        chosen.base_url,
        chosen.name,
        chosen.api_key,
        chosen.headers,
        chosen.key_name,
        chosen.key_origin,
    )
    codec, deadlines = _codec(chosen)
    return Line(codec, endpoint, keys, deadlines)


def _codec(chosen: ModelSettings) -> "tuple[Codec, Deadlines]":
    if chosen.api == "anthropic_messages":
        from bradawl.providers.anthropic_messages import AnthropicMessages
        from bradawl.providers.compat import WAITS
        from bradawl.providers.deadlines import deadlines_for
        from bradawl.providers.messages.profile import messages_profile_for

        own = {name: value for name, value in chosen.compat.items() if name not in WAITS}
        waits = {name: value for name, value in chosen.compat.items() if name in WAITS}
        messages = msgspec.structs.replace(messages_profile_for(chosen.base_url), **own)
        deadlines = msgspec.structs.replace(deadlines_for(chosen.base_url), **waits)
        return AnthropicMessages(chosen.base_url, profile=messages), deadlines
    from bradawl.providers.compat import profile_for

    profile = profile_for(chosen.base_url, chosen.name, chosen.compat)
    if chosen.api == "openai_responses":
        from bradawl.providers.openai_responses import OpenAIResponses

        return OpenAIResponses(chosen.base_url, profile=profile), _deadlines(chosen, profile)
    from bradawl.providers.openai_chat import OpenAIChat

    return OpenAIChat(chosen.base_url, profile=profile), _deadlines(chosen, profile)


def _deadlines(chosen: ModelSettings, profile: "CompatProfile") -> "Deadlines":
    """The user's word where there is one, else the longer of what place and family of the server need."""
    from bradawl.providers.deadlines import deadlines_for

    place = deadlines_for(chosen.base_url)
    said = chosen.compat.keys()
    return msgspec.structs.replace(
        place,
        first_byte_s=profile.first_byte_s if "first_byte_s" in said else max(place.first_byte_s, profile.first_byte_s),
        idle_s=profile.idle_s if "idle_s" in said else max(place.idle_s, profile.idle_s),
        content_s=profile.content_s if "content_s" in said else max(place.content_s, profile.content_s),
    )


def build_http(proxy: str | None, ca_file: str | None) -> Http:
    """The lean way to a server, or the library that also knows proxies and certificates of one's own."""
    if proxy is None and ca_file is None:
        from bradawl.providers.http_h11 import DirectHttp

        return DirectHttp()
    from bradawl.providers.http_httpx2 import Httpx2Http

    return Httpx2Http(proxy=proxy, ca_file=ca_file)
