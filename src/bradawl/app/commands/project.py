"""The slash commands about the folder that the session works in: `/add-dir`, `/trust`, `/doctor`."""

import asyncio
import io
import os
import sys
from pathlib import Path
from typing import Final, Literal

from bradawl.app.added_folders import added_folders, with_folders
from bradawl.app.console import Console
from bradawl.app.frontend import FrontendSession
from bradawl.app.rendering import one_line
from bradawl.app.slash_commands import CommandError, CommandFailed, CommandResult, Rest, command
from bradawl.core.errors import SettingsError
from bradawl.core.events import DirsAdded

_NOTE: Final = "The user added the folder {} to the workspace: you may read and change files in it, as in the project."


@command("add-dir")
async def add_folder(session: FrontendSession, folder: Rest) -> CommandResult:
    """Add a folder to the workspace of this session: /add-dir ../shared.

    The files in FOLDER are read and changed like those of the project: sandbox, permissions and undo cover it from now
    on, also when the session is continued. The session is opened anew for it, so background jobs must have ended, and
    what you allowed for the session by an answer is asked about again. Folders for all sessions belong into `--add-dir`
    or the settings.
    """
    front, choices = session.frontend, session.session.choices
    path = _real_path(session, folder)
    if not added_folders((path,), front.settings):
        return CommandResult(f"{one_line(path)} is in the workspace already.")
    if running := session.session.jobs.running:
        raise CommandError(
            f"The session is opened anew for that, which would end {', '.join(running)}: /jobs end JOB first."
        )
    try:
        settings = with_folders((path,), front.settings, front.request.settings_with)
    except SettingsError as error:
        raise CommandError(str(error).replace("--add-dir: ", "")) from error
    has_begun = session.session.conversation.last_event is not None
    if not has_begun and not front.user_is_there:
        raise CommandError("There is no session yet to widen: add -c or -r ID, or use --add-dir.")
    choices.record(DirsAdded((path,)))
    session.session.conversation.note(_NOTE.format(path))
    if has_begun and not await session.session.conversation.is_on_disk():
        raise CommandFailed("That could not be saved, so the workspace stays as it is; the disk may be full.")
    front.next_settings, front.added_dirs = settings, (*front.added_dirs, path)
    text = f"{one_line(path)} belongs to the workspace from now on."
    return CommandResult(
        text, then="open_session" if has_begun else "new_session", session=session.id if has_begun else ""
    )


def _real_path(session: FrontendSession, folder: str) -> str:
    settings = session.frontend.settings
    is_home = folder == "~" or folder.startswith("~/")
    path = Path(session.session.state.cwd or settings.cwd, settings.user_home + folder[1:] if is_home else folder)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:
        raise CommandError(f"{folder[:100]!r} can't be used: {error}.") from error


@command("trust")
async def trust_project(
    session: FrontendSession, action: Literal["show", "remove", "list"] | None = None
) -> CommandResult:
    """Trust this project: what its own files allow takes effect, as the files are now.

    It shows the entries first and asks. /trust show only shows them, /trust remove takes the trust back, /trust list
    lists the folders that are trusted. What changes takes effect in the next session or run.
    """
    if action is not None:
        return CommandResult(await _trust(session, action))
    shown = await _trust(session, "show")
    settings = session.frontend.settings
    if (user := session.frontend.user) is None:
        raise CommandError("Only a user can trust a project: run `bradawl trust` in it, and see `/trust show`.")
    answer = await user.ask(shown, f"Trust {one_line(settings.project or settings.cwd)}? [y/N] ")
    if answer.strip().lower() not in ("y", "yes"):
        return CommandResult("Nothing was changed.")
    text = (await _trust(session, "trust")).splitlines()[-1:]
    return CommandResult("\n".join((*text, "/clear begins a session in which it counts.", *_reload(session))))


def _reload(session: FrontendSession) -> tuple[str, ...]:
    """Have the next session of this run use the settings of the trusted files; a warning if they can't be used."""
    front = session.frontend
    if front.request.settings_with is None:
        return ()
    try:
        front.next_settings = front.request.settings_with({"add_dirs": list(front.settings.add_dirs)})
    except SettingsError as error:
        return (f"They can't be used: {one_line(str(error))}",)
    return ()


async def _trust(session: FrontendSession, action: str) -> str:
    """What `bradawl trust` prints."""
    from bradawl.app.trust_command import run_trust

    settings = session.frontend.settings
    options: dict[str, object] = {} if action == "trust" else {action: True}
    printed, notes = io.StringIO(), list[str]()
    console = Console(io.StringIO(), printed, printed, settings.environment)
    await asyncio.to_thread(run_trust, options, settings.environment, console, settings.cwd, notes.append)
    return "\n".join((*map(one_line, notes), printed.getvalue().rstrip("\n")))


_COLUMNS: Final = "78"
"""Width of what `/doctor` prints: the text is printed later, at a terminal that is seldom narrower."""


@command("doctor")
async def check_everything(session: FrontendSession, form: Literal["json"] | None = None) -> CommandResult:
    """Check everything that a run needs, and say how to fix what is missing.

    It asks the provider whether key and model are right. /doctor json gives the data.
    """
    text, code = await doctor_report(session, as_json=form == "json")
    return CommandResult(text, exit_code=code)


async def doctor_report(session: FrontendSession, *, as_json: bool) -> tuple[str, int]:
    """What `bradawl doctor` prints for the settings and the model of the session, and its exit code."""
    from bradawl.app.doctor.command import run_doctor

    settings = session.frontend.settings
    options: dict[str, object] = {"json": as_json, "model": session.model_name, "base_url": None, "cwd": None}
    printed = io.StringIO()
    environment = {"COLUMNS": _COLUMNS, **settings.environment}
    console = Console(io.StringIO(), printed, printed, environment)
    has_user = session.frontend.user is not None
    terminal = Console(sys.stdin, printed, printed, settings.environment) if has_user else console
    code = await asyncio.to_thread(run_doctor, options, environment, console, settings.cwd, terminal)
    return printed.getvalue().rstrip("\n"), code
