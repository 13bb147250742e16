"""Measures a command with very much output: seconds, memory of this process, and the longest delay of its event loop.

.venv/bin/python benchmarks/flood.py [GB]     5 by default
"""

import asyncio
import os
import sys
import time
from pathlib import Path

from bradawl.agent.calls.seen_files import SeenFiles
from bradawl.core.permissions import Grant
from bradawl.core.ports import CallContext
from bradawl.tools.bash import Bash
from bradawl.workspace.files import LocalFiles
from bradawl.workspace.processes import LocalProcesses


def forget_peak() -> None:
    """Reset the kernel's peak of this process's memory."""
    Path("/proc/self/clear_refs").write_text("5")


def memory(kind: str) -> int:
    """Bytes that this process uses (`VmRSS`), or has used at most (`VmHWM`)."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1]) * 1024


def size_of(path: str) -> int:
    """Bytes of a file; 0 if there is none."""
    return Path(path).stat().st_size if path else 0


async def held_up(done: asyncio.Event) -> float:
    """The longest delay of the event loop in seconds, beyond the tenth of a second that each round sleeps."""
    longest = 0.0
    while not done.is_set():
        before = time.monotonic()
        await asyncio.sleep(0.01)
        longest = max(longest, time.monotonic() - before - 0.01)
    return longest


async def flood(command: str) -> None:
    """Run the line with the tool `bash`, and print the figures."""
    processes = LocalProcesses(os.environ)
    shown: list[str] = []
    context = CallContext(
        call_id="call",
        cwd="/",
        files=LocalFiles("/"),
        processes=processes,
        seen=SeenFiles({}, lambda change: None),
        grant=Grant(),
        progress=lambda text: shown.append(text[-1:]),
        change=lambda state: None,
    )
    tool = Bash()
    await tool.run(tool.params("seq 100000"), context)
    forget_peak()
    before, began, done = memory("VmRSS"), time.monotonic(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        held = group.create_task(held_up(done))
        output = await tool.run(tool.params(command, 600), context)
        done.set()
    seconds, grown = time.monotonic() - began, memory("VmHWM") - before
    saved = size_of(output.full_file)
    processes.close()
    print(f"{command}: {seconds:.2f} s, memory +{grown / 1e6:.1f} MB, on disk {saved / 1e6:.0f} MB")
    print(f"loop held up at most {held.result() * 1000:.0f} ms, {len(shown)} pieces shown")
    print("\n".join(part.text for part in output.parts[1:] if hasattr(part, "text")))


if __name__ == "__main__":
    asyncio.run(flood(f"yes | head -c {sys.argv[1] if len(sys.argv) > 1 else 5}G"))
