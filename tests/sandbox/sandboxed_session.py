"""Shell lines of one session in bubblewrap, in a workspace with a home folder beside it."""

import asyncio
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bwrap import BINDS_DESCRIPTORS, BWRAP

from bradawl.core.permissions import Grant
from bradawl.core.workspace import Command, CommandResult
from bradawl.sandbox.backend import SandboxLayout
from bradawl.sandbox.bubblewrap import BubblewrapBackend, BubblewrapFeatures
from bradawl.sandbox.filesystem.tree_removal import remove_folder
from bradawl.workspace.processes import LocalProcesses

# The Python of the tests comes last: some systems have no other.
SYSTEM_PATH = f"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{Path(sys.executable).resolve().parent}"


class SandboxedSession:
    """A workspace, a home with keys, bradawl's own folders, and a shell that runs lines in the sandbox."""

    def __init__(self, place: Path, environment: Mapping[str, str] | None = None, **layout) -> None:
        self.place = Path(os.path.realpath(place))
        self.root, self.home, self.outside = self.place / "ws", self.place / "home", self.place / "outside"
        self.own, self.cache = self.home / ".config/bradawl", self.place / "cache"
        for folder in (self.root, self.home / ".ssh", self.own, self.outside):
            folder.mkdir(parents=True, exist_ok=True)
        (self.home / ".ssh/id_ed25519").write_text("PRIVATE")
        (self.own / "credentials").write_text("PRIVATE")
        (self.outside / "file").write_text("outside")
        given = {
            "roots": (str(self.root),),
            "home": str(self.home),
            "own": (str(self.own),),
            "cache": str(self.cache),
            "scratch": str(self.place / "scratch"),
            "state": str(self.own / "state"),
        }
        self.layout = SandboxLayout(**{**given, **layout})
        self.backend = BubblewrapBackend(self.layout, BubblewrapFeatures(BWRAP, binds_descriptors=BINDS_DESCRIPTORS))
        self.environment = {"PATH": SYSTEM_PATH, "HOME": str(self.home), "TMPDIR": os.environ["TMPDIR"]}
        self.environment |= environment or {}
        self.processes = LocalProcesses(self.environment, sandbox_backend=lambda: self.backend)
        self.cwd = str(self.root)
        self.env: dict[str, str | None] = {}
        self.grant = Grant(writable=self.layout.roots)

    async def arun(self, line: str, grant: Grant | None = None, **options) -> CommandResult:
        command = Command((line,), self.cwd, is_shell=True, env=dict(self.env), **options)
        return await self.processes.run(command, self.grant if grant is None else grant)

    def run(self, line: str, grant: Grant | None = None, **options) -> CommandResult:
        """Run a line. Its working directory and exports apply to the next line, as in a session."""
        result = asyncio.run(self.arun(line, grant, **options))
        self.cwd = result.cwd or self.cwd
        self.env |= result.exports
        return result

    def out(self, line: str, grant: Grant | None = None) -> str:
        result = self.run(line, grant)
        return (result.stdout + result.stderr).decode("utf-8", "replace")

    def bare(self, line: str) -> str:
        return self.out(line, Grant(outside_sandbox=True))

    def write(self, name: str, text: str = "", mode: int = 0o644) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def git_init(self, folder: str = ".") -> Path:
        """A repository with one commit."""
        self.bare(
            f"mkdir -p {folder}; cd {folder}; git init -q -b main; {IDENTITY}; git commit -q --allow-empty -m one"
        )
        return self.root / folder / ".git"

    def close(self) -> None:
        self.processes.close()
        self.backend.close()


IDENTITY = "git config user.name A; git config user.email a@b.c"


@contextmanager
def sandboxed_session(
    place: Path, environment: Mapping[str, str] | None = None, **layout
) -> Iterator[SandboxedSession]:
    made = SandboxedSession(place, environment, **layout)
    try:
        yield made
    finally:
        made.close()


def tree(folder: Path) -> dict[str, str]:
    """Path to content of each file below a folder, or to the type character of other entries."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        kind = stat.filemode(mode)[0]
        found[str(path.relative_to(folder))] = path.read_text("utf-8", "replace") if kind == "-" else kind
    return found


__all__ = ["IDENTITY", "SYSTEM_PATH", "SandboxedSession", "remove_folder", "sandboxed_session", "tree"]
