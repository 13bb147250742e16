"""A workspace with covers of programs, and fakes of what mounts them and stops programs."""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bradawl.sandbox.filesystem.inotify import CHANGES, Inotify, QueueOverflow
from bradawl.sandbox.mounts.placeholders import PlaceholderStore
from bradawl.sandbox.mounts.plan import Mount
from bradawl.sandbox.running_covers.cover_mounter import ABSENT, COVERED, CoverMounter
from bradawl.sandbox.running_covers.cover_watch import PathWatch
from bradawl.sandbox.running_covers.running_covers import ProgramCovers, RunningCovers


class FakeMounter(CoverMounter):
    """Records requests, and answers with given states; `COVERED` by default."""

    def __init__(self, states: dict[str, str] | None = None, error: OSError | None = None) -> None:
        super().__init__()
        self.states = states or {}
        self.error = error
        self.requests: list[tuple[Mount, ...]] = []
        self.on_request: Callable[[], None] = lambda: None

    def mount(self, pid: int, covers: Iterable[Mount]) -> dict[str, str]:
        self.requests.append(tuple(covers))
        self.on_request()
        if self.error is not None:
            raise self.error
        there = {cover.path: COVERED if os.path.lexists(cover.path) else ABSENT for cover in self.requests[-1]}
        return there | {path: self.states[path] for path in there if path in self.states}


class FakeFreeze:
    """Stops nothing, and counts."""

    def __init__(self, *pids: int) -> None:
        self.pids = frozenset(pids)
        self.times = 0
        self.is_stopped = False

    @contextlib.contextmanager
    def stopped_now(self) -> Iterator[frozenset[int]]:
        self.times += 1
        self.is_stopped = True
        try:
            yield self.pids
        finally:
            self.is_stopped = False


class FaultyInotify(Inotify):
    """Fails as the system does at its limits."""

    def __init__(self, *, watches: int = 10**6, overflows: bool = False) -> None:
        super().__init__()
        self.left = watches
        self.overflows = overflows

    def watch(self, folder: int, what: int = CHANGES) -> int:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().watch(folder, what)

    def events(self) -> list[tuple[int, int, bytes]]:
        if super().events() and self.overflows:
            raise QueueOverflow
        return []


def no_inotify() -> Inotify:
    raise OSError(errno.EMFILE, "Too many open files")


class World:
    """A workspace and a home folder, and the covers of programs in it."""

    def __init__(self, place: Path) -> None:
        self.root, self.home = place / "ws", place / "home"
        for folder in (self.root / ".git", self.home):
            folder.mkdir(parents=True)
        self.mounter = FakeMounter()
        self.store = PlaceholderStore(str(place / "state"))
        self.watch = PathWatch()
        self.covers = self.made()

    def made(self, watch: PathWatch | None = None) -> RunningCovers:
        self.watch = watch or PathWatch()
        self.covers = RunningCovers(
            (str(self.root),), str(self.home), self.store, watch=self.watch, mounter=self.mounter
        )
        return self.covers

    def cover(self, name: str, kind="read", folder: Path | None = None) -> Mount:
        return Mount(str((folder or self.root) / name), kind)

    def close(self) -> None:
        self.covers.close()
        self.store.close()


def replace(path: Path, text: str = "new") -> None:
    path.with_name("new").write_text(text)
    path.with_name("new").replace(path)


@contextlib.asynccontextmanager
async def opened(world: World, pid: int, *covers: Mount, freeze: FakeFreeze | None = None):
    program = world.covers.begin(covers, {})
    program.open(pid, freeze or FakeFreeze())
    try:
        yield program
    finally:
        program.close()


async def settle(until: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if until():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("nothing happened")


def names(program: ProgramCovers) -> str:
    return " ".join(program.notes())
