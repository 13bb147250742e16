"""The process that finds what calls change: keeps the index of a workspace, and saves contents and change records.

It works on one request at a time. Meanwhile the agent waits only where a call needs the state before it.
"""

import contextlib
import os
import select
import socket
import time
from collections import deque
from pathlib import Path
from typing import Final

import msgspec

from bradawl.checkpoints import index_files
from bradawl.checkpoints.call_journal import CallJournal
from bradawl.checkpoints.coverage import Coverage
from bradawl.checkpoints.interrupted_calls import InterruptedCalls
from bradawl.checkpoints.opened_notes import close_left_open
from bradawl.checkpoints.protocol import (
    Begin,
    Cover,
    End,
    Failed,
    Found,
    Open,
    Ready,
    Received,
    Reply,
    Request,
    Settle,
    Warn,
    decode_request,
    frame,
    take_frames,
)
from bradawl.checkpoints.record import Change, ChangeRecord
from bradawl.checkpoints.store import ContentStore
from bradawl.checkpoints.tree import WorkspaceTree
from bradawl.checkpoints.unfinished_restores import UnfinishedRestores

GRACE_S: Final = 0.1
"""An answer to `Begin` that is late by this many seconds is still in time."""
_LIMITS: Final = Coverage(search_s=2.0, reading_s=2.0)
"""A call may have to wait for a search."""
_SLICE_S: Final = 0.05
_FLUSH_S: Final = 0.05
"""Idle seconds before what was saved is brought to the disk."""
_PROGRAMS_END_S: Final = 0.8
"""Seconds after the death of an agent in which its programs end, which get SIGKILL half a second after SIGTERM."""
_ORPHANED_S: Final = 0.1
"""Seconds after the end of the messages in which a process whose agent was killed gets another parent."""
_IDLE_S: Final = 1.0
"""Idle seconds before the index is saved and garbage is collected."""
_SAVING_S: Final = 1.0
"""Seconds that a call must be able to wait, so that the index is saved before it begins."""
_UNCOVERED_CHARACTERS: Final = 2_000
_MOST_ANSWERS: Final = 200
_RECORD_BYTES: Final = 1_048_576
"""Room on the disk that a call which discards work must find: for its record, and for contents that are new in it."""

_EARLY: Final = "Undo can't restore it: the first search of the workspace was not complete when it began."
_LATE: Final = (
    "The search of the workspace was not complete when it began: some of these changes may be older, and some may be"
    " missing."
)
_NOT_COVERED: Final = "Undo does not cover the whole workspace, so commands that discard work are asked about."
_OVERLAP: Final = (
    "It ran in the background or beside other calls: some of these changes may have been made by them, by other"
    " programs or the user."
)


class _Call(msgspec.Struct):
    """A call that runs."""

    paths: tuple[str, ...] | None
    problem: str = ""
    """What is missing in the state before it, for the user."""
    is_searched: bool = True
    """False: the state before it is not known."""


class Worker:
    """Answers the requests of one agent, until it closes the socket."""

    def __init__(self, line: socket.socket) -> None:
        """Reads the first request. The caller closes the socket."""
        self._line = line
        self._agent = os.getppid()
        self._buffer = bytearray()
        self._requests: list[Request] = []
        self._is_closed = False
        while not self._requests and not self._is_closed:
            self._receive(None)
        opening = self._requests.pop(0) if self._requests else Open((), "", ())
        if not isinstance(opening, Open):
            raise TypeError(f"the first request is {opening!r}")
        self._roots, self._folder = opening.roots, Path(opening.folder)
        own = frozenset(map(os.fsencode, opening.own))
        self._coverage = msgspec.structs.replace(_LIMITS, excluded=own, sandbox_state=opening.sandbox_state)
        self._store = ContentStore(self._folder)
        known = index_files.load(self._folder) if opening.uses_index else None
        self._tree = self._new_tree(known)
        self._calls: dict[str, _Call] = {}
        """Running calls, in the order in which they began."""
        self._answers: deque[index_files.Answer] = deque(maxlen=_MOST_ANSWERS)
        """The last results of searches, which the agent may not have received."""
        self._sent = 0
        """Number of results that were sent."""
        self._needs_flush = self._needs_saving = self._needs_collection = False
        self._journal = CallJournal(self._folder, self._store.folder.user)
        self._interrupted = InterruptedCalls(self._folder, self._store, self._new_tree)
        close_left_open(self._store.folder)
        self._unfinished = UnfinishedRestores(self._store)
        for text in self._unfinished.clean_up([os.fsencode(root) for root in self._roots]):
            self._send(Warn(text))

    def _new_tree(self, known: bytes | None) -> WorkspaceTree:
        return WorkspaceTree(self._roots, self._store, self._coverage, known)

    def serve(self) -> None:
        """Answer requests until the agent closes the socket; then save the index."""
        while self._requests or not self._is_closed:
            if self._requests:
                self._answer(self._requests.pop(0))
            elif not self._receive(self._patience()):
                self._work_in_background()
        self._finish()

    # ------------------------------------------------------------------ requests

    def _receive(self, timeout_s: float | None) -> bool:
        """Read what has arrived, waiting for it so long; false if that is nothing."""
        ready, _, _ = select.select([self._line], [], [], timeout_s)
        if not ready:
            return False
        try:
            data = self._line.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            self._is_closed = True
        self._buffer += data
        self._requests += map(decode_request, take_frames(self._buffer))
        return True

    def _send(self, reply: Reply) -> None:
        if self._is_closed:
            return
        try:
            self._line.sendall(frame(reply), getattr(socket, "MSG_NOSIGNAL", 0))
        except ConnectionError:
            self._is_closed = True

    def _answer(self, request: Request) -> None:
        match request:
            case Begin():
                self._begin(request)
            case End():
                self._end(request)
            case Settle(number):
                self._find_changes_of_running_calls(None)
                self._send(Ready(number))
            case Cover(number, until):
                self._complete_index(until)
                error = self._store.folder.space_error(_RECORD_BYTES) or self._tree.store_error
                if not (covers := error is None and self._tree.covers_files()):
                    self._send(Warn(self._why_not_covered(error)))
                self._send(Ready(number, covers))
            case Received(count):
                for _ in range(max(0, len(self._answers) - (self._sent - count))):
                    self._answers.popleft()
            case Open():
                raise ValueError("a workspace is open already")

    def _why_not_covered(self, error: OSError | None) -> str:
        """A sentence for the user on why `Cover` is answered with false."""
        sentences = self._tree.uncovered(with_rebuilt=False)
        if not self._tree.is_complete:
            sentences = ("The first search of the workspace is not complete yet.",)
        elif error is not None:
            sentences = (f"{self._folder} can't be written ({error.strerror or error}).", *sentences)
        return f"{_NOT_COVERED} {' '.join(sentences)}"[:_UNCOVERED_CHARACTERS]

    def _begin(self, request: Begin) -> None:
        self._unfinished.forget(request.call_id)
        call, is_late = _Call(request.paths), time.monotonic() > request.until
        if request.paths is None and not self._complete_index(request.until):
            call.problem, call.is_searched = _EARLY, False
        elif is_late:
            call.problem = _LATE
        else:
            if not self._find_changes_of_running_calls(request.paths):
                self._tree.refresh(request.paths)
                self._warn_of_full_disk()
            if time.monotonic() > request.until + GRACE_S:
                call.problem = call.problem or _LATE
        self._needs_flush = True
        others = (each for each in self._answers if each.call_id != request.call_id)  # an earlier one is logged
        self._answers = deque(others, _MOST_ANSWERS)
        if call.is_searched:
            self._write_down(request)
        self._calls[request.call_id] = call
        self._send(Ready(request.number))

    def _write_down(self, request: Begin) -> None:
        """Note that a call begins, so that it is known what it changed if all processes are killed."""
        try:
            has_time = request.until - time.monotonic() > _SAVING_S
            if not self._journal.is_started and self._tree.is_listed and has_time:
                self._save_index()  # else it is saved while the call runs
        except OSError as error:
            self._not_saved(error)
        self._journal.begin(request.call_id, request.paths)

    def _save_index(self) -> None:
        self._journal.start(self._tree.dump(), self._running(), tuple(self._answers))

    def _running(self) -> dict[str, tuple[str, ...] | None]:
        """The running calls that the index is the state before, with their files."""
        return {name: call.paths for name, call in self._calls.items() if call.is_searched}

    def _complete_index(self, until: float) -> bool:
        """Go on with the first search until it is complete or the time is over; true if all files are listed."""
        while not self._tree.is_complete and time.monotonic() < until and not self._is_closed:
            self._go_on_with_first_search(min(until, time.monotonic() + _SLICE_S))
            self._receive(0)
        return self._tree.is_listed

    def _end(self, request: End) -> None:
        call_id = request.call_id
        call = self._calls.pop(call_id, None)
        if call is None:
            self._find_changes_of_interrupted_call(request)
        elif call.is_searched:
            self._find_changes(call_id, call, answers_end=True)
        else:
            self._report(call_id, "", call.problem, is_known=False)

    # ------------------------------------------------------------------ searches

    def _find_changes(self, call_id: str, call: _Call, *, answers_end: bool, more: tuple[str, ...] = ()) -> bool:
        """Send what changed since the last search of these files. False if it could not be saved."""
        sentences = (*((call.problem,) if call.problem else ()), *more)
        ref, is_known = "", True
        changes, gaps = self._tree.changes(call.paths)
        uncovered = (*(sentences if changes else ()), *gaps)
        try:
            if changes:
                is_exact = self._tree.is_exact and call.problem != _LATE
                ref = self._save(call_id, changes, uncovered, is_exact=is_exact)
        except OSError as error:
            uncovered, is_known = (*uncovered, self._not_saved(error)), False
        self._warn_of_full_disk()
        self._needs_flush = self._needs_saving = True
        if answers_end or ref:
            said = " ".join(uncovered)[:_UNCOVERED_CHARACTERS]
            self._report(call_id, ref, said, answers_end=answers_end, is_known=is_known)
        return is_known

    def _report(
        self, call_id: str, ref: str, uncovered: str, *, answers_end: bool = True, is_known: bool = True
    ) -> None:
        answer = index_files.Answer(call_id, ref, uncovered, answers_end, is_known)
        self._answers.append(answer)
        self._journal.found(answer)
        self._sent += 1
        self._send(Found(call_id, ref, uncovered, answers_end, is_known))

    def _save(self, call_id: str, changes: tuple[Change, ...], uncovered: tuple[str, ...], *, is_exact: bool) -> str:
        bare_id = call_id.partition("/")[2] or call_id
        return self._store.save_record(ChangeRecord(bare_id, int(time.time() * 1000), changes, uncovered, is_exact))

    def _find_changes_of_running_calls(self, paths: tuple[str, ...] | None) -> bool:
        """Before these paths may change otherwise, find what running calls changed in them; false if none may have.

        What is found belongs to the call that began last.
        """
        running = [(call_id, call) for call_id, call in self._calls.items() if call.is_searched]
        for call_id, call in running if paths is None else ():
            if call.paths is not None:
                self._find_changes(call_id, call, answers_end=False)
        anywhere = [(call_id, call) for call_id, call in running if call.paths is None]
        if not anywhere:
            return False
        call_id, call = anywhere[-1]
        call.problem = call.problem or _OVERLAP
        self._find_changes(call_id, _Call(paths, call.problem), answers_end=False)
        return True

    def _find_changes_of_interrupted_call(self, end: End) -> None:
        try:
            answers = self._interrupted.find(end.call_id, self._answers, was_lost=end.was_lost)
        except OSError as error:
            answers = (index_files.Answer(end.call_id, "", self._not_saved(error), True, is_known=False),)
        for _, ref, said, answers_end, is_known in map(msgspec.structs.astuple, answers):
            self._report(end.call_id, ref, said[:_UNCOVERED_CHARACTERS], answers_end=answers_end, is_known=is_known)
        self._needs_flush = True

    def _warn_of_full_disk(self) -> None:
        if self._tree.store_error is not None:
            self._not_saved(self._tree.store_error)

    def _not_saved(self, error: OSError) -> str:
        why = error.strerror or str(error)
        self._send(Warn(f"Changes can't be undone at present: {self._folder} can't be written ({why})."))
        return f"Undo can't restore all of it: its changes could not be saved ({why})."

    # ------------------------------------------------------------------ between requests

    def _patience(self) -> float | None:
        """Seconds to wait for a request before work in the background."""
        if self._has_more_to_list:
            return 0
        if self._needs_flush:
            return _FLUSH_S
        if self._needs_saving and not self._journal.is_started:
            return 0
        return _IDLE_S if self._needs_saving or self._needs_collection else None

    @property
    def _has_more_to_list(self) -> bool:
        """Whether the first search can go on: not while calls change files of their own, which it would take over."""
        runs = any(call.is_searched and call.paths is not None for call in self._calls.values())
        return not self._tree.is_complete and not runs

    def _work_in_background(self) -> None:
        try:
            if self._has_more_to_list:
                self._go_on_with_first_search(time.monotonic() + _SLICE_S)
            elif self._needs_flush:
                self._needs_flush = False
                self._store.flush()
                self._journal.flush()
            elif self._needs_saving:
                self._needs_saving = False
                self._needs_collection = True
                self._save_index()
            else:
                self._needs_collection = False
                self._store.collect_garbage(self._tree.contents())
        except OSError as error:
            self._not_saved(error)

    def _go_on_with_first_search(self, until: float) -> None:
        if self._tree.baseline(until):
            self._needs_flush = self._needs_saving = True
            self._warn_of_full_disk()

    def _finish(self) -> None:
        """Save the index; if calls are running, as the state before what is still to be found of them."""
        with contextlib.suppress(OSError):
            running, answers = self._running(), tuple(self._answers)
            index = self._tree.dump() if running or self._needs_saving else b""
            if running and self._is_orphaned() and self._find_last_changes():
                index, answers = self._tree.dump(), tuple(self._answers)
            self._store.flush()
            if answers:
                index_files.save_answers(self._folder, self._store.folder.user, answers)
            if running:
                index_files.save_interrupted(self._folder, self._store.folder.user, running, index)
            elif self._needs_saving and self._tree.is_listed:
                index_files.save(self._folder, index)
            self._journal.close()
        self._tree.close()
        self._store.close()

    def _is_orphaned(self) -> bool:
        """Whether the agent was killed: then this process has another parent."""
        until = time.monotonic() + _ORPHANED_S
        while os.getppid() == self._agent and time.monotonic() < until:
            time.sleep(_ORPHANED_S / 10)
        return os.getppid() != self._agent

    def _find_last_changes(self) -> bool:
        """Find what the running calls of a killed agent have changed until now, and nobody else after them. False if
        it could not be saved.
        """
        time.sleep(_PROGRAMS_END_S)
        running = [(call_id, call) for call_id, call in reversed(self._calls.items()) if call.is_searched]
        running.sort(key=lambda each: each[1].paths is None)  # the last one that may change any file takes what is left
        return all(self._find_changes(call_id, call, answers_end=False) for call_id, call in running)


def main(descriptor: int) -> None:
    """Serve the agent at the other end of a socket. Ends with it."""
    os.umask(0o077)
    with socket.socket(fileno=descriptor) as line:
        try:
            Worker(line).serve()
        except Exception as error:
            with contextlib.suppress(OSError):
                line.sendall(frame(Failed(f"{type(error).__name__}: {error}")))
            raise
