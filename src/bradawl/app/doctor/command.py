"""The command `bradawl doctor`: runs all checks and prints their results."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bradawl.app.console import Console
from bradawl.app.doctor.check import Check, Diagnosis
from bradawl.app.doctor.context import context_checks
from bradawl.app.doctor.files import file_checks
from bradawl.app.doctor.layout import report_lines
from bradawl.app.doctor.machine import machine_checks, version_check
from bradawl.app.doctor.model import model_checks, tool_calls_check
from bradawl.app.doctor.permissions import BuildAgent, rules_without_a_model
from bradawl.app.doctor.servers import find_servers, server_checks
from bradawl.app.doctor.terminal import terminal_checks
from bradawl.app.local_models import server_name, suggestions
from bradawl.app.model_list import Connect
from bradawl.app.settings.homes import homes
from bradawl.app.settings.load import load_settings
from bradawl.app.settings.model_settings import ModelSettings
from bradawl.app.settings.providers import SCRIPTED, NoProvider
from bradawl.app.settings.settings import Settings
from bradawl.app.terminal_size import ONE_LINE, terminal_width
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.providers.local_servers import LocalServer
from bradawl.safety.control_characters import json_for_terminals

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent


def run_doctor(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    console: Console,
    cwd: str,
    terminal: Console | None = None,
) -> int:
    """Run all checks, print their results, and return the exit code: 0 without a problem, 1 with one.

    `terminal` is checked as the terminal; the console by default.
    """
    from bradawl.app.build.agent import build_agent
    from bradawl.app.build.model import build_http

    def build(settings: Settings, notify: Callable[[str], None]) -> "Agent":
        return build_agent(settings, notify=notify)

    diagnosis = asyncio.run(diagnose(options, environ, cwd, build_http, build, terminal or console))
    if options.get("json"):
        console.answer(json_for_terminals(msgspec.json.format(msgspec.json.encode(diagnosis)).decode()) + "\n")
    else:
        width = terminal_width(console.stdout, environ, ONE_LINE)
        console.answer("".join(f"{line}\n" for line in report_lines(diagnosis, width)))
    return 0 if diagnosis.healthy else 1


async def diagnose(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: str,
    connect: Connect,
    build: BuildAgent,
    console: Console | None = None,
) -> Diagnosis:
    """Run all checks, those of the terminal with a console only. A problem is a result; no error is raised for it."""
    checks = [version_check(), *file_checks(environ, cwd)]
    settings: Settings | None = None
    problem: SettingsError | None = None
    try:
        # No prompt is run, so the checks for runs without a user do not apply.
        settings = load_settings({**options, "headless": False}, environ, cwd)
    except SettingsError as error:
        problem = error
    async with asyncio.TaskGroup() as group:
        local = group.create_task(find_servers(connect, options, environ, cwd))
        model = group.create_task(model_checks(settings, environ, connect)) if settings else None
    servers = local.result()
    if settings is None or model is None:
        checks.append(_settings_check(problem, servers))
        checks += await rules_without_a_model(options, environ, cwd, build)
    else:
        checks += [Check("settings", "warning", warning) for warning in settings.warnings]
        checks += [*model.result(), *tool_calls_check(settings.model, servers)]
        checks += await context_checks(settings, build)
    checks += server_checks(servers)
    checks += machine_checks(settings or _without_a_model(options, environ, cwd))
    checks += terminal_checks(console, environ) if console is not None else []
    return Diagnosis(all(check.state != "problem" for check in checks), tuple(checks), servers)


def _settings_check(problem: SettingsError | None, servers: Sequence[LocalServer]) -> Check:
    """Why no model can be chosen. A server on this machine is one: it only has to be named."""
    hint = "\n".join(suggestions(servers))
    usable = [server_name(server) for server in servers if server.models and not server.problem]
    if isinstance(problem, NoProvider) and usable:
        names = " and ".join(dict.fromkeys(usable))
        text = f"no model is chosen, although {names} can be used at once: say which of its models is meant."
        return Check("model", "problem", f"{text} {problem.note}".strip(), hint)
    return Check("settings", "problem", str(problem), hint)


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
