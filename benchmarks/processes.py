"""Memory and processor time of processes, from /proc. Without /proc the results are None or 0."""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_EVERY_S = 0.05
_QUIET_CORES = 0.25


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a process and its descendants at one moment."""

    rss: int
    """Shared pages count for each process."""
    pss: int
    """Shared pages are divided among the processes that share them."""


class MemorySampler(threading.Thread):
    """Samples the memory of a process tree 20 times a second until `finish`."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._done = threading.Event()
        self._peak = Memory(0, 0)

    def run(self) -> None:
        """The sampling thread's code; called by `start`."""
        while not self._done.wait(_EVERY_S):
            now = [memory_of(process) for process in family(self._root)]
            rss, pss = sum(part.rss for part in now), sum(part.pss for part in now)
            self._peak = Memory(max(self._peak.rss, rss), max(self._peak.pss, pss))

    def finish(self) -> Memory | None:
        """Stop, and return the maximum of each figure; None if the system does not provide them."""
        self._done.set()
        self.join()
        return self._peak if self._peak.rss else None


def family(root: int) -> list[int]:
    """A process and its descendants that are alive."""
    found = [root]
    for process in found:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def memory_of(process: int) -> Memory:
    """Memory of one process; zero if it has ended."""
    sizes = {"Rss:": 0, "Pss:": 0}
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            name, *rest = line.split()
            if name in sizes:
                sizes[name] = int(rest[0]) * 1024
    except OSError:
        pass
    return Memory(sizes["Rss:"], sizes["Pss:"])


def busy_s() -> float | None:
    """Processor seconds the whole machine has been busy since it started."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return None
    ticks = [int(field) for field in fields]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def wait_until_quiet(limit_s: float) -> None:
    """Return when the machine idles, or after `limit_s` at the latest."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        before, began = busy_s(), time.monotonic()
        time.sleep(0.25)
        after = busy_s()
        if before is None or after is None or (after - before) / (time.monotonic() - began) < _QUIET_CORES:
            return


def cpu_s_of(process: int) -> float:
    """Processor seconds of a running process; 0 if the system does not provide them."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
