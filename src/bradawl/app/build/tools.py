"""Builds the tools that a model is offered: bradawl's own, the user's, and those given by an embedding program."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from bradawl.app.build.workspace import Workspace, without_keys
from bradawl.app.policies import Policies
from bradawl.app.program_paths import find_ripgrep, search_path
from bradawl.app.settings.settings import Settings, tools_folders
from bradawl.core.errors import SettingsError
from bradawl.core.ports import Http, Tool
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
from bradawl.workspace.machine import home_in

if TYPE_CHECKING:
    from bradawl.tools.exit_plan import ExitPlan
    from bradawl.tools.web.addresses import PublicAddresses

_SELDOM = (AgentTool, Glob, MultiEdit, TodoWrite, WebFetch)
"""Tools that are not listed where nobody can answer, unless settings name them. The others do as well."""
_FIELDS_OF_THE_WORKSPACE = (
    *("home", "search_path", "workspace", "changeable", "git_is_safe", "git_reads", "resolve", "sandbox"),
    *("own", "scratch", "environment", "user_is_there"),
)
"""Fields of `Bash` that `build_agent` sets where its caller has not."""


def build_tools(
    settings: Settings | None = None, workspace: Workspace | None = None, *, headless: bool = True
) -> tuple[Tool[Any], ...]:
    """The tools a model is offered, in the order it sees them. A tool of your own is one more line here.

    `headless`: no user is present whom a tool could ask. Without settings no tool reaches the network, and home
    folder and PATH are those of this process. Without a workspace the tools know neither its folders nor git's
    configuration nor a sandbox; `build_agent` supplies it.
    """
    rg = find_ripgrep(workspace.programs if workspace else None)
    return (
        _bash(settings, workspace, user_is_there=not headless) if settings and workspace else _bash_anywhere(settings),
        BashOutput(),
        BashKill(),
        ReadFile(),
        WriteFile(workspace.tmp.name_of) if workspace else WriteFile(),
        EditFile(),
        MultiEdit(),
        Glob(rg, _own_ignore_file),
        _grep(rg, settings, workspace),
        AgentTool(),
        TodoWrite(),
        *((WebFetch(partial(_http_to, settings), allow_private=settings.allow_private_fetch),) if settings else ()),
        *(() if headless else (AskUser(),)),
        *_exit_plan(settings, headless=headless),
    )


def offered_tools(
    settings: Settings,
    workspace: Workspace,
    policies: Policies,
    notify: Callable[[str], None] | None,
    *,
    headless: bool,
    has_answers: bool = False,
) -> tuple[Tool[Any], ...]:
    """bradawl's own tools and the user's, without those that are of no use in this run.

    Left out are tools that a rule denies whatever their arguments, and without a user those that ask one, and
    `web_fetch` if it would be asked about for every host. The tools do not depend on the mode where that can change
    during a session, because the prefix of requests would change with them. `has_answers`: an approver of an embedding
    program answers such questions.

    The setting `tools` names those of bradawl's own to offer. Without it, a run in which nobody can answer lists
    neither `agent` nor `todo_write`, whose list nobody would see, nor `web_fetch` unless a rule allows it a host, nor
    `glob` and `multi_edit`, because schemas are paid for in each request. If a model calls them, they work.
    `notify` is called with a warning for each user tool that can't be loaded. Raises `SettingsError` for an unknown
    name in the setting.
    """
    tools = build_tools(settings, workspace, headless=headless)
    if headless and not has_answers:
        tools = tuple(tool for tool in tools if _is_of_use(tool, settings, policies))
    tools = _named_tools(settings.tools, tools)
    if settings.user_tools:
        tools += _user_tools(settings, tools, notify)
    if not policies.has_rules:
        return tools
    from bradawl.safety.permissions.rule_syntax import hidden_tools

    hidden = hidden_tools(policies.fixed, [tool.spec for tool in tools])
    return tuple(tool for tool in tools if tool.spec.name not in hidden)


def _is_of_use(tool: Tool[Any], settings: Settings, policies: Policies) -> bool:
    """Whether the tool can do something without a user. Takes tools that seldom do off the list."""
    allowed = isinstance(tool, WebFetch) and policies.allows_requests_of(tool.spec)
    if isinstance(tool, _SELDOM):
        tool.is_listed = allowed
    return allowed or not isinstance(tool, WebFetch) or settings.permission_mode == "bypass"


def _named_tools(names: str, tools: tuple[Tool[Any], ...]) -> tuple[Tool[Any], ...]:
    """The tools that the setting `tools` names, which are listed; `default` stands for the usual ones."""
    wanted = {name.strip() for name in names.split(",") if name.strip()} or {"default"}
    if wanted == {"none"}:
        return ()
    if unknown := sorted(wanted - {"all", "default"} - {tool.spec.name for tool in tools}):
        raise SettingsError(
            f"the setting `tools` names {', '.join(unknown)}, which this run does not have; there are all, default, "
            f"{', '.join(tool.spec.name for tool in tools)}"
        )
    for tool in tools:
        if isinstance(tool, _SELDOM) and wanted & {"all", tool.spec.name}:
            tool.is_listed = True
    return tuple(tool for tool in tools if wanted & {"all", "default", tool.spec.name})


def given_tools(
    settings: Settings, workspace: Workspace, tools: Sequence[Tool[Any]], *, headless: bool
) -> tuple[Tool[Any], ...]:
    """Exactly these tools. A `Bash` without a workspace gets this one."""
    return tuple(_in_workspace(tool, settings, workspace, user_is_there=not headless) for tool in tools)


def _user_tools(
    settings: Settings, own: tuple[Tool[Any], ...], notify: Callable[[str], None] | None
) -> tuple[Tool[Any], ...]:
    from bradawl.extensions.user_tools import site_folders, user_tools

    found = user_tools(tools_folders(settings), site_folders(), [each.spec.name for each in own])
    if notify is not None:
        for warning in found.warnings:
            notify(warning)
    return found.tools


def _in_workspace(tool: Tool[Any], settings: Settings, workspace: Workspace, *, user_is_there: bool) -> Tool[Any]:
    if isinstance(tool, Bash) and not tool.workspace:
        own = _bash(settings, workspace, user_is_there=user_is_there)
        return msgspec.structs.replace(tool, **{name: getattr(own, name) for name in _FIELDS_OF_THE_WORKSPACE})
    return tool


def _exit_plan(settings: Settings | None, *, headless: bool) -> "tuple[ExitPlan, ...]":
    """The tool that leaves plan mode, where the user may enter that mode or the run begins in it."""
    mode = settings.permission_mode if settings else None
    if headless:  # no user can approve a plan: it is the answer of the turn
        return ()
    from bradawl.tools.exit_plan import ExitPlan

    if settings is None or not settings.is_mode_fixed or mode is None:
        return (ExitPlan(),)
    return () if mode == "plan" else (ExitPlan((mode,)),)


def _grep(rg: str | None, settings: Settings | None, workspace: Workspace | None) -> Grep:
    home = (settings.user_home if settings else "") or home_in(settings.environment if settings else os.environ)
    own = workspace.folders.own if workspace else ()
    return Grep(rg, ignore_file=_own_ignore_file, home=home, own=own, scratch=_scratch(workspace))


def _scratch(workspace: Workspace | None) -> Callable[[], str]:
    return (lambda: workspace.tmp.known) if workspace else str


def _own_ignore_file(root: str) -> str | None:
    from bradawl.workspace.folder_walk import own_ignore_file  # most runs search nothing

    return own_ignore_file(root)


def _bash(settings: Settings, workspace: Workspace, *, user_is_there: bool) -> Bash:
    environment, files = settings.environment, workspace.files_of_commands
    return Bash(
        home=environment.get("HOME", "") or settings.user_home,
        search_path=search_path(environment, workspace.programs),
        workspace=workspace.folders.roots,
        changeable=workspace.programs.untrusted,
        git_is_safe=workspace.git.is_safe,
        git_reads=workspace.git.reads,
        resolve=files.resolve if files else None,
        sandbox=workspace.sandbox,
        own=workspace.folders.own,
        scratch=_scratch(workspace),
        environment=without_keys(environment, settings.key_names),
        user_is_there=user_is_there,
    )


def _bash_anywhere(settings: Settings | None) -> Bash:
    environment = settings.environment if settings else os.environ
    return Bash(home=home_in(environment), search_path=environment.get("PATH", ""))


def _http_to(settings: Settings, url: str, addresses: "PublicAddresses | None") -> Http:
    """An `Http` for one URL that follows no redirects. Raises `HttpError`."""
    from bradawl.app.settings.proxy import proxy_for
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
