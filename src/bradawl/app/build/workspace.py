"""Builds what an agent works with on this machine: folders, environment, programs, sandbox, files, processes."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bradawl.app.build.command_proxy import command_proxy
from bradawl.app.build.session_tmp import SessionTmp
from bradawl.app.git_files import read_whole
from bradawl.app.git_status import GitStatus
from bradawl.app.policies import private_hosts
from bradawl.app.program_paths import programs_for, search_path
from bradawl.app.settings.homes import homes
from bradawl.app.settings.providers import PROVIDERS
from bradawl.app.settings.settings import NoSandbox, Settings
from bradawl.app.settings.values import check_utf8_path
from bradawl.core.errors import SettingsError
from bradawl.core.permissions import Sandbox
from bradawl.safety.git.config import GitConfig
from bradawl.safety.git.config_places import configs_elsewhere
from bradawl.safety.trusted_programs import TrustedPrograms, installation_paths
from bradawl.session.summaries import project_folder
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.machine import home_in
from bradawl.workspace.processes import LocalProcesses

if TYPE_CHECKING:
    from bradawl.checkpoints.client import LocalChanges
    from bradawl.sandbox.backend import SandboxLayout
    from bradawl.sandbox.selection import SandboxSelection


class RunFolders(NamedTuple):
    """Folders of a run: those it works in, and bradawl's own. Absolute and resolved."""

    project: str
    """The working directory."""
    roots: tuple[str, ...]
    """The workspace: the project and the folders added to it."""
    own: tuple[str, ...]
    """bradawl's data and configuration folders."""
    blobs: str
    """Stored results of the project's sessions; the model may read them."""
    cache: str
    """Caches of sandboxed commands; created on first use."""
    state: str
    """Files of the sandbox."""
    private: str
    """Files of a run that no command may change."""
    checkpoints: str
    """Contents and records of changes, for undo. They may hold secrets."""
    scratch: str
    """For each session the folder that its sandboxed commands see as `/tmp`."""
    records: str
    """What compactions took out of the sessions; the model may read it, and commands may not."""

    @property
    def untrusted(self) -> tuple[str, ...]:
        """Folders from which bradawl starts no program on its own account."""
        return (*self.roots, *self.own, self.cache)


class Workspace(NamedTuple):
    """What an agent and its tools work with. Owns processes and the sandbox: `close` it."""

    folders: RunFolders
    programs: TrustedPrograms
    """Finds the programs that bradawl starts on its own account."""
    choice: "SandboxSelection | None"
    """The sandbox for commands, possibly not looked for yet; None where the settings switch it off."""
    tmp: SessionTmp
    """The folder that sandboxed commands see as `/tmp`."""
    processes: LocalProcesses
    files: LocalFiles
    files_of_commands: LocalFiles | None
    """Paths as sandboxed commands see them; None without a sandbox."""
    git: GitConfig
    """The programs that git's configuration would start."""
    git_status: GitStatus
    changes: "LocalChanges | None"
    """Saves what calls change; None where the settings switch it off."""

    def sandbox(self) -> Sandbox:
        """The sandbox that commands run in. The first call may wait until it is found."""
        return Sandbox() if self.choice is None else self.choice.sandbox

    def close(self) -> None:
        """End all processes and remove the sandbox's files."""
        if self.changes is not None:
            self.changes.close()
        self.processes.close()
        if self.choice is not None:
            self.choice.close()


def open_workspace(
    settings: Settings, notify: Callable[[str], None] | None = None, *, saves_changes: bool = True
) -> Workspace:
    """The workspace of a run with these settings. `notify` gets warnings. Raises `SettingsError` and `NoSandbox`.

    Without `saves_changes` it saves nothing for undo, whatever the settings say.
    """
    folders = folders_of(settings)
    programs = programs_for(settings.environment, folders.untrusted)
    environment = without_keys(settings.environment, settings.key_names)
    environment["PATH"] = search_path(environment, programs)
    home = os.path.realpath(settings.user_home) if settings.user_home else ""
    tmp = SessionTmp(settings, folders.scratch, (*folders.roots, *folders.own, folders.cache, home))
    choice = choose_sandbox(settings, folders, environment, programs, tmp)
    if choice is not None:
        tmp.sandboxed_by(choice)
    backend = None if choice is None else choice.backend
    processes = LocalProcesses(environment, sandbox_backend=backend, programs=programs, roots=folders.roots)
    git = GitConfig(read_whole, environment, settings.user_home)
    real = None if choice is None else _path_outside(choice)
    return Workspace(
        folders=folders,
        programs=programs,
        choice=choice,
        tmp=tmp,
        processes=processes,
        files=LocalFiles(settings.user_home, real, tmp.about_missing, tmp.writing, tmp.plain_name_of),
        files_of_commands=None if real is None else LocalFiles(settings.user_home, real),
        git=git,
        git_status=GitStatus(git, processes, programs.find("git"), folders.private),
        changes=changes_of(settings, folders, programs, notify) if saves_changes else None,
    )


def changes_of(
    settings: Settings,
    folders: RunFolders,
    programs: TrustedPrograms,
    notify: Callable[[str], None] | None,
) -> "LocalChanges | None":
    """What saves the changes of calls, not started yet; None where there is no undo."""
    if not settings.undo or why_no_undo(folders):
        return None
    from bradawl.checkpoints.client import LocalChanges, OwnFolders

    linker = {name: value for name, value in settings.environment.items() if name.startswith("LD_")}
    return LocalChanges(
        folders.roots,
        folders.checkpoints,
        own=OwnFolders((*folders.own, folders.cache), folders.state),
        environment=programs.without_foreign_libraries(linker),
        notify=notify,
        may_restart=not installation_paths(folders.roots),
    )


def why_no_undo(folders: RunFolders) -> str:
    """Why changes can't be saved in these folders; empty if they can."""
    whole = next((root for root in folders.roots if root in ("/", "/usr")), "")
    return f"the workspace {whole} is the whole system" if whole else ""


def folders_of(settings: Settings) -> RunFolders:
    """The folders of a run with these settings. Raises `SettingsError` for a folder whose name is not UTF-8."""
    project = check_utf8_path(os.path.realpath(settings.cwd), "The working directory")
    home = homes(settings.environment, settings.cwd)
    data = os.path.realpath(settings.home)
    folder = str(project_folder(Path(data), project))
    own = tuple(dict.fromkeys((data, os.path.realpath(home.config))))
    names = ("blobs", "cache", "sandbox", "git", "checkpoints", "tmp", "records")
    return RunFolders(project, (project, *settings.add_dirs), own, *(str(Path(folder, name)) for name in names))


def choose_sandbox(
    settings: Settings,
    folders: RunFolders,
    environment: Mapping[str, str],
    programs: TrustedPrograms,
    tmp: SessionTmp | None = None,
) -> "SandboxSelection | None":
    """The sandbox for commands, not looked for yet; None where the settings switch it off. Raises `NoSandbox`."""
    if settings.sandbox == "off":
        return None
    from bradawl.sandbox.selection import SandboxSelection

    proxy = command_proxy(settings, cache(partial(private_hosts, settings, folders.roots)))
    layout, scratch = layout_of(settings, folders), None
    if tmp is not None:
        layout = msgspec.structs.replace(layout, shown_in_tmp=tmp.shown, not_shown_in_tmp=tmp.not_shown)
        scratch = tmp.scratch
    choice = SandboxSelection(layout, environment, programs, proxy, scratch)
    if settings.sandbox == "required" and not choice.sandbox.name:
        why = "; ".join(choice.report)
        choice.close()
        raise NoSandbox(f"A sandbox is required, and there is none: {why}. `bradawl doctor` says more.")
    return choice


def layout_of(settings: Settings, folders: RunFolders) -> "SandboxLayout":
    """What a sandbox shows, protects and hides."""
    from bradawl.sandbox.backend import SandboxLayout

    return SandboxLayout(
        roots=folders.roots,
        home=os.path.realpath(settings.user_home) if settings.user_home else "",
        own=folders.own,
        readable=(folders.blobs,),
        cache=folders.cache,
        state=folders.state,
        installation=installation_paths(folders.roots),
        git_configs=configs_elsewhere(settings.environment),
        kept_variables=settings.kept_variables,
    )


def with_real_home(settings: Settings) -> Settings:
    """Settings with the real path of the home folder: theirs, else HOME, else the user database.

    Raises `SettingsError` for a relative HOME.
    """
    if (named := settings.environment.get("HOME", "")) and not named.startswith("/"):
        raise SettingsError(
            f"HOME is {named!r}, which is not an absolute path: programs would take it for several folders."
        )
    home = settings.user_home or home_in(settings.environment)
    return msgspec.structs.replace(settings, user_home=os.path.realpath(home) if home else "")


def without_keys(environment: Mapping[str, str], key_names: Sequence[str] = ()) -> dict[str, str]:
    """The environment of commands: without the variables that hold providers' keys."""
    keys = {name for known in PROVIDERS.values() for name in known.key_names}.union(key_names)
    return {name: value for name, value in environment.items() if name not in keys}


def _path_outside(choice: "SandboxSelection") -> Callable[[str], str]:
    """Maps a path as commands name it to the real one: sandboxed commands have their own `/tmp`."""

    def real(path: str) -> str:
        backend = choice.backend()
        return path if backend is None else backend.host_path(path)

    return real
