"""The cost of undo's search of a workspace: `python benchmarks/checkpoints.py [files] [folders] [large]`.

Prints CPU and wall time in milliseconds, the best of several rounds where a search is repeated, next to a bare listing
of the same tree. `files`: 10,000 files in 2,000 folders. `folders`: 100,000 folders. `large`: the first search of
100 MB, as 20,000 files and as 10. Without arguments: all.
"""

import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bradawl.checkpoints.store import ContentStore
from bradawl.checkpoints.tree import WorkspaceTree

_ROUNDS = 5
_DEADLINE_S = 600.0


def report(label: str, work: Callable[[], object], rounds: int = 1) -> None:
    """Run and print the least CPU and wall time."""
    cpu: list[float] = []
    wall: list[float] = []
    for _ in range(rounds):
        cpu_before, wall_before = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - cpu_before)
        wall.append(time.perf_counter() - wall_before)
    print(f"  {label:36} cpu {min(cpu) * 1_000:9.2f} ms   wall {min(wall) * 1_000:9.2f} ms")


def list_bare(root: str) -> None:
    """The least that a full search does: list each folder, and stat each entry."""
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode):
                    waiting.append(entry.path)


def new_tree(place: Path) -> tuple[WorkspaceTree, ContentStore]:
    """A tree of `place`/ws, with a store of its own."""
    store = ContentStore(Path(tempfile.mkdtemp(dir=place)))
    return WorkspaceTree((str(place / "ws"),), store), store


def measure_searches(place: Path, *, changed: Path | None = None) -> None:
    """The first search, then those around calls."""
    tree, store = new_tree(place)

    def baseline() -> None:
        tree.baseline(time.monotonic() + _DEADLINE_S)
        store.flush()

    report("bare listing", lambda: list_bare(str(place / "ws")), _ROUNDS)
    report("baseline", baseline)
    report("refresh, no changes", tree.refresh, _ROUNDS)
    report("changes, none", tree.changes, _ROUNDS)
    if changed is not None:
        report("changes, one file", lambda: (changed.write_text(str(time.time_ns())), tree.changes()), _ROUNDS)
        one = (str(changed),)
        report("refresh and changes of a given path", lambda: (tree.refresh(one), tree.changes(one)), _ROUNDS)
    for sentence in tree.changes()[1]:
        print(f"  {sentence}")
    dumped = tree.dump()
    report(f"save the index ({len(dumped) // 1_000} kB)", tree.dump)
    report("load the index", lambda: WorkspaceTree((str(place / "ws"),), store, known=dumped).close())
    print(f"  incremental: {tree.is_incremental}")
    tree.close()
    store.close()


def many_files(place: Path) -> None:
    """10,000 files of 2 kB in 2,000 folders."""
    for number in range(2_000):
        folder = place / f"ws/d{number % 50}/e{number}"
        folder.mkdir(parents=True)
        for each in range(5):
            (folder / f"f{each}.py").write_bytes(os.urandom(1_000).hex().encode())
    measure_searches(place, changed=place / "ws/d1/e1/f0.py")


def many_folders(place: Path) -> None:
    """100,000 folders."""
    for number in range(1_000):
        for each in range(99):
            (place / f"ws/a{number % 100}/b{number}/c{each}").mkdir(parents=True)
    measure_searches(place)


def much_content(place: Path) -> None:
    """The first search of 100 MB."""
    for count, size in ((20_000, 5_000), (10, 10_000_000)):
        folder = place / f"{size}"
        for number in range(count):
            path = folder / f"ws/d{number % 200}/f{number}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
        tree, store = new_tree(folder)
        report(f"baseline of {count} x {size // 1_000} kB", lambda tree=tree: tree.baseline(time.monotonic() + 600))
        report("flush", store.flush)
        tree.close()
        store.close()


_KINDS = {"files": many_files, "folders": many_folders, "large": much_content}


def main(kinds: list[str]) -> None:
    """Measure and print."""
    for kind in kinds or list(_KINDS):
        with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="bradawl-bench-") as place:
            print(_KINDS[kind].__doc__)
            _KINDS[kind](Path(place))


if __name__ == "__main__":
    main(sys.argv[1:])
