"""A repository of git whose history is watched, and ways to damage it."""

import os
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bradawl.sandbox.restore.git_history import GitHistory, RepositoryLocation

_IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")
_ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}


class Repository:
    def __init__(self, top: Path) -> None:
        self.top, self.root, self.data, self.kept = top, top / "ws", top / "ws/.git", top / "state"
        self.histories: list[GitHistory] = []
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("one")
        self.history = self.new_history()

    def new_history(self) -> GitHistory:
        made = GitHistory(lambda: [RepositoryLocation(str(self.data), str(self.root))], str(self.kept))
        self.histories.append(made)
        return made

    def close(self) -> None:
        for each in self.histories:
            each.close()

    def git(self, *words: str, folder: Path | None = None) -> str:
        ended = subprocess.run(
            ("git", *_IDENTITY, *words), cwd=folder or self.root, env=_ENVIRONMENT, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def commit(self, text: str) -> str:
        (self.root / "a").write_text(text)
        self.git("add", "a")
        self.git("commit", "-qm", text)
        return self.git("rev-parse", "HEAD")

    def is_whole(self) -> bool:
        """Whether git finds no missing or damaged object."""
        self.git("fsck", "--full", "--strict", "--no-dangling")
        return True

    def loose(self) -> list[Path]:
        return sorted(self.data.glob("objects/??/*"))

    def packs(self, kind: str = "pack") -> list[Path]:
        return sorted(self.data.glob(f"objects/pack/*.{kind}"))


def rewrite(path: Path, content: bytes) -> None:
    """Write a file that may be read-only, as another program would: the time of change is another."""
    time.sleep(0.02)
    path.chmod(0o644)
    path.write_bytes(content)


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """Files can't become larger; a write beyond that stops in the middle first, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
