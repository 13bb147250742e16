"""From options to a run, and the border at which every error becomes a line and an exit code."""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bradawl.app.console import Console, OutputError
from bradawl.app.interrupts import Interrupts
from bradawl.app.providers import PROVIDERS, NoProvider
from bradawl.app.rendering import one_line
from bradawl.app.result import CANCELLED, ERROR, NO_SANDBOX, NOT_SAVED, TRY_AGAIN, USAGE, exit_code, result_of_failure
from bradawl.app.settings import NoSandbox, Settings, debug_folder, load_settings
from bradawl.app.sources import homes
from bradawl.app.window import LONG_TOKENS, WindowWatch
from bradawl.core.errors import BradawlError, ModelFailed, SessionBusy, SessionNotFound, SettingsError

if TYPE_CHECKING:
    from bradawl.agent.agent import Agent
    from bradawl.core.ports import Approver

Build = Callable[[Settings, "Approver"], "Agent"]
"""Puts an agent together, as `bradawl.app.build.agent.build_agent` does; may raise `SettingsError`."""


def launch(
    options: Mapping[str, object],
    environ: Mapping[str, str],
    console: Console,
    *,
    as_json: bool,
    build: Build | None = None,
) -> int:
    """Run with options as `cli.parse` gives them; every error ends here. Gives back the exit code."""
    as_json = as_json and bool(options.get("headless"))
    return _guarded(lambda: _run(options, environ, console, build), environ, console, as_json=as_json)


def launch_demo(console: Console, environ: Mapping[str, str]) -> int:
    """Run the demonstration. Gives back the exit code."""

    return _guarded(lambda: asyncio.run(_demo(console)), environ, console, as_json=False)


def launch_command(options: Mapping[str, object], environ: Mapping[str, str], console: Console) -> int:
    """Run a command that is no conversation. Gives back the exit code."""

    def run() -> int:
        if options["command"] == "doctor":
            from bradawl.app.doctor import run_doctor

            return run_doctor(options, environ, console, _current_folder())
        if options["command"] == "permissions":
            from bradawl.app.build.agent import build_agent
            from bradawl.app.permissions_check import run_check

            return run_check(options, environ, console, _current_folder(), build_agent)
        if options["command"] == "trust":
            from bradawl.app.trusting import run_trust

            return run_trust(options, environ, console, _current_folder())
        from bradawl.app.models import run_models

        return run_models(options, environ, console, _current_folder())

    return _guarded(run, environ, console, as_json=False)


async def _demo(console: Console) -> int:
    with Interrupts() as interrupts:
        from bradawl.app.demo.run import run_demo

        try:
            return await run_demo(console.stdout)
        except asyncio.CancelledError:
            if not interrupts.came:
                raise
            return _fail("Interrupted; the demo's temporary folder is removed.", interrupts.exit_code, console)


def _run(options: Mapping[str, object], environ: Mapping[str, str], console: Console, build: Build | None) -> int:
    is_one_shot = bool(options.get("headless"))
    nobody_types = is_one_shot or not console.has_user
    try:
        settings = load_settings({**options, "headless": nobody_types}, environ, _current_folder())
    except NoProvider:
        _tell_of_local_servers(environ, console)
        raise
    for warning in settings.warnings:
        console.say(f"note: {one_line(warning)}")
    if settings.debug_log:
        console.say(f"note: requests and replies are logged, in shapes, below {one_line(str(debug_folder(settings)))}")
    prompt = str(options.get("prompt") or "")
    if is_one_shot:
        prompt = _whole_prompt(prompt, console)
    put_together = build or _build_agent(console)
    if is_one_shot:
        return asyncio.run(_headless(settings, options, prompt, console, put_together))
    return asyncio.run(_interactive(settings, options, prompt, console, put_together))


def _tell_of_local_servers(environ: Mapping[str, str], console: Console) -> None:
    """Who has set up nothing may still have a model server running."""
    from bradawl.app.build.model import build_http
    from bradawl.app.local_models import find_local, suggestions

    for line in suggestions(asyncio.run(find_local(build_http(None, None), PROVIDERS, environ))):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        console.say(indent + one_line(line))


def _build_agent(console: Console) -> Build:
    from bradawl.app.build.agent import build_agent

    def tell(problem: str) -> None:
        console.say(f"note: {one_line(problem)}")

    return partial(build_agent, tell=tell)


async def _headless(
    settings: Settings, options: Mapping[str, object], prompt: str, console: Console, build: Build
) -> int:
    from bradawl.app.approvers import DenyAllApprover
    from bradawl.app.headless import Start, run_headless
    from bradawl.app.modes import begin_in_mode, help_with_refusals, is_asked_for, sandbox_warning

    as_json = settings.output_format == "json"
    _keep_quiet(settings.home)
    with Interrupts() as interrupts:
        try:
            agent = build(settings, DenyAllApprover(settings.user_home, partial(help_with_refusals, settings)))
            try:
                start = Start(
                    chosen_session(agent, options),
                    partial(begin_in_mode, settings=settings, is_asked_for=is_asked_for(options, settings.environment)),
                    lambda: sandbox_warning(lambda: agent.policy().sandbox, settings, user_is_there=False),
                )
                watch = WindowWatch(agent.model, is_local=settings.model.is_local, from_tokens=LONG_TOKENS)
                return await run_headless(agent, prompt, start, console, interrupts, as_json=as_json, watch=watch)
            finally:
                await agent.aclose()
        except asyncio.CancelledError:
            if not interrupts.came:
                raise
            return _fail("Interrupted.", interrupts.exit_code, console, as_json=as_json, reason="cancelled")


async def _interactive(
    settings: Settings, options: Mapping[str, object], prompt: str, console: Console, build: Build
) -> int:
    from bradawl.app.modes import is_asked_for
    from bradawl.app.tui.repl import run_repl

    _keep_quiet(settings.home)
    settings = await _with_trust(settings, options, console)
    wanted = is_asked_for(options, settings.environment)
    make, choose = partial(build, settings), partial(chosen_session, options=options)
    return await run_repl(settings, make, choose, prompt, console, mode_is_asked_for=wanted)


async def _with_trust(settings: Settings, options: Mapping[str, object], console: Console) -> Settings:
    """The settings as they are once the user has said whether the project's files count, if that has to be asked."""
    from bradawl.app.trusting import answer_trust, trust_question

    if not console.has_user or (question := trust_question(settings)) is None:
        return settings
    from bradawl.app.tui.lines import reader_for
    from bradawl.safety.terminal import escape

    console.say(escape(question))
    try:
        said = await reader_for(console, settings.home).ask("Do you trust it? [y/N] ")
    except (EOFError, KeyboardInterrupt):
        return settings  # no answer: it is asked again at the next start
    is_trusted = said.strip().lower() in ("y", "yes")
    answer_trust(settings, is_trusted=is_trusted)
    return load_settings({**options, "headless": False}, settings.environment, _current_folder())


def chosen_session(agent: "Agent", options: Mapping[str, object]) -> str | None:
    """The session `-r` or `-c` asks for, or None for a new one. Raises `SessionNotFound`."""
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


def _whole_prompt(prompt: str, console: Console) -> str:
    """The prompt with what was piped in behind it. Raises `SettingsError` if that is nothing."""
    try:
        piped = console.piped_input(wait=not prompt.strip())
    except ValueError as error:
        raise SettingsError(f"{error}; put it into a file and name that in the prompt.") from error
    parts = [part for part in (prompt, piped) if part and part.strip()]
    if not parts:
        raise SettingsError("The prompt is empty: use `bradawl -p PROMPT`, or pipe it in.")
    return "\n\n".join(parts).encode("utf-8", "replace").decode()


# ------------------------------------------------------------------ errors


def _guarded(work: Callable[[], int], environ: Mapping[str, str], console: Console, *, as_json: bool) -> int:
    try:
        return work()
    except KeyboardInterrupt:
        return _fail("Interrupted.", CANCELLED, console, as_json=as_json, reason="cancelled")
    except Exception as error:
        # The last border: a user never sees a traceback.
        message, code = _told(_innermost(error), error, environ)
        return _fail(message, code, console, as_json=as_json)
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        return _fail("Interrupted.", CANCELLED, console, as_json=as_json, reason="cancelled")


def _innermost(error: Exception) -> Exception:
    """Task groups wrap what went wrong in them."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = cast(Exception, error.exceptions[0])
    return error


def _told(error: Exception, whole: Exception, environ: Mapping[str, str]) -> tuple[str, int]:
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
        pass  # it has been said on stderr
    return code


def _report(error: Exception, environ: Mapping[str, str]) -> str:
    """Write the traceback where a user does not have to see it; says where."""
    what = f"internal error: {type(error).__name__}: {error}"
    try:
        path = write_report(homes(environ, _current_folder()).data, error)
    except (OSError, SettingsError):
        return f"{what} (details could not be written)"
    return f"{what} (details in {path})"


def write_report(home: str, error: BaseException) -> str:
    """Write a traceback to a new file below `home`, readable by its owner alone. Raises `OSError`."""
    import time
    import traceback

    folder = Path(home, "errors")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{time.time_ns() // 1_000_000}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text.encode("utf-8", "replace").decode())
    return str(path)


def _keep_quiet(home: str) -> None:
    """The loop's own complaints go to a report, not to the user."""

    def handle(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            try:
                write_report(home, error)
            except OSError:
                return

    asyncio.get_running_loop().set_exception_handler(handle)
