"""Starts programs on this machine, in a sandbox or not (the port `Processes`)."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bradawl.core.effects import is_within
from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.ports import Permit
from bradawl.core.workspace import Command, CommandResult
from bradawl.safety.trusted_programs import TrustedPrograms, trusted_programs
from bradawl.workspace.child_process import ChildProcess, ChildSandbox
from bradawl.workspace.job_freeze import FreezeGate, check_not_replaced
from bradawl.workspace.other_thread import in_other_thread
from bradawl.workspace.private_folder import PrivateFolder
from bradawl.workspace.program_streams import ProgramStreams, Progress
from bradawl.workspace.running_checks import CheckReport, RunningChecks
from bradawl.workspace.shell_prelude import HELD_BACK, MARK, PRELUDE, REPORT_FD, TRAPS, traps_for
from bradawl.workspace.watchdog import Watchdog

if TYPE_CHECKING:
    from bradawl.sandbox.backend import Launch, Program, SandboxBackend
    from bradawl.workspace.namespace_init import NamespaceInit

_CAN_STOP = sys.platform.startswith("linux")
"""Elsewhere the processes of a program can't be determined without starting another one."""
_TERM_GRACE_S = 1.6  # with other delays, a call ends two seconds after its timeout
_FLOOD_BYTES = 10_000_000_000
_READ_WHOLE = 4_000_000
"""Largest script that is identified by content, in bytes; larger files are identified by inode and times."""
_OWN_ENVIRONMENT = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
_HELPERS_PATH = "/usr/local/bin:/usr/bin:/bin"  # no helper searches for programs; a wrapper script might
# These make bash run code or change its behaviour. In POSIX mode bash reads no BASH_ENV, which the report needs.
_LEFT_OUT = {"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "POSIXLY_CORRECT"}
_FUNCTIONS = "BASH_FUNC_"  # exported functions would replace programs of the same name
_NOT_OURS = _LEFT_OUT | {"OLDPWD"}  # `cd -` must not lead to a folder of the user's shell


class LocalProcesses:
    """`Processes` on this machine. Each program has its own session and no standard input. Its owner calls
    `close()`.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        bash: str | None = None,
        term_grace_s: float = _TERM_GRACE_S,
        flood_bytes: int = _FLOOD_BYTES,
        sandbox_backend: "Callable[[], SandboxBackend | None] | None" = None,
        programs: TrustedPrograms | None = None,
        roots: tuple[str, ...] = (),
    ) -> None:
        """`environment` is the environment of programs; variables that make programs wait for input are removed from
        it.

        `programs` finds bash and other programs named without a folder; by default on the PATH of the environment.
        `bash` names a bash; empty means that /bin/sh runs shell lines, without reporting the working directory.
        `term_grace_s` is the time for cleaning up after a timeout, in seconds. A program that prints more than
        `flood_bytes` is ended at once. `sandbox_backend` is called at each start and returns the backend for programs
        that are neither helpers nor granted to run outside; its owner closes it. `roots` are folders that programs may
        write to: output that is too large for memory is never kept there.
        """
        self._environment = _without_traps(environment)
        self._folder = PrivateFolder(_temporary(environment, roots))
        self._programs = programs or trusted_programs(self._environment, (), "")
        self._bash = self._programs.find("bash") if bash is None else bash
        self._term_grace_s = term_grace_s
        self._flood_bytes = flood_bytes
        self._sandbox_backend = sandbox_backend or _no_sandbox
        self._mark = os.urandom(8).hex()
        self._watchdog = Watchdog(self._mark, lambda: self._programs.search_path)
        self._running: set[ChildProcess] = set()
        self._gate = FreezeGate(lambda: self._running)
        self._checks = RunningChecks(self._gate, lambda: self._running)
        self.take_warnings = self._checks.take_warnings

    def seal(self, command: Command) -> str:
        """Digest of a command and everything that determines its effect: text, cwd, environment, sandbox, programs,
        scripts.
        """
        sandbox_backend = self._sandbox_backend()
        sandbox = sandbox_backend.sandbox if sandbox_backend else None
        try:
            place = os.path.realpath(sandbox_backend.host_path(command.cwd) if sandbox_backend else command.cwd)
            found = Path(place).stat()
            place = f"{place}\0{found.st_dev}\0{found.st_ino}"
        except OSError:
            place = command.cwd
        environment = self._environment_of(command)
        variables = sorted(environment.items())
        real = sandbox_backend.host_path if sandbox_backend else str
        search_path = environment.get("PATH", os.defpath) if command.runs else ""
        folders = [f"{command.cwd}/{each}" if each[:1] != "/" else each for each in search_path.split(":")]
        runs = [_state_of(name, folders, real) for name in command.runs]
        held = (sandbox.name, *sandbox.lacks) if sandbox else ()
        given = (f"{name}={value}" for name, value in variables)
        parts = (*command.argv, place, self._bash or "", *given, "", *held, "", *runs)
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def check_grant(self, command: Command, grant: Grant) -> None:
        """Raises the `ToolError` with which the sandbox would refuse to start the command with this grant."""
        from bradawl.sandbox.backend import ChecksGrants

        backend = self._sandbox_backend() if _is_sandboxed(command, grant) else None
        if isinstance(backend, ChecksGrants):
            backend.check_grant(grant)

    async def run(
        self, command: Command, grant: Grant | None, progress: Progress | None = None, permit: Permit | None = None
    ) -> CommandResult:
        """Run to the end. On timeout or cancellation, the process group is ended and reaped.

        Returns when the program itself has ended, even if its output is still open. What it left running is ended then,
        also in other sessions, and `ended_background` is set; without a sandbox, a process that cleared its environment
        and whose parents have ended escapes. After a timeout, the output so far is kept. Raises `ToolError` if the
        program can't be started. `permit` judges hosts that the program tries to reach; the time it takes does not
        count.
        """
        child = await self._begin(command, grant, progress, permit)
        if await child.wait(command.timeout_s):
            return child.result()
        await child.end()
        return msgspec.structs.replace(child.result(), exit_code=None)

    async def start(
        self, command: Command, grant: Grant | None, progress: Progress | None = None, permit: Permit | None = None
    ) -> ChildProcess:
        """Start a program and leave it running. Raises `ToolError` if it can't be started. For `permit` see `run`."""
        return await self._begin(command, grant, progress, permit, keeps_recent=True)

    async def _begin(
        self,
        command: Command,
        grant: Grant | None,
        progress: Progress | None,
        permit: Permit | None,
        *,
        keeps_recent: bool = False,
    ) -> ChildProcess:
        """Start a program. Running sandboxed programs are stopped while its sandbox is set up, or while it examines
        paths.
        """
        await self._search_ahead(command, grant)
        is_search = bool(command.unmoved) and not command.is_shell
        is_free = not is_search and (self._gate.is_open or grant is None or not _is_sandboxed(command, grant))
        if is_free or not _CAN_STOP:
            return self._start(command, grant, progress, permit, keeps_recent=keeps_recent)
        async with self._gate.programs_stopped(waits_for_searches=not is_search):
            check_not_replaced(command.unmoved)
            child = self._start(command, grant, progress, permit, keeps_recent=keeps_recent)
            if is_search:
                self._gate.hold_for(child)
                return child
            try:
                await self._gate.wait_until_begun(child)
            except BaseException:
                child.kill()
                raise
            return child

    async def _search_ahead(self, command: Command, grant: Grant | None) -> None:
        """Let the sandbox search a large workspace in a thread: `_start` would block for that time."""
        backend = self._sandbox_backend() if grant is not None and _is_sandboxed(command, grant) else None
        if backend is None or grant is None:
            return
        from bradawl.sandbox.backend import SearchesAhead

        async with self._checks.lock():
            rest = backend.search_ahead(grant) if isinstance(backend, SearchesAhead) else None
            if rest is not None:
                await in_other_thread(rest, rest.stop)

    async def check_running(
        self, jobs: Collection[object] = (), wake: Callable[[], None] | None = None
    ) -> CheckReport | None:
        """See `RunningChecks.check`: check what sandboxed programs do in the workspace, while they run."""
        is_needed = any(child.is_sandboxed for child in self._running)
        return await self._checks.check(self._sandbox_backend(), jobs, wake) if is_needed else None

    def close(self) -> None:
        """Kill all running programs and remove the temporary folder; safe to call twice."""
        for child in tuple(self._running):
            child.kill()
        self._watchdog.close()
        self._folder.close()

    def _start(
        self,
        command: Command,
        grant: Grant | None,
        progress: Progress | None,
        permit: Permit | None,
        *,
        keeps_recent: bool = False,
    ) -> ChildProcess:
        if grant is None:
            raise ToolError(f"not allowed: {command.argv[0][:80]!r} has no grant, so it was not started")
        if command.is_shell and grant.command_hash and grant.command_hash != self.seal(command):
            raise ToolError(
                "the command was not started: its folder, its variables or the sandbox changed since it was approved; "
                "call it again"
            )
        mark = f"{self._mark}.{os.urandom(8).hex()}"
        streams = None
        try:
            streams = ProgramStreams(command, progress, self._folder, self._flood_bytes)
            streams.keeps_recent = keeps_recent
            if command.is_shell:  # other programs end by themselves when their output is closed
                self._watchdog.start()
            sandbox_backend = self._sandbox_backend() if _is_sandboxed(command, grant) else None
            program = msgspec.structs.replace(self._program(command, streams.sinks, mark), permit=permit)
            if sandbox_backend is None:
                process, child_sandbox = _popen(_unsandboxed(program), streams.sinks), ChildSandbox()
            else:
                process, child_sandbox = self._sandboxed(sandbox_backend, program, grant, streams.sinks, mark)
        except (OSError, ValueError) as error:
            if streams is not None:
                streams.close()
            raise _start_error(command, error) from error
        except ToolError:
            if streams is not None:
                streams.close()
            raise
        child = ChildProcess(process, streams, mark, self._term_grace_s, self._forget, child_sandbox)
        self._running.add(child)
        if command.is_shell:
            self._watchdog.guard(child.leader_pid, self._folder.place)
        self._checks.begin(child, sandbox_backend, child_sandbox.covers)
        return child

    def _sandboxed(
        self, sandbox_backend: "SandboxBackend", program: "Program", grant: Grant, sinks: tuple[int, ...], mark: str
    ) -> "tuple[subprocess.Popen[bytes], ChildSandbox]":
        """Start a program in the sandbox. Raises `OSError`, `ValueError`, `ToolError`; nothing is left then."""
        if not Path(sandbox_backend.host_path(program.cwd)).is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder", program.cwd)
        if not os.access(program.argv[0], os.X_OK):
            raise FileNotFoundError(errno.ENOENT, "no such program", program.argv[0])
        launch = sandbox_backend.launch(program, grant)
        try:
            process = _popen(launch, sinks)
        except BaseException:
            if launch.info_fd >= 0:
                os.close(launch.info_fd)
            if launch.network is not None:
                launch.network.close()
            if launch.on_end is not None:
                launch.on_end()
            raise
        finally:
            for descriptor in launch.close_after_start:
                os.close(descriptor)
        init = _init_of(launch, mark, self._on_init(launch)) if launch.info_fd >= 0 else None
        name, codes = sandbox_backend.sandbox.name, launch.reports_signals_as_codes
        has_launcher = launch.argv != program.argv
        ends = (launch.on_end, sandbox_backend.host_path)
        return process, ChildSandbox(
            name,
            init,
            codes,
            *ends,
            has_launcher,
            program.argv[-1],
            launch.notes,
            launch.search_after,
            launch.explain_setup_error,
            launch.network,
            launch.covers,
        )

    def _on_init(self, launch: "Launch") -> Callable[[int], None]:
        def guard_and_connect(init: int) -> None:
            self._watchdog.guard(init, self._folder.place)
            if launch.covers is not None:
                launch.covers.open(init, self._gate)
            if launch.network is not None:
                launch.network.open(init)

        return guard_and_connect

    def _forget(self, child: ChildProcess) -> None:
        self._running.discard(child)
        self._gate.release(child)
        self._watchdog.release(*child.leader_pids)
        self._checks.end(child)

    def _program(self, command: Command, sinks: tuple[int, ...], mark: str) -> "Program":
        from bradawl.sandbox.backend import Program  # many runs start no program

        environment = self._environment_of(command)
        environment[MARK] = f"{self._environment.get(MARK, '')} {mark}".lstrip()
        own = {MARK}
        if not command.is_shell:
            argv = (self._program_path(command), *command.argv[1:])
            trusted = self._programs.without_foreign_libraries(environment)
            return Program(argv, command.cwd, trusted, exported=(MARK, *command.env))
        argv = (self._bash or "/bin/sh", "-c", *command.argv)
        inherited, readable = (), ()
        if self._bash:
            inherited, readable = sinks[2:], (PRELUDE,)
            for name in (HELD_BACK, "POSIXLY_CORRECT"):
                environment.pop(name, None)
            if "BASH_ENV" in environment:
                environment[HELD_BACK] = environment["BASH_ENV"]
            environment |= {"BASH_ENV": PRELUDE, REPORT_FD: str(sinks[2]), TRAPS: traps_for(command)}
            own |= {"BASH_ENV", REPORT_FD, HELD_BACK, TRAPS}
        path = self._environment.get("PATH", "")
        return Program(argv, command.cwd, environment, inherited, readable, path, (*own, *command.env))

    def _program_path(self, command: Command) -> str:
        """Path of a program that is not a shell line. Raises `FileNotFoundError` for one that only the
        workspace has.
        """
        name = command.argv[0] if command.argv else ""
        if name.startswith("/") or ("/" in name and not command.is_helper):
            return name
        if name and not command.is_helper and (found := self._programs.find(name)):
            return found
        raise FileNotFoundError(errno.ENOENT, "no such program", name)

    @cached_property
    def _helper_environment(self) -> dict[str, str]:
        """Environment of helpers: no variable names a program, or a folder with code that a project can change.

        An interpreter built with shared libraries needs LD_LIBRARY_PATH to find them.
        """
        kept = {name: self._environment[name] for name in ("HOME", "LD_LIBRARY_PATH") if name in self._environment}
        return {"HOME": "/", **kept, "PATH": _HELPERS_PATH}

    def _environment_of(self, command: Command) -> dict[str, str]:
        given = self._helper_environment if command.is_helper else self._environment
        if not command.env:
            return {**given, "PWD": command.cwd}
        merged = {**given, **command.env, "PWD": command.cwd}
        return {name: value for name, value in merged.items() if value is not None}


def _init_of(launch: "Launch", mark: str, on_known: Callable[[int], None]) -> "NamespaceInit":
    """What ends the processes of a sandboxed program. Without a sandbox nothing is imported."""
    if launch.is_supervised:
        from bradawl.workspace.program_supervisor import ProgramSupervisor

        return ProgramSupervisor(launch.info_fd, mark, on_known)
    from bradawl.workspace.namespace_init import NamespaceInit

    return NamespaceInit(launch.info_fd, mark, on_known)


def _without_traps(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of programs, without variables that make them wait for input or run code."""
    kept = {
        name: value for name, value in environment.items() if name not in _NOT_OURS and not name.startswith(_FUNCTIONS)
    }
    found = {**kept, **_OWN_ENVIRONMENT}
    if libraries := found.get("LD_LIBRARY_PATH"):
        # An empty or relative entry would load libraries from the working directory.
        absolute = (each for each in libraries.replace(";", ":").split(":") if each.startswith("/"))
        found["LD_LIBRARY_PATH"] = ":".join(absolute)
    return found


def _is_sandboxed(command: Command, grant: Grant) -> bool:
    return not grant.outside_sandbox and (command.is_shell or not command.is_helper)


def _temporary(environment: Mapping[str, str], roots: tuple[str, ...]) -> str:
    named = environment.get("TMPDIR", "")
    is_usable = bool(named) and not any(is_within(os.path.realpath(named), root) for root in roots)
    return named if is_usable else str(Path("/") / "tmp")


def _no_sandbox() -> None:
    """No backend: programs run with the user's rights."""


def _unsandboxed(program: "Program") -> "Launch":
    from bradawl.sandbox.backend import Launch

    return Launch(program.argv, program.cwd, program.environment, program.inherited)


def _popen(launch: "Launch", sinks: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    with launch.limit_processes() if launch.limit_processes else nullcontext():
        return subprocess.Popen(
            launch.argv,
            cwd=launch.cwd,
            env=launch.environment,
            stdin=subprocess.DEVNULL,
            stdout=sinks[0],
            stderr=sinks[1],
            pass_fds=launch.inherited,
            start_new_session=True,
        )


def _state_of(name: str, folders: Sequence[str], real: Callable[[str], str]) -> str:
    """Identity of a program on PATH or of a script; changes when the file is replaced or changed."""
    is_script = "/" in name
    places = (real(name),) if is_script else [f"{folder}/{name}" for folder in folders]
    for place in places:
        try:
            found = os.stat(place)  # noqa: PTH116 - half of the time of `Path.stat`, and many are looked at
            if is_script or found.st_mode & 0o111:
                return f"{place}\0{found.st_mode}\0{_content_of(place, found, is_script=is_script)}"
        except (OSError, ValueError):
            continue
    return name


def _content_of(path: str, found: os.stat_result, *, is_script: bool) -> str:
    """Content digest of a small script; inode and times of a program. Raises `OSError`."""
    if stat.S_ISDIR(found.st_mode):
        return ""
    if is_script and stat.S_ISREG(found.st_mode) and found.st_size <= _READ_WHOLE:
        return _digest(path)
    return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _digest(path: str) -> str:
    """sha256 of a regular file; does not block on a FIFO."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return sha256(file.read(_READ_WHOLE + 1)).hexdigest()


def _start_error(command: Command, error: OSError | ValueError) -> ToolError:
    program = command.argv[0][:80] if command.argv and not command.is_shell else "the shell"
    if isinstance(error, ValueError):
        wrong = "half a character" if isinstance(error, UnicodeError) else "a NUL character"
        return ToolError(f"{program} can't be started: {wrong} is in its arguments; leave it out")
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
