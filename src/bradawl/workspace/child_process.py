"""A started program, until it is gone with all that it started."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.workspace import CommandResult
from bradawl.workspace.process_tree import (
    ProcessState,
    call_processes,
    children,
    command_line,
    group_lives,
    ids_since,
    living,
    process_states,
    signal_all,
    signal_group,
    tree,
)
from bradawl.workspace.program_streams import ProgramStreams
from bradawl.workspace.shell_prelude import Report, parse_report

if TYPE_CHECKING:
    from bradawl.workspace.namespace_init import NamespaceInit

_KILL_WAIT_S = 0.2
_DRAIN_GRACE_S = 0.1
_BACKGROUND_GRACE_S = 0.3
_REAP_S = 0.5
_POLL_S = 0.01
_IDS_ARE_NEW_S = 1.0  # nobody starts as many programs as there are ids in that time
_KILL_ROUNDS = 200
_KILL_POLL_S = 0.001


_HIGHEST_SIGNAL = 64


def _nothing(_: "ChildProcess") -> None: ...


class ChildSandbox(msgspec.Struct, frozen=True):
    """What holds a program, for who waits for its end."""

    sandbox: str = ""
    init: "NamespaceInit | None" = None
    reports_signals_as_codes: bool = False
    on_end: Callable[[], tuple[str, ...]] | None = None
    host_path: Callable[[str], str] | None = None
    has_launcher: bool = False
    """The process that was started becomes the program, or starts it, once the sandbox is set up."""
    name: str = ""
    """What the program is called in messages."""
    notes: tuple[str, ...] = ()
    """For its result."""
    explain_setup_error: Callable[[bytes], str] | None = None
    """What the launcher means by its words, of a program that has not begun."""


class ChildProcess:
    """`Process` on this machine. Cancelling `wait` or `end` kills it at once, with all its family."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        streams: ProgramStreams,
        mark: str,
        term_grace_s: float,
        on_gone: Callable[["ChildProcess"], None],
        hold: ChildSandbox | None = None,
    ) -> None:
        self._sandbox = hold or ChildSandbox()
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
        self._was_ended = self._is_flood = self._left_running = self._is_gone = False
        self._has_begun = False
        streams.on_flood = self._end_flood
        streams.watch(self._loop, self._on_drained)
        self._watch_exit()

    @property
    def leader(self) -> int:
        """The id of the program, which is that of its session and group too."""
        return self._process.pid

    @property
    def leaders(self) -> tuple[int, ...]:
        """It, and the one that keeps what it started, if there is one."""
        return (self._process.pid, self._init.id) if self._init is not None else (self._process.pid,)

    @property
    def is_sandboxed(self) -> bool:
        """Whether it runs in the sandbox, where it is not gone already."""
        return bool(self._sandbox.sandbox) and not self._is_gone

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self._sandbox.name

    def has_begun(self) -> bool:
        """Whether the sandbox is set up and the program runs in it; also if it has ended."""
        if not self._has_begun:
            self._has_begun = (
                self._is_gone or self._exited.done() or not self._sandbox.has_launcher or self._is_replaced()
            )
        return self._has_begun

    def _is_replaced(self) -> bool:
        """Whether the launcher's arguments are gone: the program's own come when the launcher has done its work."""
        if self._init is None:
            own = b"".join(os.fsencode(each) + b"\0" for each in self._arguments)
            return command_line(self._process.pid) not in {b"", own}
        if not self._init.lives:
            return False
        own = command_line(self._init.id)
        return bool(own) and any(command_line(each) not in {b"", own} for each in children(self._init.id))

    def process_states(self) -> dict[int, ProcessState]:
        """Its processes, without the launcher's; to be asked once it has begun."""
        if self._is_gone:
            return {}
        if self._init is not None and self._init.id:
            return tree(self._init.id) if self._init.lives else {}
        leader = {self._process.pid} if self._process.returncode is None else set[int]()
        return process_states(leader | self._left())

    def _watch_exit(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):  # not this system, or no descriptor left
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)

    def _wait_in_thread(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
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
        """The group first: before the keeper is known it is in there."""
        signal_group(self._process.pid, signal.SIGKILL)
        if self._init is not None:
            self._init.kill()

    # -------------------------------------------------------------- the port

    async def wait(self, timeout_s: float) -> bool:
        """Wait for its own end, then take the rest of its output and end what it left running."""
        try:
            if not self._exited.done():
                await asyncio.wait((self._exited,), timeout=timeout_s)
            if not self._exited.done():
                return False
            if not self._is_gone:
                self._left_running = await self._settle() or self._left_running
        except BaseException:
            self.kill()
            raise
        self._close()
        return True

    async def end(self) -> None:
        """Ask, wait, then kill, down to children that moved to another session."""
        if self._is_gone:
            return
        self._was_ended = True
        try:
            left = self._ask_to_end()
            await self._wait_while(self._group_lives, self._term_grace_s)
            self._kill(left)
            await asyncio.wait((self._exited,), timeout=_KILL_WAIT_S)
            self._streams.pump()
            if not self._drained.done():
                await asyncio.wait((self._drained,), timeout=_DRAIN_GRACE_S)
        except BaseException:
            self.kill()
            raise
        self._reap()
        self._close()

    def printed(self) -> tuple[bytes, int]:
        """What it has printed since the last look."""
        return self._streams.recent()

    def result(self) -> CommandResult:
        """How it ended; what its shell says of its end does not count when that was not its own."""
        stdout, stderr, dropped = self._streams.output()
        code = self._process.returncode
        is_own_end = not (self._was_ended or self._is_flood)
        said = self._streams.report()
        report = parse_report(said, self._streams.key, code) if is_own_end else Report()
        if (
            self._sandbox.explain_setup_error
            and is_own_end
            and code == 1
            and not said
            and (why := self._sandbox.explain_setup_error(stderr))
        ):
            stderr = f"{why}\n".encode("utf-8", "replace")
        if self._sandbox.reports_signals_as_codes and report == Report() and 128 < code <= 128 + _HIGHEST_SIGNAL:
            code = 128 - code
        return CommandResult(
            exit_code=None if self._is_flood else code,
            stdout=stdout,
            stderr=stderr,
            dropped_bytes=dropped,
            pipe_status=report.pipe_status,
            cwd=self._sandbox.host_path(report.cwd) if report.cwd and self._sandbox.host_path else report.cwd,
            seconds=self._seconds or self._loop.time() - self._started,
            ended_background=self._left_running,
            exports=report.exports,
            sandbox=self._sandbox.sandbox,
            restored=self._restored,
            notes=self._sandbox.notes,
            spilled=self._streams.spilled(is_needed=dropped > 0),
        )

    # -------------------------------------------------------------- its end

    async def _settle(self) -> bool:
        """Take the rest of its output and end what it left running; true if there was something."""
        self._streams.pump()
        if not self._drained.done():
            await asyncio.wait((self._drained,), timeout=_DRAIN_GRACE_S)
        if await self._has_left_nothing():
            return False
        left = self._ask_to_end()
        # Those asked are looked for by name: whose parent went first can't be found any more, and a request that
        # comes while a shell is turning into a program can get lost.
        if not await self._wait_while(lambda: self._has_left_something() or bool(living(left)), _BACKGROUND_GRACE_S):
            self._kill(left)
        self._streams.pump()
        return True

    async def _has_left_nothing(self) -> bool:
        if self._init is not None and not await self._init.has_ended(_DRAIN_GRACE_S):
            return False
        return await self._wait_while(self._has_left_something, _DRAIN_GRACE_S)

    def _has_left_something(self) -> bool:
        if self._init_lives():
            return True
        return self._init is None and (group_lives(self._process.pid) or bool(self._left()))

    def _init_lives(self) -> bool:
        return self._init is not None and self._init.lives

    def _left(self) -> set[int]:
        """What lives of its family; once it is reaped, its id may be another's and stands for nobody."""
        if self._init is not None and self._init.lives:
            return self._init.left()
        is_reaped = self._process.returncode is not None
        is_new = self._loop.time() < self._started + _IDS_ARE_NEW_S
        return call_processes(
            self._mark,
            None if is_reaped else self._process.pid,
            ids_since(self._process.pid) if is_new else None,
        )

    def _group_lives(self) -> bool:
        return group_lives(self._process.pid)

    async def _wait_while(self, lives: Callable[[], bool], within_s: float) -> bool:
        deadline = self._loop.time() + within_s
        while lives():
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    def _ask_to_end(self) -> set[int]:
        left = self._left()  # first: once a parent is gone, who descends from it can't be told
        # A launcher that is asked goes at once, and nobody tells how the program ended.
        held_by = self._init.id if self._init is not None and self._init_lives() else 0
        signal_group(held_by or self._process.pid, signal.SIGTERM)
        signal_all(left, signal.SIGTERM)
        return left

    def _kill(self, process_states: set[int]) -> None:
        self._kill_group_and_init()
        for _ in range(_KILL_ROUNDS):  # one that is forking meanwhile is found in a later round
            if not process_states:
                return
            signal_all(process_states, signal.SIGKILL)
            time.sleep(_KILL_POLL_S)
            process_states = living(process_states) | self._left()

    def kill(self) -> None:
        """Kill it with all its family and reap it, without awaiting: a second cancellation can't come between."""
        if self._is_gone:
            return
        self._was_ended = True
        self._kill(self._left() | ({self._process.pid} if self._process.returncode is None else set()))
        self._reap()
        self._close()
        self._streams.spilled(is_needed=False)

    def _reap(self) -> None:
        try:
            self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:  # stuck in the kernel; reaped whenever it gets out
            threading.Thread(target=self._process.wait, daemon=True).start()

    def _close(self) -> None:
        """Release every descriptor; what it has printed and how it ended can still be had."""
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
        self._end_sandbox()
        if not self._exited.done() and not self._loop.is_closed():
            self._exited.set_result(None)  # who waits elsewhere need not wait on
        self._on_gone(self)
        self._on_gone = _nothing  # who made it need not live as long

    def _end_sandbox(self) -> None:
        if self._init is not None:
            self._init.close()
        if self._sandbox.on_end is not None:
            self._restored = self._sandbox.on_end()
