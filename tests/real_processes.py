"""For tests with real processes: shell commands, whether a process lives, open file descriptors."""

from pathlib import Path

from bradawl.core.workspace import Command


def shell(line: str, cwd: object = "/", **options) -> Command:
    return Command((line,), str(cwd), is_shell=True, **options)


def lives(pid: int) -> bool:
    """Whether a process exists and is neither a zombie nor dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    except OSError:
        return False


def open_files() -> int:
    """Number of open file descriptors of this process, including the one used for counting."""
    return len(list(Path("/proc/self/fd").iterdir()))
