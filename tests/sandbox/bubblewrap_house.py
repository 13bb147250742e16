"""Programs held by bubblewrap, as root or as nobody."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from bwrap import BWRAP
from landlock_house import NOBODY, Ended, House

from bradawl.core.permissions import Grant
from bradawl.safety.sandbox.bubblewrap import Bubblewrap, Shape
from bradawl.safety.sandbox.confinement import Program


class BubblewrapHouse(House):
    """The same house with other walls."""

    def __init__(self, place: Path, user: str) -> None:
        super().__init__(place, user)
        self.confinement.close()
        self.layout = msgspec.structs.replace(self.layout, scratch=f"{self.own}/tmp")
        self.hold_anew()

    def hold_anew(self, *roots: Path) -> None:
        """As a session that starts now would; in these roots, if any are given."""
        if roots:
            self.layout = msgspec.structs.replace(self.layout, roots=tuple(map(str, roots)))
        if isinstance(self.confinement, Bubblewrap):
            self.confinement.close()
        self.confinement = Bubblewrap(self.layout, Shape(BWRAP))

    def run(
        self,
        argv: tuple[str, ...],
        *,
        grant: Grant | None = None,
        env: Mapping[str, str] | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Ended:
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), **(env or {})}
        program = Program(argv, str(self.root), environment, exported=tuple(env or ()))
        launch = self.confinement.launch(program, Grant(writable=self.layout.roots) if grant is None else grant)
        self._give_away()
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
                **({"user": NOBODY, "group": NOBODY, "extra_groups": ()} if self.user == "nobody" else {}),
            )
        finally:
            for descriptor in launch.close_after_start:
                os.close(descriptor)
        with started:
            if meanwhile:
                meanwhile()
            started.wait(30)
            self._end(launch.told)
            out, err = started.communicate(timeout=5)
        return Ended(started.returncode, out.decode(), err.decode(), launch.on_end())

    def _give_away(self) -> None:
        """What the agent has made it makes as the user that runs the programs; here that is another one."""
        if self.user == "nobody":
            for path in (self.place, *self.place.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    @staticmethod
    def _end(told: int) -> None:
        said = os.read(told, 4_096)
        os.close(told)
        try:
            os.kill(msgspec.json.decode(said, type=dict[str, int])["child-pid"], signal.SIGKILL)
        except (msgspec.DecodeError, ProcessLookupError):
            return


@contextmanager
def bubblewrap_house(user: str = "me", parent: str = "/var/tmp") -> Iterator[BubblewrapHouse]:
    """In a folder that another user can reach and that is not below `/tmp`, which programs see another one of."""
    with tempfile.TemporaryDirectory(prefix="bradawl-house-", dir=parent) as place:
        Path(place).chmod(0o755)
        made = BubblewrapHouse(Path(os.path.realpath(place)), user)
        try:
            yield made
        finally:
            made.close()
