"""Programs that run with Landlock, as root or as the user nobody."""

import os
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from bradawl.core.permissions import Grant
from bradawl.sandbox.backend import Launch, Program, SandboxLayout
from bradawl.sandbox.landlock import LandlockBackend
from bradawl.sandbox.landlock_helper import version

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
_HAS_PYTHON = os.access(SYSTEM_PYTHON, os.X_OK)
# Some systems have only the Python of the tests, which other users may not be able to reach.
PROGRAMS = "/usr/local/bin:/usr/bin:/bin" + ("" if _HAS_PYTHON else f":{Path(sys.executable).parent}")
USERS = ("me", "nobody") if os.geteuid() == 0 and _HAS_PYTHON else ("me",)
NET_RAW, SYS_ADMIN = 13, 21
needs_whole_landlock = pytest.mark.skipif(
    not sys.platform.startswith("linux") or version() < 6, reason="Landlock is missing here, or too old"
)


def _has_all_rights() -> bool:
    """Whether this process has the capabilities that the attempts need to succeed without a sandbox. Root in a
    container may lack them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = int(next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0"), 16)
    return all(held >> each & 1 for each in (NET_RAW, SYS_ADMIN))


HAS_ALL_RIGHTS = _has_all_rights()


class Ended(msgspec.Struct, frozen=True):
    """Exit code and output of a sandboxed program."""

    code: int
    out: str
    err: str
    restored: tuple[str, ...]


class SandboxedPrograms:
    """A workspace with a home folder beside it, and programs that run there as one user."""

    def __init__(self, place: Path, user: str) -> None:
        self.place = place
        self.root, self.home, self.outside = place / "ws", place / "home", place / "outside"
        self.own, self.scratch, self.cache = self.home / ".config/bradawl", place / "scratch", place / "cache"
        for folder in (self.root / ".git/hooks", self.home / ".ssh", self.own, self.scratch, self.cache, self.outside):
            folder.mkdir(parents=True, exist_ok=True)
        self.write(self.root / ".git/config", "[core]\n")
        self.write(self.home / ".ssh/id_ed25519", "PRIVATE")
        self.write(self.own / "credentials", "PRIVATE")
        self.write(self.outside / "file", "outside")
        self.user = user
        self.layout = SandboxLayout(
            roots=(str(self.root),),
            home=str(self.home),
            own=(str(self.own),),
            cache=str(self.cache),
            scratch=str(self.scratch),
            state=str(self.own / "state"),
        )
        python = SYSTEM_PYTHON if user == "nobody" else ""
        self.backend = LandlockBackend(self.layout, interpreter=python)
        self.give_away()

    @property
    def as_user(self) -> dict[str, Any]:
        """Command prefix that starts a program as the user of these programs."""
        return {"user": NOBODY, "group": NOBODY, "extra_groups": ()} if self.user == "nobody" else {}

    def give_away(self) -> None:
        """Give everything to the user of the programs. An agent creates its files as that user."""
        if self.user == "nobody":
            for path in (self.place, *self.place.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def sh(self, line: str, *, grant: Grant | None = None, env: Mapping[str, str] | None = None) -> Ended:
        """Run a line of bash in the sandbox and wait for its end."""
        return self.run(("/bin/bash", "-c", line), grant=grant, env=env)

    def bare(self, line: str, env: Mapping[str, str] | None = None) -> str:
        """Output of a line of bash without a sandbox."""
        self.give_away()
        ended = subprocess.run(
            ["/bin/bash", "-c", line],
            cwd=self.root,
            env=self._variables(env),
            capture_output=True,
            text=True,
            check=False,
            **self.as_user,
        )
        return ended.stdout

    def run(
        self,
        argv: tuple[str, ...],
        *,
        grant: Grant | None = None,
        env: Mapping[str, str] | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Ended:
        program = Program(argv, str(self.root), self._variables(env), exported=tuple(env or ()))
        launch = self.backend.launch(program, Grant(writable=self.layout.roots) if grant is None else grant)
        self.give_away()
        try:
            started = subprocess.Popen(
                launch.argv,
                cwd=launch.cwd,
                env=dict(launch.environment),
                pass_fds=launch.inherited,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                **self.as_user,
            )
        finally:
            for descriptor in launch.close_after_start:
                os.close(descriptor)
        with started:
            if meanwhile:
                meanwhile()
            self._end_all(started, launch)
            out, err = started.communicate(timeout=60)
        if launch.is_supervised:
            self._ending.join()
            if launch.network is not None:
                launch.network.close()
            os.close(launch.info_fd)
        return Ended(started.returncode, os.fsdecode(out), os.fsdecode(err), launch.on_end() if launch.on_end else ())

    def _variables(self, env: Mapping[str, str] | None) -> dict[str, str]:
        return {"PATH": PROGRAMS, "HOME": str(self.home), **(env or {})}

    def _end_all(self, started: "subprocess.Popen[Any]", launch: Launch) -> None:
        """End all remaining processes of the program, which would keep its output open."""
        if launch.is_supervised:
            ended = os.pidfd_open(started.pid)
            self._ending = threading.Thread(target=self._end_supervised, args=(ended, launch.info_fd))
            self._ending.start()

    @staticmethod
    def _end_supervised(ended: int, supervisor: int) -> None:
        await_end(ended)
        with suppress(BrokenPipeError):  # nothing was left
            os.write(supervisor, b"k")

    def close(self) -> None:
        self.backend.close()


def await_end(process: int) -> None:
    """Wait for the end of the process of a pidfd, at most 30 s, and close the pidfd.

    `Popen.wait` with a limit sleeps between its looks for up to 16 ms, too long for tests that measure.
    """
    select.select([process], [], [], 30)
    os.close(process)


def need_landlock() -> None:
    """Skip the test where the kernel has no Landlock or a seccomp filter refuses it."""
    if not sys.platform.startswith("linux") or not version():
        pytest.skip("Landlock is not switched on here")


_Kind = TypeVar("_Kind", bound=SandboxedPrograms)


@contextmanager
def built_in(kind: type[_Kind], user: str, parent: str) -> Iterator[_Kind]:
    """Programs of this class in a folder below `parent` that other users can reach. `tmp_path` is not."""
    with tempfile.TemporaryDirectory(prefix="bradawl-programs-", dir=parent) as place:
        Path(place).chmod(0o755)
        made = kind(Path(os.path.realpath(place)), user)
        try:
            yield made
        finally:
            made.close()


def landlock_programs(user: str = "me") -> AbstractContextManager[SandboxedPrograms]:
    """Programs that run with Landlock. Skips the test where there is no Landlock."""
    need_landlock()
    return built_in(SandboxedPrograms, user, "/tmp")
