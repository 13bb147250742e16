"""The port between the code that starts programs and the sandbox backends that confine them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from bradawl.core.permissions import Grant, Sandbox
from bradawl.core.ports import Permit

if TYPE_CHECKING:
    from asyncio import Future


class Program(msgspec.Struct, frozen=True):
    """A program as it would be started without a sandbox."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()
    """File descriptors the program needs besides its standard streams."""
    readable: tuple[str, ...] = ()
    """Files the program needs although the sandbox hides them, such as the file its shell reads first."""
    path: str = ""
    """`PATH` of the agent's own environment, unaffected by the session's exports: its folders stay visible in the
    sandbox.
    """
    exported: tuple[str, ...] = ()
    """Names of variables that do not come from the agent's environment: the session's exports and those the shell
    needs.
    """
    permit: Permit | None = None
    """Judges each host it tries to reach, where the backend can limit the network by host."""


def agent_search_path(program: Program) -> str:
    """`PATH` of the agent. The session's exports do not count, because they would decide what the sandbox shows."""
    return program.path or ("" if "PATH" in program.exported else program.environment.get("PATH", ""))


class ProgramNetwork(Protocol):
    """The listener of one program in a sandbox, and its connections through the network proxy."""

    def open(self, pid: int) -> None:
        """Open the listener in the network namespace of a process, then let the program start. Does not raise."""
        ...

    async def wait_answering(self, ended: "Future[None]", timeout_s: float) -> None:
        """Wait for the program's end, at most `timeout_s` seconds, and await `permit` for its hosts meanwhile.

        The time of open questions does not count. Those still open at the end are cancelled.
        """
        ...

    def notes(self) -> tuple[str, ...]:
        """Remarks for the program's result: refused hosts, or why there was no network."""
        ...

    def close(self) -> None:
        """End the listener and its connections. Safe to call twice."""
        ...


class StopsPrograms(Protocol):
    """Stops the sandboxed programs of a session."""

    def stopped_now(self) -> "AbstractContextManager[frozenset[int]]":
        """Keep all that have begun stopped in the body, without awaiting. Yields the PIDs of their processes."""
        ...


class LaunchCovers(Protocol):
    """The covers of one program: mounts over paths that it may not read or write. `Launch.on_end` releases them."""

    def open(self, pid: int, freeze: StopsPrograms) -> None:
        """Keep the covers in the mount namespace of a process, init of the program's namespace, from now on.

        Needs a running event loop.
        """
        ...

    def notes(self) -> tuple[str, ...]:
        """Sentences for the program's result: covered paths that others replaced. Call after `Launch.on_end`."""
        ...

    def take_warnings(self) -> tuple[str, ...]:
        """The same for the user, about all programs of the session, since the last call."""
        ...


class ChangeSearch(Protocol):
    """The search for what a program changed. Call after it and all processes it started have ended."""

    def shortly(self) -> bool:
        """Search for a few milliseconds; False if `finish` has to be called."""
        ...

    def finish(self) -> None:
        """Search to the end. May block for seconds, and may run in another thread."""
        ...

    def stop(self) -> None:
        """Let `finish` end soon in the other thread: what it did not reach counts as not searched."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Sentences for the program's result. Call after `Launch.on_end`."""
        ...


class SearchAhead(Protocol):
    """What is left of a search before a program."""

    def __call__(self) -> None:
        """Search to the end. May run in another thread."""
        ...

    def stop(self) -> None:
        """Let it end soon."""
        ...


class Launch(msgspec.Struct, frozen=True):
    """The command that starts a program inside the sandbox."""

    argv: tuple[str, ...]
    cwd: str
    """Working directory of the launcher; the program's own working directory may have another name inside."""
    environment: Mapping[str, str]
    inherited: tuple[int, ...] = ()
    close_after_start: tuple[int, ...] = ()
    """Descriptors opened for this start alone; the caller closes them after starting the program."""
    info_fd: int = -1
    """Descriptor from which the launcher's JSON can be read; -1 if there is none.

    The JSON holds `child-pid`, the PID of the namespace's init: when it ends, the kernel ends all programs in the
    namespace. The caller closes the descriptor. Without one, the started process is the program itself.
    """
    is_supervised: bool = False
    """`info_fd` is a socket to a supervisor, to which `child-pid` belongs instead of an init: it ends all processes of
    the program on a byte, or when the socket is closed. The JSON also holds `group`, the program's process group.
    """
    reports_signals_as_codes: bool = False
    """The launcher exits with 128 + n if signal n ended the program."""
    on_end: Callable[[], tuple[str, ...]] | None = None
    """Call once, when the program and all processes it started have ended. Removes what the sandbox left behind,
    restores protected files, and returns the restored paths. May block for milliseconds, and for seconds in a large
    workspace unless `search_after` has been called.
    """
    search_after: ChangeSearch | None = None
    """The search that `on_end` needs. It is part of `on_end` if it has not been done before."""
    explain_setup_error: Callable[[bytes], str] | None = None
    """Turns the launcher's stderr into an explanation if the sandbox could not be set up; empty if the text is not
    known.
    """
    notes: tuple[str, ...] = ()
    """Sentences about the sandbox that belong to the program's result."""
    network: "ProgramNetwork | None" = None
    """Its way to the network proxy: the program starts after `open`. The caller closes it; None if there is none."""
    covers: "LaunchCovers | None" = None
    """Its covers, if other programs can remove them; the caller calls `open` before `network.open`."""
    limit_processes: Callable[[], AbstractContextManager[None]] | None = None
    """Context manager that the starting thread holds while it starts the program: the new process starts in the control
    group that limits the number of processes.
    """


@runtime_checkable
class ChecksGrants(Protocol):
    """A sandbox backend that can tell before a start that it can't let programs write to a path."""

    def check_grant(self, grant: Grant) -> None:
        """Raises the `ToolError` that `launch` raises for a path of the grant. Changes nothing."""
        ...


@runtime_checkable
class SearchesAhead(Protocol):
    """A sandbox backend that searches the workspace before programs start."""

    def search_ahead(self, grant: Grant) -> SearchAhead | None:
        """Search for the next `launch`. Returns what is left to do, which may run in another thread; None if nothing
        is.
        """
        ...


class CheckResult(msgspec.Struct, frozen=True):
    """What a check of a workspace found while programs run."""

    found: tuple[str, ...] = ()
    """Paths that may not stay as they are, or, after `compare(restores=True)`, that were put back or moved away; with
    a remark where that failed.
    """
    unchecked: tuple[str, ...] = ()
    """Paths that could not be examined, with the reasons."""
    set_aside: tuple[str, ...] = ()
    """Folders with what was moved away; beside a command, its result names them."""


class DataEvents(Protocol):
    """Reports changes of git's data while programs run."""

    @property
    def descriptor(self) -> int:
        """Can be read when something happens there; -1 if that is not reported. Closed with the backend."""
        ...

    def is_urgent(self) -> bool:
        """Take what was reported. True if the workspace should be checked at once."""
        ...


class RunningCheck(DataEvents, Protocol):
    """A check of the workspace while programs run. No method raises an `Exception`."""

    def shortly(self) -> bool:
        """Search for a few milliseconds; False if `finish` has to be called."""
        ...

    def finish(self) -> None:
        """Search to the end. May block for seconds, and may run in another thread."""
        ...

    def compare(self, *, restores: bool) -> CheckResult:
        """Find what may not stay, after a search. With `restores` it is put back or moved away.

        Call in the thread that calls `SandboxBackend.launch`; it may block for milliseconds. Finds nothing if a program
        began since the check was made and none ran before it.
        """
        ...


@runtime_checkable
class ChecksWhileRunning(Protocol):
    """A sandbox backend that can check the workspace while programs run in it."""

    def check_running(self, *, beside_command: bool) -> RunningCheck | None:
        """A check; None if no program runs that can write in the workspace.

        `beside_command` says that a command runs whose end checks everything: what honest git may have in between is
        left alone until then.
        """
        ...


class SandboxBackend(Protocol):
    """One kind of sandbox for one workspace."""

    @property
    def sandbox(self) -> Sandbox:
        """Its name and the guarantees it lacks."""
        ...

    def launch(self, program: Program, grant: Grant) -> Launch:
        """The command that starts a program within a grant.

        Raises `ToolError` if the program can't be confined; then it must not be started.
        """
        ...

    def host_path(self, path: str) -> str:
        """Path on the host of what programs in the sandbox call `path`. Most paths are the same."""
        ...

    def close(self) -> None:
        """Remove what belongs to this sandbox alone, such as its temporary folder. Safe to call twice."""
        ...


class SandboxLayout(msgspec.Struct, frozen=True):
    """The paths that a sandbox shows, protects and hides. All paths are absolute and resolved."""

    roots: tuple[str, ...]
    """Folders of the workspace; writable."""
    home: str
    """The user's home folder: read-only, with credentials hidden."""
    own: tuple[str, ...] = ()
    """bradawl's own folders: hidden, except `readable`."""
    readable: tuple[str, ...] = ()
    """Parts of hidden folders that may be read, such as the project's blobs."""
    cache: str = ""
    """Writable folder for the caches of the project's tools; created when first needed."""
    scratch: str = ""
    """Folder that is mounted as `/tmp`. The backend creates it, and removes it unless `keeps_scratch`."""
    keeps_scratch: bool = False
    """The folder behind `/tmp` belongs to a session: it may exist already, and stays."""
    shown_in_tmp: Callable[[], tuple[str, ...]] = tuple
    """Files and folders of the machine's `/tmp` that programs may read; determined at each start."""
    not_shown_in_tmp: Callable[[], Mapping[str, str]] = dict
    """Further ones that the user's prompts name, and why programs may not read them."""
    state: str = ""
    """Folder for records that allow cleaning up after the agent was killed; hidden from programs."""
    installation: tuple[str, ...] = ()
    """Where bradawl itself is installed inside the roots, and links to it: read-only, and can't be moved."""
    git_configs: tuple[str, ...] = ()
    """Files of git's configuration outside the home folder that apply in every repository, as the user runs git."""
    kept_variables: tuple[str, ...] = ()
    """Names of variables to pass to programs besides the standard ones; a final `*` matches any ending."""
