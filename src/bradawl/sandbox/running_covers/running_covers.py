"""Mounts the covers of running programs again when another program has replaced a covered path.

Linux removes a mount when its mount point is deleted or renamed over outside of the namespace, as editors, git and
package managers do when they save. The covered paths are watched while programs run. When one is replaced, all programs
are stopped, the cover is mounted again in their namespaces, and files that they opened before are found.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from bradawl.sandbox.backend import StopsPrograms
from bradawl.sandbox.check_failures import CheckFailures
from bradawl.sandbox.mounts.placeholders import Placeholder, PlaceholderStore
from bradawl.sandbox.mounts.plan import Mount
from bradawl.sandbox.running_covers.cover_mounter import CoverMounter
from bradawl.sandbox.running_covers.cover_watch import PathWatch
from bradawl.sandbox.running_covers.linked_files import LinkedFiles
from bradawl.sandbox.running_covers.running_program import RunningProgram, changed_by_links, for_user, shortened

_POLL_S: Final = 0.25
"""Interval of comparisons where inotify does not work."""
_AGAIN_S: Final = 0.001
_BACK_WITHIN_S: Final = 0.05
"""Time in which a removed path may come back, as when a folder is removed and created again."""
_BACK_POLL_S: Final = 0.002
_MOST_ROUNDS: Final = 5
_CLOSED: Final = (
    "commands can't read what is new since a background job began and what the job could still change, because it has"
    " opened something there or is about to start: {paths}. End the job, or go on without"
)


class RunningCovers:
    """The covers of the running programs of one backend. Its owner calls `close()`. Not thread-safe."""

    def __init__(
        self,
        roots: tuple[str, ...],
        home: str,
        placeholders: PlaceholderStore,
        *,
        watch: PathWatch | None = None,
        mounter: CoverMounter | None = None,
    ) -> None:
        """It owns `watch` and `mounter`. Nothing is opened or started before the first program."""
        self._roots = roots
        self._tops = (*roots, home) if home else roots
        self._placeholders = placeholders
        self._watch = watch or PathWatch()
        self._mounter = mounter or CoverMounter()
        self._programs: list[ProgramCovers] = []
        self._linked = LinkedFiles()
        self._warnings: list[str] = []
        """About programs that have ended."""
        self._closed: dict[str, None] = {}
        """Paths that a program could still change, so that they are closed for the next one."""
        self._said_closed: set[str] = set()
        self._wanted: tuple[Mount, ...] = ()
        self._to_watch: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reader = -1
        self._timer: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None

    def begin(self, covers: tuple[Mount, ...], placeholders: Mapping[str, Placeholder]) -> "ProgramCovers":
        """Watch the covers of a program that is about to start. Call before its mounts are made, and `close` the
        result when it has ended. `placeholders` are those among the covers.
        """
        self.take_changes()  # earlier changes are none of this program
        if covers != self._wanted:
            self._watch.want([cover.path for cover in covers], self._tops, forgets=not self._programs)
            self._wanted = covers
        if not self._programs:
            self._linked.changed()
        self._watch_again()
        program = RunningProgram(covers, placeholders, self._roots)
        made = ProgramCovers(self, program, self._take_closed())
        self._programs.append(made)
        return made

    def cover_also(self, covers: Collection[Mount]) -> frozenset[str]:
        """Mount further covers in the namespaces of all running programs.

        Returns the paths that none of them can replace or move from now on. A path is left out if a program could
        change it all the same, and all are if a program is about to start. Raises nothing; blocks until the answers.
        """
        self.take_changes()
        self._watch.want([cover.path for cover in covers], self._tops, forgets=False)
        self._wanted = ()
        if any(each.freeze is None or not each.program.has_begun() for each in self._programs):
            return frozenset()
        running = [each for each in self._programs if each.program.is_running()]
        covered = frozenset(cover.path for cover in covers)
        with self._stopped(running) as pids:
            for each in running:
                failures = CheckFailures()
                covered &= failures.attempt(
                    "", partial(each.program.cover_also, covers, self._mounter, pids), frozenset()
                )
        return covered

    def note_closed(self, paths: Iterable[str]) -> None:
        """Name paths in the notes of the next program that are closed for it, once for each."""
        self._closed = {path: None for path in paths if path not in self._said_closed}
        self._said_closed.update(self._closed)

    def _take_closed(self) -> tuple[str, ...]:
        closed, self._closed = self._closed, {}
        return (_CLOSED.format(paths=shortened(closed)),) if closed else ()

    @contextlib.contextmanager
    def _stopped(self, programs: "Collection[ProgramCovers]") -> Iterator[frozenset[int]]:
        """Stop all processes of some programs. Yields their PIDs."""
        with contextlib.ExitStack() as stopping:
            freezes = {id(each.freeze): each.freeze for each in programs if each.freeze is not None}
            yield frozenset(pid for each in freezes.values() for pid in stopping.enter_context(each.stopped_now()))

    def close(self) -> None:
        """End the watch and the program that mounts covers. Safe to call twice."""
        self._detach()
        self._watch.close()
        self._wanted = ()
        self._mounter.close()

    # ------------------------------------------------------------------ the event loop

    def attach(self) -> None:
        """Follow changes from the running event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop or self._reader != self._watch.fileno():
            self._follow(loop)

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        self._detach()
        if loop.is_closed():
            return
        self._loop, self._reader = loop, self._watch.fileno()
        if self._reader >= 0:
            loop.add_reader(self._reader, self.take_changes)
        else:
            self._timer = loop.call_later(_POLL_S, self._poll)

    def _poll(self) -> None:
        self.take_changes()
        if self._loop is not None:
            self._timer = self._loop.call_later(_POLL_S, self._poll)

    def take_notes(self, what: str) -> tuple[str, ...]:
        """Sentences about the programs that run, since the last call."""
        notes = (note for each in self._programs for note in each.program.take_notes(what))
        return tuple(dict.fromkeys(notes))

    def take_warnings(self) -> tuple[str, ...]:
        """Sentences for the user about all programs, since the last call."""
        warnings, self._warnings = self._warnings, []
        return tuple(
            dict.fromkeys((*warnings, *(note for each in self._programs for note in each.program.take_warnings())))
        )

    def warn_of(self, program: RunningProgram, notes: tuple[str, ...]) -> None:
        """Keep what the user has to know about a program that has ended; `notes` are those of its end."""
        self._warnings += (*map(for_user, notes), *program.take_warnings())

    def take_changed_links(self) -> tuple[str, ...]:
        """Sentences about read-only files that were changed by a further hard link since the last call."""
        return changed_by_links(self._linked.changed())

    def _detach(self) -> None:
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()
        if self._loop is not None and self._reader >= 0 and not self._loop.is_closed():
            self._loop.remove_reader(self._reader)
        self._loop, self._reader, self._timer, self._retry = None, -1, None, None

    def remove(self, program: "ProgramCovers") -> None:
        """Forget a program that has ended, and release its placeholders."""
        self._programs.remove(program)
        self._placeholders.release(program.program.held)
        if not self._programs:
            self._detach()

    # ------------------------------------------------------------------ a change

    def take_changes(self) -> None:
        """Cover again what was replaced since the last call."""
        self._note_changes()
        self._cover_again()
        if self._loop is not None and self._reader >= 0 and self._watch.fileno() < 0:
            self._follow(self._loop)  # inotify failed: poll

    def _note_changes(self) -> bool:
        changed = self._watch.changed()
        self._to_watch |= changed
        for each in self._programs if changed else ():
            each.program.note_changed(changed)
        return bool(changed and self._programs)

    def _watch_again(self) -> None:
        changed, self._to_watch = self._to_watch, set()
        self._watch.watch_again(changed)

    def _cover_again(self) -> None:
        concerned = [each for each in self._programs if each.program.is_changed and each.freeze is not None]
        begun = [each for each in concerned if each.program.has_begun()]
        if len(begun) < len(concerned):
            self._cover_again_soon()
        running = [each for each in begun if each.program.is_running()]
        if not running:
            return
        with self._stopped(running) as pids:
            for _ in range(_MOST_ROUNDS):  # a program often replaces a path in several steps
                self._watch_again()
                CheckFailures().attempt("", partial(self._bring_back, [each.program for each in running]), None)
                for each in running:
                    self._cover_program(each.program, pids)
                if not self._note_changes():
                    return
        self._cover_again_soon()

    def _cover_again_soon(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            if self._retry is not None:
                self._retry.cancel()
            self._retry = self._loop.call_later(_AGAIN_S, self._cover_again)

    def _cover_program(self, program: RunningProgram, pids: Collection[int]) -> None:
        failures = CheckFailures()
        failures.attempt("", lambda: program.cover_again(self._mounter, pids), None)
        if failures.paths:
            program.kill(failures.reason(""))
        to_watch, program.to_watch = program.to_watch, []
        if to_watch:
            self._watch.want(to_watch, self._tops, forgets=False)
        self._linked.add(program.linked)

    def _bring_back(self, programs: Collection[RunningProgram]) -> None:
        """Wait for removed paths that programs could create, and create placeholders for those that stay removed."""
        missing = {path for program in programs for path, _ in program.missing()}
        deadline = time.monotonic() + _BACK_WITHIN_S
        while missing and time.monotonic() < deadline:
            time.sleep(_BACK_POLL_S)
            missing = {path for path in missing if not os.path.lexists(path)}
        for program in programs if missing else ():
            for _, placeholder in program.missing():
                if placeholder and self._placeholders.renew(placeholder):
                    program.held.append(placeholder.path)


class ProgramCovers:
    """`LaunchCovers` of one program."""

    def __init__(self, session: RunningCovers, program: RunningProgram, notes: tuple[str, ...]) -> None:
        """`notes` are those about its start."""
        self._session = session
        self._is_closed = False
        self._notes = notes
        self.program = program
        self.freeze: StopsPrograms | None = None

    def open(self, pid: int, freeze: StopsPrograms) -> None:
        """See `LaunchCovers`."""
        if not self._is_closed:
            self.program.set_init(pid)
            self.freeze = freeze
            self._session.attach()
            self._session.take_changes()

    def notes(self) -> tuple[str, ...]:
        """See `LaunchCovers`."""
        return self._notes

    def take_warnings(self) -> tuple[str, ...]:
        """See `LaunchCovers`."""
        return self._session.take_warnings()

    def close(self) -> None:
        """Note what was replaced at the end, and release what it holds. Safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        self.program.has_ended = True
        try:
            self._session.take_changes()
        finally:
            self._session.remove(self)
            self.program.close()
        of_others = self._session.take_notes("a background job")
        at_end = (*self.program.final_notes(), *self._session.take_changed_links())
        self._session.warn_of(self.program, at_end)
        self._notes = (*self._notes, *at_end, *self.program.take_notes("the command"), *of_others)
