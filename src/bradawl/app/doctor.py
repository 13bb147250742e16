"""`bradawl doctor`: checks everything a run needs, and says what to do about each problem."""

import asyncio
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bradawl._version import __version__
from bradawl.app.console import Console
from bradawl.app.context_window import longer_context
from bradawl.app.data_folder import UNWRITABLE_HINT, unwritable_place, without_data_text
from bradawl.app.local_models import find_local, server_name, suggestions
from bradawl.app.models_command import Connect, Status, models_text, query_providers
from bradawl.app.modes import WHOLE_NETWORK, mode_text, sandbox_text
from bradawl.app.rendering import one_line
from bradawl.app.settings.homes import homes
from bradawl.app.settings.load import load_settings, read_settings, settings_with
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import PROVIDERS, SCRIPTED, is_loopback
from bradawl.app.settings.settings import Settings, tools_folders
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.core.permissions import Policy, Sandbox
from bradawl.core.ports import Prefix, Window
from bradawl.core.rules import path_rules
from bradawl.providers.catalog import Catalog
from bradawl.providers.local_servers import LocalServer
from bradawl.safety.control_characters import json_for_terminals
from bradawl.safety.name_lists import first_of

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.app.build.workspace import RunFolders
    from bradawl.safety.trusted_programs import Rejected

_WORK: Final = 4_000
"""Tokens for a first prompt, one file read and an answer, besides system prompt and tools."""
_WIDTH: Final = 100
_ASKED_WITHOUT: Final = (
    "In the mode auto each command whose changes can't be predicted is asked about because of the missing guarantees."
)
_NETWORK_VERDICTS: Final = {
    "allow": "commands reach without a question",
    "ask": "always asked about",
    "deny": "refused",
}
_ONE_LABEL: Final = r"[\w-]+(?::\d+)?"
_NO_PRESET: Final = "a host of your own network and no preset; docs/permissions.md lists the presets"
_MARKS: Final = {"ok": "ok", "warning": "note", "problem": "PROBLEM"}

BuildAgent = Callable[[Settings, Callable[[str], None]], "Agent"]
"""Builds an agent and calls the function with each warning."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one check."""

    name: str
    state: Literal["ok", "warning", "problem"]
    text: str
    hint: str = ""
    """What to do about a problem."""


class Diagnosis(msgspec.Struct, frozen=True):
    """The object that `--json` prints."""

    healthy: bool
    checks: tuple[Check, ...]
    local_servers: tuple[LocalServer, ...]


def run_doctor(options: Mapping[str, object], environ: Mapping[str, str], console: Console, cwd: str) -> int:
    """Run all checks, print their results, and return the exit code: 0 without a problem, 1 with one."""
    from bradawl.app.build.agent import build_agent
    from bradawl.app.build.model import build_http

    def build(settings: Settings, notify: Callable[[str], None]) -> "Agent":
        return build_agent(settings, notify=notify)

    diagnosis = asyncio.run(diagnose(options, environ, cwd, build_http, build))
    if options.get("json"):
        console.answer(json_for_terminals(msgspec.json.format(msgspec.json.encode(diagnosis)).decode()) + "\n")
    else:
        console.answer("\n".join(_report_lines(diagnosis)) + "\n")
    return 0 if diagnosis.healthy else 1


async def diagnose(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: str,
    connect: Connect,
    build: BuildAgent,
) -> Diagnosis:
    """Run all checks. A problem is a result; no error is raised for it."""
    checks = [_version_check(), *_file_checks(environ, cwd)]
    settings: Settings | None = None
    problem = ""
    try:
        # No prompt is run, so the checks for runs without a user do not apply.
        settings = load_settings({**options, "headless": False}, environ, cwd)
    except SettingsError as error:
        problem = str(error)
    async with asyncio.TaskGroup() as group:
        local = group.create_task(_find_servers(connect, options, environ, cwd))
        model = group.create_task(_model_checks(settings, options, environ, connect)) if settings else None
    servers = local.result()
    if settings is None or model is None:
        checks.append(Check("settings", "problem", problem, "\n".join(suggestions(servers))))
        checks += await _rules_without_a_model(options, environ, cwd, build)
    else:
        checks += [Check("settings", "warning", warning) for warning in settings.warnings]
        checks += model.result()
        checks += await _context_checks(settings, build)
    checks += [_server_check(server) for server in servers] or [Check("local server", "ok", _NO_SERVER)]
    checks += _machine_checks(settings or _without_a_model(options, environ, cwd))
    return Diagnosis(all(check.state != "problem" for check in checks), tuple(checks), servers)


# ------------------------------------------------------------------ this machine


def _version_check() -> Check:
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("version", "ok", f"bradawl {__version__}, Python {python}, {sys.platform}")


def _file_checks(environ: Mapping[str, str], cwd: str) -> list[Check]:
    try:
        places = homes(environ, cwd)
    except BradawlError as error:
        return [Check("files", "problem", str(error))]
    checks: list[Check] = []
    for name in ("config.toml", "credentials.toml"):
        path = Path(places.config, name)
        checks.append(Check(name, "ok", str(path) if os.access(path, os.F_OK) else f"none at {path}"))
    folder = Path(places.data)
    if place := unwritable_place(places.data):
        text = f"{place} can't be written, so no session can be saved."
        checks.append(Check("sessions", "problem", text, UNWRITABLE_HINT))
    else:
        checks.append(Check("sessions", "ok", f"kept below {folder}"))
    return checks


def _without_a_model(options: Mapping[str, object], environ: Mapping[str, str], cwd: str) -> Settings:
    """Settings for the checks of programs and sandbox, where no model can be chosen or a file is wrong."""
    none: dict[str, object] = {"model": f"{SCRIPTED}/none", "fallback_model": None, "small_model": None}
    try:
        return load_settings({**options, **none, "headless": False}, environ, cwd)
    except SettingsError:
        model, home = ModelSettings(provider=SCRIPTED, name="none"), _data_home(environ, cwd)
        return Settings(model=model, cwd=cwd, home=home, environment=dict(environ))


def _data_home(environ: Mapping[str, str], cwd: str) -> str:
    try:
        return homes(environ, cwd).data
    except BradawlError:
        return str(Path(cwd, ".bradawl"))  # another check reports it


def _machine_checks(settings: Settings) -> list[Check]:
    """Checks of the sandbox and of the programs that bradawl starts."""
    from bradawl.app.build.workspace import choose_sandbox, folders_of
    from bradawl.app.program_paths import find_ripgrep, programs_for

    try:
        folders = folders_of(settings)
        programs = programs_for(settings.environment, folders.untrusted)
        wanted = msgspec.structs.replace(settings, sandbox="auto") if settings.sandbox == "required" else settings
        choice = choose_sandbox(wanted, folders, settings.environment, programs)
    except (BradawlError, OSError) as error:
        return [Check("sandbox", "problem", f"can't be looked for: {error}")]
    try:
        found, why = (choice.sandbox, choice.report) if choice else (Sandbox(), ())
    finally:
        if choice is not None:
            choice.close()
    rejected, rg = programs.rejected, find_ripgrep(programs)
    no_bash, no_git = "Install bash: commands run in it.", "Install git, to see and undo what was changed."
    no_rg = "Install ripgrep (rg); the tool grep does not work without it."
    return [
        *sandbox_checks(
            found,
            settings.sandbox,
            why,
            could_be=choice is None or choice.is_workspace_suitable,
            without_data=without_data_text(settings.home),
        ),
        *_process_limit_check(found),
        *_installation_check(folders.roots),
        _undo_check(settings, folders),
        _program_check("bash", programs.on_path("bash"), "problem", no_bash, rejected("bash")),
        _program_check("git", programs.on_path("git"), "warning", no_git, rejected("git")),
        _program_check("ripgrep", rg, "warning", no_rg, rejected("rg")),
    ]


def _process_limit_check(sandbox: Sandbox) -> list[Check]:
    """A warning if nothing limits the number of processes; bubblewrap does for all users but root."""
    import os

    from bradawl.sandbox.process_limit import can_limit_processes

    if not sandbox.name or can_limit_processes() or (sandbox.name == "bubblewrap" and os.geteuid() != 0):
        return []
    text = "the number of processes: bradawl may make no control group, so a command can start any number"
    hint = "Where systemd runs: `systemd-run --user --scope -p Delegate=yes bradawl`."
    return [Check("not held", "warning", text, hint)]


def _installation_check(roots: Sequence[str]) -> list[Check]:
    from bradawl.safety.trusted_programs import installation_paths

    places = installation_paths(roots)
    if not places:
        return []
    text = f"bradawl runs from {', '.join(places)}, in the workspace: no command and no tool can change that"
    hint = "Install it outside of projects: `pipx install .` or `uv tool install .` in a clone of bradawl."
    return [Check("installation", "warning", text, hint)]


def _undo_check(settings: Settings, folders: "RunFolders") -> Check:
    """Where changes are saved for undo, how large that is, and what is not covered."""
    from bradawl.app.build.workspace import why_no_undo

    if not settings.undo:
        return Check("undo", "ok", "switched off: changes are not saved")
    if reason := why_no_undo(folders):
        return Check("undo", "warning", f"off: {reason}")
    if unwritable := unwritable_place(folders.checkpoints):
        return Check("undo", "problem", f"{unwritable} can't be written, so no change can be undone.", UNWRITABLE_HINT)
    place = Path(folders.checkpoints)
    try:
        size = sum(each.lstat().st_size for each in place.iterdir()) if place.is_dir() else 0
    except OSError as error:
        return Check("undo", "problem", f"{place} can't be read: {error.strerror}", "Make it yours, or remove it.")
    not_covered = "not covered: other folders, network, databases, dependencies and caches, files over 50 MB"
    return Check("undo", "ok", f"{size / 1_000_000:.1f} MB in {place}; {not_covered}")


def sandbox_checks(
    sandbox: Sandbox, wanted: str, why: Sequence[str] = (), *, could_be: bool = True, without_data: str = ""
) -> list[Check]:
    """The sandbox, and each guarantee it lacks.

    `why`: why the search found none or no better one. `could_be`: a better sandbox would be possible in this workspace.
    `without_data`: that the data folder, without which there is none, can't be written; empty if it can.
    """
    from bradawl.app.sandbox_help import kernel_hints, repair_lines
    from bradawl.sandbox.guarantees import GUARANTEES

    if wanted == "off":
        return [Check("sandbox", "warning", "switched off: commands run with all your rights, once they are allowed")]
    better: tuple[str, ...] = ()
    if could_be and sandbox.name != "bubblewrap":
        better = (without_data,) if without_data else (*kernel_hints(), *repair_lines(why))
    if not sandbox.name:
        state: Literal["warning", "problem"] = "problem" if wanted == "required" else "warning"
        text = "none: commands run with all your rights, and all that may change something is asked about"
        return [Check("sandbox", state, text, "\n".join((*why, *better)))]
    asked = (_ASKED_WITHOUT,) if sandbox.lacks else ()
    hint = "\n".join((*asked, *why, *better))
    checks = [Check("sandbox", "warning" if sandbox.lacks else "ok", sandbox_text(sandbox), hint)]
    return checks + [Check("not held", "warning", f"{name}: {GUARANTEES.get(name, name)}") for name in sandbox.lacks]


def _program_check(
    name: str, path: str | None, otherwise: Literal["warning", "problem"], hint: str, rejected: Sequence["Rejected"]
) -> Check:
    not_used = [f"{each.path} is not used: {each.reason}" for each in rejected]
    if path:
        return Check(name, "ok", path, "\n".join(not_used))
    return Check(name, otherwise, "none that can be used" if not_used else "not found", "\n".join((*not_used, hint)))


# ------------------------------------------------------------------ the model


async def _model_checks(
    settings: Settings, options: Mapping[str, object], environ: Mapping[str, str], connect: Connect
) -> list[Check]:
    chosen = settings.model
    if chosen.provider == SCRIPTED:
        return [Check("model", "ok", f"the script {chosen.name}")]
    where = f"{chosen.provider}/{chosen.name} at {chosen.base_url} ({chosen.api.replace('_', ' ')})"
    checks = [Check("model", "ok", where)]
    if settings.fallback is not None:
        checks.append(Check("fallback", "ok", f"{settings.fallback.provider}/{settings.fallback.name}"))
    if settings.small is not None:
        checks.append(Check("small model", "ok", f"{settings.small.provider}/{settings.small.name}"))
    given = read_settings(options, environ, settings.cwd).given
    for status in await query_providers(given, Catalog(), connect, chosen.provider):
        checks.append(Check("key", "ok", f"from {status.key}" if status.key else "none needed"))
        checks.append(_endpoint_check(status, chosen.name))
    return checks


def _endpoint_check(status: Status, model: str) -> Check:
    if not status.reachable:
        hint = "Check the base URL, the network, and that the server runs."
        return Check("endpoint", "problem", status.problem, hint)
    if status.problem:
        return Check("endpoint", "warning", status.problem)
    models = [one.name for one in status.models]
    names = {name for one in models for name in (one, one.removesuffix(":latest"))}
    if models and model not in names:
        near = ", ".join(sorted(models)[:5])
        return Check("endpoint", "warning", f"answers, but does not list {model}; it has {near}", "Check `-m`.")
    return Check("endpoint", "ok", f"answers, with {models_text(len(models))}" if models else "answers")


async def _context_checks(settings: Settings, build: BuildAgent) -> list[Check]:
    """Whether system prompt and tools fit into the model's context window with room for work; and the permissions."""
    warnings: list[str] = []
    try:
        agent = build(settings, warnings.append)
    except BradawlError as error:
        return [Check("context", "problem", str(error))]
    try:
        from bradawl.shaping.context_size import prefix_tokens
        from bradawl.shaping.tool_schema import schemas_of

        needed = prefix_tokens(Prefix(await agent.system_prompt(), schemas_of(agent.tools)))
        window = await agent.model.window()
        tools = _user_tools_check(settings, [tool.spec.name for tool in agent.tools])
        permissions = _permission_checks(agent)  # adds warnings about `network`
        told = (Check("warning", "warning", warning) for warning in warnings)
        return [_window_check(settings, needed, window), tools, *told, *permissions]
    finally:
        await agent.aclose()


def _user_tools_check(settings: Settings, offered: Sequence[str]) -> Check:
    """The names of the user's own tools, and where they are looked for."""
    if not settings.user_tools:
        return Check("user tools", "ok", "left out, as the setting user_tools says")
    from bradawl.app.build.tools import build_tools

    own = {tool.spec.name for tool in build_tools(settings, headless=False)}
    names = ", ".join(name for name in offered if name not in own) or "none"
    folders = " and ".join(str(folder) for folder in tools_folders(settings))
    return Check("user tools", "ok", f"{names}; looked for in {folders}, and in packages named bradawl-...")


def _permission_checks(agent: "Agent") -> list[Check]:
    try:
        policy = agent.policy()
    except BradawlError as error:
        return [Check("permissions", "problem", str(error))]
    return [Check("mode", "ok", mode_text(policy.mode)), *rule_checks(policy), *network_checks(policy)]


async def _rules_without_a_model(
    options: Mapping[str, object], environ: Mapping[str, str], cwd: str, build: BuildAgent
) -> list[Check]:
    """Mode and rules, where no model can be chosen; nothing if the settings can't be read either."""
    warnings: list[str] = []
    try:
        settings = settings_with(read_settings(options, environ, cwd), ModelSettings("none", "none"))
        agent = build(settings, warnings.append)
    except BradawlError:
        return []  # the check of the settings reports it
    try:
        checks = _permission_checks(agent)
        return [*(Check("warning", "warning", warning) for warning in warnings), *checks]
    finally:
        await agent.aclose()


def rule_checks(policy: Policy) -> list[Check]:
    """A warning about rules that deny paths, if no sandbox enforces them on programs."""
    rules = [rule.text for rule in path_rules(policy.rules) if rule.verdict == "deny" and rule.places]
    if not rules or (policy.sandbox.name and "credentials" not in policy.sandbox.lacks):
        return []
    text = (
        f"{', '.join(dict.fromkeys(rules))}: nothing here hides files from programs; unclear commands are asked about"
    )
    return [Check("rules", "warning", text)]


def network_checks(policy: Policy) -> list[Check]:
    """The rules about hosts that commands may reach, each with its source."""
    rules = [rule for rule in policy.rules if rule.on in ("connect", "network")]
    checks: list[Check] = []
    for verdict, what in _NETWORK_VERDICTS.items():
        found: dict[str, list[str]] = {}
        for rule in rules:
            if rule.verdict == verdict:
                text = f"any host for `{rule.text}`" if rule.on == "network" else rule.text
                found.setdefault(rule.source, []).append(text)
        named = "; ".join(f"{', '.join(dict.fromkeys(texts))} ({source})" for source, texts in found.items())
        checks += [Check("network", "ok", f"{what}: {named}")] if named else []
    if own := [rule.text for rule in rules if rule.verdict == "allow" and re.fullmatch(_ONE_LABEL, rule.text)]:
        checks.append(Check("network", "warning", f"{', '.join(dict.fromkeys(own))}: {_NO_PRESET}"))
    if policy.sandbox.name and not policy.sandbox.limits_hosts:
        checks.append(Check("network", "warning", WHOLE_NETWORK))
    return checks or [Check("network", "ok", "commands reach no host without a question")]


def _window_check(settings: Settings, needed: int, window: Window) -> Check:
    chosen = settings.model
    said = {"settings": "", "server": " as the server runs it", "assumed": ", which is only assumed"}[window.source]
    text = f"{needed:,} tokens before the first word, of {window.tokens:,}{said}"
    is_local = chosen.provider != SCRIPTED and bool(chosen.base_url) and is_loopback(chosen.base_url)
    fix = f"To give it room, {longer_context(chosen.provider, chosen.name, needed + _WORK)}." if is_local else ""
    if window.source != "assumed" and window.tokens < needed + _WORK:
        hint = fix or "Choose a model with a longer context."
        return Check("context", "problem", f"{text}: too little to work with.", hint)
    if window.source == "assumed" and is_local:
        hint = f"Some servers silently drop what does not fit. {fix} Then say so with --context-window N."
        return Check("context", "warning", text, hint)
    return Check("context", "ok", text)


# ------------------------------------------------------------------ local servers


async def _find_servers(
    connect: Connect, options: Mapping[str, object], environ: Mapping[str, str], cwd: str
) -> tuple[LocalServer, ...]:
    try:
        providers = read_settings(options, environ, cwd).given.providers
    except SettingsError:
        providers = PROVIDERS
    return await find_local(connect(None, None), providers, environ)


_MOST_MODELS = 8
_NO_SERVER = "none of Ollama, LM Studio, llama.cpp, vLLM and SGLang answers on this machine"


def _server_check(server: LocalServer) -> Check:
    where = f"{server_name(server)} at {server.base_url}"
    if server.problem:
        return Check("local server", "warning", f"{where}: {server.problem}")
    names = [model.name + (f" ({model.context:,} tokens)" if model.context else "") for model in server.models]
    return Check("local server", "ok", f"{where}: {first_of(names, _MOST_MODELS) or 'no models'}")


# ------------------------------------------------------------------ output


def _report_lines(diagnosis: Diagnosis) -> list[str]:
    from textwrap import wrap

    lines: list[str] = []
    for check in diagnosis.checks:
        head = f"{_MARKS[check.state]:<8} {check.name:<17} "
        text = wrap(one_line(check.text), _WIDTH - len(head), break_long_words=False, break_on_hyphens=False)
        lines += [f"{head if number == 0 else ' ' * len(head)}{line}" for number, line in enumerate(text)]
        for line in check.hint.splitlines():
            # Commands are not wrapped.
            pieces = [line] if line.startswith("  ") else wrap(line, _WIDTH - len(head), break_on_hyphens=False)
            lines += [f"{' ' * len(head)}{piece}" for piece in pieces]
    problems = sum(check.state == "problem" for check in diagnosis.checks)
    verdict = "Everything a run needs is there."
    if problems:
        verdict = f"{problems} problem{'' if problems == 1 else 's'} to solve first."
    return [*lines, "", verdict]
