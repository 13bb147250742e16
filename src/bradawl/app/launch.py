"""Starts a front end with parsed options, and turns each error outside of turns into one line and an exit code."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from bradawl.app.console import Console, OutputError
from bradawl.app.exit_code import CANCELLED, ERROR, NOT_SAVED, USAGE, code_of_error, result_of_failure
from bradawl.app.frontend import Build, RunRequest
from bradawl.app.interrupts import Interrupts
from bradawl.app.modes import help_with_refusals, is_asked_for
from bradawl.app.notices import NoticeStream
from bradawl.app.rendering import notice_line, one_line
from bradawl.app.session_choice import chosen_session, kept_flags
from bradawl.app.settings.homes import homes
from bradawl.app.settings.load import load_settings, load_settings_without_model
from bradawl.app.settings.providers import NoProvider
from bradawl.app.settings.settings import debug_folder
from bradawl.app.symbols import symbols_for
from bradawl.core.deltas import Notice
from bradawl.core.errors import BradawlError, SettingsError
from bradawl.core.events import Envelope, Live

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.app.headless import HeadlessRun
    from bradawl.app.run_models import RunModels
    from bradawl.app.settings.settings import Settings
    from bradawl.app.slash_commands import CommandRegistry
    from bradawl.app.stream_json.run import StreamRun
    from bradawl.core.ports import Approver


_NEED_NO_MODEL: Final = ("/help", "/undo", "/redo", "/rewind", "/diff")
"""Slash commands that work in `-p` where no model is set up."""


def load_builtin_commands() -> "CommandRegistry":
    """bradawl's own slash commands."""
    from bradawl.app.commands.builtin import builtin_commands

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
        lambda: _run(options, environ, console, build, load_commands, as_json=as_json),
        environ,
        console,
        as_json=as_json,
    )


def launch_demo(console: Console, environ: Mapping[str, str]) -> int:
    """Run the demonstration and return the exit code. Raises nothing."""

    return _exit_code_of(lambda: asyncio.run(_demo(console)), environ, console, as_json=False)


def launch_command(options: Mapping[str, object], environ: Mapping[str, str], console: Console) -> int:
    """Run a command of `cli.COMMANDS`, or `permissions`, and return the exit code. Raises nothing."""
    notices = NoticeStream(partial(_say_notice, console))

    def run() -> int:
        if options["command"] == "doctor":
            from bradawl.app.doctor.command import run_doctor

            with console.reserving_stdout():
                return run_doctor(options, environ, console, _current_folder())
        if options["command"] == "permissions":
            from bradawl.app.build.agent import build_agent
            from bradawl.app.permissions_check import run_check

            return run_check(options, environ, console, _current_folder(), build_agent)
        if options["command"] == "config":
            from bradawl.app.config.command import ConfigRun

            return ConfigRun(options, environ, console, _current_folder(), notices).run()
        if options["command"] == "trust":
            from bradawl.app.trust_command import run_trust

            return run_trust(options, environ, console, _current_folder(), notices)
        if options["command"] in ("login", "logout"):
            from bradawl.app.login.command import run_login, run_logout

            run_it = run_login if options["command"] == "login" else run_logout
            return run_it(options, environ, console, _current_folder())
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
    *,
    as_json: bool,
) -> int:
    is_headless = bool(options.get("headless"))
    user_is_there = not is_headless and console.has_user
    given = {**options, "headless": not user_is_there}
    try:
        settings = load_settings(given, environ, _current_folder())
    except NoProvider as error:
        if not is_headless or str(options.get("prompt") or "").split(" ")[0] not in _NEED_NO_MODEL:
            return _say_how_to_begin(error, environ, console, as_json=as_json)
        settings = load_settings_without_model(given, environ, _current_folder())
    # Errors from here on are JSON also if only a file of settings asks for it.
    as_json = is_headless and settings.output_format != "text"
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
    for warning in (*settings.warnings, *cast("Sequence[str]", options.get("flag_warnings") or ())):
        notices(warning)
    _check_formats(settings)
    if not settings.model.is_local and settings.model.base_url:
        from bradawl.app.catalog_facts import unknown_model_note

        if note := unknown_model_note(settings.model):
            notices(note)
    if settings.debug_log:
        notices(f"requests and replies are logged, in shapes, below {debug_folder(settings)}")
    prompt = str(options.get("prompt") or "")
    is_command, piped = is_headless and _is_command(prompt), ""
    if is_headless and not is_command and settings.values.get("input_format") != "stream-json":
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
        kept_flags=kept_flags(options),
        load_models=partial(_models, settings, options, notices),
        settings_with=lambda more: load_settings(
            {**options, "headless": settings.headless, **more}, settings.environment, _current_folder()
        ),
    )
    if is_headless:
        with console.reserving_stdout():
            return asyncio.run(_headless(request, console))
    return asyncio.run(_interactive(request, console))


def _say_notice(console: Console, item: Envelope | Live) -> None:
    """The `Emit` of warnings until a front end takes over."""
    if isinstance(item, Live) and isinstance(item.item, Notice):
        console.say(notice_line(item.item))


def _models(settings: "Settings", options: Mapping[str, object], notices: NoticeStream) -> "RunModels":
    from bradawl.app.run_models import RunModels

    return RunModels(settings, options, _current_folder(), notices)


def _agent_builder(notices: NoticeStream) -> Build:
    def build(settings: "Settings", approver: "Approver") -> "Agent":
        from bradawl.app.build.agent import build_agent  # loaded once a front end is on the screen

        return build_agent(settings, approver, notify=notices)

    return build


def _say_how_to_begin(error: NoProvider, environ: Mapping[str, str], console: Console, *, as_json: bool) -> int:
    """Print what is missing and what to do, and return the exit code."""
    from bradawl.app.build.model import build_http
    from bradawl.app.first_run import find_first_run_lines
    from bradawl.app.terminal_size import ONE_LINE, terminal_width

    width = terminal_width(console.stderr, environ, ONE_LINE)
    for line in asyncio.run(find_first_run_lines(build_http(None, None), environ, width, one_line(error.note))):
        console.say(line)
    if as_json:
        console.answer(result_of_failure(one_line(str(error)), USAGE).to_json())
    return USAGE


_UNDECIDED: Final = -1
"""The exit code of a run that has printed no answer yet."""


async def _headless(request: RunRequest, console: Console) -> int:
    settings = request.settings
    as_json = settings.output_format != "text"
    _report_loop_errors(settings.home, request.notices)
    code = _UNDECIDED
    with Interrupts() as interrupts:
        run = _headless_run(request, console, interrupts)
        try:
            frontend = request.start(run.approver, run.emit, user_is_there=False)
            frontend.symbols = symbols_for(getattr(console.stdout, "encoding", None))
            try:
                code = await run.run(frontend, request.choose_session(frontend.agent))
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


def _headless_run(request: RunRequest, console: Console, interrupts: Interrupts) -> "HeadlessRun | StreamRun":
    advice = partial(help_with_refusals, request.settings)
    if request.settings.output_format == "stream-json":
        from bradawl.app.stream_json.run import StreamRun

        return StreamRun(request, console, interrupts, advice)
    from bradawl.app.headless import HeadlessRun

    return HeadlessRun(request, console, interrupts, advice)


def _check_formats(settings: "Settings") -> None:
    """Raises `SettingsError` for formats and flags that need others."""
    of_input = ("replay_user_messages", "permission_prompt_tool")
    is_stream = settings.output_format == "stream-json"
    reads_stream = settings.values.get("input_format") == "stream-json"
    if reads_stream and not is_stream:
        raise SettingsError("--input-format stream-json needs --output-format stream-json.")
    for name in ("include_partial_messages", *of_input):
        if settings.values.get(name) and not (reads_stream if name in of_input else is_stream):
            needed = "--input-format stream-json" if name in of_input else "--output-format stream-json"
            raise SettingsError(f"--{name.replace('_', '-')} needs {needed}.")


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

        cause = innermost(error)
        message, code = _message_and_exit_code(cause, error, environ)
        return _fail(message, code, console, as_json=as_json, report=_report_of(cause, console, environ))
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        return _fail("Interrupted.", CANCELLED, console, as_json=as_json, reason="cancelled")


def _message_and_exit_code(error: BaseException, whole: Exception, environ: Mapping[str, str]) -> tuple[str, int]:
    match error:
        case BradawlError():
            return str(error), code_of_error(error)
        case OutputError():
            return str(error), NOT_SAVED
        case _:
            return _report(whole, environ), ERROR


def _report_of(error: BaseException, console: Console, environ: Mapping[str, str]) -> str:
    """All mistakes in settings files with the lines they are in; empty for other errors."""
    from bradawl.app.settings.mistakes import FileMistakes

    if not isinstance(error, FileMistakes):
        return ""
    from bradawl.app.terminal_size import terminal_width

    return error.report(terminal_width(console.stderr, environ))


def _fail(
    message: str, code: int, console: Console, *, as_json: bool = False, reason: str = "error", report: str = ""
) -> int:
    message = one_line(message)
    console.say(f"bradawl: {report or message}")
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
