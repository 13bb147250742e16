"""Runs lines in the real bash, and records the commands they run and the files they change."""

import contextlib
import os
import signal
import stat
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

HOME = "/home/someone"

# PATH is empty, so bash passes every command that is no builtin to the handler. Patterns are not expanded, as in
# the predicted commands. One write per command keeps the parts of a pipeline separate.
_RECORDER = """\
set -f
enable -n . cd echo test [ true false pwd type command : kill wait read let declare local alias shift times jobs bg fg
command_not_found_handle() { printf '%s\\0' "$line" "$#" "$@" >&9; return "$answer"; }
for answer in 0 1; do
  line=0
  for text in "$@"; do ( eval "$text" ); line=$((line + 1)); done
done
"""


def executed(lines: Sequence[str], folder: Path) -> list[set[tuple[str, ...]]]:
    """For each line the argv of every command that bash ran: once with all commands succeeding, once with all
    failing.
    """
    receiver, sender = os.pipe()
    try:
        script = f"exec 9>&{sender} {sender}>&-\n{_RECORDER}"
        with subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", *lines],
            cwd=folder,
            env={"PATH": "/nowhere", "HOME": HOME, "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(sender,),
        ):
            os.close(sender)
            sender = -1
            with os.fdopen(os.dup(receiver), "rb") as pipe:
                fields = pipe.read().decode("utf-8", "surrogateescape").split("\0")
    finally:
        os.close(receiver)
        if sender >= 0:
            os.close(sender)
    return _by_line(fields, len(lines))


def _by_line(fields: list[str], count: int) -> list[set[tuple[str, ...]]]:
    found: list[set[tuple[str, ...]]] = [set() for _ in range(count)]
    place = 0
    while place + 1 < len(fields):
        line, size = int(fields[place]), int(fields[place + 1])
        found[line].add(tuple(fields[place + 2 : place + 2 + size]))
        place += 2 + size
    return found


# A file that one program reads while another appends to it grows without end: `tee -a f < f`. The limit (KiB) ends such
# a line. Changes made until then are compared as usual.
_LIMITED = 'ulimit -f 256; exec /bin/bash -c "$1"'


def run(line: str, folder: Path) -> None:
    """Runs a line in a folder, as the tool `bash` does, and waits for its end.

    No file grows beyond 256 KiB. Raises `TimeoutExpired` after 20 s, and leaves no process running.
    """
    with subprocess.Popen(
        ["/bin/bash", "-c", _LIMITED, "bash", line],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "PWD": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as shell:
        try:
            shell.wait(timeout=20)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)


Snapshot = dict[str, tuple[object, ...]]


def snapshot(root: Path) -> Snapshot:
    """Every entry below a folder with its kind, mode and contents; links are not followed."""
    found: Snapshot = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[str(path)] = (str(path.readlink()),)
            elif stat.S_ISREG(status.st_mode):
                found[str(path)] = (status.st_mode, status.st_nlink, status.st_mtime_ns, path.read_bytes())
            else:
                found[str(path)] = (status.st_mode,)  # the time of a folder changes with its entries
    return found


def changes(before: Snapshot, after: Snapshot) -> set[str]:
    """Paths that were created, removed or changed."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def covered(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of the places or below one."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)
