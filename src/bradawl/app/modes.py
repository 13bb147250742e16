"""What a user is told of permission modes and the sandbox, and the mode a session begins in."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from bradawl.core.permissions import Mode, Sandbox

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.app.settings import Settings

_ASKED: Final[dict[Mode, str]] = {
    "default": "asks before anything is changed",
    "accept-edits": "edits files in the workspace, asks for the rest",
    "plan": "nothing may change until you approve a plan",
    "auto": "asks only for what leaves the workspace or the sandbox",
    "bypass": "asks nothing",
}


def mode_text(mode: Mode) -> str:
    """`plan: nothing may change until you approve a plan`."""
    return f"{mode}: {_ASKED[mode]}"


def sandbox_text(sandbox: Sandbox) -> str:
    """What holds commands, on one line."""
    if not sandbox.name:
        return "none: commands run with all your rights"
    return f"{sandbox.name}, which can't hold: {', '.join(sandbox.lacks)}" if sandbox.lacks else sandbox.name


def sandbox_warning(find: Callable[[], Sandbox], settings: "Settings", *, user_is_there: bool) -> str:
    """What must be said at the start about the sandbox; empty where it holds, or where nobody wants one.

    `find` may wait, and is not asked in the second case.
    """
    if settings.sandbox == "off" or (sandbox := find()).holds_anything:
        return ""
    instead = "you are asked about" if user_is_there else "bradawl refuses"
    if sandbox.name:
        lacks = ", ".join(sandbox.lacks)
        text = f"SANDBOX {sandbox.name} can't hold {lacks}: {instead} every command that can't be judged by itself."
        return f"{text} `bradawl doctor` says how to get one that holds more."
    text = f"NO SANDBOX: nothing holds what commands do, so {instead} every command that may change something."
    if sys.platform != "linux":
        return text
    # Where it is installed, something else is in the way, such as a workspace that holds the home folder.
    if _is_on_path("bwrap", settings.environment.get("PATH", os.defpath)):
        return f"{text} `bradawl doctor` says why there is none."
    from bradawl.app.sandbox_help import install_hint

    return f"{text} {install_hint()}"


def _is_on_path(name: str, path: str) -> bool:
    """As `shutil.which`, which loads three compression libraries at each start without a sandbox."""
    places = (f"{folder or '.'}/{name}" for folder in path.split(os.pathsep))
    return any(os.path.isfile(each) and os.access(each, os.X_OK) for each in places)  # noqa: PTH113 - at the start


def help_with_refusals(settings: "Settings") -> str:
    """What to install so that commands are not refused for want of a sandbox; empty where that would not help."""
    is_wanted = settings.sandbox != "off" and settings.permission_mode in (None, "auto")
    if not is_wanted or not sys.platform.startswith("linux"):
        return ""
    from bradawl.app.build.workspace import folders_of, layout_of
    from bradawl.app.sandbox_help import refused_hint
    from bradawl.sandbox.replaced_paths import unfit

    return "" if unfit(layout_of(settings, folders_of(settings))) else refused_hint()


def begin_in_mode(session: "Session", settings: "Settings", *, is_asked_for: bool) -> None:
    """Choose the mode a session begins or goes on in.

    What was chosen in a session holds when it goes on, unless the mode was asked for just now (`is_asked_for`), by a
    flag or a variable, or is fixed by whoever runs the machine. Plan mode is written down where it begins.
    """
    wanted, had = settings.permission_mode, session.state.mode
    if wanted is None or wanted == had:
        return
    is_fixed = settings.is_mode_fixed and had != "plan"
    if (is_asked_for or is_fixed) if had is not None else wanted == "plan":
        session.reminders.choose_mode(wanted)


def is_asked_for(options: Mapping[str, object], environ: Mapping[str, str]) -> bool:
    """Whether the mode was chosen for this run, by a flag or a variable."""
    return any(
        options.get(name) is not None or environ.get(f"BRADAWL_{name.upper()}", "").strip()
        for name in ("permission_mode", "yolo")
    )


def why_not(mode: Mode, settings: "Settings") -> str:
    """What is against choosing a mode in a running session; empty if nothing is."""
    if settings.is_mode_fixed and mode not in ("plan", settings.permission_mode):
        return "The mode is fixed on this machine; only plan mode can be entered and left."
    if mode == "bypass" and settings.permission_mode != "bypass":
        return "Questions can only be switched off at the start: leave and use `bradawl -c --yolo`."
    return ""
