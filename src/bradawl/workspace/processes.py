"""Programs of the workspace, started on this machine."""

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.ports import Command, CommandResult
from bradawl.workspace.descendants import family, group_lives, ids_since, living, signal_all, signal_group
from bradawl.workspace.output import HeadAndTail
from bradawl.workspace.prelude import MARK, PRELUDE, REPORT_FD, parse_report

Progress = Callable[[bytes], None]

_TERM_GRACE_S = 2.0
_KILL_WAIT_S = 1.0
_DRAIN_GRACE_S = 0.1
_BACKGROUND_GRACE_S = 0.3
_REAP_S = 0.5
_POLL_S = 0.01
_IDS_ARE_NEW_S = 1.0  # nobody starts as many programs as there are ids in that time
_KILL_ROUNDS = 200
_KILL_POLL_S = 0.001
_REPORT_LIMIT = 64_000
_LOWEST_REPORT_FD = 200
_PIECE = 262_144
_PIECES_PER_WAKE = 4
_OWN_ENVIRONMENT = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
_LEFT_OUT = {"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"}  # each makes bash run or do what nobody asked for


class LocalProcesses:
    """`Processes` on this machine, each in a session of its own with nothing to read. Its maker calls `close()`."""

    def __init__(
        self, environment: Mapping[str, str], *, bash: str | None = None, term_grace_s: float = _TERM_GRACE_S
    ) -> None:
        """`environment` is what programs see, save for the variables that would make them wait for a person.

        `bash` is looked for on its PATH; empty means that there is none and that /bin/sh runs shell lines, without
        telling its last folder. `term_grace_s` is what a program has after a timeout to clean up.
        """
        kept = {name: value for name, value in environment.items() if name not in _LEFT_OUT}
        self._environment = {**kept, **_OWN_ENVIRONMENT}
        self._prelude = _PreludeFile(environment.get("TMPDIR") or str(Path("/") / "tmp"))
        self._bash = _find("bash", self._environment) if bash is None else bash
        self._term_grace_s = term_grace_s

    async def run(self, command: Command, grant: Grant | None, progress: Progress | None = None) -> CommandResult:
        """Run to the end; on timeout or cancellation the process group is ended and reaped.

        Returns when the program itself has ended, not when its output is closed: what it left running is ended
        then, also what moved to a session of its own, and `ended_background` says so. Only who cleared the
        environment and whose parents are gone gets away. After a timeout what was printed is kept. Raises
        `ToolError` when the program can't be started.
        """
        if grant is None:
            raise ToolError(f"not allowed: {command.argv[0][:80]!r} has no grant, so it was not started")
        started = time.monotonic()
        child = self._start(command, progress)
        try:
            ended = await child.wait(command.timeout_s)
            ended_background = await (child.settle() if ended else child.end())
        except BaseException:
            child.kill()
            raise
        finally:
            child.close()
        return child.result(time.monotonic() - started, timed_out=not ended, ended_background=ended_background)

    def close(self) -> None:
        """Remove the temporary folder; safe to call twice."""
        self._prelude.close()

    def _start(self, command: Command, progress: Progress | None) -> "_Child":
        mark = os.urandom(8).hex()
        environment = {**self._environment, MARK: mark, "PWD": command.cwd}
        pipes: list[_Pipe] = []
        try:
            pipes += [_Pipe(command.output_limit_bytes, progress), _Pipe(command.output_limit_bytes, progress)]
            pipes.append(_Pipe(_REPORT_LIMIT, None, lowest_sink=_LOWEST_REPORT_FD))
            argv, inherited = command.argv, ()
            if command.is_shell:
                argv = (self._bash or "/bin/sh", "-c", *command.argv)
                if self._bash:
                    inherited = (pipes[2].sink,)
                    environment |= {"BASH_ENV": self._prelude.path(), REPORT_FD: str(pipes[2].sink)}
            process = subprocess.Popen(
                argv,
                cwd=command.cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=pipes[0].sink,
                stderr=pipes[1].sink,
                pass_fds=inherited,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            for pipe in pipes:
                pipe.close()
            raise _start_error(command, error) from error
        return _Child(process, pipes, mark, self._term_grace_s)


def _find(name: str, environment: Mapping[str, str]) -> str | None:
    candidates = [Path(folder, name) for folder in os.get_exec_path(environment)] + [Path("/bin", name)]
    return next((str(path) for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)


def _start_error(command: Command, error: OSError | ValueError) -> ToolError:
    program = command.argv[0][:80] if command.argv and not command.is_shell else "the shell"
    if isinstance(error, ValueError):
        return ToolError(f"{program} can't be started: {error}; leave the NUL character out")
    if not Path(command.cwd).is_dir():
        return ToolError(
            f"the working directory {command.cwd} does not exist any more; a bash call moves to the nearest that does"
        )
    if isinstance(error, FileNotFoundError):
        return ToolError(f"{program} is not installed here, or not on PATH")
    if error.errno == errno.E2BIG:
        return ToolError("the command is too long for the system (about 128 KB); put it into a file and run that")
    if error.errno in {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE}:
        return ToolError(f"{program} can't be started now: {error.strerror}; end other programs, or try again later")
    return ToolError(f"{program} can't be started: {error.strerror or error}")


class _PreludeFile:
    """The file bash reads before a shell line; made when first needed, in a folder only we can enter."""

    def __init__(self, temporary: str) -> None:
        self._temporary = temporary
        self._removal: weakref.finalize[[str], _PreludeFile] | None = None
        self._path = ""

    def path(self) -> str:
        if not self._path or not os.access(self._path, os.R_OK):  # also when a cleaner of temporary files was here
            self.close()
            folder = Path(self._temporary, f"bradawl-{os.urandom(8).hex()}")
            folder.mkdir(mode=0o700)
            self._removal = weakref.finalize(self, _remove, str(folder))
            self._path = str(folder / "prelude.bash")
            Path(self._path).write_text(PRELUDE)
        return self._path

    def close(self) -> None:
        if self._removal is not None:
            self._removal()
        self._path = ""


def _remove(folder: str) -> None:
    with contextlib.suppress(OSError):
        Path(folder, "prelude.bash").unlink(missing_ok=True)
        Path(folder).rmdir()


class _Pipe:
    """One stream of a program on its way to us."""

    def __init__(self, limit_bytes: int, progress: Progress | None, lowest_sink: int = 0) -> None:
        self._kept = HeadAndTail(limit_bytes)
        self._progress = progress
        self._loop: asyncio.AbstractEventLoop | None = None
        self.source, self.sink = os.pipe()
        self.on_end: Callable[[], None] | None = None
        os.set_blocking(self.source, False)
        if lowest_sink:
            self._raise_sink(lowest_sink)

    def _raise_sink(self, lowest: int) -> None:
        """Move the end the program inherits out of the way of the numbers scripts use."""
        with contextlib.suppress(OSError):
            raised = fcntl.fcntl(self.sink, fcntl.F_DUPFD_CLOEXEC, lowest)
            os.close(self.sink)
            self.sink = raised

    @property
    def is_open(self) -> bool:
        return self.source >= 0

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._close_sink()
        self._loop = loop
        loop.add_reader(self.source, self.pump)

    def pump(self) -> None:
        """Take what is there, a bounded amount at a time."""
        for _ in range(_PIECES_PER_WAKE if self.is_open else 0):
            try:
                data = os.read(self.source, _PIECE)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            self._kept.add(data)
            if self._progress:
                self._progress(data)

    def kept(self) -> tuple[bytes, int]:
        return self._kept.kept()

    def _close_sink(self) -> None:
        if self.sink >= 0:
            os.close(self.sink)
            self.sink = -1

    def close(self) -> None:
        self._close_sink()
        if self.is_open:
            if self._loop:
                self._loop.remove_reader(self.source)
            os.close(self.source)
            self.source = -1
            if self.on_end:
                self.on_end()


class _Child:
    """A started program until it is gone."""

    def __init__(self, process: subprocess.Popen[bytes], pipes: list[_Pipe], mark: str, term_grace_s: float) -> None:
        self._process = process
        self._pipes = pipes
        self._mark = mark
        self._term_grace_s = term_grace_s
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        self._exited = self._loop.create_future()
        self._drained = self._loop.create_future()
        self._pidfd = -1

    def _watch(self) -> None:
        for pipe in self._pipes:
            pipe.on_end = self._on_pipe_end
            pipe.watch(self._loop)
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

    def _on_pipe_end(self) -> None:
        if not self._drained.done() and not any(pipe.is_open for pipe in self._pipes[:2]):
            self._drained.set_result(None)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the program's own end; false when the time is over first."""
        self._watch()
        await asyncio.wait((self._exited,), timeout=timeout_s)
        return self._exited.done()

    async def settle(self) -> bool:
        """After its own end: take the rest of its output and end what it left running; true if there was something."""
        for pipe in self._pipes:
            pipe.pump()
        if not self._drained.done():
            await asyncio.wait((self._drained,), timeout=_DRAIN_GRACE_S)
        if await self._ends(self._has_left_something, _DRAIN_GRACE_S):
            return False
        left = self._ask_to_end()
        # Those asked are looked for by name: whose parent went first can't be found any more, and a request that
        # comes while a shell is turning into a program can get lost.
        if not await self._ends(lambda: self._has_left_something() or bool(living(left)), _BACKGROUND_GRACE_S):
            self._kill(left)
        for pipe in self._pipes:
            pipe.pump()
        return True

    def _has_left_something(self) -> bool:
        return group_lives(self._process.pid) or bool(self._left())

    def _left(self) -> set[int]:
        """What lives of its family; once it is reaped, its id may be another's and stands for nobody."""
        is_reaped = self._process.returncode is not None
        is_new = self._loop.time() < self._started + _IDS_ARE_NEW_S
        return family(
            self._mark,
            None if is_reaped else self._process.pid,
            ids_since(self._process.pid) if is_new else None,
        )

    def _group_lives(self) -> bool:
        return group_lives(self._process.pid)

    async def _ends(self, lives: Callable[[], bool], within_s: float) -> bool:
        deadline = self._loop.time() + within_s
        while lives():
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def end(self) -> bool:
        """After a timeout: ask, wait, then kill, down to children that moved to another session."""
        left = self._ask_to_end()
        await self._ends(self._group_lives, self._term_grace_s)
        self._kill(left)
        await asyncio.wait((self._exited,), timeout=_KILL_WAIT_S)
        for pipe in self._pipes:
            pipe.pump()
        if not self._drained.done():
            await asyncio.wait((self._drained,), timeout=_DRAIN_GRACE_S)
        return False

    def _ask_to_end(self) -> set[int]:
        left = self._left()  # first: once a parent is gone, who descends from it can't be told
        signal_group(self._process.pid, signal.SIGTERM)
        signal_all(left, signal.SIGTERM)
        return left

    def _kill(self, members: set[int]) -> None:
        signal_group(self._process.pid, signal.SIGKILL)
        for _ in range(_KILL_ROUNDS):  # one that is forking meanwhile is found in a later round
            if not members:
                return
            signal_all(members, signal.SIGKILL)
            time.sleep(_KILL_POLL_S)
            members = living(members) | self._left()

    def kill(self) -> None:
        """Kill it with all its family and reap it, without awaiting: a second cancellation can't come between."""
        self._kill(self._left() | ({self._process.pid} if self._process.returncode is None else set()))
        try:
            self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:  # stuck in the kernel; reaped whenever it gets out
            threading.Thread(target=self._process.wait, daemon=True).start()

    def close(self) -> None:
        """Release every descriptor."""
        for pipe in self._pipes:
            pipe.close()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def result(self, seconds: float, *, timed_out: bool, ended_background: bool) -> CommandResult:
        """How it ended; only after `close()`."""
        (stdout, dropped_out), (stderr, dropped_err), (report, _) = (pipe.kept() for pipe in self._pipes)
        exit_code = None if timed_out else self._process.returncode
        pipe_status, cwd = parse_report(report, self._mark, exit_code)
        dropped = dropped_out + dropped_err
        return CommandResult(exit_code, stdout, stderr, dropped, pipe_status, cwd, seconds, ended_background)
