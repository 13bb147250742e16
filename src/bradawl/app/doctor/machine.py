"""Checks of the sandbox, of undo, and of the programs that bradawl starts."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bradawl._version import __version__
from bradawl.app.data_folder import UNWRITABLE_HINT, unwritable_place, without_data_text
from bradawl.app.doctor.check import Check
from bradawl.app.modes import sandbox_text
from bradawl.app.settings.settings import Settings
from bradawl.core.errors import BradawlError
from bradawl.core.permissions import Sandbox

if TYPE_CHECKING:
    from bradawl.app.build.workspace import RunFolders
    from bradawl.safety.trusted_programs import Rejected

_ASKED_WITHOUT: Final = (
    "In the mode auto each command whose changes can't be predicted is asked about because of the missing guarantees."
)


def version_check() -> Check:
    """The versions of bradawl and Python, and the system."""
    python = ".".join(map(str, sys.version_info[:3]))
    return Check("version", "ok", f"bradawl {__version__}, Python {python}, {sys.platform}")


def machine_checks(settings: Settings) -> list[Check]:
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
