"""The composition root: the one place where concrete classes of several rooms meet."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from bradawl._version import __version__
from bradawl.agent.agent import Agent
from bradawl.agent.limits import Limits
from bradawl.app.environment import SystemPrompt
from bradawl.app.git_files import read_whole
from bradawl.app.git_status import GitStatus
from bradawl.app.headless import NobodyApprover
from bradawl.app.json_schema import check_for
from bradawl.app.model_line import build_line
from bradawl.app.model_settings import ModelSettings
from bradawl.app.own_programs import find_ripgrep, programs_for, search_path
from bradawl.app.policies import Policies
from bradawl.app.providers import PROVIDERS, SCRIPTED
from bradawl.app.settings import NoSandbox, Settings, debug_folder
from bradawl.app.sources import homes
from bradawl.app.system import SystemClock, SystemIds, home_in
from bradawl.app.values import utf8_path_in
from bradawl.core.errors import SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.messages import Origin
from bradawl.core.permissions import Sandbox
from bradawl.core.ports import Approver, Clock, Http, Ids, Model, ModelInfo, Tool
from bradawl.core.retry import RetryBudget
from bradawl.safety.git.config import GitConfig
from bradawl.safety.trusted_programs import TrustedPrograms, installation_paths
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
    from bradawl.providers.cooldown import CoolDowns
    from bradawl.providers.debug_log import DebugLog
    from bradawl.sandbox.backend import Layout
    from bradawl.sandbox.selection import SandboxChoice
    from bradawl.tools.exit_plan import ExitPlan
    from bradawl.tools.web.addresses import PublicAddresses


_WITH_A_USER = RetryBudget(deadline_s=120.0, longest_wait_s=60.0)
"""Who waits at the terminal would rather be told and decide."""


def build_agent(
    settings: Settings,
    approver: Approver | None = None,
    tools: Sequence[Tool[Any]] | None = None,
    tell: Callable[[str], None] | None = None,
    *,
    extra_tools: Sequence[Tool[Any]] = (),
) -> Agent:
    """An agent as the settings say. Without an approver whatever would ask is refused.

    `extra_tools` are offered besides bradawl's own and the user's. `tools` is the exact list instead of those; a tool
    of bradawl in it is told about the workspace and the home folder where its maker did not.
    `tell` hears what goes wrong beside the work, such as a log that can't be written.
    The agent owns connections and a folder for its shell: `aclose` it. Raises `SettingsError`.
    """
    clock, ids = SystemClock(), SystemIds()
    settings = _with_home(settings)
    place = place_of(settings)
    store = LocalStore(settings.home, place.project, clock, ids)
    programs = programs_for(settings.environment, place)
    environment = without_keys(settings.environment, settings.key_names)
    environment["PATH"] = search_path(environment, programs)
    sandbox = choose_sandbox(settings, place, environment, programs)
    held_by = None if sandbox is None else sandbox.confinement
    processes = LocalProcesses(environment, confinement=held_by, programs=programs, roots=place.roots)
    git = GitConfig(read_whole, environment, settings.user_home)
    status = GitStatus(git, processes, programs.find("git"), place.private)
    found = Sandbox if sandbox is None else lambda: sandbox.sandbox
    scratch = (sandbox.layout.scratch,) if sandbox else ()
    policies = Policies(settings, (*place.roots, *scratch), place.own, place.blobs, found)
    seen = _as_commands_see(sandbox)
    held = None if seen is None else LocalFiles(settings.user_home, seen, only_held=True)
    surroundings = ShellContext(place, git, found, held, programs)
    headless = settings.headless or approver is None
    if tools is None:
        offered = _offered(_tools(settings, surroundings, headless, tell), policies)
    else:
        offered = _given_tools(settings, surroundings, tools, headless=headless)
    small = settings.small and msgspec.structs.replace(settings, model=settings.small, fallback=None)
    return Agent(
        model=build_model(settings, clock, ids, tell),
        small_model=build_model(small, clock, ids, tell) if small else None,
        tools=offered if tools is None and not extra_tools else _distinct((*offered, *extra_tools)),
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
    """The folders of a workspace. Raises `SettingsError` for one whose name is not UTF-8."""
    project = utf8_path_in(os.path.realpath(settings.cwd), "The working directory")
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
    from bradawl.sandbox.selection import SandboxChoice

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
    from bradawl.sandbox.backend import Layout

    return Layout(
        roots=place.roots,
        home=os.path.realpath(settings.user_home) if settings.user_home else "",
        own=place.own,
        readable=(place.blobs,),
        cache=place.cache,
        state=place.state,
        installation=installation_paths(place.roots),
        kept_variables=settings.kept_variables,
    )


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
    from bradawl.safety.permissions.rules import hidden_tools

    hidden = hidden_tools(policies.fixed, [tool.name for tool in tools])
    return tuple(tool for tool in tools if tool.name not in hidden)


def _with_home(settings: Settings) -> Settings:
    """Settings that name the home folder by its real path: their own, that of the environment, or the database's."""
    if (named := settings.environment.get("HOME", "")) and not named.startswith("/"):
        raise SettingsError(
            f"HOME is {named!r}, which is no absolute path: programs would take it for several folders."
        )
    home = settings.user_home or home_in(settings.environment)
    return msgspec.structs.replace(settings, user_home=os.path.realpath(home) if home else "")


class ShellContext(NamedTuple):
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
    settings: Settings, around: ShellContext, headless: bool, tell: Callable[[str], None] | None
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


def _given_tools(
    settings: Settings, around: ShellContext, tools: Sequence[Tool[Any]], *, headless: bool
) -> tuple[Tool[Any], ...]:
    """Exactly these, of which bradawl's own know where they work."""
    return tuple(_placed(tool, settings, around, user_is_there=not headless) for tool in tools)


def _placed(tool: Tool[Any], settings: Settings, around: ShellContext, *, user_is_there: bool) -> Tool[Any]:
    if isinstance(tool, Bash) and not tool.workspace:
        own = _bash(settings, around, user_is_there=user_is_there)
        return msgspec.structs.replace(tool, **{name: getattr(own, name) for name in _OF_THE_PLACE})
    return tool


_OF_THE_PLACE = (
    *("home", "search_path", "workspace", "changeable", "git_is_safe", "git_reads", "resolve", "sandbox"),
    *("own", "environment"),
    "user_is_there",
)


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
    settings: Settings | None = None, around: ShellContext | None = None, *, headless: bool = True
) -> tuple[Tool[Any], ...]:
    """The tools a model is offered, in the order it sees them. A tool of your own is one more line here.

    `headless`: nobody is there whom a tool could ask. Without settings there is none that reaches the network, and
    home folder and PATH are those of this process. Without surroundings none knows of a workspace, of git's
    configuration or of a sandbox; `build_agent` tells them.
    """
    rg = find_ripgrep(around.programs if around else None)
    return (
        _bash(settings, around, user_is_there=not headless) if settings and around else _bash_anywhere(settings),
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


def _grep(rg: str | None, settings: Settings | None, around: ShellContext | None) -> Grep:
    home = (settings.user_home if settings else "") or home_in(settings.environment if settings else os.environ)
    own = around.place.own if around else ()
    return Grep(rg, ignore_file=_own_ignore_file, home=home, own=own)


def _own_ignore_file(root: str) -> str | None:
    from bradawl.workspace.walk import own_ignore_file  # most runs search nothing

    return own_ignore_file(root)


def _bash(settings: Settings, around: ShellContext, *, user_is_there: bool) -> Bash:
    environment = settings.environment
    return Bash(
        home=environment.get("HOME", "") or settings.user_home,
        search_path=search_path(environment, around.programs),
        workspace=around.place.roots,
        changeable=around.programs.untrusted,
        git_is_safe=around.git.is_safe,
        git_reads=around.git.reads,
        resolve=around.held.resolve if around.held else None,
        sandbox=around.sandbox,
        own=around.place.own,
        environment=without_keys(environment, settings.key_names),
        user_is_there=user_is_there,
    )


def _bash_anywhere(settings: Settings | None) -> Bash:
    environment = settings.environment if settings else os.environ
    return Bash(home=home_in(environment), search_path=environment.get("PATH", ""))


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


def build_http(proxy: str | None, ca_file: str | None) -> Http:
    """The lean way to a server, or the library that also knows proxies and certificates of one's own."""
    if proxy is None and ca_file is None:
        from bradawl.providers.http_h11 import DirectHttp

        return DirectHttp()
    from bradawl.providers.http_httpx2 import Httpx2Http

    return Httpx2Http(proxy=proxy, ca_file=ca_file)
