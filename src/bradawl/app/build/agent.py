"""Builds an agent from settings: model, tools, workspace, permission policy, session store and system prompt."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypedDict, Unpack

import msgspec

from bradawl._version import __version__
from bradawl.agent.agent import Agent
from bradawl.agent.changes import UnsavedChanges
from bradawl.agent.configuration import Limits
from bradawl.agent.given_changes import GivenChanges
from bradawl.agent.middleware import Middleware, MiddlewareContext, MiddlewareFactory
from bradawl.app.build.instructions import instruction_notes, instructions_in_prompt
from bradawl.app.build.model import build_model
from bradawl.app.build.tools import given_tools, offered_tools
from bradawl.app.build.workspace import Workspace, open_workspace, why_no_undo, with_real_home
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.held import HeldNotes, held_line
from bradawl.app.policies import Policies
from bradawl.app.program_paths import search_path
from bradawl.app.settings.compaction_values import compaction_limits
from bradawl.app.settings.settings import Settings
from bradawl.app.system_prompt import SystemPrompt
from bradawl.core.errors import SettingsError
from bradawl.core.events import RequestParams
from bradawl.core.permissions import Policy
from bradawl.core.ports import Approver, Hook, Ids, Model, Tool, WorkspaceChanges
from bradawl.core.retry import RetryBudget
from bradawl.core.tools import ToolSpec
from bradawl.session.store import LocalStore
from bradawl.tools.json_schema import check_for
from bradawl.workspace.machine import SystemClock, SystemIds

_INTERACTIVE_RETRY = RetryBudget(deadline_s=120.0, longest_wait_s=60.0)
"""Shorter than in a headless run: a user at the terminal can decide what to do."""


class AgentParts(TypedDict, total=False):
    """Parts of an agent that an embedding program brings itself."""

    model: Model
    """Answers instead of the model in the settings. The agent owns it and closes it."""
    hooks: Sequence[Hook]
    """Called for each call, in this order."""
    middleware: Sequence[MiddlewareFactory]
    """Each makes a middleware of a session; they are called in this order, after bradawl's own."""
    changes: WorkspaceChanges
    """Saves what calls change instead of bradawl's own, whatever `Settings.undo` says; `build_undo` can't read it. The
    caller owns it. It is given all calls of all sessions of the agent that may change files."""


def build_agent(
    settings: Settings,
    approver: Approver | None = None,
    tools: Sequence[Tool[Any]] | None = None,
    notify: Callable[[str], None] | None = None,
    *,
    extra_tools: Sequence[Tool[Any]] = (),
    **parts: Unpack[AgentParts],
) -> Agent:
    """An agent with these settings. Without an approver every call that would be asked about is denied.

    `extra_tools` are offered besides bradawl's own tools and the user's. `tools` is the exact list instead; a `Bash`
    in it gets the workspace and home folder it was made without.
    An `Approver` with a defect ends the turn with a `Failure`, and allows nothing.
    `parts` are a model, hooks, middleware and a `WorkspaceChanges` of the caller.
    `notify` is called with each warning, such as a user tool that can't be loaded or a debug log that can't be written.
    The agent owns connections, processes and a sandbox: `aclose` it. Raises `SettingsError`, also for an approver, a
    model or a `changes` that lacks a method.
    """
    if unknown := sorted(parts.keys() - AgentParts.__annotations__.keys()):
        raise TypeError(f"build_agent has no parameter named {unknown[0]}")
    clock, ids = SystemClock(), SystemIds()
    settings = with_real_home(settings)
    given_changes = parts.get("changes")
    _check_port(approver, "approver", "ask", "choose")
    _check_port(parts.get("model"), "model", "open", "window", "aclose")
    _check_port(given_changes, "changes", "begin", "end", "settle", "covers")
    workspace = open_workspace(settings, notify, saves_changes=given_changes is None)
    changes = workspace.changes if given_changes is None else GivenChanges(given_changes)
    policies = _policies(settings, workspace, notify, has_undo=changes is not None)
    headless = settings.headless or approver is None
    has_answers = approver is not None and not isinstance(approver, DenyAllApprover)
    if tools is None:
        offered = offered_tools(settings, workspace, policies, notify, headless=headless, has_answers=has_answers)
    else:
        offered = given_tools(settings, workspace, tools, headless=headless)
    specs = (getattr(tool, "spec", None) for tool in (*offered, *extra_tools))  # `Agent` checks that they are tools
    runs_commands = any(isinstance(spec, ToolSpec) and spec.name == "bash" for spec in specs)
    held = _held(workspace, can_ask=has_answers, runs_commands=runs_commands)
    small = settings.small and msgspec.structs.replace(settings, model=settings.small, fallback=None)
    return Agent(
        model=parts.get("model") or build_model(settings, clock, ids, notify),
        small_model=build_model(small, clock, ids, notify) if small else None,
        tools=(*offered, *extra_tools),
        store=LocalStore(
            settings.home,
            workspace.folders.project,
            clock,
            _ids_of_sessions(settings, ids),
            opened=workspace.tmp.begin_session,
        ),
        files=workspace.files,
        processes=workspace.processes,
        approver=DenyAllApprover() if approver is None else approver,
        clock=clock,
        ids=ids,
        policy=policies,
        system_prompt=_system_prompt(
            settings,
            workspace,
            held=lambda: held(policies()),
            instructions=instructions_in_prompt(settings, workspace.folders, policies, notify),
            runs_commands=runs_commands,
        ),
        project=workspace.folders.project,
        version=__version__,
        limits=Limits(max_steps=settings.max_steps, tells_last_step=headless),
        retry=RetryBudget() if settings.headless else _INTERACTIVE_RETRY,
        compaction=compaction_limits(settings),
        params=RequestParams(settings.max_output_tokens, settings.effort, settings.answer_schema),
        hooks=tuple(parts.get("hooks", ())),
        middleware=(
            lambda context: HeldNotes(context, held),
            _named_definitions(workspace, policies),
            *instruction_notes(settings, workspace.folders, policies),
            *_budget_limit(settings),
            *parts.get("middleware", ()),
        ),
        changes=UnsavedChanges(_why_unsaved(workspace)) if changes is None else changes,
        check_for=check_for,
        around_turns=workspace.tmp,
        on_close=workspace.close,
    )


def _ids_of_sessions(settings: Settings, ids: Ids) -> Ids:
    wanted = settings.values.get("session_id")
    if not isinstance(wanted, str):
        return ids
    from bradawl.app.session_choice import FirstId, parse_new_id

    return FirstId(ids, parse_new_id(wanted))


def _budget_limit(settings: Settings) -> tuple[MiddlewareFactory, ...]:
    most_usd = settings.values.get("max_budget_usd")
    if not isinstance(most_usd, float):
        return ()
    from bradawl.app.budget import Budget, BudgetLimit

    budget = Budget(most_usd)
    return (lambda context: BudgetLimit(context, budget),)


def _named_definitions(workspace: Workspace, policies: Policies) -> MiddlewareFactory:
    def make(context: MiddlewareContext) -> Middleware:
        from bradawl.app.named_definitions import NamedDefinitions  # not needed without a session

        return NamedDefinitions(context, workspace.folders.project, policies.refuses_to_read)

    return make


def _why_unsaved(workspace: Workspace) -> str:
    why = why_no_undo(workspace.folders) or "undo was switched off"
    return f"its changes are not saved and stay, because {why}."


def _check_port(part: object, parameter: str, *methods: str) -> None:
    """Raises `SettingsError` for a part that is a class, or that lacks a method."""
    if part is None:
        return
    if isinstance(part, type):
        raise SettingsError(f"`{parameter}` is the class {part.__name__}; pass an object of the class.")
    if missing := [name for name in methods if not callable(getattr(part, name, None))]:
        kind = type(part).__name__
        raise SettingsError(f"`{parameter}` is an object of the type {kind}, which has no method {missing[0]}.")


def _policies(
    settings: Settings, workspace: Workspace, notify: Callable[[str], None] | None, *, has_undo: bool
) -> Policies:
    folders = workspace.folders
    return Policies(
        settings,
        folders.roots,
        folders.own,
        folders.blobs,
        workspace.sandbox,
        has_undo=has_undo,
        notify=notify,
        tmp=workspace.tmp,
        records=folders.records,
    )


def _held(workspace: Workspace, *, can_ask: bool, runs_commands: bool) -> Callable[[Policy], str]:
    def line(policy: Policy) -> str:
        cwd, tmp = workspace.folders.project, workspace.tmp.known
        return held_line(policy, cwd=cwd, tmp=tmp, can_ask=can_ask, runs_commands=runs_commands)

    return line


def _system_prompt(
    settings: Settings,
    workspace: Workspace,
    *,
    held: Callable[[], str],
    instructions: Callable[[], str],
    runs_commands: bool,
) -> Callable[[], Awaitable[str]]:
    background = [part for part in (workspace.choice, workspace.changes) if part is not None]

    def prepare_calls() -> None:
        for part in background:
            part.start()  # finished before the model's first reply

    return SystemPrompt(
        workspace.folders.project,
        user_present=not settings.headless,
        git=workspace.git_status,
        search_path=search_path(settings.environment, workspace.programs),
        home=settings.user_home,
        begin_others=prepare_calls,
        held=held,
        runs_commands=runs_commands,
        instructions=instructions,
        own_rules=settings.system_prompt,
        more_rules=settings.append_system_prompt,
    )
