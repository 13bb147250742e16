"""A started program: waits for it, ends it, and collects its output and all processes it started."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.workspace import CommandResult
from bradawl.safety.control_characters import in_remark
from bradawl.safety.name_lists import first_of
from bradawl.workspace.other_thread import in_other_thread
from bradawl.workspace.process_tree import (
    ProcessState,
    call_processes,
    child_pids,
    command_line,
    descendants,
    group_is_running,
    group_members,
    kill_all,
    pids_since,
    process_states,
    program_name,
    running,
    signal_group,
    signal_processes,
)
from bradawl.workspace.program_streams import ProgramStreams
from bradawl.workspace.shell_prelude import Report, parse_report

if TYPE_CHECKING:
    from bradawl.sandbox.backend import ChangeSearch, LaunchCovers, ProgramNetwork
    from bradawl.workspace.namespace_init import NamespaceInit

_KILL_WAIT_S = 0.2
_DRAIN_GRACE_S = 0.1
_BACKGROUND_GRACE_S = 0.3
_REAP_S = 0.5
_POLL_S = 0.01
_IDS_ARE_NEW_S = 1.0  # fewer programs start in that time than there are PIDs


_MOST_NAMED = 5
_NOT_ENDED = (
    "not everything was ended: {} still runs. It belongs to another user, as what sudo starts, or waits in the kernel. "
    "Tell the user, who can end it (sudo kill)"
)
_PUT_BACK = "a command that was cancelled had changed what commands may not change; it was put back or moved away: {}"
_HIGHEST_SIGNAL = 64


def _nothing(_: "ChildProcess") -> None: ...


def _for_user(note: str) -> str:
    """A note for the model about a cancelled command, as the user reads it."""
    said = note.replace("Tell the user not to ", "Do not ").replace("; tell the user: ", ": ")
    return f"about a command that was cancelled: {said}"


class ChildSandbox(msgspec.Struct, frozen=True):
    """The sandbox of a child process, as far as its end depends on it."""

    backend_name: str = ""
    init: "NamespaceInit | None" = None
    reports_signals_as_codes: bool = False
    on_end: Callable[[], tuple[str, ...]] | None = None
    host_path: Callable[[str], str] | None = None
    has_launcher: bool = False
    """The started process sets up the sandbox and then executes or starts the program."""
    program_name: str = ""
    """Name of the program in messages."""
    notes: tuple[str, ...] = ()
    """Sentences about the sandbox for the result."""
    search_after: "ChangeSearch | None" = None
    """The search for what the program changed, which may take seconds."""
    explain_setup_error: Callable[[bytes], str] | None = None
    """Explains stderr of a launcher that did not start the program."""
    network: "ProgramNetwork | None" = None
    """Its way to the network proxy; closed at the end."""
    covers: "LaunchCovers | None" = None
    """Its covers, which `on_end` releases."""

    def for_user(self, restored: tuple[str, ...]) -> tuple[str, ...]:
        """Sentences for the user about a command without a result: what was restored, and the notes of the search."""
        notes = self.search_after.notes() if self.search_after is not None else ()
        paths = first_of(restored, _MOST_NAMED, in_remark) if restored else ""
        return (*((_PUT_BACK.format(paths),) if paths else ()), *map(_for_user, notes))

    def explained(self, stderr: bytes) -> bytes:
        """The standard error of a launcher that did not start the program, with an explanation if there is one."""
        why = self.explain_setup_error(stderr) if self.explain_setup_error else ""
        return f"{why}\n".encode("utf-8", "replace") if why else stderr

    def all_notes(self) -> tuple[str, ...]:
        """The notes, those of covers, network and the end of processes, and those of the search for changes."""
        parts = (self.covers, self.network, self.init, self.search_after)
        return (*self.notes, *(note for part in parts if part is not None for note in part.notes()))


async def _search_changes(search: "ChangeSearch | None") -> None:
    """Search for changes before the sandbox ends; in a thread if it takes long. `kill` uses no thread."""
    if search is None:
        return
    from bradawl.sandbox.check_failures import CheckFailures

    failures = CheckFailures()  # `on_end` searches again, and says what it could not search
    if not failures.attempt("", search.shortly, default=False):
        await in_other_thread(partial(failures.attempt, "", search.finish, None), search.stop)


class ChildProcess:
    """`Process` on this machine. Cancelling `wait` or `end` kills it at once, with all processes it started."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        streams: ProgramStreams,
        mark: str,
        term_grace_s: float,
        on_gone: Callable[["ChildProcess"], None],
        sandbox: ChildSandbox | None = None,
    ) -> None:
        self._sandbox = sandbox or ChildSandbox()
        self._init = self._sandbox.init
        self._restored: tuple[str, ...] = ()
        self._process = process
        self._arguments = [os.fspath(each) for each in process.args] if isinstance(process.args, (list, tuple)) else []
        self._streams = streams
        self._mark = mark
        self._term_grace_s = term_grace_s
        self._on_gone = on_gone
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._seconds = 0.0
        self._exited = self._loop.create_future()
        self._drained = self._loop.create_future()
        self._pidfd = -1
        self._was_ended = self._is_flood = self._left_running = self._is_gone = self._has_begun = False
        self._not_ended: frozenset[int] = frozenset()
        """PIDs of processes that could not be killed."""
        self._is_interrupted = False  # nothing takes its result
        streams.on_flood = self._end_flood
        streams.watch(self._loop, self._on_drained)
        self._watch_exit()

    @property
    def leader_pid(self) -> int:
        """PID of the started process, which is also its session and process group."""
        return self._process.pid

    @property
    def leader_pids(self) -> tuple[int, ...]:
        """PIDs of the process and, in a sandbox, of its namespace's init."""
        return (self._process.pid, self._init.id) if self._init is not None else (self._process.pid,)

    @property
    def is_sandboxed(self) -> bool:
        """Whether it runs in a sandbox and has not ended."""
        return bool(self._sandbox.backend_name) and not self._is_gone

    @property
    def name(self) -> str:
        """Name of the program in messages."""
        return self._sandbox.program_name

    def has_begun(self) -> bool:
        """Whether the sandbox is set up and the program runs, or has ended."""
        if not self._has_begun:
            is_over = self._is_gone or self._exited.done()
            self._has_begun = is_over or not self._sandbox.has_launcher or self._is_replaced()
        return self._has_begun

    def _is_replaced(self) -> bool:
        """Whether the launcher has executed the program: its command line is another then."""
        if self._init is None:
            own = b"".join(os.fsencode(each) + b"\0" for each in self._arguments)
            return command_line(self._process.pid) not in {b"", own}
        if not self._init.is_running:
            return False
        own = command_line(self._init.id)
        return bool(own) and any(command_line(each) not in {b"", own} for each in child_pids(self._init.id))

    def process_states(self) -> dict[int, ProcessState]:
        """States of its processes by PID, without the launcher. Only valid once it has begun."""
        if self._is_gone:
            return {}
        if self._init is not None and self._init.id:
            return descendants(self._init.id) if self._init.is_running else {}
        leader_pid = {self._process.pid} if self._process.returncode is None else set[int]()
        return process_states(leader_pid | self._remaining_pids())

    def _watch_exit(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not Linux, or no descriptor left
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)

    def _wait_in_thread(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._on_exit)

    def _on_exit(self) -> None:
        self._process.poll()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        if not self._exited.done():
            self._exited.set_result(None)

    def _on_drained(self) -> None:
        if not self._drained.done():
            self._drained.set_result(None)

    def _end_flood(self) -> None:
        self._is_flood = True
        self._kill_group_and_init()

    def _kill_group_and_init(self) -> None:
        """Kill the group first: init is in it before its PID is known."""
        signal_group(self._process.pid, signal.SIGKILL)
        if self._init is not None:
            self._init.kill()

    # -------------------------------------------------------------- the port

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the program's end, then read the rest of its output and end what it left running."""
        try:
            if self._sandbox.network is not None:
                await self._sandbox.network.wait_answering(self._exited, timeout_s)
            elif not self._exited.done():
                await asyncio.wait((self._exited,), timeout=timeout_s)
            if not self._exited.done():
                return False
            if not self._is_gone:
                self._left_running = await self._end_leftovers() or self._left_running
                await _search_changes(self._sandbox.search_after)
        except BaseException:
            self._is_interrupted = True
            self.kill()
            raise
        self._close()
        return True

    async def end(self) -> None:
        """Terminate, wait, then kill all its processes, also those in other sessions."""
        if self._is_gone:
            return
        self._was_ended = True
        try:
            left = self._terminate()
            await self._wait_while(partial(group_is_running, self._process.pid), self._term_grace_s)
            await self._kill_without_blocking(left)
            await asyncio.wait((self._exited,), timeout=_KILL_WAIT_S)
            self._streams.read_available()
            if not self._drained.done():
                await asyncio.wait((self._drained,), timeout=_DRAIN_GRACE_S)
        except BaseException:
            self._is_interrupted = True
            self.kill()
            raise
        self._reap()
        self._close()

    def printed(self) -> tuple[bytes, int]:
        """Output since the last call, and the number of bytes dropped."""
        return self._streams.take_recent()

    def result(self) -> CommandResult:
        """How it ended. The shell's report counts only if the program ended by itself."""
        stdout, stderr, dropped = self._streams.output()
        code, said = self._process.returncode, self._streams.report()
        is_own_end = not (self._was_ended or self._is_flood)
        report = parse_report(said, self._streams.key, code) if is_own_end else Report()
        if is_own_end and code == 1 and not said:
            stderr = self._sandbox.explained(stderr)
        if self._sandbox.reports_signals_as_codes and report == Report() and 128 < code <= 128 + _HIGHEST_SIGNAL:
            code = 128 - code
        return CommandResult(
            exit_code=None if self._is_flood else code,
            stdout=stdout,
            stderr=stderr,
            dropped_bytes=dropped,
            pipe_status=report.pipe_status,
            earlier_failures=report.earlier_failures,
            cwd=self._sandbox.host_path(report.cwd) if report.cwd and self._sandbox.host_path else report.cwd,
            seconds=self._seconds or self._loop.time() - self._started,
            ended_background=self._left_running,
            exports=report.exports,
            sandbox=self._sandbox.backend_name,
            restored=self._restored,
            notes=(*self._sandbox.all_notes(), *_remarks_on(self._not_ended)),
            spilled=self._streams.spilled(is_needed=dropped > 0),
        )

    def unsaid(self) -> tuple[str, ...]:
        """Sentences for the user about what was restored, or could not be checked, if nothing takes the result."""
        return self._sandbox.for_user(self._restored) if self._is_interrupted else ()

    def add_restored(self, paths: tuple[str, ...]) -> None:
        """Add paths to `CommandResult.restored`."""
        self._restored = tuple(dict.fromkeys((*self._restored, *paths)))

    # -------------------------------------------------------------- its end

    async def _end_leftovers(self) -> bool:
        """Read the rest of the output and end what is left running; True if something was."""
        self._streams.read_available()
        if not self._drained.done():
            await asyncio.wait((self._drained,), timeout=_DRAIN_GRACE_S)
        if await self._has_left_nothing():
            return False
        left = self._terminate() | (group_members(self._process.pid) if not self._init_is_running() else set())
        # Remember the PIDs: a process whose parent has ended can't be found again, and a signal can get lost while a
        # shell executes a program.
        if not await self._wait_while(lambda: self._has_left_something() or bool(running(left)), _BACKGROUND_GRACE_S):
            await self._kill_without_blocking(left)
        self._streams.read_available()
        return not left or not left <= self._not_ended

    async def _has_left_nothing(self) -> bool:
        if self._init is not None and not await self._init.has_ended(_DRAIN_GRACE_S):
            return False
        return await self._wait_while(self._has_left_something, _DRAIN_GRACE_S)

    def _has_left_something(self) -> bool:
        if self._init_is_running():
            return True
        return (self._init is None or self._init.is_lost) and (
            group_is_running(self._process.pid) or bool(self._remaining_pids())
        )

    def _init_is_running(self) -> bool:
        return self._init is not None and self._init.is_running

    def _remaining_pids(self) -> set[int]:
        """PIDs of its living processes. After reaping, its own PID may belong to another process and does not count."""
        if self._init is not None and self._init.is_running:
            return self._init.remaining_pids()
        is_reaped = self._process.returncode is not None
        is_new = self._loop.time() < self._started + _IDS_ARE_NEW_S
        return call_processes(
            self._mark,
            None if is_reaped else self._process.pid,
            pids_since(self._process.pid) if is_new else None,
        )

    async def _wait_while(self, is_running: Callable[[], bool], within_s: float) -> bool:
        deadline = self._loop.time() + within_s
        while is_running():
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _terminate(self) -> set[int]:
        left = self._remaining_pids()  # first: descendants can't be found once their parent is gone
        # A terminated launcher would exit at once, and the program's exit code would be lost.
        held_by = self._init.group if self._init is not None and self._init_is_running() else 0
        signal_group(held_by or self._process.pid, signal.SIGTERM)
        signal_processes(left, signal.SIGTERM)
        return left

    async def _kill_without_blocking(self, process_states: set[int]) -> None:
        """As `_kill`. What ends the processes of a sandbox may take seconds for one that waits in the kernel."""
        if self._init is not None:
            await self._wait_while(self._init_is_running, self._init.begin_kill())
        self._kill(process_states)

    def _kill(self, process_states: set[int]) -> None:
        self._kill_group_and_init()
        self._not_ended |= kill_all(process_states, self._remaining_pids)

    def kill(self) -> None:
        """Kill and reap all its processes without awaiting, so that a second cancellation can't interrupt it."""
        if self._is_gone:
            return
        self._was_ended = True
        self._kill(self._remaining_pids() | ({self._process.pid} if self._process.returncode is None else set()))
        self._reap()
        self._close()
        self._streams.spilled(is_needed=False)

    def _reap(self) -> None:
        try:
            self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:  # stuck in the kernel; reaped when it gets out
            threading.Thread(target=self._process.wait, daemon=True).start()

    def _close(self) -> None:
        """Release every descriptor. Output and exit code stay available."""
        if self._is_gone:
            return
        self._is_gone = True
        self._seconds = self._loop.time() - self._started
        self._streams.close()
        if self._pidfd >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        try:
            self.add_restored(_end_sandbox(self._sandbox))
        finally:
            if not self._exited.done() and not self._loop.is_closed():
                self._exited.set_result(None)  # wakes other waiters
            self._on_gone(self)
            self._on_gone = _nothing  # drops the reference to its owner


def _remarks_on(not_ended: frozenset[int]) -> tuple[str, ...]:
    """A sentence about those of the processes that still run."""
    left = sorted(running(not_ended)) if not_ended else ()
    named = [f"process {each} ({in_remark(program_name(each))})" for each in left[:_MOST_NAMED]]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    return (_NOT_ENDED.format(", ".join(named) + more),) if named else ()


def _end_sandbox(sandbox: ChildSandbox) -> tuple[str, ...]:
    """Release what belongs to a sandbox, and check what the program changed. Returns the restored paths."""
    try:
        if sandbox.init is not None:
            sandbox.init.close()
        if sandbox.network is not None:
            sandbox.network.close()
    finally:
        restored = sandbox.on_end() if sandbox.on_end is not None else ()
    return restored
