"""A user with a home folder and a project, who runs `bradawl config`."""

import io
import os

from bradawl.app.cli import run
from bradawl.app.console import Console


class ConfigWorld:
    """A user with a home folder and a project."""

    def __init__(self, folder):
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        (self.project / ".git").mkdir(parents=True)
        self.file = self.home / ".config" / "bradawl" / "config.toml"
        self.environ = {"HOME": str(self.home), "PATH": os.defpath}

    def write(self, text, path=None):
        path = path or self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)

    def run(self, *words, **environ) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        environ = {**self.environ, **environ}
        code = run(["config", *words, "-C", str(self.project)], environ, Console(io.StringIO(), out, err, environ))
        return code, out.getvalue(), err.getvalue()
