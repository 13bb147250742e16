"""Permission modes and the sandbox for front ends: their descriptions, warnings, and the mode of a session."""

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from bradawl.app.data_folder import UNWRITABLE_HINT, unwritable_place, without_data_text
from bradawl.core.permissions import MODES, Mode, Sandbox

if TYPE_CHECKING:
    from bradawl.agent.session import Session
    from bradawl.app.settings.settings import Settings

_ASKED: Final[dict[Mode, str]] = {
    "default": "asks before anything is changed",
    "accept-edits": "edits files in the workspace, asks for the rest",
    "plan": "nothing may change until you approve a plan",
    "auto": "asks only for what leaves the workspace or the sandbox",
    "bypass": "asks nothing",
}


STILL_PLANNING: Final = "still in plan mode, in which nothing may change; --permission-mode auto leaves it"


def mode_text(mode: Mode) -> str:
    """`plan: nothing may change until you approve a plan`."""
    return f"{mode}: {_ASKED[mode]}"


def sandbox_text(sandbox: Sandbox) -> str:
    """The sandbox of commands and the guarantees it lacks, on one line."""
    if not sandbox.name:
        return "none: commands run with all your rights"
    return f"{sandbox.name}, which can't hold: {', '.join(sandbox.lacks)}" if sandbox.lacks else sandbox.name


WHOLE_NETWORK: Final = (
    "this sandbox can't limit the network to domains: a command gets none, or all of it after a question; rules that "
    "grant domains have no effect"
)


def sandbox_warning(find: Callable[[], Sandbox], settings: "Settings", *, user_is_there: bool) -> str:
    """The warning for the start that there is no sandbox, or an incomplete one; empty if it is complete or switched
    off.

    `find` may wait until the sandbox is found; it is not called if the sandbox is switched off.
    """
    if settings.sandbox == "off":
        return ""
    sandbox = find()
    names_domains = any(text.verdict == "domain" for text in settings.rules)
    network = f"NETWORK {WHOLE_NETWORK}." if names_domains and sandbox.name and not sandbox.limits_hosts else ""
    if sandbox.holds_anything:
        return network
    instead = "you are asked about" if user_is_there else "bradawl refuses"
    if sandbox.name:
        lacks = ", ".join(sandbox.lacks)
        text = f"SANDBOX {sandbox.name} can't hold {lacks}: {instead} every command that can't be judged by itself."
        return f"{text} `bradawl doctor` says how to get one that holds more. {network}".rstrip()
    text = f"NO SANDBOX: nothing holds what commands do, so {instead} every command that may change something."
    if sys.platform != "linux":
        return text
    if without_data := without_data_text(settings.home):
        return f"{text} {without_data}"
    # With bubblewrap installed there is another reason, such as a workspace that contains the home folder.
    if _is_on_path("bwrap", settings.environment.get("PATH", os.defpath)):
        return f"{text} `bradawl doctor` says why there is none."
    from bradawl.app.sandbox_help import install_hint

    return f"{text} {install_hint()}"


def undo_warning(settings: "Settings") -> str:
    """The warning for the start that changes can't be undone, because the data folder can't be written; else empty."""
    place = unwritable_place(settings.home) if settings.undo else ""
    return f"Changes can't be undone: {place} can't be written. {UNWRITABLE_HINT}" if place else ""


def _is_on_path(name: str, path: str) -> bool:
    """Like `shutil.which`, whose import loads three compression libraries."""
    places = (f"{folder or '.'}/{name}" for folder in path.split(os.pathsep))
    return any(os.path.isfile(each) and os.access(each, os.X_OK) for each in places)  # noqa: PTH113 - at the start


def help_with_refusals(settings: "Settings") -> str:
    """What to install so that commands run in a sandbox instead of being refused; empty where that would not help."""
    is_wanted = settings.sandbox != "off" and settings.permission_mode in (None, "auto")
    if not is_wanted or not sys.platform.startswith("linux"):
        return ""
    from bradawl.app.build.workspace import folders_of, layout_of
    from bradawl.app.sandbox_help import refused_hint
    from bradawl.sandbox.workspace_check import why_unsuitable

    if why_unsuitable(layout_of(settings, folders_of(settings))):
        return ""
    return without_data_text(settings.home) or refused_hint()


def begin_in_mode(session: "Session", settings: "Settings", *, is_asked_for: bool) -> None:
    """Set the mode in which a session begins or continues.

    A continued session keeps its mode, unless a flag or a variable of this run names one (`is_asked_for`) or the
    machine's settings fix it. A new session records only plan mode; the other modes are those of the settings.
    """
    wanted, had = settings.permission_mode, session.state.mode
    if wanted is None or wanted == had:
        return
    is_fixed = settings.is_mode_fixed and had != "plan"
    if (is_asked_for or is_fixed) if had is not None else wanted == "plan":
        choose_mode(session, wanted)


def current_mode(session: "Session") -> Mode:
    """The permission mode of the session's next call."""
    return session.mode


def choose_mode(session: "Session", mode: Mode) -> None:
    """Change the session's permission mode, between turns, from the next step on."""
    session.choose_mode(mode)


def next_mode(mode: Mode, settings: "Settings") -> Mode:
    """The mode that follows in the order of strictness, of those that the session may change to."""
    order = MODES
    place = order.index(mode)
    following = (*order[place + 1 :], *order[:place])
    for each in following:
        if not why_not(each, settings):
            return each
    return mode


def is_asked_for(options: Mapping[str, object], environ: Mapping[str, str]) -> bool:
    """True if a flag or a variable of this run names a mode."""
    return any(
        options.get(name) is not None or environ.get(f"BRADAWL_{name.upper()}", "").strip()
        for name in ("permission_mode", "yolo")
    )


def why_not(mode: Mode, settings: "Settings") -> str:
    """The reason why a running session may not change to a mode; empty if it may."""
    if settings.is_mode_fixed and mode not in ("plan", settings.permission_mode):
        return "The mode is fixed on this machine; only plan mode can be entered and left."
    if mode == "bypass" and settings.permission_mode != "bypass":
        return "Questions can only be switched off at the start: leave and use `bradawl -c --yolo`."
    return ""
