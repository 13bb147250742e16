"""The seam between who starts programs and what holds them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from bradawl.core.permissions import Grant, Sandbox


class Program(msgspec.Struct, frozen=True):
    """A program as it would be started without a sandbox."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()
    """Descriptors it needs besides its standard streams."""
    readable: tuple[str, ...] = ()
    """Files it needs that the sandbox would hide, such as what its shell reads first."""
    path: str = ""
    """PATH of the agent's own environment, whatever the session exported: the sandbox shows what lies there."""
    exported: tuple[str, ...] = ()
    """Variables that are not the agent's own: those the session exported, and those its shell needs."""


def agent_search_path(program: Program) -> str:
    """PATH as the agent has it; a session can't name what the sandbox shows."""
    return program.path or ("" if "PATH" in program.exported else program.environment.get("PATH", ""))


class Launch(msgspec.Struct, frozen=True):
    """How to start it so that it is held."""

    argv: tuple[str, ...]
    cwd: str
    """Where the launcher starts; the program's own folder may have another name inside."""
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()
    close_after_start: tuple[int, ...] = ()
    """Descriptors that were opened for this start alone."""
    info_fd: int = -1
    """Descriptor from which the launcher's word can be read, as JSON with `child-pid`: the id of the process with which
    all that it holds ends. It is closed by who started it; without it the program is the process that was started."""
    reports_signals_as_codes: bool = False
    """The launcher ends with 128 and the number of the signal that ended the program."""
    on_end: Callable[[], tuple[str, ...]] | None = None
    """To be called once, when the program and all it started are gone: removes what the sandbox left behind, and
    gives back the protected files that had been changed and are again as they were. May block for milliseconds."""
    explain_setup_error: Callable[[bytes], str] | None = None
    """What the launcher means by what it printed, if it did not get as far as the program; empty if that is unknown."""
    notes: tuple[str, ...] = ()
    """What whoever reads the program's result has to know of the sandbox, a sentence each."""
    limit_processes: Callable[[], AbstractContextManager[None]] | None = None
    """Entered by the thread that starts it, while it does: the number of processes of what is started is limited."""


class SandboxBackend(Protocol):
    """One kind of sandbox, for one workspace."""

    @property
    def sandbox(self) -> Sandbox:
        """What it is called and what it can't hold."""
        ...

    def launch(self, program: Program, grant: Grant) -> Launch:
        """How to start a program within a grant. Raises `ToolError` where it can't be held; it is not started then."""
        ...

    def host_path(self, path: str) -> str:
        """The real path of what programs inside call `path`; the same for most."""
        ...

    def close(self) -> None:
        """Remove what belongs to this workspace's sandbox alone, such as its temporary folder; safe to call twice."""
        ...


class SandboxLayout(msgspec.Struct, frozen=True):
    """What of the machine a sandbox shows, protects and hides. Paths are absolute and resolved."""

    roots: tuple[str, ...]
    """Folders of the workspace, writable."""
    home: str
    """The user's home folder; read-only, its credentials hidden."""
    own: tuple[str, ...] = ()
    """bradawl's own folders: hidden, but for `readable`."""
    readable: tuple[str, ...] = ()
    """Parts of hidden folders that may be read, such as the project's blobs."""
    cache: str = ""
    """Folder for the caches of this project's tools, writable; made when first needed."""
    scratch: str = ""
    """Folder that is `/tmp` inside; its maker removes it."""
    state: str = ""
    """Folder for what has to be put in order after the agent was killed; no program gets to see it."""
    installation: tuple[str, ...] = ()
    """Where bradawl itself lies in the roots, and links that lead there: read-only, and can't be moved."""
    kept_variables: tuple[str, ...] = ()
    """Names of variables programs see besides those that everybody needs; a last `*` stands for any ending."""
