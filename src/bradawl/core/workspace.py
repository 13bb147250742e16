"""Values of the ports `Files`, `WorkspaceChanges`, `Processes` and `Jobs`: file contents, commands, their results."""

from collections.abc import Mapping

import msgspec


class FileContent(msgspec.Struct, frozen=True):
    """A regular file as it was read; the path is absolute, with symlinks resolved."""

    path: str
    data: bytes
    sha256: str


class FileEntry(msgspec.Struct, frozen=True):
    """One file found by `Files.list`; the path is absolute."""

    path: str
    modified_ns: int
    size: int


class Checkpoint(msgspec.Struct, frozen=True):
    """What one call changed in the workspace."""

    call_id: str
    ref: str = ""
    """Name of the change record; empty if it changed nothing."""
    uncovered: str = ""
    """What it may have changed and undo can't restore, and why; empty for nothing."""
    is_known: bool = True
    """False if it is not known what it changed, or its changes could not be saved; `uncovered` says why."""


class Command(msgspec.Struct, frozen=True):
    """A program to run, or a shell line."""

    argv: tuple[str, ...]
    cwd: str
    is_shell: bool = False
    """argv has one element, a bash script; the result reports its last working directory."""
    timeout_s: float = 120.0
    output_limit_bytes: int = 10_000_000
    """Kept per stream: its beginning and end. The rest is only counted."""
    env: Mapping[str, str | None] = {}
    """Added to the variables of every program; None removes one."""
    spill_limit_bytes: int = 0
    """Output of a shell line beyond the kept part goes to a file, up to this size; 0 for no file."""
    is_helper: bool = False
    """A program of bradawl, by absolute path; it runs without a sandbox and without the user's variables."""
    unmoved: tuple[str, ...] = ()
    """Resolved paths a helper reads: sandboxed programs pause meanwhile; it is not started if one has become a link."""
    runs: tuple[str, ...] = ()
    """Files whose contents are part of the seal: absolute paths, and names of programs on PATH."""
    reports_failed_commands: bool = False


class CommandResult(msgspec.Struct, frozen=True):
    """How a program ended."""

    exit_code: int | None
    """None if it was ended after its timeout or for endless output; negative for a signal."""
    stdout: bytes
    stderr: bytes
    dropped_bytes: int = 0
    """Output that was not kept, of both streams."""
    pipe_status: tuple[int, ...] = ()
    """Exit codes of the commands in the last pipeline of a shell line."""
    cwd: str | None = None
    """Last working directory of a shell line; None if unknown."""
    seconds: float = 0.0
    ended_background: bool = False
    """Programs it left running were ended."""
    exports: Mapping[str, str | None] = {}
    """Exported variables a shell line changed; None for one it unset."""
    sandbox: str = ""
    """Name of the sandbox it ran in; empty for none."""
    restored: tuple[str, ...] = ()
    """Protected files it changed and that were restored; `(could not be put back: ...)` follows one that was not."""
    notes: tuple[str, ...] = ()
    """Remarks of the sandbox, and on processes that could not be ended."""
    earlier_failures: tuple[tuple[int, ...], ...] = ()
    """Exit codes of at most two earlier pipelines that hid a failure; then of a failed command, if asked for."""
    spilled: str = ""
    """File with the whole output, owned by the caller; empty if everything was kept."""


class Job(msgspec.Struct, frozen=True):
    """A background command: its state, run time so far or in all, and output since the last read."""

    job_id: str
    command: str
    seconds: float
    printed: bytes
    dropped_bytes: int
    result: CommandResult | None = None
    """None while it runs."""
