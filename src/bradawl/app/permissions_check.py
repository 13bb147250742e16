"""`bradawl permissions check`: the decision on a command or a connection, and the reason, as JSON. Nothing is run, read
or written.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import msgspec

from bradawl.agent.agent import Agent
from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.app.console import Console
from bradawl.app.modes import WHOLE_NETWORK
from bradawl.app.settings.load import read_settings, settings_with
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.permission_values import parse_mode
from bradawl.app.settings.settings import Settings
from bradawl.core.effects import Effects
from bradawl.core.errors import SettingsError
from bradawl.core.events import State
from bradawl.core.permissions import Mode, Policy, Request, Sandbox
from bradawl.core.ports import CallContext, Tool
from bradawl.core.rules import path_rules
from bradawl.safety.permissions.dry_run import Verdict, dry_run, error_as_verdict, verdict_on
from bradawl.tools.bash import BashParams

if TYPE_CHECKING:
    from bradawl.testing.permission_cases import CaseWorkspace

_CASE_WORKSPACE: Final = "/ws"
_CASE_HOME: Final = "/home/u"
_DEFAULT_PORT: Final = 443
_INVALID: Final = 2
_IF_COVERED: Final = "a run asks if undo does not cover the whole workspace, which this check does not search"


def run_check(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    console: Console,
    cwd: str,
    build: Callable[[Settings], Agent],
) -> int:
    """Judge a command, or the cases on stdin; print JSON and return the exit code. Raises `SettingsError`.

    The exit code is 2 for a command or a connection that is invalid. A command or a connection is judged by the agent
    that `build` makes of the settings, cases without settings and sandbox.
    """
    if options.get("stdin"):
        from bradawl.testing.permission_cases import answers

        for answer in answers(console.stdin, case_workspace(options, cwd)):
            console.answer(answer)
        return 0
    settings = _settings_here(options, environ, cwd)
    if (host := options.get("connect")) is not None:
        verdict = _connection_verdict(settings, str(host), build)
    else:
        verdict = _verdict_here(settings, str(options["shell_line"]), build)
    console.answer(json.dumps(msgspec.to_builtins(verdict), indent=2) + "\n")
    return _INVALID if verdict.decision == "error" else 0


def case_workspace(options: Mapping[str, object], cwd: str) -> "CaseWorkspace":
    """The workspace of cases: built-in rules, no sandbox. Raises `SettingsError`."""
    from bradawl.app.git_files import read_whole
    from bradawl.app.settings.table import SETTINGS
    from bradawl.safety.permissions.protected_paths import built_in_rules
    from bradawl.testing.permission_cases import CaseWorkspace

    workspace = _folder(options.get("workspace") or _CASE_WORKSPACE, cwd)
    home = _folder(options.get("home") or _CASE_HOME, cwd)
    rules = built_in_rules((workspace,), home)

    def policy(mode: Mode) -> Policy:
        return Policy(mode, rules=rules, roots=(workspace,))

    return CaseWorkspace(
        workspace, home, policy, SETTINGS.project_settings, SETTINGS.switches(), read_whole, _mode(options)
    )


def _settings_here(options: Mapping[str, object], environ: Mapping[str, str], cwd: str) -> Settings:
    """The settings of a run in this folder, without a model. Raises `SettingsError`."""
    given = {"cwd": options.get("workspace"), "permission_mode": _mode(options)}
    read = read_settings(given, environ, cwd)
    settings = settings_with(read, ModelSettings("none", "none"))  # no model is asked
    home = settings.user_home if options.get("home") is None else _folder(options["home"], cwd)
    return msgspec.structs.replace(settings, user_home=home, user_tools=False)


def _connection_verdict(settings: Settings, text: str, build: Callable[[Settings], Agent]) -> Verdict:
    """The decision on a connection to a host, as the proxy of commands judges it: first the name, then the policy."""
    from bradawl.app.build.workspace import folders_of
    from bradawl.app.policies import private_hosts
    from bradawl.safety.permissions.domains import ascii_name
    from bradawl.sandbox.network.destinations import BadDestination, parse_authority
    from bradawl.sandbox.network.dialing import Dialer, RefusedDestination

    try:
        destination = parse_authority(ascii_name(text.strip(" \t")), _DEFAULT_PORT)
    except BadDestination as error:
        return Verdict("deny" if error.is_host else "error", str(error))
    except ValueError as error:
        return Verdict("error", str(error))
    agent = build(settings)
    try:
        roots = folders_of(settings).roots
        Dialer(private_hosts=lambda: private_hosts(settings, roots)).check_name(destination)
        effects = Effects(hosts=(destination.label,), lifts=("host",))
        policy = agent.policy()
        verdict = verdict_in_sandbox(verdict_on(policy, Request("network", "0" * 64, effects)), policy.sandbox)
    except RefusedDestination as error:
        return Verdict("deny", str(error))
    finally:
        if agent.on_close is not None:
            agent.on_close()
    return msgspec.structs.replace(verdict, grant=None)  # it would read as a grant of the whole network


def verdict_in_sandbox(verdict: Verdict, sandbox: Sandbox) -> Verdict:
    """The verdict on a connection. Where no proxy judges hosts, an allowed one depends on a grant of the network."""
    if not sandbox.name or sandbox.limits_hosts:
        return verdict
    decision = "ask" if verdict.decision == "allow" else verdict.decision
    return msgspec.structs.replace(verdict, decision=decision, reason=f"{WHOLE_NETWORK} (the rules: {verdict.reason})")


def _verdict_here(settings: Settings, command: str, build: Callable[[Settings], Agent]) -> Verdict:
    agent = build(settings)
    try:
        policy = agent.policy()
        bash = next((cast("Tool[BashParams]", tool) for tool in agent.tools if tool.spec.name == "bash"), None)
        if bash is None:
            return Verdict("deny", "a rule refuses the tool bash, so the model is not offered it")
        context = CallContext(
            call_id="check",
            cwd=agent.project,
            files=agent.files,
            processes=agent.processes,
            seen=SeenFiles({}, _ignore),
            grant=None,
            progress=_ignore,
            change=_ignore,
            rules=path_rules(policy.rules),
        )
        params = BashParams(command)
        verdict = error_as_verdict(lambda: dry_run(bash, params, context, policy))
        if verdict.decision != "allow" or verdict.effects is None or not verdict.effects.discards:
            return verdict
        without = msgspec.structs.replace(policy, undo=False)
        depends = error_as_verdict(lambda: dry_run(bash, params, context, without)).decision != "allow"
        return msgspec.structs.replace(verdict, reason=f"{verdict.reason}; {_IF_COVERED}") if depends else verdict
    finally:
        if agent.on_close is not None:
            agent.on_close()


def _ignore(_: State | str) -> None:
    """A call that is not made reports nothing."""


def _mode(options: Mapping[str, object]) -> Mode | None:
    mode = options.get("mode")
    return None if mode is None else parse_mode(mode, "--mode")


def _folder(named: object, cwd: str) -> str:
    try:
        return os.path.realpath(Path(cwd, str(named)))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{named!r} can't be a folder: {error}.") from error
