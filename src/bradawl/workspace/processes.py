"""Programs of the workspace, started on this machine."""

import errno
import os
import subprocess
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from bradawl.core.errors import ToolError
from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.workspace.child import Child
from bradawl.workspace.pipes import Progress, Streams
from bradawl.workspace.prelude import HELD_BACK, MARK, REPORT_FD
from bradawl.workspace.private import PrivateFolder
from bradawl.workspace.watchdog import Watchdog

_TERM_GRACE_S = 1.6  # with the little that follows a call ends two seconds after its time is over
_FLOOD_BYTES = 10_000_000_000
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
_LEFT_OUT = {"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"}  # each makes bash run or do what nobody asked for
_FUNCTIONS = "BASH_FUNC_"  # they would stand for programs of the same name
_NOT_OURS = _LEFT_OUT | {"OLDPWD"}  # where the user came from is nowhere `cd -` should lead to


class LocalProcesses:
    """`Processes` on this machine, each in a session of its own with nothing to read. Its maker calls `close()`."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        bash: str | None = None,
        term_grace_s: float = _TERM_GRACE_S,
        flood_bytes: int = _FLOOD_BYTES,
    ) -> None:
        """`environment` is what programs see, save for the variables that would make them wait for a person.

        `bash` is looked for on its PATH; empty means that there is none and that /bin/sh runs shell lines, without
        telling its last folder. `term_grace_s` is what a program has after a timeout to clean up; who prints
        more than `flood_bytes` is ended at once.
        """
        kept = {
            name: value
            for name, value in environment.items()
            if name not in _NOT_OURS and not name.startswith(_FUNCTIONS)
        }
        self._environment = {**kept, **_OWN_ENVIRONMENT}
        self._folder = PrivateFolder(environment.get("TMPDIR") or str(Path("/") / "tmp"))
        self._bash = _find("bash", self._environment) if bash is None else bash
        self._term_grace_s = term_grace_s
        self._flood_bytes = flood_bytes
        self._mark = os.urandom(8).hex()
        self._watchdog = Watchdog(self._mark, self._environment.get("PATH", os.defpath))
        self._running: set[Child] = set()

    def seal(self, command: Command) -> str:
        """Names a shell line with all that decides what it would do now: text, folder, variables."""
        try:
            found = Path(command.cwd).stat()
            place = f"{os.path.realpath(command.cwd)}\0{found.st_dev}\0{found.st_ino}"
        except OSError:
            place = command.cwd
        variables = sorted(self._environment_of(command).items())
        parts = (*command.argv, place, self._bash or "", *(f"{name}={value}" for name, value in variables))
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()

    async def run(self, command: Command, grant: Grant | None, progress: Progress | None = None) -> CommandResult:
        """Run to the end; on timeout or cancellation the process group is ended and reaped.

        Returns when the program itself has ended, not when its output is closed: what it left running is ended
        then, also what moved to a session of its own, and `ended_background` says so. Only who cleared the
        environment and whose parents are gone gets away. After a timeout what was printed is kept. Raises
        `ToolError` when the program can't be started.
        """
        child = self._start(command, grant, progress)
        if await child.wait(command.timeout_s):
            return child.result()
        await child.end()
        return msgspec.structs.replace(child.result(), exit_code=None)

    async def start(self, command: Command, grant: Grant | None, progress: Progress | None = None) -> Child:
        """Start it and leave it running. Raises `ToolError` when the program can't be started."""
        return self._start(command, grant, progress, keeps_recent=True)

    def close(self) -> None:
        """Kill what still runs, and remove the temporary folder; safe to call twice."""
        for child in tuple(self._running):
            child.kill()
        self._watchdog.close()
        self._folder.close()

    def _start(
        self, command: Command, grant: Grant | None, progress: Progress | None, *, keeps_recent: bool = False
    ) -> Child:
        if grant is None:
            raise ToolError(f"not allowed: {command.argv[0][:80]!r} has no grant, so it was not started")
        mark = f"{self._mark}.{os.urandom(8).hex()}"
        streams = None
        try:
            streams = Streams(command, progress, self._folder, self._flood_bytes)
            streams.keeps_recent = keeps_recent
            if command.is_shell:  # what else runs here ends by itself when nobody reads it
                self._watchdog.start()
            process = self._popen(command, streams.sinks, mark)
        except (OSError, ValueError) as error:
            if streams is not None:
                streams.close()
            raise _start_error(command, error) from error
        child = Child(process, streams, mark, self._term_grace_s, self._forget)
        self._running.add(child)
        if command.is_shell:
            self._watchdog.guard(child.leader, self._folder.place)
        return child

    def _forget(self, child: Child) -> None:
        self._running.discard(child)
        self._watchdog.release(child.leader)

    def _popen(self, command: Command, sinks: tuple[int, ...], mark: str) -> "subprocess.Popen[bytes]":
        environment = self._environment_of(command)
        argv, inherited = command.argv, ()
        environment[MARK] = f"{self._environment.get(MARK, '')} {mark}".lstrip()
        if command.is_shell:
            argv = (self._bash or "/bin/sh", "-c", *command.argv)
            if self._bash:
                inherited = sinks[2:]
                environment.pop(HELD_BACK, None)
                if "BASH_ENV" in environment:
                    environment[HELD_BACK] = environment["BASH_ENV"]
                environment |= {"BASH_ENV": self._folder.prelude(), REPORT_FD: str(sinks[2])}
        return subprocess.Popen(
            argv,
            cwd=command.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sinks[0],
            stderr=sinks[1],
            pass_fds=inherited,
            start_new_session=True,
        )

    def _environment_of(self, command: Command) -> dict[str, str]:
        if not command.env:
            return {**self._environment, "PWD": command.cwd}
        merged = {**self._environment, **command.env, "PWD": command.cwd}
        return {name: value for name, value in merged.items() if value is not None}


def _find(name: str, environment: Mapping[str, str]) -> str | None:
    candidates = [Path(folder, name) for folder in os.get_exec_path(environment)] + [Path("/bin", name)]
    return next((str(path) for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)


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
