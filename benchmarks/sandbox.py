"""The time that the sandbox adds to a command: `python benchmarks/sandbox.py [ROUNDS [FOLDERS [landlock]]]`.

Runs the same line of bash without and with a sandbox in turn, so that other load affects all alike. Prints
milliseconds from call to result, the time of the first call, and the duration of the sandbox's probe. FOLDERS is the
number of folders in the workspace, which are searched before and after each command that may write. With `landlock`
bubblewrap is passed over. The start of a bare interpreter is what Landlock's helper can't do without.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.selection import SandboxSelection
from bradawl.workspace.processes import LocalProcesses

ROUNDS = 100


async def measure(processes: LocalProcesses, cwd: str, grants: dict[str, Grant], rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each call, by kind."""
    command = Command(("true",), cwd, is_shell=True)
    found: dict[str, list[float]] = {name: [] for name in grants}
    for number in range(rounds + 3):
        for name, grant in grants.items():
            started = time.perf_counter()
            await processes.run(command, grant)
            if number >= 3:
                found[name].append((time.perf_counter() - started) * 1_000)
    return found


def make_folders(root: Path, number: int) -> None:
    """Make a tree of about this many folders, a hundred in each."""
    for outer in range(-(-number // 100)):
        for inner in range(min(99, number)):
            (root / f"folder{outer}/{inner}").mkdir(parents=True)


def interpreter_ms() -> float:
    """Milliseconds that an interpreter takes which imports what Landlock's helper imports."""
    line = "import ctypes, errno, os, stat, struct"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-S", "-c", line], check=True)
    return (time.perf_counter() - started) * 1_000


def main(rounds: int, folders: int, kind: str) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="bradawl-bench-") as place:
        root, home = Path(place, "ws"), Path(place, "home")
        home.mkdir()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        make_folders(root, folders)
        layout = SandboxLayout((str(root),), str(home), cache=f"{place}/cache", state=f"{place}/state")
        choice = SandboxSelection(layout, os.environ)
        started = time.perf_counter()
        sandbox = choice.sandbox
        tried_ms = (time.perf_counter() - started) * 1_000
        landlock = LandlockBackend(layout) if kind == "landlock" else None
        sandbox = landlock.sandbox if landlock else sandbox
        processes = LocalProcesses(os.environ, sandbox_backend=(lambda: landlock) if landlock else choice.backend)
        grants = {
            "bare": Grant(outside_sandbox=True),
            "held, read-only": Grant(),
            "held": Grant(writable=layout.roots),
            "held, network": Grant(writable=layout.roots, network=True),
        }
        started = time.perf_counter()
        asyncio.run(processes.run(Command(("true",), str(root), is_shell=True), grants["held"]))
        first_ms = (time.perf_counter() - started) * 1_000
        found = asyncio.run(measure(processes, str(root), grants, rounds))
        processes.close()
        if landlock:
            landlock.close()
        choice.close()
    print(
        f"{sandbox.name or 'no sandbox'}, tried out in {tried_ms:.0f} ms; can't hold: {', '.join(sandbox.lacks) or '-'}"
    )
    print(f"{folders:,} folders; the first command took {first_ms:.0f} ms")
    found["interpreter"] = [interpreter_ms() for _ in range(rounds)]
    bare = statistics.median(found["bare"])
    for name, taken in found.items():
        ordered = sorted(taken)
        median, p95 = statistics.median(ordered), ordered[int(len(ordered) * 0.95) - 1]
        print(
            f"{name:16} median {median:6.2f}  p95 {p95:6.2f}  least {ordered[0]:6.2f}  over bare {median - bare:6.2f}"
        )


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(int(given.get(1, ROUNDS)), int(given.get(2, 10)), given.get(3, ""))
