"""What the workspace gives and takes: files as they were found, programs and how they ended."""

from collections.abc import Mapping
from typing import Final

import msgspec

PROCESS_LIMIT: Final = "BRADAWL_PROCESSES"
"""Variable that tells a shell in a sandbox how many processes its user may have in there; the shell unsets it."""


class FileContent(msgspec.Struct, frozen=True):
    """A regular file as it was read."""

    path: str
    """Absolute, symlinks resolved."""
    data: bytes
    sha256: str


class FileEntry(msgspec.Struct, frozen=True):
    """One file found by `Files.list`."""

    path: str
    """Absolute."""
    modified_ns: int
    size: int


class Command(msgspec.Struct, frozen=True):
    """A program to run, or a line for bash."""

    argv: tuple[str, ...]
    cwd: str
    is_shell: bool = False
    """argv has one element, a bash script; its last working directory is reported."""
    timeout_s: float = 120.0
    output_limit_bytes: int = 10_000_000
    """Kept per stream, head and tail; what lies between is counted."""
    env: Mapping[str, str | None] = {}
    """Variables on top of those every program gets; None leaves one out."""
    spill_limit_bytes: int = 0
    """A shell line's output that is more than is kept goes to a file, up to so many bytes; 0 for no file."""
    is_helper: bool = False
    """A program of the agent's own, by absolute path: not sandboxed, and without the user's variables."""
    unmoved: tuple[str, ...] = ()
    """Resolved paths that a helper looks at: sandboxed programs are stopped while it runs, and it is not started if one
    has become a link. For none nothing is stopped."""
    runs: tuple[str, ...] = ()
    """Files whose contents belong to the seal: absolute paths, and names of programs on PATH."""


class CommandResult(msgspec.Struct, frozen=True):
    """How a program ended."""

    exit_code: int | None
    """None when it was ended for its timeout, or for printing without end; negative for a signal."""
    stdout: bytes
    stderr: bytes
    dropped_bytes: int = 0
    """Output that was not kept, both streams together."""
    pipe_status: tuple[int, ...] = ()
    """Exit codes of the parts of a shell line's last pipeline."""
    cwd: str | None = None
    """Where a shell line left its working directory; None if it could not be read."""
    seconds: float = 0.0
    ended_background: bool = False
    """Programs it had left running were ended."""
    exports: Mapping[str, str | None] = {}
    """What a shell line did to the exported variables; None for one that is no longer exported."""
    sandbox: str = ""
    """Name of the sandbox that held it; empty for none."""
    restored: tuple[str, ...] = ()
    """Protected files it had changed, which are as they were again; `(could not be put back: ...)` follows one that is
    not."""
    notes: tuple[str, ...] = ()
    """What the sandbox has to say of itself."""
    spilled: str = ""
    """File with all of the output, for who takes it over or removes it; empty when what is kept is all."""


class Job(msgspec.Struct, frozen=True):
    """A command in the background, as it is now."""

    job_id: str
    command: str
    seconds: float
    """How long it has run, or ran."""
    printed: bytes
    """Since the last look."""
    dropped_bytes: int
    result: CommandResult | None = None
    """None while it runs."""
