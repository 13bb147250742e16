"""Starts a front end with parsed options, and turns each error outside of turns into one line and an exit code."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from bradawl.app.console import Console, OutputError
from bradawl.app.deny_all_approver import DenyAllApprover
from bradawl.app.exit_code import (
    CANCELLED,
    ERROR,
    NO_SANDBOX,
    NOT_SAVED,
    TRY_AGAIN,
    USAGE,
    exit_code,
    result_of_failure,
)
from bradawl.app.frontend import Build, RunRequest
from bradawl.app.interrupts import Interrupts
from bradawl.app.modes import help_with_refusals, is_asked_for
from bradawl.app.notices import NoticeStream
from bradawl.app.rendering import notice_line, one_line
from bradawl.app.settings.homes import homes
from bradawl.app.settings.load import load_settings, load_settings_without_model
from bradawl.app.settings.providers import PROVIDERS, NoProvider
from bradawl.app.settings.settings import NoSandbox, debug_folder
from bradawl.core.deltas import Notice
from bradawl.core.errors import BradawlError, ModelFailed, SessionBusy, SessionNotFound, SettingsError
from bradawl.core.events import Envelope, Live

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.app.settings.settings import Settings
    from bradawl.app.slash_commands import CommandRegistry


_NEED_NO_MODEL: Final = ("/help", "/undo", "/redo", "/rewind", "/diff")
"""Slash commands that work in `-p` where no model is set up."""


def load_builtin_commands() -> "CommandRegistry":
    """bradawl's own slash commands."""
    from bradawl.app.builtin_commands import builtin_commands

    return builtin_commands()


def launch(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    console: Console,
    *,
    as_json: bool,
    build: Build | None = None,
    load_commands: "Callable[[], CommandRegistry]" = load_builtin_commands,
) -> int:
    """Run with the options of `cli.parse` and return the exit code. Raises nothing."""
    as_json = as_json and bool(options.get("headless"))
    return _exit_code_of(
        lambda: _run(options, environ, console, build, load_commands), environ, console, as_json=as_json
    )


def launch_demo(console: Console, environ: Mapping[str, str]) -> int:
    """Run the demonstration and return the exit code. Raises nothing."""

    return _exit_code_of(lambda: asyncio.run(_demo(console)), environ, console, as_json=False)


def launch_command(options: Mapping[str, object], environ: Mapping[str, str], console: Console) -> int:
    """Run `doctor`, `permissions`, `trust`, `undo` or `models` and return the exit code. Raises nothing."""
    notices = NoticeStream(partial(_say_notice, console))

    def run() -> int:
        if options["command"] == "doctor":
            from bradawl.app.doctor import run_doctor

            with console.reserving_stdout():
                return run_doctor(options, environ, console, _current_folder())
        if options["command"] == "permissions":
            from bradawl.app.build.agent import build_agent
            from bradawl.app.permissions_check import run_check

            return run_check(options, environ, console, _current_folder(), build_agent)
        if options["command"] == "trust":
            from bradawl.app.trust_command import run_trust

            return run_trust(options, environ, console, _current_folder(), notices)
        if options["command"] == "undo":
            from bradawl.app.undo_command import run_undo

            with console.reserving_stdout():
                return run_undo(options, environ, console, _current_folder(), partial(_say_notice, console))
        from bradawl.app.models_command import run_models

        return run_models(options, environ, console, _current_folder(), notices)

    return _exit_code_of(run, environ, console, as_json=False)


async def _demo(console: Console) -> int:
    with Interrupts() as interrupts:
        from bradawl.app.demo.run import run_demo

        try:
            return await run_demo(console.stdout)
        except asyncio.CancelledError:
            if not interrupts.has_arrived:
                raise
            return _fail("Interrupted; the demo's temporary folder is removed.", interrupts.exit_code, console)


def _run(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    console: Console,
    build: Build | None,
    load_commands: "Callable[[], CommandRegistry]",
) -> int:
    is_headless = bool(options.get("headless"))
    user_is_there = not is_headless and console.has_user
    given = {**options, "headless": not user_is_there}
    try:
        settings = load_settings(given, environ, _current_folder())
    except NoProvider:
        if not is_headless or str(options.get("prompt") or "").split(" ")[0] not in _NEED_NO_MODEL:
            _suggest_local_servers(environ, console)
            raise
        settings = load_settings_without_model(given, environ, _current_folder())
    # Errors from here on are JSON also if only a file of settings asks for it.
    as_json = is_headless and settings.output_format == "json"
    return _exit_code_of(
        lambda: _start(settings, options, console, build, load_commands), environ, console, as_json=as_json
    )


def _start(
    settings: "Settings",
    options: Mapping[str, object],
    console: Console,
    build: Build | None,
    load_commands: "Callable[[], CommandRegistry]",
) -> int:
    is_headless = bool(options.get("headless"))
    notices = NoticeStream(partial(_say_notice, console))
    for warning in settings.warnings:
        notices(warning)
    if settings.debug_log:
        notices(f"requests and replies are logged, in shapes, below {debug_folder(settings)}")
    prompt = str(options.get("prompt") or "")
    is_command, piped = is_headless and _is_command(prompt), ""
    if is_headless and not is_command:
        prompt, piped = _prompt_and_piped(prompt, console, notices)
    request = RunRequest(
        settings,
        build or _agent_builder(notices),
        partial(chosen_session, options=options),
        load_commands,
        lambda: load_settings({**options, "headless": False}, settings.environment, _current_folder()),
        notices,
        prompt,
        piped,
        is_command=is_command,
        mode_is_asked_for=is_asked_for(options, settings.environment),
    )
    if is_headless:
        with console.reserving_stdout():
            return asyncio.run(_headless(request, console))
    return asyncio.run(_interactive(request, console))


def _say_notice(console: Console, item: Envelope | Live) -> None:
    """The `Emit` of warnings until a front end takes over."""
    if isinstance(item, Live) and isinstance(item.item, Notice):
        console.say(notice_line(item.item))


def _agent_builder(notices: NoticeStream) -> Build:
    from bradawl.app.build.agent import build_agent

    return partial(build_agent, notify=notices)


def _suggest_local_servers(environ: Mapping[str, str], console: Console) -> None:
    """Print how to use the model servers that run on this machine."""
    from bradawl.app.build.model import build_http
    from bradawl.app.local_models import find_local, suggestions

    for line in suggestions(asyncio.run(find_local(build_http(None, None), PROVIDERS, environ))):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        console.say(indent + one_line(line))


_UNDECIDED: Final = -1
"""The exit code of a run that has printed no answer yet."""


async def _headless(request: RunRequest, console: Console) -> int:
    from bradawl.app.headless import HeadlessScreen, run_headless, run_headless_command

    settings = request.settings
    as_json = settings.output_format == "json"
    _report_loop_errors(settings.home, request.notices)
    screen = HeadlessScreen(console)
    approver = DenyAllApprover(settings.user_home, partial(help_with_refusals, settings))
    code = _UNDECIDED
    with Interrupts() as interrupts:
        try:
            frontend = request.start(approver, screen.emit, user_is_there=False)
            try:
                session_id = request.choose_session(frontend.agent)
                if request.is_command:
                    code = await run_headless_command(frontend, screen, session_id, interrupts, as_json=as_json)
                else:
                    code = await run_headless(frontend, screen, session_id, interrupts, as_json=as_json)
            finally:
                await frontend.agent.aclose()
        except asyncio.CancelledError:
            if not interrupts.has_arrived:
                raise
            if code == _UNDECIDED:
                return _fail("Interrupted.", interrupts.exit_code, console, as_json=as_json, reason="cancelled")
        except Exception as error:
            if code == _UNDECIDED:
                raise
            console.say(f"note: the run is over, but its connections could not be closed: {one_line(str(error))}")
    return code  # what happens after the answer was printed does not change its verdict


def _is_command(prompt: str) -> bool:
    """True for a slash command on the command line; what is piped in is always part of a prompt."""
    if not prompt.lstrip().startswith("/"):
        return False
    from bradawl.app.slash_commands import is_command

    return is_command(prompt)


async def _interactive(request: RunRequest, console: Console) -> int:
    from bradawl.app.tui.repl import run_repl

    _report_loop_errors(request.settings.home, request.notices)
    return await run_repl(request, console)


def chosen_session(agent: "Agent", options: Mapping[str, object]) -> str | None:
    """Id of the session that `-r` or `-c` names; None for a new one. Raises `SessionNotFound`."""
    if (resume := options.get("resume")) is not None:
        return cast(str, resume)
    if not options.get("continues"):
        return None
    latest = agent.store.latest()
    if latest is None:
        raise SessionNotFound("There is no session to continue in this folder; leave out -c to begin one.")
    return latest


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError as error:
        raise SettingsError("The current folder is gone; change to one that exists.") from error


def _prompt_and_piped(prompt: str, console: Console, notices: NoticeStream) -> tuple[str, str]:
    """The prompt, and what is piped in besides it, which alone is the prompt. Raises `SettingsError` without either."""
    try:
        piped = console.piped_input(notices, wait=not prompt.strip())
    except ValueError as error:
        raise SettingsError(f"{error}; put it into a file and name that in the prompt.") from error
    parts = [part.encode("utf-8", "replace").decode() for part in (prompt, piped) if part and part.strip()]
    if not parts:
        raise SettingsError("The prompt is empty: use `bradawl -p PROMPT`, or pipe it in.")
    return parts[0], "".join(parts[1:])


# ------------------------------------------------------------------ errors


def _exit_code_of(work: Callable[[], int], environ: Mapping[str, str], console: Console, *, as_json: bool) -> int:
    try:
        return work()
    except KeyboardInterrupt:
        return _fail("Interrupted.", CANCELLED, console, as_json=as_json, reason="cancelled")
    except Exception as error:
        # Users never see a traceback.
        from bradawl.app.error_reports import innermost

        message, code = _message_and_exit_code(innermost(error), error, environ)
        return _fail(message, code, console, as_json=as_json)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        return _fail("Interrupted.", CANCELLED, console, as_json=as_json, reason="cancelled")


def _message_and_exit_code(error: BaseException, whole: Exception, environ: Mapping[str, str]) -> tuple[str, int]:
    match error:
        case NoSandbox():
            return str(error), NO_SANDBOX
        case SettingsError():
            return str(error), USAGE
        case SessionBusy():
            return str(error), TRY_AGAIN
        case ModelFailed():
            return str(error), exit_code("error", error.failure, saved=True)
        case BradawlError():
            return str(error), ERROR
        case OutputError():
            return str(error), NOT_SAVED
        case _:
            return _report(whole, environ), ERROR


def _fail(message: str, code: int, console: Console, *, as_json: bool = False, reason: str = "error") -> int:
    message = one_line(message)
    console.say(f"bradawl: {message}")
    try:
        if as_json:
            console.answer(result_of_failure(message, code, reason=reason).to_json())
    except OutputError:
        pass  # the message is on stderr
    return code


def _report(error: Exception, environ: Mapping[str, str]) -> str:
    """Write the traceback to a file; returns a message that names it."""
    from bradawl.app.error_reports import report

    try:
        home = homes(environ, _current_folder()).data
    except SettingsError:
        home = os.devnull  # no file can be written below it
    return f"internal error: {report(error, home)}"


def _report_loop_errors(home: str, notices: NoticeStream) -> None:
    """Write errors that the event loop reports to a file, not to stderr. A notice names the file if a turn ended."""

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            from bradawl.app.error_reports import write_report

            try:
                path = write_report(home, error)
            except OSError:
                return
            if context.get("ends_turn"):
                notices(f"details of the error that ended the turn are in {path}")

    asyncio.get_running_loop().set_exception_handler(handle)
